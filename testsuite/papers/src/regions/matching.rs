//! Matching sets (definition 3.2): the region paths that contain a portion of a partial path.
//!
//! `M_p = ∩ P(e_i)` over the portion's edges, the one that leaves the region included where it was seen. In an acyclic
//! region these are all ways from the entry to the portion's first block, each with all ways from its last block out,
//! so that the set is counted without being listed. A portion of one block and no edge matches the paths through that
//! block.

use pleach_analysis::regions::split::Portion;
use pleach_analysis::regions::{RegionIndex, Regions};
use pleach_annotate::id::BlockIndex;
use rustc_hash::FxHashMap;

/// Paths through a region, of all its edges or of some.
#[derive(Clone, Debug)]
pub struct RegionPaths<'a> {
    regions: &'a Regions,
    region: RegionIndex,
    /// By block: where it is in the lists below.
    position: FxHashMap<BlockIndex, usize>,
    /// Where in the region the edges that count come from.
    from: Vec<Vec<usize>>,
    /// Where in the region they lead.
    to: Vec<Vec<usize>>,
    /// A path may end there.
    ends: Vec<bool>,
    paths_in: Vec<u64>,
    paths_out: Vec<u64>,
}

impl<'a> RegionPaths<'a> {
    /// All paths of a region.
    pub fn all(regions: &'a Regions, region: RegionIndex) -> Self {
        Self::without(regions, region, |_, _| false)
    }

    /// The paths of a region that take none of the dropped edges. A path may end in a block as long as one of the edges
    /// by which it leaves the region there is not dropped.
    pub fn without(
        regions: &'a Regions,
        region: RegionIndex,
        dropped: impl Fn(BlockIndex, BlockIndex) -> bool,
    ) -> Self {
        let body = &regions.all()[region.index()].body;
        let position: FxHashMap<BlockIndex, usize> = body.iter().copied().zip(0..).collect();
        let mut this = Self {
            regions,
            region,
            from: vec![Vec::new(); body.len()],
            to: vec![Vec::new(); body.len()],
            ends: vec![false; body.len()],
            paths_in: vec![0; body.len()],
            paths_out: vec![0; body.len()],
            position,
        };
        for (at, &block) in body.iter().enumerate() {
            let successors = regions.successors(block);
            this.ends[at] = successors.is_empty();
            for &to in successors.iter().filter(|&&to| !dropped(block, to)) {
                if regions.crosses(block, to) {
                    this.ends[at] = true;
                } else {
                    let to = this.position[&to];
                    this.to[at].push(to);
                    this.from[to].push(at);
                }
            }
        }
        // Blocks come after those that lead to them.
        this.paths_in[0] = 1;
        for at in 1..body.len() {
            this.paths_in[at] = this.from[at].iter().map(|&from| this.paths_in[from]).sum();
        }
        for at in (0..body.len()).rev() {
            let onwards: u64 = this.to[at].iter().map(|&to| this.paths_out[to]).sum();
            this.paths_out[at] = u64::from(this.ends[at]) + onwards;
        }
        this
    }

    /// The region.
    pub fn region(&self) -> RegionIndex {
        self.region
    }

    /// The number of paths.
    pub fn len(&self) -> u64 {
        self.paths_out[0]
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of a portion's matching set. The portion's own edges were seen and count, dropped or not.
    ///
    /// A partial path that ended in a call that did not return matches the ways to it, none of which is a path of the
    /// region.
    pub fn count(&self, portion: &Portion) -> u64 {
        let (paths_in, paths_out) = self.around(portion);
        paths_in * paths_out
    }

    /// One path of a portion's matching set, by its position: below [`RegionPaths::count`], else `None`.
    pub fn path(&self, portion: &Portion, number: u64) -> Option<Vec<BlockIndex>> {
        let (paths_in, paths_out) = self.around(portion);
        if number >= paths_in * paths_out {
            return None;
        }
        let body = &self.regions.all()[self.region.index()].body;
        let mut blocks = self.prefix(self.position[portion.blocks.first()?], number / paths_out);
        blocks.extend_from_slice(&portion.blocks);
        if portion.leave.is_none() {
            blocks.extend(self.suffix(self.position[portion.blocks.last()?], number % paths_out));
        }
        debug_assert_eq!(blocks.first(), body.first());
        Some(blocks)
    }

    /// A portion's matching set, made one by one.
    pub fn matching(&self, portion: &Portion) -> impl Iterator<Item = Vec<BlockIndex>> {
        (0..self.count(portion)).filter_map(|number| self.path(portion, number))
    }

    /// All paths, made one by one.
    pub fn paths(&self) -> impl Iterator<Item = Vec<BlockIndex>> {
        let whole = Portion {
            region: self.region,
            blocks: vec![self.regions.all()[self.region.index()].entry()],
            leave: None,
        };
        (0..self.len()).filter_map(move |number| self.path(&whole, number))
    }

    /// The region's blocks, the entry first.
    pub fn blocks(&self) -> impl Iterator<Item = BlockIndex> {
        self.regions.all()[self.region.index()].body.iter().copied()
    }

    /// The edges within the region, by origin.
    pub fn edges(&self) -> impl Iterator<Item = (BlockIndex, BlockIndex)> {
        let body = &self.regions.all()[self.region.index()].body;
        let leaving = move |at: usize| self.to[at].iter().map(move |&to| (body[at], body[to]));
        (0..body.len()).flat_map(leaving)
    }

    /// The number of paths that take an edge within the region; 0 for an edge outside.
    pub fn through(&self, from: BlockIndex, to: BlockIndex) -> u64 {
        match (self.position.get(&from), self.position.get(&to)) {
            (Some(&from), Some(&to)) if self.to[from].contains(&to) => self.paths_in[from] * self.paths_out[to],
            _ => 0,
        }
    }

    /// The number of paths that end in a block.
    pub fn ending_in(&self, block: BlockIndex) -> u64 {
        match self.position.get(&block) {
            Some(&at) if self.ends[at] => self.paths_in[at],
            _ => 0,
        }
    }

    /// RegionPaths to a portion and on from it; none where it is not in the region.
    fn around(&self, portion: &Portion) -> (u64, u64) {
        let position = |block: Option<&BlockIndex>| self.position.get(block?).copied();
        let (Some(first), Some(last)) = (position(portion.blocks.first()), position(portion.blocks.last())) else {
            return (0, 0);
        };
        let paths_out = if portion.leave.is_some() {
            1
        } else {
            self.paths_out[last]
        };
        (self.paths_in[first], paths_out)
    }

    /// The blocks before one, on one of the ways to it.
    fn prefix(&self, mut at: usize, mut number: u64) -> Vec<BlockIndex> {
        let body = &self.regions.all()[self.region.index()].body;
        let mut blocks = Vec::new();
        while at != 0 {
            let before = self.from[at].iter().find(|&&from| {
                let is_it = number < self.paths_in[from];
                number -= if is_it { 0 } else { self.paths_in[from] };
                is_it
            });
            let Some(&before) = before else { break };
            at = before;
            blocks.push(body[at]);
        }
        blocks.reverse();
        blocks
    }

    /// The blocks after one, on one of the ways out.
    fn suffix(&self, mut at: usize, mut number: u64) -> Vec<BlockIndex> {
        let body = &self.regions.all()[self.region.index()].body;
        let mut blocks = Vec::new();
        loop {
            if self.ends[at] {
                if number == 0 {
                    return blocks;
                }
                number -= 1;
            }
            let after = self.to[at].iter().find(|&&to| {
                let is_it = number < self.paths_out[to];
                number -= if is_it { 0 } else { self.paths_out[to] };
                is_it
            });
            let Some(&after) = after else { return blocks };
            at = after;
            blocks.push(body[at]);
        }
    }
}
