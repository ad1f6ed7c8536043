//! Seeds: the blocks that bursts passed.

use super::Key;
use crate::decode::{Event, Position};
use crate::program::Program;
use crate::replay::{Observer, Replay, ReplayUnit, Run};
use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_collector::vector::{ModuleId, Process, VectorSet};
use pleach_profile::Covered;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// How much of each burst is used (thesis §5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// The first block of each burst, as sampling of program counters would give.
    SingleBlock,
    /// Everything up to a number of taken branches.
    Vectors(usize),
}

impl View {
    /// Everything.
    pub const ALL: Self = Self::Vectors(usize::MAX);
}

/// The evidence that a block was executed, in the order of its strength.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Evidence {
    /// No evidence.
    #[default]
    None,
    /// Shadow execution passed it; the program may have gone elsewhere.
    Predicted,
    /// A breakpoint in it was hit.
    Hit,
    /// A burst that was executed passed it.
    Proved,
    /// It was executed by a process that ended undisturbed.
    Completed,
}

impl Evidence {
    /// Two pieces of evidence together. A breakpoint proves that a block was executed, which shadow execution passed.
    fn and(self, other: Self) -> Self {
        match (self.min(other), self.max(other)) {
            (Self::Predicted, Self::Hit) => Self::Proved,
            (_, stronger) => stronger,
        }
    }
}

/// The seed of one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seed {
    /// The evidence that it was passed.
    pub evidence: Evidence,
    /// Number of times that bursts passed it.
    pub passed: u64,
}

impl Seed {
    /// The evidence as a profile states it.
    pub fn covered(&self) -> Covered {
        match self.evidence {
            Evidence::None => Covered::Unknown,
            Evidence::Predicted => Covered::Predicted,
            Evidence::Hit => Covered::Hit,
            Evidence::Proved | Evidence::Completed => Covered::Proved,
        }
    }
}

/// The blocks that bursts passed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Seeds {
    /// By function, in block order.
    pub functions: BTreeMap<Key, Vec<Seed>>,
}

impl Seeds {
    /// The seeds of a recording.
    pub fn from_vectors(program: &Program, vectors: &VectorSet, view: View) -> Self {
        let mut seeding = Seeding::new(program, &vectors.processes, view);
        let max_branches = match view {
            View::SingleBlock => usize::MAX,
            View::Vectors(branches) => branches,
        };
        Replay::with_max_branches(program, max_branches).recording(vectors, &mut seeding);
        seeding.finish()
    }

    /// Adds a block that was executed otherwise than in a burst, and the blocks with the calls through which its
    /// instance was inlined.
    pub fn note_executed(
        &mut self,
        map: &AddressMap,
        instance: InlineInstanceIndex,
        block: BlockIndex,
        evidence: Evidence,
    ) {
        self.note(map, instance, block, evidence);
        self.note_callers(map, instance, evidence);
    }

    fn note_callers(&mut self, map: &AddressMap, instance: InlineInstanceIndex, evidence: Evidence) {
        let mut inner = instance;
        while let Some((outer, call)) = map.inline_instances[inner.index()].parent {
            let cfg = &map.function_of(outer).cfg;
            if let Some(call) = call.and_then(|call| cfg.calls.get(call.index())) {
                self.note(map, outer, call.block, evidence);
            }
            inner = outer;
        }
    }

    fn note(
        &mut self,
        map: &AddressMap,
        instance: InlineInstanceIndex,
        block: BlockIndex,
        evidence: Evidence,
    ) -> &mut Seed {
        let function = map.function_of(instance);
        let blocks = self.functions.entry((function.cfg.id, function.hash));
        let blocks = blocks.or_insert_with(|| vec![Seed::default(); function.cfg.blocks.len()]);
        let seed = &mut blocks[block.index()];
        seed.evidence = seed.evidence.and(evidence);
        seed
    }
}

/// Collects seeds from a replay.
pub struct Seeding<'p> {
    program: &'p Program,
    processes: &'p [Process],
    view: View,
    /// Of the current burst.
    evidence: Evidence,
    /// Whether the rest of the current burst is ignored.
    is_over: bool,
    /// By module, inline instance and block, once needed: functions are looked up at the end only.
    instances: FxHashMap<ModuleId, Vec<Vec<Seed>>>,
}

impl<'p> Seeding<'p> {
    /// No seeds yet. `processes` are those of the recording.
    pub fn new(program: &'p Program, processes: &'p [Process], view: View) -> Self {
        Self {
            program,
            processes,
            view,
            evidence: Evidence::None,
            is_over: false,
            instances: program
                .annotated()
                .map(|(module, map)| (module, vec![Vec::new(); map.inline_instances.len()]))
                .collect(),
        }
    }

    /// The seeds of all inline instances. The blocks with the calls through which an inline instance was inlined were
    /// passed at least once, too.
    pub fn finish(self) -> Seeds {
        let mut seeds = Seeds::default();
        for (module, map) in self.program.annotated() {
            let instances = self.instances.get(&module).into_iter().flatten();
            for (instance, blocks) in (0..).map(InlineInstanceIndex).zip(instances) {
                let Some(evidence) = blocks.iter().map(|seed| seed.evidence).max() else {
                    continue;
                };
                for (block, seed) in (0..).map(BlockIndex).zip(blocks) {
                    if seed.evidence > Evidence::None {
                        seeds.note(map, instance, block, seed.evidence).passed += seed.passed;
                    }
                }
                seeds.note_callers(map, instance, evidence);
            }
        }
        seeds
    }
}

impl Observer for Seeding<'_> {
    fn begin(&mut self, run: Run<'_>) {
        let (process, proved) = match run.source {
            ReplayUnit::Burst(burst) => (burst.process, burst.proved),
            ReplayUnit::Window(window) => (window.process, window.proved),
        };
        let process = self.processes.get(process as usize);
        self.evidence = match proved {
            false => Evidence::Predicted,
            true if process.is_some_and(|process| process.undisturbed) => Evidence::Completed,
            true => Evidence::Proved,
        };
        self.is_over = false;
    }

    fn event(&mut self, run: Run<'_>, position: Position, event: Event) {
        let Event::Block {
            module,
            instance,
            block,
            ..
        } = event
        else {
            return;
        };
        if self.is_over {
            return;
        }
        let Some(blocks) = self
            .instances
            .get_mut(&module)
            .map(|instances| &mut instances[instance.index()])
        else {
            return;
        };
        if blocks.is_empty()
            && let Some(map) = self.program.map(module)
        {
            blocks.resize(map.function_of(instance).cfg.blocks.len(), Seed::default());
        }
        let times = match (run.source, position) {
            (ReplayUnit::Burst(burst), _) => burst.count,
            (ReplayUnit::Window(_), Position::Lead) => 0,
            (ReplayUnit::Window(window), _) => window.weight,
        };
        let seed = &mut blocks[block.index()];
        seed.evidence = seed.evidence.max(self.evidence);
        seed.passed += times;
        self.is_over = matches!(run.source, ReplayUnit::Burst(_)) && self.view == View::SingleBlock;
    }
}

#[cfg(test)]
mod tests {
    use super::Evidence::{Completed, Hit, None, Predicted, Proved};

    #[test]
    fn a_breakpoint_proves_what_shadow_execution_passed() {
        assert_eq!((Predicted.and(Hit), Hit.and(Predicted)), (Proved, Proved));
        assert_eq!(
            (Hit.and(None), Hit.and(Hit), None.and(Predicted)),
            (Hit, Hit, Predicted)
        );
        assert_eq!((Hit.and(Completed), Predicted.and(Proved)), (Completed, Proved));
    }
}
