//! From observed blocks to executed paths.
//!
//! Only blocks with code are observed. Where several routes lead from one to the next through blocks without code, all
//! are followed as hypotheses until they join again. The paths they took form a class: no branch distinguishes them.

use super::classes::Classes;
use pleach_annotate::cfg::{Cfg, ProbeTarget};
use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_annotate::probe::Address;
use pleach_ball_larus::graph::{EdgeKind, PathGraph};
use pleach_ball_larus::{End, Path, Start};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum of hypotheses that are followed.
const MAX_HYPOTHESES: usize = 64;

/// Which blocks one inline instance of a function has in the code.
pub struct InstanceBlocks {
    /// Blocks whose code is at one address, in order: a branch to one of them passes all.
    groups: Vec<Vec<BlockIndex>>,
    shown: BTreeSet<BlockIndex>,
}

impl InstanceBlocks {
    pub fn new(map: &AddressMap, instance: InlineInstanceIndex) -> Self {
        let mut at: BTreeMap<Address, Vec<BlockIndex>> = BTreeMap::new();
        for probe in map.probes.iter().filter(|p| p.instance == instance) {
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

    /// The number of the following blocks whose code is at one address.
    fn together(&self, passed: &[BlockIndex]) -> usize {
        let group = self.groups.iter().find(|g| passed.starts_with(g));
        group.map_or(1, Vec::len)
    }
}

/// The paths that activations of one inline instance executed.
#[derive(Default)]
pub struct Executed {
    pub paths: BTreeMap<Path, u64>,
    pub classes: Classes,
    /// Blocks that have code, but were executed without it as well.
    pub lost: BTreeSet<BlockIndex>,
    /// Whether there were more hypotheses than are followed.
    pub is_cut_short: bool,
}

/// Splits what activations of an inline instance passed into paths, and corrects the set of blocks with code.
pub fn executed(
    cfg: &Cfg,
    graph: &PathGraph,
    instance: &mut InstanceBlocks,
    activations: &[Vec<BlockIndex>],
) -> Executed {
    let mut lost = BTreeSet::new();
    loop {
        let mut walk = Walk::new(cfg, graph, instance);
        for passed in activations {
            walk.activation(passed);
        }
        // Each time there are fewer blocks to rely on.
        let found = walk.lost;
        if found.is_empty() {
            return Executed { lost, ..walk.executed };
        }
        instance.shown.retain(|block| !found.contains(block));
        lost.extend(found);
    }
}

/// One of the routes that an activation may have taken.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Hypothesis {
    /// Paths that ended since the hypotheses diverged.
    ended: Vec<Path>,
    /// The path that goes on.
    open: Option<(Start, Vec<BlockIndex>)>,
}

impl Hypothesis {
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
    instance: &'a InstanceBlocks,
    hypotheses: Vec<Hypothesis>,
    executed: Executed,
    /// Blocks without which no route leads from one observed block to the next.
    lost: BTreeSet<BlockIndex>,
}

impl<'a> Walk<'a> {
    fn new(cfg: &'a Cfg, graph: &'a PathGraph, instance: &'a InstanceBlocks) -> Self {
        Self {
            cfg,
            graph,
            instance,
            hypotheses: vec![Hypothesis::default()],
            executed: Executed::default(),
            lost: BTreeSet::new(),
        }
    }

    fn activation(&mut self, mut passed: &[BlockIndex]) {
        while !passed.is_empty() {
            let (group, rest) = passed.split_at(self.instance.together(passed));
            self.pass(group);
            passed = rest;
        }
        self.leave();
    }

    /// Control got to the code of these blocks.
    fn pass(&mut self, group: &[BlockIndex]) {
        let seen: Vec<_> = group
            .iter()
            .copied()
            .filter(|b| self.instance.shown.contains(b))
            .collect();
        if seen.is_empty() {
            return;
        }
        let on = self.follow(|walk, hypothesis| match hypothesis.last() {
            Some(last) => walk.routes_between(Some(last), &seen),
            None => Vec::new(),
        });
        if !on.is_empty() {
            self.go(on);
            return;
        }
        let lasts: Vec<_> = self.hypotheses.iter().filter_map(Hypothesis::last).collect();
        if !lasts.is_empty() && !seen.contains(&BlockIndex::ENTRY) {
            let next = lasts.iter().flat_map(|&last| self.successors(last)).copied().collect();
            if let Some(hypothesis) = self.shortest(next, |b| seen.contains(&b)) {
                self.lose(&hypothesis[..hypothesis.len() - 1]);
                return;
            }
        }
        self.leave();
        let into = self.follow(|walk, _| walk.routes_between(None, &seen));
        if into.is_empty()
            && let Some(hypothesis) = self.shortest(vec![BlockIndex::ENTRY], |b| seen.contains(&b))
        {
            self.lose(&hypothesis[..hypothesis.len() - 1]);
            return;
        }
        self.go(into);
    }

    /// The activation went no further that could be seen: it returned by blocks without code, or a call did not come
    /// back.
    fn leave(&mut self) {
        if self.hypotheses.iter().all(|hypothesis| hypothesis.open.is_none()) {
            self.go(self.hypotheses.clone());
            return;
        }
        let mut left = Vec::new();
        for hypothesis in &self.hypotheses {
            match hypothesis.last() {
                Some(_) => self.unprobed_ends(hypothesis, &mut Vec::new(), &mut left),
                None => left.push(hypothesis.clone()),
            }
        }
        if left.is_empty() {
            let next = self.hypotheses.iter().filter_map(Hypothesis::last);
            let next = next.flat_map(|last| self.successors(last)).copied().collect();
            if let Some(hypothesis) = self.shortest(next, |b| self.successors(b).is_empty()) {
                self.lose(&hypothesis);
            }
            left.push(Hypothesis::default());
        }
        self.go(left);
    }

    /// Continues with these hypotheses. Where they have joined, their paths are recorded.
    fn go(&mut self, mut hypotheses: Vec<Hypothesis>) {
        hypotheses.sort();
        hypotheses.dedup();
        if hypotheses.len() > MAX_HYPOTHESES {
            self.executed.is_cut_short = true;
            hypotheses.truncate(1);
        }
        if hypotheses
            .iter()
            .all(|hypothesis| hypothesis.open == hypotheses[0].open)
        {
            let ended: Vec<_> = hypotheses
                .iter_mut()
                .map(|hypothesis| std::mem::take(&mut hypothesis.ended))
                .collect();
            for path in &ended[0] {
                *self.executed.paths.entry(path.clone()).or_default() += 1;
            }
            self.executed.classes.add(&ended);
            hypotheses.truncate(1);
        }
        self.hypotheses = hypotheses;
    }

    /// Extends each hypothesis by the blocks that it may pass next.
    fn follow(&self, next: impl Fn(&Self, &Hypothesis) -> Vec<Vec<BlockIndex>>) -> Vec<Hypothesis> {
        let mut followed = Vec::new();
        for hypothesis in &self.hypotheses {
            for blocks in next(self, hypothesis) {
                let mut hypothesis = hypothesis.clone();
                for block in blocks {
                    self.enter(&mut hypothesis, block);
                }
                followed.push(hypothesis);
            }
        }
        followed
    }

    /// The routes from a block, or from the entry, to the last of these: through blocks without code, then through some
    /// of these. Each of them without what it begins at.
    fn routes_between(&self, from: Option<BlockIndex>, group: &[BlockIndex]) -> Vec<Vec<BlockIndex>> {
        let mut hypotheses = Vec::new();
        match from {
            Some(from) => self.search(from, group, &mut Vec::new(), &mut hypotheses),
            None => self.visit(BlockIndex::ENTRY, group, &mut Vec::new(), &mut hypotheses),
        }
        hypotheses
    }

    fn search(
        &self,
        from: BlockIndex,
        group: &[BlockIndex],
        hypothesis: &mut Vec<BlockIndex>,
        hypotheses: &mut Vec<Vec<BlockIndex>>,
    ) {
        let successors = self.successors(from);
        for (slot, &next) in successors.iter().enumerate() {
            if !successors[..slot].contains(&next) {
                self.visit(next, group, hypothesis, hypotheses);
            }
        }
    }

    fn visit(
        &self,
        next: BlockIndex,
        group: &[BlockIndex],
        hypothesis: &mut Vec<BlockIndex>,
        hypotheses: &mut Vec<Vec<BlockIndex>>,
    ) {
        let position = group.iter().position(|&b| b == next);
        let is_silent = position.is_none() && !self.instance.shown.contains(&next);
        if hypothesis.contains(&next) || hypotheses.len() > MAX_HYPOTHESES || (position.is_none() && !is_silent) {
            return;
        }
        hypothesis.push(next);
        match position {
            Some(position) if position + 1 == group.len() => hypotheses.push(hypothesis.clone()),
            Some(position) => self.search(next, &group[position + 1..], hypothesis, hypotheses),
            None => self.search(next, group, hypothesis, hypotheses),
        }
        hypothesis.pop();
    }

    /// Routes to an exit through blocks without code.
    fn unprobed_ends(&self, hypothesis: &Hypothesis, passed: &mut Vec<BlockIndex>, ends: &mut Vec<Hypothesis>) {
        let Some(last) = hypothesis.last() else {
            ends.push(hypothesis.clone());
            return;
        };
        if self.graph.find(EdgeKind::End(last, End::Call)).is_some() {
            let mut hypothesis = hypothesis.clone();
            hypothesis.end(End::Call);
            ends.push(hypothesis);
        }
        for &next in self.successors(last) {
            if self.instance.shown.contains(&next) || passed.contains(&next) || ends.len() > MAX_HYPOTHESES {
                continue;
            }
            let mut hypothesis = hypothesis.clone();
            self.enter(&mut hypothesis, next);
            passed.push(next);
            self.unprobed_ends(&hypothesis, passed, ends);
            passed.pop();
        }
    }

    fn successors(&self, block: BlockIndex) -> &'a [BlockIndex] {
        &self.cfg.blocks[block.index()].successors
    }

    fn lose(&mut self, hypothesis: &[BlockIndex]) {
        self.lost
            .extend(hypothesis.iter().filter(|b| self.instance.shown.contains(b)));
    }

    /// The shortest route through blocks with or without code, from one of these to a block that is wanted.
    fn shortest(&self, from: Vec<BlockIndex>, wanted: impl Fn(BlockIndex) -> bool) -> Option<Vec<BlockIndex>> {
        let mut seen: BTreeSet<BlockIndex> = from.iter().copied().collect();
        let mut hypotheses: Vec<Vec<BlockIndex>> = from.into_iter().map(|b| vec![b]).collect();
        while !hypotheses.is_empty() {
            if let Some(hypothesis) = hypotheses
                .iter()
                .find(|hypothesis| wanted(hypothesis[hypothesis.len() - 1]))
            {
                return Some(hypothesis.clone());
            }
            let longer = hypotheses.iter().flat_map(|hypothesis| {
                let next = self.successors(hypothesis[hypothesis.len() - 1]).iter();
                next.map(|&b| hypothesis.iter().copied().chain([b]).collect::<Vec<_>>())
            });
            let longer: Vec<_> = longer.collect();
            hypotheses = longer
                .into_iter()
                .filter(|hypothesis| seen.insert(hypothesis[hypothesis.len() - 1]))
                .collect();
        }
        None
    }

    fn enter(&self, hypothesis: &mut Hypothesis, block: BlockIndex) {
        let has = |kind| self.graph.find(kind).is_some();
        let Some((start, path)) = &mut hypothesis.open else {
            hypothesis.open = Some((Start::Entry, vec![block]));
            self.end_at_exit(hypothesis);
            return;
        };
        let last = path[path.len() - 1];
        if has(EdgeKind::Flow(last, block)) {
            path.push(block);
            self.end_at_exit(hypothesis);
        } else if has(EdgeKind::SelfLoop(block)) && last == block {
            hypothesis.ended.push(Path {
                start: Start::Inside,
                blocks: vec![block],
                end: End::Back(block),
            });
        } else {
            let ends = [End::Back(block), End::Cut(block)];
            let end = ends.into_iter().find(|&end| has(EdgeKind::End(last, end)));
            let (start, blocks) = (*start, path.clone());
            let end = end.unwrap_or_else(|| panic!("{}: no edge {} to {}", self.cfg.name, last.0, block.0));
            hypothesis.ended.push(Path { start, blocks, end });
            hypothesis.open = Some((Start::Inside, vec![block]));
            self.end_at_exit(hypothesis);
        }
    }

    fn end_at_exit(&self, hypothesis: &mut Hypothesis) {
        if hypothesis.last().is_some_and(|last| self.successors(last).is_empty()) {
            hypothesis.end(End::Exit);
        }
    }
}
