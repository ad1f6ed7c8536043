//! Region formation (thesis §3.5.3.1): greedy, breadth first, exits seed new regions.

use super::flow::Flow;
use super::{Region, RegionIndex, loops};
use pleach_annotate::id::BlockIndex;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// The regions of a function in the order in which they are seeded, and by block the region that it is in.
pub(super) fn form(flow: &Flow, threshold: u64) -> (Vec<Region>, Vec<Option<RegionIndex>>) {
    let blocks = flow.successors.len();
    let mut this = Formation {
        flow,
        threshold,
        innermost: loops::innermost(flow),
        region_of: vec![None; blocks],
        ways_in: vec![0; blocks],
        inside: vec![0; blocks],
    };
    let mut regions: Vec<Region> = Vec::new();
    let mut seeds: VecDeque<BlockIndex> = (blocks != 0).then_some(BlockIndex::ENTRY).into_iter().collect();
    // Every reachable block is in a region or an exit of one.
    while let Some(seed) = seeds.pop_front() {
        if this.region_of[seed.index()].is_some() {
            continue;
        }
        let region = this.grow(seed, RegionIndex(regions.len() as u32));
        seeds.extend(&region.exits);
        regions.push(region);
    }
    (regions, this.region_of)
}

struct Formation<'a> {
    flow: &'a Flow,
    threshold: u64,
    innermost: Vec<Option<BlockIndex>>,
    region_of: Vec<Option<RegionIndex>>,
    /// By block: paths from its region's entry to it.
    ways_in: Vec<u64>,
    /// By block: how many of its outgoing edges stay in its region.
    inside: Vec<usize>,
}

impl Formation<'_> {
    fn grow(&mut self, entry: BlockIndex, index: RegionIndex) -> Region {
        self.region_of[entry.index()] = Some(index);
        self.ways_in[entry.index()] = 1;
        let mut body = vec![entry];
        let mut paths = 1;
        let mut queue: VecDeque<BlockIndex> = self.flow.successors[entry.index()].iter().copied().collect();
        while let Some(block) = queue.pop_front() {
            if !self.may_join(block, entry, index) {
                continue;
            }
            // The number of paths never decreases when another block joins, so a refused block would be refused later,
            // too.
            let more = self.paths_with(block, paths);
            if more >= self.threshold {
                continue;
            }
            self.join(block, index);
            paths = more;
            body.push(block);
            queue.extend(&self.flow.successors[block.index()]);
        }
        let exits = self.exits(&body, entry, index);
        Region { body, exits, paths }
    }

    /// Rules 1 and 2: the block is entered from the region only, and is in the same loops.
    fn may_join(&self, block: BlockIndex, entry: BlockIndex, index: RegionIndex) -> bool {
        let mut entered_from = self.flow.predecessors[block.index()].iter();
        self.region_of[block.index()].is_none()
            && !self.flow.begins[block.index()]
            && self.innermost[block.index()] == self.innermost[entry.index()]
            && entered_from.all(|from| self.region_of[from.index()] == Some(index))
    }

    /// The number of paths if a block joins. Each path to it ends there, because none of its successors is in the
    /// region yet. No path ends any longer in a predecessor without another edge out of the region.
    fn paths_with(&self, block: BlockIndex, paths: u64) -> u64 {
        let (mut ways, mut ended) = (0_u64, 0_u64);
        for from in &self.flow.predecessors[block.index()] {
            let from = from.index();
            ways = ways.saturating_add(self.ways_in[from]);
            if self.inside[from] + 1 == self.flow.successors[from].len() {
                ended = ended.saturating_add(self.ways_in[from]);
            }
        }
        (paths - ended).saturating_add(ways)
    }

    fn join(&mut self, block: BlockIndex, index: RegionIndex) {
        self.region_of[block.index()] = Some(index);
        let mut ways = 0;
        for from in &self.flow.predecessors[block.index()] {
            ways += self.ways_in[from.index()];
            self.inside[from.index()] += 1;
        }
        self.ways_in[block.index()] = ways;
    }

    fn exits(&self, body: &[BlockIndex], entry: BlockIndex, index: RegionIndex) -> Vec<BlockIndex> {
        let (mut exits, mut seen) = (Vec::new(), FxHashSet::default());
        for to in body.iter().flat_map(|block| &self.flow.successors[block.index()]) {
            let leaves = *to == entry || self.region_of[to.index()] != Some(index);
            if leaves && seen.insert(*to) {
                exits.push(*to);
            }
        }
        exits
    }
}
