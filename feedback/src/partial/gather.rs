//! All bursts of a recording → what was observed of each function's paths, with what is needed to tell how sure that is.

use super::Alternatives;
use super::callers::Called;
use super::copies::Copies;
use super::copy::Graph;
use super::frames::{Frame, Walks};
use super::replicates::{Times, multipliers};
use super::store::Store;
use crate::decode::{DecodeReport, Decoder, Event};
use crate::iterations::Forest;
use crate::program::Program;
use crate::time_bias::Weights;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_collector::vector::{Burst, ModuleId, VectorSet, Window};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Something that was observed of a function's paths, and how often.
#[derive(Clone, PartialEq, Debug)]
pub struct Observation {
    /// What was passed: one of these lists of pieces.
    pub alternatives: Alternatives,
    /// How often, weighted.
    pub times: Times,
}

/// What was observed of one function's paths, in all its copies.
#[derive(Debug)]
pub struct FunctionEvidence {
    /// Its graph.
    pub graph: Graph,
    /// Linkage name.
    pub name: String,
    /// By block: some copy shows it.
    pub shown: Vec<bool>,
    /// Different ones, in the order in which they were made first.
    pub observations: Vec<Observation>,
    /// Windows of consecutive paths of one activation; empty unless [`Options::iterations`] asks for them.
    pub windows: Forest,
    /// What first paths of activations came after; nothing where windows are not asked for.
    pub called: Called,
}

impl FunctionEvidence {
    /// Adds what another module's copies showed of the same function.
    fn add(&mut self, other: Self) {
        for (shown, other) in self.shown.iter_mut().zip(other.shown) {
            *shown |= other;
        }
        self.observations.extend(other.observations);
        self.windows.merge(&other.windows);
        self.called.merge(other.called);
    }
}

/// What to gather.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Bursts are cut into vectors of so many branches, which know nothing of each other; left whole if `None`.
    pub vector_length: Option<usize>,
    /// Windows of up to so many consecutive paths are counted; none if 0.
    pub iterations: usize,
}

/// What was observed of a program's paths.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Functions of which something was observed.
    pub functions: BTreeMap<(FunctionId, CfgHash), FunctionEvidence>,
    /// Clusters (bursts) that were observed; 0 where that is not known.
    pub clusters: u64,
    /// What the address maps explained.
    pub report: DecodeReport,
    /// How often control got to a block in no way that its function's graph has.
    pub inconsistent: u64,
    /// How often what was passed is not known because too many ways led through blocks without code.
    pub lost: u64,
}

/// Observes all bursts.
pub fn gather(program: &Program, vectors: &VectorSet, weights: &Weights, options: &Options) -> Evidence {
    let mut gatherer = Gatherer::new(program, options.iterations);
    for (number, burst) in vectors.bursts.iter().enumerate() {
        let weight = weights.of_burst(number, burst);
        let mut multipliers = multipliers(number as u64);
        // A burst that stands for many is many clusters.
        let scatter = 1.0 / (burst.count.max(1) as f32).sqrt();
        for (multiplier, weight) in multipliers.iter_mut().zip(&weight) {
            *multiplier = (1.0 + (*multiplier - 1.0) * scatter) * weight;
        }
        match options.vector_length {
            None => gatherer.burst(burst, |position| weights.within(number, position) as f32),
            Some(window) => cut(burst, window, |from, part| {
                gatherer.burst(part, |position| weights.within(number, from + position) as f32);
            }),
        }
        gatherer.end_cluster(burst.count as f32, &multipliers);
    }
    if let Some(compressed) = &vectors.compressed {
        gatherer.decoder.note_compressed(compressed);
        for (number, window) in compressed.windows.iter().enumerate() {
            gatherer.window(window);
            let multipliers = multipliers((vectors.bursts.len() + number) as u64);
            gatherer.end_cluster(window.weight as f32, &multipliers);
        }
    }
    let windows = vectors.compressed.as_ref().map_or(0, |compressed| {
        let bursts: u64 = compressed.epochs.iter().map(|epoch| epoch.bursts).sum();
        bursts.min(compressed.windows.len() as u64)
    });
    Evidence {
        clusters: vectors.bursts.iter().map(|burst| burst.count).sum::<u64>() + windows,
        ..gatherer.finish()
    }
}

/// Calls `with` for each part of a burst, and where it begins.
fn cut(burst: &Burst, window: usize, mut with: impl FnMut(usize, &Burst)) {
    let window = window.max(1);
    for (number, branches) in burst.branches.chunks(window).enumerate() {
        let from = number * window;
        let is_last = from + branches.len() == burst.branches.len();
        let part = Burst {
            branches: branches.to_vec(),
            end: burst.end.filter(|_| is_last),
            start: burst.start.filter(|_| from == 0),
            hardware: None,
            ..burst.clone()
        };
        with(from, &part);
    }
}

struct Gatherer<'p> {
    decoder: Decoder<'p>,
    modules: FxHashMap<ModuleId, Copies<'p>>,
    walks: Walks,
    store: Store,
}

impl<'p> Gatherer<'p> {
    fn new(program: &'p Program, iterations: usize) -> Self {
        let modules = program.annotated().map(|(module, map)| (module, Copies::new(map)));
        Self {
            decoder: Decoder::new(program),
            modules: modules.collect(),
            walks: Walks::default(),
            store: Store::new(iterations),
        }
    }

    fn burst(&mut self, burst: &Burst, weight: impl Fn(usize) -> f32) {
        let (decoder, mut watch) = self.watch();
        decoder.burst(burst, &mut |position, event| {
            watch.event(position, event, weight(position))
        });
        watch.end();
    }

    fn window(&mut self, window: &Window) {
        let (decoder, mut watch) = self.watch();
        // The cluster has the window's weight; only its lead counts for nothing.
        decoder.window(window, &mut |position, event, weight| {
            watch.event(position, event, if weight == 0 { 0.0 } else { 1.0 });
        });
        watch.end();
    }

    fn watch(&mut self) -> (&mut Decoder<'p>, Watch<'_, 'p>) {
        let watch = Watch {
            modules: &mut self.modules,
            walks: &mut self.walks,
            store: &mut self.store,
        };
        (&mut self.decoder, watch)
    }

    /// What was stored since the last call came from one burst, or from parts of it.
    fn end_cluster(&mut self, count: f32, multipliers: &Times) {
        self.store.end_cluster(count, multipliers);
    }

    fn finish(self) -> Evidence {
        let mut functions = BTreeMap::new();
        let mut store = self.store;
        for copies in self.modules.into_values() {
            let mut shown = copies.shown_by_function();
            for (position, function) in copies.functions.into_iter().enumerate() {
                let Some((place, graph)) = function else { continue };
                let known = &copies.map.functions[position];
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
            clusters: 0,
            functions,
            report: self.decoder.report,
            inconsistent: store.inconsistent,
            lost: store.lost,
        }
    }
}

/// Where events go.
struct Watch<'a, 'p> {
    modules: &'a mut FxHashMap<ModuleId, Copies<'p>>,
    walks: &'a mut Walks,
    store: &'a mut Store,
}

impl Watch<'_, '_> {
    fn event(&mut self, position: usize, event: Event, weight: f32) {
        let Self { modules, walks, store } = self;
        match event {
            Event::Block {
                module,
                frame,
                node,
                block,
                address,
            } => {
                let group = (position, frame, module, node, address);
                if walks.pending.as_ref() != Some(&group) {
                    walks.flush_pending(modules, store);
                    walks.pending = Some(group);
                    store.weight = weight;
                }
                walks.group.push(block);
            }
            Event::Entered { frame } => {
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
            Event::IndirectCall { .. } => {}
        }
    }

    fn end(&mut self) {
        self.walks.end(self.modules, self.store);
    }
}
