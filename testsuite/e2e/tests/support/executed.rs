//! From the blocks that control was seen to pass to the paths that it took.
//!
//! Only blocks that have code can be seen. Where several ways lead from one such block to the next through blocks without
//! code, all of them are followed side by side until they meet again, and the paths that they took meanwhile make a class:
//! no branch of the program tells them apart.

use super::classes::Classes;
use pleach_annotate::cfg::{Cfg, ProbeTarget};
use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::{AddressMap, NodeIndex};
use pleach_annotate::probe::Address;
use pleach_feedback::ball_larus::graph::{EdgeKind, PathGraph};
use pleach_feedback::ball_larus::{End, Path, Start};
use std::collections::{BTreeMap, BTreeSet};

/// More ways than that are not followed.
const MAX_WAYS: usize = 64;

/// Which blocks one copy of a function has in the code.
pub struct Copy {
    /// Blocks whose code is at one address, in order: a branch to one of them passes all.
    groups: Vec<Vec<BlockIndex>>,
    shown: BTreeSet<BlockIndex>,
}

impl Copy {
    pub fn new(map: &AddressMap, node: NodeIndex) -> Self {
        let mut at: BTreeMap<Address, Vec<BlockIndex>> = BTreeMap::new();
        for probe in map.probes.iter().filter(|p| p.node == node) {
            if let ProbeTarget::Block(block) = probe.target {
                at.entry(probe.address).or_default().push(block);
            }
        }
        let shown = at.values().flatten().copied().collect();
        let mut groups: Vec<_> = at.into_values().collect();
        groups.sort_by_key(|g| std::cmp::Reverse(g.len()));
        groups.dedup();
        Self { groups, shown }
    }

    /// How many of the blocks that were passed next have their code at one address.
    fn together(&self, passed: &[BlockIndex]) -> usize {
        let group = self.groups.iter().find(|g| passed.starts_with(g));
        group.map_or(1, Vec::len)
    }
}

/// What activations of one copy of a function executed.
#[derive(Default)]
pub struct Executed {
    pub paths: BTreeMap<Path, u64>,
    pub classes: Classes,
    /// Blocks that have code, but were executed without it as well.
    pub lost: BTreeSet<BlockIndex>,
    /// Ways that were too many to follow.
    pub is_cut_short: bool,
}

/// Splits what activations of a copy passed into paths. What is known of the copy is corrected on the way.
pub fn executed(cfg: &Cfg, graph: &PathGraph, copy: &mut Copy, activations: &[Vec<BlockIndex>]) -> Executed {
    let mut lost = BTreeSet::new();
    loop {
        let mut walk = Walk::new(cfg, graph, copy);
        for passed in activations {
            walk.activation(passed);
        }
        // Each time there are fewer blocks to rely on.
        let found = walk.lost;
        if found.is_empty() {
            return Executed { lost, ..walk.executed };
        }
        copy.shown.retain(|block| !found.contains(block));
        lost.extend(found);
    }
}

/// One of the ways that an activation may have gone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Way {
    /// Paths that ended since the ways parted.
    ended: Vec<Path>,
    /// The path that goes on.
    open: Option<(Start, Vec<BlockIndex>)>,
}

impl Way {
    fn last(&self) -> Option<BlockIndex> {
        let (_, blocks) = self.open.as_ref()?;
        blocks.last().copied()
    }

    fn end(&mut self, end: End) {
        if let Some((start, blocks)) = self.open.take() {
            self.ended.push(Path { start, blocks, end });
        }
    }
}

struct Walk<'a> {
    cfg: &'a Cfg,
    graph: &'a PathGraph,
    copy: &'a Copy,
    ways: Vec<Way>,
    executed: Executed,
    /// Blocks without which there is no way from what was passed to what was passed next.
    lost: BTreeSet<BlockIndex>,
}

impl<'a> Walk<'a> {
    fn new(cfg: &'a Cfg, graph: &'a PathGraph, copy: &'a Copy) -> Self {
        Self {
            cfg,
            graph,
            copy,
            ways: vec![Way::default()],
            executed: Executed::default(),
            lost: BTreeSet::new(),
        }
    }

    fn activation(&mut self, mut passed: &[BlockIndex]) {
        while !passed.is_empty() {
            let (group, rest) = passed.split_at(self.copy.together(passed));
            self.pass(group);
            passed = rest;
        }
        self.leave();
    }

    /// Control got to the code of these blocks.
    fn pass(&mut self, group: &[BlockIndex]) {
        let seen: Vec<_> = group.iter().copied().filter(|b| self.copy.shown.contains(b)).collect();
        if seen.is_empty() {
            return;
        }
        let on = self.follow(|walk, way| match way.last() {
            Some(last) => walk.ways_between(Some(last), &seen),
            None => Vec::new(),
        });
        if !on.is_empty() {
            self.go(on);
            return;
        }
        let lasts: Vec<_> = self.ways.iter().filter_map(Way::last).collect();
        if !lasts.is_empty() && !seen.contains(&BlockIndex::ENTRY) {
            let next = lasts.iter().flat_map(|&last| self.successors(last)).copied().collect();
            if let Some(way) = self.shortest(next, |b| seen.contains(&b)) {
                self.lose(&way[..way.len() - 1]);
                return;
            }
        }
        self.leave();
        let into = self.follow(|walk, _| walk.ways_between(None, &seen));
        if into.is_empty()
            && let Some(way) = self.shortest(vec![BlockIndex::ENTRY], |b| seen.contains(&b))
        {
            self.lose(&way[..way.len() - 1]);
            return;
        }
        self.go(into);
    }

    /// The activation went no further that could be seen: it returned by blocks without code, or a call did not come back.
    fn leave(&mut self) {
        if self.ways.iter().all(|way| way.open.is_none()) {
            self.go(self.ways.clone());
            return;
        }
        let mut left = Vec::new();
        for way in &self.ways {
            match way.last() {
                Some(_) => self.silent_ends(way, &mut Vec::new(), &mut left),
                None => left.push(way.clone()),
            }
        }
        if left.is_empty() {
            let next = self.ways.iter().filter_map(Way::last);
            let next = next.flat_map(|last| self.successors(last)).copied().collect();
            if let Some(way) = self.shortest(next, |b| self.successors(b).is_empty()) {
                self.lose(&way);
            }
            left.push(Way::default());
        }
        self.go(left);
    }

    /// Goes on with these ways. Where they have met, the paths that they took are told.
    fn go(&mut self, mut ways: Vec<Way>) {
        ways.sort();
        ways.dedup();
        if ways.len() > MAX_WAYS {
            self.executed.is_cut_short = true;
            ways.truncate(1);
        }
        if ways.iter().all(|way| way.open == ways[0].open) {
            let ended: Vec<_> = ways.iter_mut().map(|way| std::mem::take(&mut way.ended)).collect();
            for path in &ended[0] {
                *self.executed.paths.entry(path.clone()).or_default() += 1;
            }
            self.executed.classes.add(&ended);
            ways.truncate(1);
        }
        self.ways = ways;
    }

    /// What each way becomes by the blocks that it may pass next.
    fn follow(&self, next: impl Fn(&Self, &Way) -> Vec<Vec<BlockIndex>>) -> Vec<Way> {
        let mut followed = Vec::new();
        for way in &self.ways {
            for blocks in next(self, way) {
                let mut way = way.clone();
                for block in blocks {
                    self.enter(&mut way, block);
                }
                followed.push(way);
            }
        }
        followed
    }

    /// The ways from a block, or into the function, to the last of these: through blocks without code, then through some of
    /// these. Each of them without what it begins at.
    fn ways_between(&self, from: Option<BlockIndex>, group: &[BlockIndex]) -> Vec<Vec<BlockIndex>> {
        let mut ways = Vec::new();
        match from {
            Some(from) => self.search(from, group, &mut Vec::new(), &mut ways),
            None => self.visit(BlockIndex::ENTRY, group, &mut Vec::new(), &mut ways),
        }
        ways
    }

    fn search(
        &self,
        from: BlockIndex,
        group: &[BlockIndex],
        way: &mut Vec<BlockIndex>,
        ways: &mut Vec<Vec<BlockIndex>>,
    ) {
        let successors = self.successors(from);
        for (slot, &next) in successors.iter().enumerate() {
            if !successors[..slot].contains(&next) {
                self.visit(next, group, way, ways);
            }
        }
    }

    fn visit(
        &self,
        next: BlockIndex,
        group: &[BlockIndex],
        way: &mut Vec<BlockIndex>,
        ways: &mut Vec<Vec<BlockIndex>>,
    ) {
        let position = group.iter().position(|&b| b == next);
        let is_silent = position.is_none() && !self.copy.shown.contains(&next);
        if way.contains(&next) || ways.len() > MAX_WAYS || (position.is_none() && !is_silent) {
            return;
        }
        way.push(next);
        match position {
            Some(position) if position + 1 == group.len() => ways.push(way.clone()),
            Some(position) => self.search(next, &group[position + 1..], way, ways),
            None => self.search(next, group, way, ways),
        }
        way.pop();
    }

    /// The ways out of the function that nothing is seen of.
    fn silent_ends(&self, way: &Way, passed: &mut Vec<BlockIndex>, ends: &mut Vec<Way>) {
        let Some(last) = way.last() else {
            ends.push(way.clone());
            return;
        };
        if self.graph.find(EdgeKind::End(last, End::Call)).is_some() {
            let mut way = way.clone();
            way.end(End::Call);
            ends.push(way);
        }
        for &next in self.successors(last) {
            if self.copy.shown.contains(&next) || passed.contains(&next) || ends.len() > MAX_WAYS {
                continue;
            }
            let mut way = way.clone();
            self.enter(&mut way, next);
            passed.push(next);
            self.silent_ends(&way, passed, ends);
            passed.pop();
        }
    }

    fn successors(&self, block: BlockIndex) -> &'a [BlockIndex] {
        &self.cfg.blocks[block.index()].successors
    }

    fn lose(&mut self, way: &[BlockIndex]) {
        self.lost.extend(way.iter().filter(|b| self.copy.shown.contains(b)));
    }

    /// The shortest way through blocks with or without code, from one of these to a block that is wanted.
    fn shortest(&self, from: Vec<BlockIndex>, wanted: impl Fn(BlockIndex) -> bool) -> Option<Vec<BlockIndex>> {
        let mut seen: BTreeSet<BlockIndex> = from.iter().copied().collect();
        let mut ways: Vec<Vec<BlockIndex>> = from.into_iter().map(|b| vec![b]).collect();
        while !ways.is_empty() {
            if let Some(way) = ways.iter().find(|way| wanted(way[way.len() - 1])) {
                return Some(way.clone());
            }
            let longer = ways.iter().flat_map(|way| {
                let next = self.successors(way[way.len() - 1]).iter();
                next.map(|&b| way.iter().copied().chain([b]).collect::<Vec<_>>())
            });
            let longer: Vec<_> = longer.collect();
            ways = longer
                .into_iter()
                .filter(|way| seen.insert(way[way.len() - 1]))
                .collect();
        }
        None
    }

    fn enter(&self, way: &mut Way, block: BlockIndex) {
        let has = |kind| self.graph.find(kind).is_some();
        let Some((start, path)) = &mut way.open else {
            way.open = Some((Start::Entry, vec![block]));
            self.end_at_exit(way);
            return;
        };
        let last = path[path.len() - 1];
        if has(EdgeKind::Flow(last, block)) {
            path.push(block);
            self.end_at_exit(way);
        } else if has(EdgeKind::SelfLoop(block)) && last == block {
            way.ended.push(Path {
                start: Start::Inside,
                blocks: vec![block],
                end: End::Back(block),
            });
        } else {
            let ends = [End::Back(block), End::Cut(block)];
            let end = ends.into_iter().find(|&end| has(EdgeKind::End(last, end)));
            let (start, blocks) = (*start, path.clone());
            let end = end.unwrap_or_else(|| panic!("{}: no edge {} to {}", self.cfg.name, last.0, block.0));
            way.ended.push(Path { start, blocks, end });
            way.open = Some((Start::Inside, vec![block]));
            self.end_at_exit(way);
        }
    }

    fn end_at_exit(&self, way: &mut Way) {
        if way.last().is_some_and(|last| self.successors(last).is_empty()) {
            way.end(End::Exit);
        }
    }
}
