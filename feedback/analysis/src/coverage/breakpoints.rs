//! What breakpoints showed, by block ([`pleach_collector::vector::coverage`]).
//!
//! A block was executed if a segment with one of its probes was. It was not executed only if that is proved in each
//! inline instance of its function, in all modules: its probes lie in segments that were not executed, or, where it has
//! none there, so do those of all blocks before it, or of all blocks after it. And its code was not bypassed
//! ([`bypass`](super::bypass)), and has not vanished ([`vanished`](super::vanished)).

use super::bypass::{self, Code, Known};
use super::seeds::{Evidence, Seeds};
use super::vanished;
use super::{Coverage, FunctionCoverage, Key};
use crate::program::Program;
use pleach_annotate::cfg::{Cfg, ProbeTarget, Terminator};
use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::{AddressMap, InlineInstanceIndex, Probe};
use pleach_collector::vector::VectorSet;
use pleach_collector::vector::coverage::{ModuleCoverage, SegmentCoverage, SegmentState};
use pleach_profile::{Covered, Executions};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// What breakpoints showed about the functions of a program.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Breakpoints {
    functions: BTreeMap<Key, FunctionBlocks>,
}

/// The blocks of a function.
#[derive(Clone, PartialEq, Debug)]
struct FunctionBlocks {
    /// The strongest proof that holds for each block in all instances: not executed, its code not executed, or none.
    absent: Vec<Covered>,
    /// Counted executions of each block's code, in all instances.
    counted: Vec<Executions>,
}

impl Breakpoints {
    /// Reads the coverage of a recording, and adds the executed blocks to its seeds.
    pub fn read(program: &Program, vectors: &VectorSet, seeds: &mut Seeds) -> Self {
        let mut breakpoints = Self::default();
        if vectors.coverage.is_empty() {
            return breakpoints;
        }
        let mut called = FxHashSet::default();
        for (module, map) in program.annotated() {
            let coverage = vectors.coverage.iter().find(|coverage| coverage.module == module);
            let absent = breakpoints.add(map, coverage, seeds);
            called.extend(vanished::called(map, |instance, block| {
                absent.get(&instance).is_some_and(|absent| absent[block.index()])
            }));
        }
        let vanishing = vanished::vanishing(program, called);
        for ((id, _), blocks) in &mut breakpoints.functions {
            if vanishing.contains(&id.guid) {
                blocks.absent.fill(Covered::Unknown);
            }
        }
        breakpoints
    }

    /// Adds to a coverage what was not executed, and what was counted. What was only predicted gives way to proof.
    pub fn complete(&self, coverage: &mut Coverage) {
        for (key, blocks) in &self.functions {
            let function = coverage.functions.entry(*key).or_insert_with(|| FunctionCoverage {
                blocks: vec![Covered::Unknown; blocks.absent.len()],
                passed: vec![0; blocks.absent.len()],
                counted: Vec::new(),
            });
            for (state, absent) in function.blocks.iter_mut().zip(&blocks.absent) {
                if *absent < Covered::Unknown && *state < Covered::ByDominance {
                    *state = *absent;
                }
            }
            if blocks.counted.iter().any(|counted| counted.at_least > 0) {
                function.counted.clone_from(&blocks.counted);
            }
        }
    }

    /// Adds a module. Returns which of its blocks were not executed, by inline instance.
    fn add(
        &mut self,
        map: &AddressMap,
        coverage: Option<&ModuleCoverage>,
        seeds: &mut Seeds,
    ) -> FxHashMap<InlineInstanceIndex, Vec<bool>> {
        let mut by_instance = FxHashMap::default();
        let completed = coverage.is_some_and(|coverage| coverage.completed);
        let code = coverage.map(|coverage| Code::new(map, coverage));
        for (instance, probes) in blocks_by_instance(map) {
            let function = map.function_of(instance);
            let mut found = Found::new(function.cfg.blocks.len());
            for (block, probe) in probes {
                found.add(block, code.as_ref().and_then(|code| code.segment_of(map, probe)));
            }
            found.forget_merged(&function.cfg);
            for (block, known) in (0..).map(BlockIndex).zip(&found.known) {
                if *known == Known::Executed {
                    seeds.note_executed(map, instance, block, Evidence::Hit);
                }
            }
            let counted = bounded(&function.cfg, &found, completed);
            let unexecuted = absent(&function.cfg, found.known.clone(), completed);
            mark_successors_of_ends_unknown(&function.cfg, &mut found.known, completed);
            if let Some(code) = &code {
                bypass::mark_bypassed_unknown(&function.cfg, instance, &mut found.known, &found.segments, code);
            }
            let proved = absent(&function.cfg, found.known, completed);
            by_instance.insert(instance, proved.clone());
            let state = |(code, block): (bool, bool)| match (code, block) {
                (_, true) => Covered::NotExecuted,
                (true, false) => Covered::CodeNotExecuted,
                (false, false) => Covered::Unknown,
            };
            let absent: Vec<Covered> = unexecuted.into_iter().zip(proved).map(state).collect();
            match self.functions.get_mut(&(function.cfg.id, function.hash)) {
                None => {
                    self.functions
                        .insert((function.cfg.id, function.hash), FunctionBlocks { absent, counted });
                }
                Some(sum) => {
                    let states = sum.absent.iter_mut().zip(absent);
                    states.for_each(|(all, this)| *all = (*all).max(this));
                    let counted = sum.counted.iter_mut().zip(counted);
                    counted.for_each(|(sum, this)| *sum = sum.plus(this));
                }
            }
        }
        // Code whose function could not be told from others of its name.
        self.functions.retain(|(id, _), _| !map.unplaced.contains(&id.guid));
        by_instance
    }
}

/// The blocks of one inline instance.
struct Found {
    known: Vec<Known>,
    /// By block: executions of all its code. Nothing was executed of a block without code.
    counted: Vec<Executions>,
    /// By block: the segments with its probes.
    segments: Vec<Vec<u32>>,
}

impl Found {
    fn new(blocks: usize) -> Self {
        Self {
            known: vec![Known::NoProbe; blocks],
            counted: vec![Executions::NONE; blocks],
            segments: vec![Vec::new(); blocks],
        }
    }

    /// Clears the executed state of small `switch` cases whose code is shared with other predecessors of their
    /// successor: LLVM may have merged or speculated it.
    fn forget_merged(&mut self, cfg: &Cfg) {
        let before = predecessors(cfg);
        let is_within = |inner: usize, outer: usize| {
            !self.segments[inner].is_empty() && self.segments[inner].iter().all(|r| self.segments[outer].contains(r))
        };
        let is_small = |block: usize| cfg.blocks[block].instructions <= MAX_SPECULATED;
        let is_switch = |block: usize| cfg.blocks[block].terminator == Terminator::Switch;
        let is_merged = |block: usize| {
            cfg.blocks[block].successors.iter().map(|to| to.index()).any(|to| {
                let others = before.get(&to).into_iter().flatten().filter(|&&from| from != block);
                to != block
                    && is_within(to, block)
                    && others
                        .into_iter()
                        .any(|&from| self.known[from] == Known::Executed && is_switch(from))
            })
        };
        let merged: Vec<usize> = (0..cfg.blocks.len())
            .filter(|&block| self.known[block] == Known::Executed && is_small(block) && is_merged(block))
            .collect();
        for block in merged {
            self.known[block] = Known::Unknown;
            self.counted[block] = Executions::UNKNOWN;
        }
    }

    /// Adds a block's probe in a segment; `None`: its code was not observed.
    fn add(&mut self, block: BlockIndex, segment: Option<(u32, &SegmentCoverage)>) {
        let block = block.index();
        let state = match segment.map(|(_, segment)| segment.state) {
            Some(SegmentState::Hit | SegmentState::Implied) => Known::Executed,
            Some(SegmentState::NotExecuted) => Known::Absent,
            Some(SegmentState::Unknown) | None => Known::Unknown,
        };
        self.known[block] = match (self.known[block], state) {
            (Known::Executed, _) | (_, Known::Executed) => Known::Executed,
            (Known::NoProbe | Known::Absent, Known::Absent) => Known::Absent,
            _ => Known::Unknown,
        };
        let Some((number, segment)) = segment else {
            self.counted[block].at_most = None;
            return;
        };
        // Several probes of a block may lie in one segment.
        if !self.segments[block].contains(&number) {
            self.counted[block] = self.counted[block].plus(Executions {
                at_least: segment.hits.into(),
                at_most: segment.at_most,
            });
            self.segments[block].push(number);
        }
    }
}

/// Maximum number of instructions, including the branch, of a block that LLVM may speculate on other paths.
const MAX_SPECULATED: u32 = 3;

/// The block probes of each instance, in the order of instances.
fn blocks_by_instance(map: &AddressMap) -> BTreeMap<InlineInstanceIndex, Vec<(BlockIndex, &Probe)>> {
    let mut instances: BTreeMap<InlineInstanceIndex, Vec<(BlockIndex, &Probe)>> = BTreeMap::new();
    for probe in &map.probes {
        if let ProbeTarget::Block(block) = probe.target {
            instances.entry(probe.instance).or_default().push((block, probe));
        }
    }
    instances
}

/// By block: the blocks before it.
fn predecessors(cfg: &Cfg) -> FxHashMap<usize, Vec<usize>> {
    let mut before: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for (from, block) in cfg.blocks.iter().enumerate() {
        for to in &block.successors {
            before.entry(to.index()).or_default().push(from);
        }
    }
    before
}

/// By block: whether an activation may end in it.
fn ends(cfg: &Cfg) -> Vec<bool> {
    let is_end = |terminator| matches!(terminator, Terminator::Unreachable | Terminator::Resume);
    let blocks = cfg.blocks.iter();
    let mut may_end: Vec<bool> = blocks
        .map(|block| block.successors.is_empty() || is_end(block.terminator))
        .collect();
    for call in cfg.calls.iter().filter(|call| call.may_not_return) {
        may_end[call.block.index()] = true;
    }
    may_end
}

/// Marks as unknown the successors of an executed block if none of them seems executed: a call in the block may not
/// have returned, but a copy of the successors may as well have lost its probe.
fn mark_successors_of_ends_unknown(cfg: &Cfg, known: &mut [Known], completed: bool) {
    loop {
        let absent = absent(cfg, known.to_vec(), completed);
        let executed = (0..known.len()).filter(|&block| known[block] == Known::Executed);
        let follow: Vec<usize> = executed
            .map(|block| {
                let after = cfg.blocks[block].successors.iter().map(|to| to.index());
                after.filter(|&to| !cfg.blocks[to].is_eh_pad).collect::<Vec<_>>()
            })
            .filter(|after| after.iter().all(|&to| absent[to]))
            .flatten()
            .collect();
        if follow.is_empty() {
            return;
        }
        for block in follow {
            known[block] = Known::Unknown;
        }
    }
}

/// The executions of an instance's blocks: a block without code is executed as often as the blocks before it, or as
/// those after it, at most.
fn bounded(cfg: &Cfg, found: &Found, completed: bool) -> Vec<Executions> {
    let (before, may_end) = (predecessors(cfg), ends(cfg));
    let mut counted = found.counted.clone();
    let without_code = |block: &usize| found.known[*block] == Known::NoProbe;
    for block in (0..counted.len()).filter(without_code) {
        counted[block] = Executions::UNKNOWN;
    }
    let sum =
        |counted: &[Executions], of: &[usize]| of.iter().map(|&block| counted[block].at_most).sum::<Option<u64>>();
    loop {
        let mut changed = false;
        for block in (0..counted.len()).filter(without_code) {
            if counted[block].at_most.is_some() {
                continue;
            }
            let after: Vec<usize> = cfg.blocks[block].successors.iter().map(|to| to.index()).collect();
            let entered = before
                .get(&block)
                .filter(|_| block != 0)
                .and_then(|from| sum(&counted, from));
            let left = (completed && !may_end[block]).then(|| sum(&counted, &after)).flatten();
            counted[block].at_most = entered.into_iter().chain(left).min();
            changed |= counted[block].at_most.is_some();
        }
        if !changed {
            return counted;
        }
    }
}

/// Which blocks were not executed in an instance.
fn absent(cfg: &Cfg, mut known: Vec<Known>, completed: bool) -> Vec<bool> {
    let (before, may_end) = (predecessors(cfg), ends(cfg));
    loop {
        let mut changed = false;
        for block in 0..known.len() {
            if known[block] != Known::NoProbe {
                continue;
            }
            let are_absent = |list: &[usize]| !list.is_empty() && list.iter().all(|&b| known[b] == Known::Absent);
            let never_entered = block != 0 && before.get(&block).is_some_and(|list| are_absent(list));
            let successors: Vec<usize> = cfg.blocks[block].successors.iter().map(|s| s.index()).collect();
            if never_entered || completed && !may_end[block] && are_absent(&successors) {
                known[block] = Known::Absent;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    known.into_iter().map(|known| known == Known::Absent).collect()
}

#[cfg(test)]
mod tests {
    use super::Known::{Absent, Executed, NoProbe, Unknown};
    use super::*;

    fn cfg(blocks: &[&[u32]]) -> Cfg {
        pleach_annotate::testing::cfg(blocks)
    }

    #[test]
    fn blocks_without_probes_follow_their_neighbours() {
        // 0 branches to 1 and 2, which join in 3.
        let cfg = cfg(&[&[1, 2], &[3], &[3], &[]]);
        let of = |known: [Known; 4], completed| absent(&cfg, known.to_vec(), completed);
        assert_eq!(
            of([Executed, Absent, NoProbe, Executed], true),
            [false, true, false, false]
        );
        // Never entered: whatever follows was not executed either.
        assert_eq!(of([Absent, NoProbe, NoProbe, NoProbe], false), [true; 4]);
        // An entry without a probe: something after it would have been executed.
        assert_eq!(of([NoProbe, Absent, Absent, NoProbe], true), [true; 4]);
        assert_eq!(of([NoProbe, Absent, Absent, NoProbe], false), [false, true, true, true]);
        assert_eq!(of([NoProbe, Absent, Unknown, Absent], true), [false, true, false, true]);
    }

    #[test]
    fn an_executed_block_has_gone_on() {
        // 0 branches to 1 and 2, which join in 3.
        let cfg = cfg(&[&[1, 2], &[3], &[3], &[]]);
        let doubted = |mut known: [Known; 4]| {
            mark_successors_of_ends_unknown(&cfg, &mut known, true);
            known
        };
        // Of 3 there is another copy after 2, or 2 called exit.
        assert_eq!(
            doubted([Executed, Absent, Executed, Absent]),
            [Executed, Absent, Executed, Unknown]
        );
        assert_eq!(
            doubted([Executed, Absent, Absent, Absent]),
            [Executed, Unknown, Unknown, Absent]
        );
        // 1 and 2 have no probes: they were not executed, because 3 was not.
        assert_eq!(
            doubted([Executed, NoProbe, NoProbe, Absent]),
            [Executed, Unknown, Unknown, Absent]
        );
        let consistent = [Executed, Absent, Unknown, Absent];
        assert_eq!(doubted(consistent), consistent);
    }

    #[test]
    fn code_of_a_case_that_serves_other_cases_is_no_proof() {
        // 0 switches to 1, 2 and 3; 1 falls through to 2.
        let cfg = cfg(&[&[1, 2, 3], &[2], &[], &[]]);
        let known = |segments: [&[u32]; 4]| {
            let mut found = Found::new(4);
            found.known = vec![Executed, Executed, Executed, Absent];
            found.segments = segments.map(<[u32]>::to_vec).to_vec();
            found.forget_merged(&cfg);
            found.known[1]
        };
        assert_eq!(known([&[0], &[1], &[2], &[3]]), Executed);
        assert_eq!(known([&[0], &[1], &[1, 2], &[3]]), Executed);
        // There is no way into 2 but through 1.
        assert_eq!(known([&[0], &[1], &[1], &[3]]), Unknown);
    }

    #[test]
    fn blocks_without_code_are_bounded_by_their_neighbours() {
        // 0 branches to 1 and 2, which join in 3.
        let cfg = cfg(&[&[1, 2], &[3], &[3], &[]]);
        let bounds = |known: [Known; 4], most: [Option<u64>; 4], completed| {
            let mut found = Found::new(4);
            found.known = known.to_vec();
            found.counted = most.map(|at_most| Executions { at_least: 0, at_most }).to_vec();
            let bounded = bounded(&cfg, &found, completed);
            bounded.iter().map(|counted| counted.at_most).collect::<Vec<_>>()
        };
        let all = [NoProbe, Executed, Executed, NoProbe];
        let most = [Some(0), Some(3), Some(4), Some(0)];
        assert_eq!(bounds(all, most, true), [Some(7), Some(3), Some(4), Some(7)]);
        assert_eq!(bounds(all, most, false), [None, Some(3), Some(4), Some(7)]);
        assert_eq!(
            bounds(all, [None, Some(3), None, None], true),
            [None, Some(3), None, None]
        );
    }
}
