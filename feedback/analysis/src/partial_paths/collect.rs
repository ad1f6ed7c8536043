//! From all bursts of a recording to the evidence about each function's paths.

use super::evidence::{Evidence, FunctionEvidence};
use super::frames::{Frame, Walks};
use super::module_instances::ModuleInstances;
use super::store::Store;
use crate::decode::{DecodeReport, Event, Position};
use crate::program::{Program, Site};
use crate::replay::{Observer, Replay, ReplayUnit, Run};
use crate::replicates::multipliers;
use crate::time_bias::Weights;
use pleach_collector::vector::{Burst, ModuleId, VectorSet};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Options of collecting partial paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PartialPathOptions {
    /// Length in taken branches of the independent vectors that bursts are cut into; bursts are left whole if `None`.
    pub vector_length: Option<usize>,
    /// Maximum number of consecutive paths of a window; no windows are counted if 0.
    pub iterations: usize,
}

/// Replays a recording, and collects its partial paths. `weights`: the weight of each branch.
pub fn collect_partial_paths(
    program: &Program,
    vectors: &VectorSet,
    weights: &Weights,
    options: &PartialPathOptions,
) -> Evidence {
    let mut collector = PartialPathCollector::new(program, weights, options.iterations);
    let mut replay = Replay::new(program);
    match options.vector_length {
        None => replay.recording(vectors, &mut collector),
        Some(length) => {
            for (number, burst) in vectors.bursts.iter().enumerate() {
                cut(burst, length, |first, part| {
                    collector.part = Some(Part { number, first });
                    replay.burst(part, &mut collector);
                });
                collector.end_burst(number, burst);
            }
            collector.part = None;
            if let Some(compressed) = &vectors.compressed {
                replay.continue_at(vectors.bursts.len());
                replay.compressed(compressed, &mut collector);
            }
        }
    }
    let mut evidence = collector.finish(replay.report());
    evidence.cap_clusters(vectors.burst_count());
    evidence
}

/// Calls `with` for each part of a burst, with the position of its first branch.
fn cut(burst: &Burst, length: usize, mut with: impl FnMut(usize, &Burst)) {
    let length = length.max(1);
    for (number, branches) in burst.branches.chunks(length).enumerate() {
        let first = number * length;
        let is_last = first + branches.len() == burst.branches.len();
        let part = Burst {
            branches: branches.to_vec(),
            end: burst.end.filter(|_| is_last),
            start: burst.start.filter(|_| first == 0),
            system_call: None,
            hardware: None,
            values: Vec::new(),
            ..burst.clone()
        };
        with(first, &part);
    }
}

/// A part of a burst, which is replayed like a burst.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Number of the burst.
    number: usize,
    /// Position of its first branch in the burst.
    first: usize,
}

/// Collects partial paths from a replay.
pub struct PartialPathCollector<'p> {
    program: &'p Program,
    weights: &'p Weights,
    /// The part that is replayed, if bursts are cut.
    part: Option<Part>,
    modules: FxHashMap<ModuleId, ModuleInstances<'p>>,
    walks: Walks,
    store: Store,
    clusters: u64,
}

impl Observer for PartialPathCollector<'_> {
    fn event(&mut self, run: Run<'_>, position: Position, event: Event) {
        let weight = match (run.source, position) {
            (_, Position::Interrupted) => return,
            // The cluster has the window's weight. Its lead has weight 0.
            (_, Position::Lead) => 0.0,
            (ReplayUnit::Window(_), Position::Branch(_)) => 1.0,
            (ReplayUnit::Burst(_), Position::Branch(branch)) => {
                let Part { number, first } = self.part.unwrap_or(Part {
                    number: run.number,
                    first: 0,
                });
                self.weights.within(number, first + branch) as f32
            }
        };
        let called_from = match event {
            Event::Entered { .. } => {
                let branch = run.branch(position);
                branch.and_then(|branch| self.program.block_of_call(branch.from))
            }
            _ => None,
        };
        self.note(position, event, weight, called_from);
    }

    fn end(&mut self, run: Run<'_>) {
        self.walks.end(&mut self.modules, &mut self.store);
        match run.source {
            ReplayUnit::Burst(burst) if self.part.is_none() => self.end_burst(run.number, burst),
            ReplayUnit::Burst(_) => {}
            ReplayUnit::Window(window) => {
                let multipliers = multipliers(run.number as u64);
                self.store.end_cluster(window.weight as f32, &multipliers);
                self.clusters += 1;
            }
        }
    }
}

impl<'p> PartialPathCollector<'p> {
    /// A collector without evidence. Windows of up to `iterations` paths are counted; none if 0.
    pub fn new(program: &'p Program, weights: &'p Weights, iterations: usize) -> Self {
        let modules = program
            .annotated()
            .map(|(module, map)| (module, ModuleInstances::new(map)));
        Self {
            program,
            weights,
            part: None,
            modules: modules.collect(),
            walks: Walks::default(),
            store: Store::new(iterations),
            clusters: 0,
        }
    }

    fn note(&mut self, position: Position, event: Event, weight: f32, called_from: Option<Site>) {
        let Self {
            modules, walks, store, ..
        } = self;
        match event {
            Event::Block {
                module,
                frame,
                instance,
                block,
                address,
            } => {
                let group = (position, frame, module, instance, address);
                if walks.pending.as_ref() != Some(&group) {
                    walks.flush_pending(modules, store);
                    walks.pending = Some(group);
                    store.weight = weight;
                }
                walks.group.push(block);
            }
            Event::Entered { frame } => {
                walks.flush_pending(modules, store);
                store.weight = weight;
                walks.call_from(called_from);
                let entered = Frame {
                    is_fresh: true,
                    activations: Vec::new(),
                };
                walks.frames.insert(frame, entered);
            }
            Event::Left { frame } => {
                walks.flush_pending(modules, store);
                store.weight = weight;
                walks.leave(frame, true, modules, store);
            }
            Event::IndirectCall { .. } | Event::Throw { .. } | Event::Unwound { .. } | Event::Value { .. } => {}
        }
    }

    /// Ends the cluster of a burst, or of its parts.
    fn end_burst(&mut self, number: usize, burst: &Burst) {
        let weight = self.weights.of_burst(number, burst);
        let mut multipliers = multipliers(number as u64);
        // A burst with a count of n stands for n clusters.
        let scatter = 1.0 / (burst.count.max(1) as f32).sqrt();
        for (multiplier, weight) in multipliers.iter_mut().zip(&weight) {
            *multiplier = (1.0 + (*multiplier - 1.0) * scatter) * weight;
        }
        self.store.end_cluster(burst.count as f32, &multipliers);
        self.clusters += burst.count;
    }

    /// The evidence; `report` is the replay's.
    pub fn finish(self, report: DecodeReport) -> Evidence {
        let mut functions = BTreeMap::new();
        let mut store = self.store;
        for instances in self.modules.into_values() {
            let mut shown = instances.shown_by_function();
            for (position, function) in instances.functions.into_iter().enumerate() {
                let Some((place, graph)) = function else { continue };
                let known = &instances.map.functions[position];
                let observations = std::mem::take(&mut store.functions[place as usize]);
                if observations.kinds.is_empty() {
                    continue;
                }
                let evidence = FunctionEvidence {
                    graph,
                    name: known.cfg.name.clone(),
                    shown: std::mem::take(&mut shown[position]),
                    windows: store.windows.remove(&place).unwrap_or_default(),
                    called: store.called.remove(&place).unwrap_or_default(),
                    observations: observations.finish(),
                };
                match functions.entry((known.cfg.id, known.hash)) {
                    Entry::Vacant(entry) => {
                        entry.insert(evidence);
                    }
                    Entry::Occupied(mut entry) => entry.get_mut().add(evidence),
                }
            }
        }
        Evidence {
            clusters: self.clusters,
            functions,
            report,
            inconsistent: store.inconsistent,
            lost: store.lost,
        }
    }
}
