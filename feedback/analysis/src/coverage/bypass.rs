//! Code that bypasses a block without executing its probe.
//!
//! The optimiser may redirect an edge past a block that has no effect on that path: a condition is known there, or the
//! block is empty in one of its copies. The block is then executed in the graph, but its probes, which lie in other
//! copies, are not. Therefore, that none of a block's probes was executed proves that the block was not executed only
//! if
//!
//! - none of its predecessors was executed, and none of them is in doubt; or
//! - every executed copy of each predecessor has the successors that the CFG says: its machine code may go on to a probe
//!   of the block, so that this edge exists there; and without passing another probe it goes nowhere that the graph does
//!   not lead to. A return that was copied into the predecessors leads out of the function, for instance.

use pleach_annotate::breakpoint_sites::{BreakpointSites, belongs};
use pleach_annotate::cfg::{Cfg, Terminator};
use pleach_annotate::map::{AddressMap, InlineInstanceIndex, Probe};
use pleach_annotate::probe::Address;
use pleach_collector::vector::coverage::{ModuleCoverage, SegmentCoverage, SegmentState};
use rustc_hash::FxHashSet;

/// What is known about a block in one inline instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// The instance has no probe of it.
    NoProbe,
    /// It was executed.
    Executed,
    /// It was not executed.
    Absent,
    /// Nothing is known.
    Unknown,
}

/// The segments of a module with their states.
pub(super) struct Code<'c> {
    sites: BreakpointSites,
    coverage: &'c ModuleCoverage,
    /// By segment: the inline instances with block probes in it.
    probes: Vec<Vec<InlineInstanceIndex>>,
    /// By segment: whether a direct jump or a fall-through leads there.
    has_known_predecessor: Vec<bool>,
    /// The emitted functions in whose graphs, or in those of what is inlined there, something branches to one of many
    /// targets. An indirect jump elsewhere calls another function, and does not come back.
    switching: FxHashSet<u32>,
}

impl<'c> Code<'c> {
    /// Relates the coverage of a module to its code.
    pub fn new(map: &AddressMap, coverage: &'c ModuleCoverage) -> Self {
        let sites = BreakpointSites::of_map(map);
        let mut has_known_predecessor = vec![false; sites.segments.len()];
        for next in sites.segments.iter().flat_map(|segment| &segment.next) {
            if let Some(has) = has_known_predecessor.get_mut(*next as usize) {
                *has = true;
            }
        }
        let mut code = Self {
            probes: vec![Vec::new(); sites.segments.len()],
            sites,
            coverage,
            has_known_predecessor,
            switching: FxHashSet::default(),
        };
        for probe in &map.probes {
            if let Some(segment) = code.position(probe.address) {
                if switches(&map.function_of(probe.instance).cfg) {
                    code.switching.insert(code.sites.segments[segment].function);
                }
                let instances = &mut code.probes[segment];
                if matches!(probe.target, pleach_annotate::cfg::ProbeTarget::Block(_))
                    && !instances.contains(&probe.instance)
                {
                    instances.push(probe.instance);
                }
            }
        }
        code
    }

    fn position(&self, address: Address) -> Option<usize> {
        let after = self
            .sites
            .segments
            .partition_point(|segment| segment.addresses.start <= address);
        let position = after.checked_sub(1)?;
        self.sites.segments[position]
            .addresses
            .contains(&address)
            .then_some(position)
    }

    /// The segment that a probe's instruction is in, with its number. `None`: it was not observed, or the probe's code
    /// may be elsewhere.
    pub fn segment_of(&self, map: &AddressMap, probe: &Probe) -> Option<(u32, &'c SegmentCoverage)> {
        let position = self.position(probe.address)?;
        let symbol = map.binary.symbols.get(map.binary.symbol_at(probe.address)?)?;
        let segment = self.coverage.segments.get(position)?;
        let offset = map.binary.offset_of_address(probe.address)?;
        let is_it = segment.start <= offset && offset < segment.end;
        (is_it && belongs(map, probe.instance, symbol)).then_some((position as u32, segment))
    }

    fn is_absent(&self, segment: u32) -> bool {
        let segment = self.coverage.segments.get(segment as usize);
        segment.is_some_and(|segment| segment.state == SegmentState::NotExecuted)
    }

    /// Where code may go from a segment without passing another probe of the instance: the segments with its probes,
    /// and whether it may leave the function. `in_absent`: also through code that was not executed. `None`: too many
    /// segments.
    fn stops(&self, from: u32, instance: InlineInstanceIndex, in_absent: bool) -> Option<Stops> {
        let mut stops = Stops::default();
        let mut seen = FxHashSet::default();
        let mut waiting = vec![from];
        while let Some(at) = waiting.pop() {
            let segment = self.sites.segments.get(at as usize)?;
            let switches = self.switching.contains(&segment.function);
            stops.jumps_indirectly |= segment.jumps_indirectly && switches;
            stops.leaves |= segment.leaves || segment.jumps_indirectly && !switches;
            for &next in &segment.next {
                if self.probes.get(next as usize)?.contains(&instance) {
                    stops.segments.push(next);
                } else if (in_absent || !self.is_absent(next)) && seen.insert(next) {
                    if seen.len() > MAX_SEGMENTS {
                        return None;
                    }
                    waiting.push(next);
                }
            }
        }
        Some(stops)
    }

    /// Whether a segment is entered from nowhere that is known: it may be the target of an indirect jump.
    fn is_entered_from_unknown(&self, segment: u32) -> bool {
        !self
            .has_known_predecessor
            .get(segment as usize)
            .copied()
            .unwrap_or(true)
    }
}

/// Whether anything in a graph branches to one of many targets.
fn switches(cfg: &Cfg) -> bool {
    let is_switch = |terminator| {
        matches!(
            terminator,
            Terminator::Switch | Terminator::IndirectBranch | Terminator::Other
        )
    };
    cfg.blocks.iter().any(|block| is_switch(block.terminator))
}

/// Where code may go.
#[derive(Debug, Default)]
struct Stops {
    segments: Vec<u32>,
    /// A return, or a jump out of the function.
    leaves: bool,
    jumps_indirectly: bool,
}

/// Segments that are searched between two probes of an instance, at most.
const MAX_SEGMENTS: usize = 256;

/// Marks as unknown the blocks that may have been bypassed. `segments`: by block, those with its probes.
pub(super) fn mark_bypassed_unknown(
    cfg: &Cfg,
    instance: InlineInstanceIndex,
    known: &mut [Known],
    segments: &[Vec<u32>],
    code: &Code<'_>,
) {
    let blocks = known.len();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); blocks];
    for (from, block) in cfg.blocks.iter().enumerate() {
        for to in &block.successors {
            if !before[to.index()].contains(&from) {
                before[to.index()].push(from);
            }
        }
    }
    let mut faithful: Vec<Option<FxHashSet<usize>>> = vec![None; blocks];
    let mut in_doubt = vec![false; blocks];
    loop {
        let mut changed = false;
        for block in 0..blocks {
            let may_be_passed_by = match known[block] {
                Known::Absent => true,
                Known::Unknown => !in_doubt[block],
                Known::Executed | Known::NoProbe => false,
            };
            if !may_be_passed_by {
                continue;
            }
            let is_certain = sources(block, &before, known).is_some_and(|sources| {
                sources.iter().all(|&from| {
                    let mut leads = || {
                        !has_short_cut(cfg, instance, block, &before, known, segments, code)
                            && faithful[from]
                                .get_or_insert_with(|| followed(cfg, instance, from, known, segments, code))
                                .contains(&block)
                    };
                    !in_doubt[from] && (known[from] == Known::Absent || leads())
                })
            });
            if !is_certain {
                known[block] = Known::Unknown;
                in_doubt[block] = true;
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

/// Whether an edge past a block can replace an edge to it: for `b` in `a && b`, where both are tested at once, or where
/// `b` is known. Then the block's own code, if there is any, does not lead to that edge's target.
fn has_short_cut(
    cfg: &Cfg,
    instance: InlineInstanceIndex,
    block: usize,
    before: &[Vec<usize>],
    known: &[Known],
    segments: &[Vec<u32>],
    code: &Code<'_>,
) -> bool {
    let successors = |block: usize| cfg.blocks[block].successors.iter().map(|to| to.index());
    let is_shared = |to: &usize| {
        before[block]
            .iter()
            .any(|&from| successors(from).any(|other| other == *to))
    };
    successors(block).filter(is_shared).any(|to| {
        let (expected, _) = match known[to] {
            Known::NoProbe => next_probed(cfg, to, known),
            _ => (FxHashSet::from_iter([to]), false),
        };
        let leads = segments[block].iter().all(|&segment| {
            // The block's own branch is not there: the code goes on to another successor.
            let is_decided = successors(block).any(|other| other != to && segments[other].contains(&segment));
            let stops = code.stops(segment, instance, true);
            let reached = stops.iter().flat_map(|stops| &stops.segments).chain([&segment]);
            let is_expected = |segment: &u32| expected.iter().any(|&block| segments[block].contains(segment));
            !is_decided && reached.into_iter().any(is_expected)
        });
        !expected.is_empty() && !leads
    })
}

/// The blocks to which all executed copies of a block lead, if these are as the graph says; otherwise none.
fn followed(
    cfg: &Cfg,
    instance: InlineInstanceIndex,
    from: usize,
    known: &[Known],
    segments: &[Vec<u32>],
    code: &Code<'_>,
) -> FxHashSet<usize> {
    let (expected, may_end) = next_probed(cfg, from, known);
    let mut all: Option<FxHashSet<usize>> = None;
    for &segment in segments[from].iter().filter(|&&segment| !code.is_absent(segment)) {
        // Other probes of the same segment follow one another without a branch.
        let Some(stops) = code.stops(segment, instance, false) else {
            return FxHashSet::default();
        };
        let mut reached: FxHashSet<usize> = FxHashSet::default();
        for stop in &stops.segments {
            let blocks = (0..segments.len()).filter(|&block| segments[block].contains(stop));
            let blocks: Vec<usize> = blocks.collect();
            let is_expected = |block: &usize| expected.contains(block) || *block == 0;
            if !blocks.iter().any(is_expected) {
                return FxHashSet::default();
            }
            reached.extend(blocks);
        }
        if stops.leaves && !may_end {
            return FxHashSet::default();
        }
        if stops.jumps_indirectly {
            let is_target = |block: &&usize| {
                segments[**block]
                    .iter()
                    .any(|&segment| code.is_entered_from_unknown(segment))
            };
            reached.extend(expected.iter().filter(is_target));
        }
        all = Some(match all {
            None => reached,
            Some(before) => before.intersection(&reached).copied().collect(),
        });
    }
    all.unwrap_or_default()
}

/// The blocks with probes that come next in the graph, and whether an activation may end before.
fn next_probed(cfg: &Cfg, from: usize, known: &[Known]) -> (FxHashSet<usize>, bool) {
    let (mut found, mut seen, mut may_end) = (FxHashSet::default(), FxHashSet::default(), false);
    let mut waiting = vec![from];
    while let Some(at) = waiting.pop() {
        may_end |= cfg.blocks[at].successors.is_empty();
        for to in cfg.blocks[at].successors.iter().map(|to| to.index()) {
            if known[to] != Known::NoProbe {
                found.insert(to);
            } else if seen.insert(to) {
                waiting.push(to);
            }
        }
    }
    (found, may_end)
}

/// The blocks with probes from which a block is reached through blocks without. `None`: the function's entry is one of
/// those without.
fn sources(block: usize, before: &[Vec<usize>], known: &[Known]) -> Option<Vec<usize>> {
    let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
    let mut waiting = vec![block];
    while let Some(at) = waiting.pop() {
        if at == 0 && at != block {
            return None;
        }
        for &from in &before[at] {
            if known[from] != Known::NoProbe {
                if !found.contains(&from) {
                    found.push(from);
                }
            } else if seen.insert(from) {
                waiting.push(from);
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::testing::cfg;
    use pleach_collector::vector::ModuleId;

    const INSTANCE: InlineInstanceIndex = InlineInstanceIndex(0);

    /// A segment: the blocks with probes in it, the segments that may be next, and whether it was executed.
    type Piece<'p> = (&'p [usize], &'p [u32], bool);

    /// Machine code of one function.
    struct Machine {
        sites: BreakpointSites,
        coverage: ModuleCoverage,
        probes: Vec<Vec<InlineInstanceIndex>>,
        blocks: Vec<Vec<u32>>,
        known: Vec<Known>,
    }

    impl Machine {
        fn new(pieces: &[Piece<'_>], blocks: usize) -> Self {
            let mut machine = Self {
                sites: BreakpointSites::default(),
                coverage: ModuleCoverage {
                    module: ModuleId(0),
                    processes: 1,
                    traps: 0,
                    completed: true,
                    failures: Vec::new(),
                    segments: Vec::new(),
                },
                probes: Vec::new(),
                blocks: vec![Vec::new(); blocks],
                known: vec![Known::NoProbe; blocks],
            };
            for (number, (inside, next, is_executed)) in pieces.iter().enumerate() {
                let start = number as u64 * 16;
                machine
                    .sites
                    .segments
                    .push(pleach_annotate::breakpoint_sites::ProbedSegment {
                        addresses: Address(start)..Address(start + 16),
                        function: 0,
                        site: Some(Address(start)),
                        is_shown: false,
                        dominator: None,
                        next: next.to_vec(),
                        jumps_indirectly: false,
                        leaves: next.is_empty(),
                    });
                let state = if *is_executed {
                    SegmentState::Hit
                } else {
                    SegmentState::NotExecuted
                };
                machine.coverage.segments.push(SegmentCoverage {
                    start,
                    end: start + 16,
                    state,
                    hits: (*is_executed).into(),
                    at_most: None,
                    first_hit_ns: None,
                });
                machine
                    .probes
                    .push(if inside.is_empty() { vec![] } else { vec![INSTANCE] });
                for &block in *inside {
                    machine.blocks[block].push(number as u32);
                    let known = &mut machine.known[block];
                    *known = match *is_executed || *known == Known::Executed {
                        true => Known::Executed,
                        false => Known::Absent,
                    };
                }
            }
            machine
        }

        fn known(&self, cfg: &Cfg, switching: bool) -> Vec<Known> {
            let segments = &self.sites.segments;
            let is_next = |segment: usize| segments.iter().any(|from| from.next.contains(&(segment as u32)));
            let code = Code {
                sites: self.sites.clone(),
                coverage: &self.coverage,
                probes: self.probes.clone(),
                has_known_predecessor: (0..segments.len()).map(is_next).collect(),
                switching: switching.then_some(0).into_iter().collect(),
            };
            let mut known = self.known.clone();
            mark_bypassed_unknown(cfg, INSTANCE, &mut known, &self.blocks, &code);
            known
        }
    }

    #[test]
    fn a_condition_that_was_tested_with_another_may_have_been_executed() {
        // `a && b`: 0 tests `a`, 1 tests `b`, 2 is their end, 3 what they guard.
        let cfg = cfg(&[&[1, 2], &[3, 2], &[], &[]]);
        let apart = Machine::new(
            &[
                (&[0], &[1, 2], true),
                (&[1], &[3, 2], false),
                (&[2], &[], true),
                (&[3], &[], false),
            ],
            4,
        );
        assert_eq!(apart.known(&cfg, false)[1], Known::Absent);
        // Both are tested in 0: where the code of 1 is, that of 3 follows without a branch.
        let together = Machine::new(&[(&[0], &[1, 2], true), (&[1, 3], &[], false), (&[2], &[], true)], 4);
        assert_eq!(together.known(&cfg, false)[1], Known::Unknown);
    }

    #[test]
    fn an_indirect_jump_without_a_switch_leaves_the_function() {
        // 0 branches to 1 and 2; 1 goes on to 2, or jumps into another function, which returns for it.
        let cfg = cfg(&[&[1, 2], &[2], &[]]);
        let mut machine = Machine::new(&[(&[0], &[1, 2], true), (&[1], &[2], true), (&[2], &[], false)], 3);
        assert_eq!(machine.known(&cfg, false)[2], Known::Absent);
        machine.sites.segments[1].jumps_indirectly = true;
        assert_eq!(machine.known(&cfg, false)[2], Known::Unknown);
        assert_eq!(machine.known(&cfg, true)[2], Known::Absent);
    }

    #[test]
    fn what_follows_unknown_code_that_was_passed_by_is_in_doubt() {
        // 0 → 1 → 2 → 3; the code of 0 jumps to that of 3.
        let cfg = cfg(&[&[1], &[2], &[3], &[]]);
        let mut machine = Machine::new(
            &[
                (&[0], &[1, 3], true),
                (&[1], &[2], false),
                (&[2], &[3], false),
                (&[3], &[], true),
            ],
            4,
        );
        machine.known[1] = Known::Unknown;
        machine.coverage.segments[1].state = SegmentState::Unknown;
        assert_eq!(machine.known(&cfg, false)[2], Known::Unknown);
    }
}
