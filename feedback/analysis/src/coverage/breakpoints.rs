//! What breakpoints showed, by block ([`pleach_collector::vector::coverage`]).
//!
//! A block was executed if a region with one of its probes was. It was not executed only if that is proved in each
//! inline instance of its function, in all modules: its probes lie in regions that were not executed, or, where it has
//! none there, so do those of all blocks before it, or of all blocks after it.

use super::{Coverage, FunctionCoverage, Key};
use super::seeds::{Evidence, Seeds};
use crate::program::Program;
use pleach_annotate::cfg::{Cfg, ProbeTarget, Terminator};
use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::{AddressMap, InlineInstanceIndex, Probe};
use pleach_annotate::places::belongs;
use pleach_collector::vector::VectorSet;
use pleach_collector::vector::coverage::{ModuleCoverage, Region, RegionState};
use pleach_profile::Covered;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What breakpoints showed about the functions of a program.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Breakpoints {
    functions: BTreeMap<Key, FunctionBlocks>,
}

/// The blocks of a function.
#[derive(Clone, PartialEq, Debug)]
struct FunctionBlocks {
    /// Whether each block is proved not to have been executed.
    absent: Vec<bool>,
    /// Counted executions of each block.
    counted: Vec<u64>,
}

/// What is known about a block in one inline instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    /// The instance has no probe of it.
    NoProbe,
    Executed,
    Absent,
    Unknown,
}

impl Breakpoints {
    /// Reads the coverage of a recording, and adds the executed blocks to its seeds.
    pub fn read(program: &Program, vectors: &VectorSet, seeds: &mut Seeds) -> Self {
        let mut breakpoints = Self::default();
        if vectors.coverage.is_empty() {
            return breakpoints;
        }
        for (module, map) in program.annotated() {
            let coverage = vectors.coverage.iter().find(|coverage| coverage.module == module);
            breakpoints.add(map, coverage, seeds);
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
                if *absent && *state < Covered::ByDominance {
                    *state = Covered::NotExecuted;
                }
            }
            if blocks.counted.iter().any(|&count| count > 0) {
                function.counted.clone_from(&blocks.counted);
            }
        }
    }

    fn add(&mut self, map: &AddressMap, coverage: Option<&ModuleCoverage>, seeds: &mut Seeds) {
        let completed = coverage.is_some_and(|coverage| coverage.completed);
        for (instance, probes) in blocks_by_instance(map) {
            let cfg = &map.function_of(instance).cfg;
            let key = (cfg.id, map.function_of(instance).hash);
            let blocks = cfg.blocks.len();
            let mut known = vec![Known::NoProbe; blocks];
            let mut counted = vec![0u64; blocks];
            let mut regions: Vec<(BlockIndex, u64)> = Vec::new();
            for (block, probe) in probes {
                let region = coverage.and_then(|coverage| region_of(map, coverage, probe));
                let state = match region.map(|region| region.state) {
                    Some(RegionState::Hit | RegionState::Implied) => Known::Executed,
                    Some(RegionState::NotExecuted) => Known::Absent,
                    Some(RegionState::Unknown) | None => Known::Unknown,
                };
                let all = &mut known[block.index()];
                *all = match (*all, state) {
                    (Known::Executed, _) | (_, Known::Executed) => Known::Executed,
                    (Known::NoProbe | Known::Absent, Known::Absent) => Known::Absent,
                    _ => Known::Unknown,
                };
                // Several probes of a block may lie in one region.
                if let Some(region) = region.filter(|region| !regions.contains(&(block, region.start))) {
                    counted[block.index()] += u64::from(region.hits);
                    regions.push((block, region.start));
                }
            }
            for (block, known) in (0..).map(BlockIndex).zip(&known) {
                if *known == Known::Executed {
                    seeds.note_executed(map, instance, block, Evidence::Proved);
                }
            }
            let absent = absent(cfg, known, completed);
            match self.functions.get_mut(&key) {
                None => {
                    self.functions.insert(key, FunctionBlocks { absent, counted });
                }
                Some(sum) => {
                    sum.absent.iter_mut().zip(absent).for_each(|(all, this)| *all &= this);
                    sum.counted.iter_mut().zip(counted).for_each(|(sum, this)| *sum += this);
                }
            }
        }
        // Code whose function could not be told from others of its name.
        self.functions.retain(|(id, _), _| !map.unplaced.contains(&id.guid));
    }
}

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

/// The region that a probe's instruction is in. `None`: it was not observed, or the probe's code may be elsewhere.
fn region_of<'c>(map: &AddressMap, coverage: &'c ModuleCoverage, probe: &Probe) -> Option<&'c Region> {
    let offset = map.binary.offset_of_address(probe.address)?;
    let after = coverage.regions.partition_point(|region| region.start <= offset);
    let region = coverage.regions.get(after.checked_sub(1)?)?;
    let symbol = map.binary.symbols.get(map.binary.symbol_at(probe.address)?)?;
    (offset < region.end && belongs(map, probe.instance, symbol)).then_some(region)
}

/// Which blocks were not executed in an instance.
fn absent(cfg: &Cfg, mut known: Vec<Known>, completed: bool) -> Vec<bool> {
    let mut before: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for (from, block) in cfg.blocks.iter().enumerate() {
        for to in &block.successors {
            before.entry(to.index()).or_default().push(from);
        }
    }
    let mut may_end: Vec<bool> = cfg
        .blocks
        .iter()
        .map(|block| block.successors.is_empty() || matches!(block.terminator, Terminator::Unreachable | Terminator::Resume))
        .collect();
    for call in cfg.calls.iter().filter(|call| call.may_not_return) {
        may_end[call.block.index()] = true;
    }
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
        assert_eq!(of([Executed, Absent, NoProbe, Executed], true), [false, true, false, false]);
        // Never entered: whatever follows was not executed either.
        assert_eq!(of([Absent, NoProbe, NoProbe, NoProbe], false), [true; 4]);
        // An entry without a probe: something after it would have been executed.
        assert_eq!(of([NoProbe, Absent, Absent, NoProbe], true), [true; 4]);
        assert_eq!(of([NoProbe, Absent, Absent, NoProbe], false), [false, true, true, true]);
        assert_eq!(of([NoProbe, Absent, Unknown, Absent], true), [false, true, false, true]);
    }
}
