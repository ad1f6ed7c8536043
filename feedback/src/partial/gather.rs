//! All bursts of a recording → what was observed of each function's paths, with what is needed to tell how sure that is.

use super::copy::{Copy, Graph};
use super::walk::{Activation, Sink, Steps};
use super::{Alternatives, Piece};
use crate::ball_larus;
use crate::decode::{DecodeReport, Decoder, Event, FrameId};
use crate::iterations::{Forest, runs};
use crate::program::Program;
use crate::time_bias::Weights;
use pleach_annotate::cfg::ProbeTarget;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_annotate::map::{AddressMap, NodeIndex};
use pleach_annotate::probe::Address;
use pleach_collector::vector::{Burst, ModuleId, VectorSet, Window};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Bootstrap replicates (ALGORITHMS 6.2).
pub const REPLICATES: usize = 32;
/// How often something was observed: really, and in each replicate.
pub type Times = [f32; REPLICATES + 1];

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
}

impl FunctionEvidence {
    /// Adds what another module's copies showed of the same function.
    fn add(&mut self, other: Self) {
        for (shown, other) in self.shown.iter_mut().zip(other.shown) {
            *shown |= other;
        }
        self.observations.extend(other.observations);
        self.windows.merge(&other.windows);
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
    /// What the address maps explained.
    pub report: DecodeReport,
    /// How often control got to a block in no way that its function's graph has.
    pub inconsistent: u64,
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
    gatherer.finish()
}

/// A cluster's weight in each replicate, after a first 1: Poisson numbers with mean 1.
pub fn multipliers(cluster: u64) -> Times {
    let mut state = cluster.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bf0_3635;
    std::array::from_fn(|replicate| {
        if replicate == 0 {
            return 1.0;
        }
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let uniform = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        poisson(uniform)
    })
}

/// The number that a Poisson variable of mean 1 does not exceed with this probability.
fn poisson(uniform: f64) -> f32 {
    let (mut number, mut term) = (0, (-1.0_f64).exp());
    let mut below = term;
    while uniform >= below && number < 20 {
        number += 1;
        term /= f64::from(number);
        below += term;
    }
    number as f32
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
            store: Store {
                iterations,
                ..Store::default()
            },
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
            functions,
            report: self.decoder.report,
            inconsistent: store.inconsistent,
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

/// The copies of one module.
struct Copies<'p> {
    map: &'p AddressMap,
    /// By function of the map, once needed: where its observations are stored, and its graph.
    functions: Vec<Option<(u32, Graph)>>,
    /// By node, once needed.
    steps: Vec<Option<Box<Steps>>>,
    /// By node: blocks that have code in it.
    shown: Vec<Vec<BlockIndex>>,
}

impl<'p> Copies<'p> {
    fn new(map: &'p AddressMap) -> Self {
        let mut shown: Vec<Vec<BlockIndex>> = vec![Vec::new(); map.nodes.len()];
        for probe in &map.probes {
            if let ProbeTarget::Block(block) = probe.target {
                shown[probe.node.index()].push(block);
            }
        }
        Self {
            map,
            functions: map.functions.iter().map(|_| None).collect(),
            steps: map.nodes.iter().map(|_| None).collect(),
            shown,
        }
    }

    /// By function of the map and block: some copy shows it, always.
    fn shown_by_function(&self) -> Vec<Vec<bool>> {
        let mut shown: Vec<Vec<bool>> = vec![Vec::new(); self.map.functions.len()];
        for (node, steps) in self.map.nodes.iter().zip(&self.steps) {
            let Some(steps) = steps else { continue };
            let function = node.function.0 as usize;
            let shown = &mut shown[function];
            shown.resize(self.map.functions[function].cfg.blocks.len(), false);
            for (index, shown) in shown.iter_mut().enumerate() {
                *shown |= !steps.copy.is_silent(BlockIndex(index as u32));
            }
        }
        shown
    }

    /// Where a copy's observations are stored, its function's graph, and its steps.
    fn of(&mut self, node: NodeIndex, store: &mut Store) -> (u32, &Graph, &mut Steps) {
        let Self {
            map,
            functions,
            steps,
            shown,
        } = self;
        let position = map.nodes[node.index()].function.0 as usize;
        let cfg = &map.functions[position].cfg;
        let (place, graph) = functions[position].get_or_insert_with(|| {
            store.functions.push(Observations::default());
            (
                store.functions.len() as u32 - 1,
                Graph::new(cfg, &ball_larus::Options::default()),
            )
        });
        let steps = steps[node.index()].get_or_insert_with(|| {
            let shown = shown[node.index()].iter().copied();
            Box::new(Steps::new(Copy::new(cfg.blocks.len(), shown)))
        });
        (*place, graph, steps)
    }
}

type Group = (usize, FrameId, ModuleId, NodeIndex, Address);

/// Activations of one emitted function and of what was inlined into it.
#[derive(Default)]
struct Frame {
    /// It was entered within the burst.
    is_fresh: bool,
    /// By copy, in the order in which they were seen first.
    activations: Vec<Watched>,
}

/// Activations of one copy, one after the other.
struct Watched {
    module: ModuleId,
    node: NodeIndex,
    activation: Activation,
    /// What they passed, where windows of paths are counted.
    passed: Vec<Piece>,
}

impl Frame {
    /// Whether a copy that is seen for the first time cannot have been entered before the burst began: then control was
    /// elsewhere in the frame, and not in anything that was inlined into the copy.
    fn enters(&self, map: &AddressMap, node: NodeIndex) -> bool {
        let Some(first) = self.activations.first() else {
            return self.is_fresh;
        };
        let mut around = Some(first.node);
        while let Some(at) = around {
            if at == node {
                return self.is_fresh;
            }
            around = map.nodes[at.index()].parent.map(|(parent, _)| parent);
        }
        true
    }
}

/// Activations that are watched.
#[derive(Default)]
struct Walks {
    frames: FxHashMap<FrameId, Frame>,
    /// Blocks at one address that control got to.
    pending: Option<Group>,
    group: Vec<BlockIndex>,
}

impl Walks {
    fn flush_pending(&mut self, modules: &mut FxHashMap<ModuleId, Copies<'_>>, store: &mut Store) {
        let Some((_, frame, module, node, _)) = self.pending.take() else {
            return;
        };
        let frame = self.frames.entry(frame).or_default();
        if let Some(copies) = modules.get_mut(&module) {
            let known = frame
                .activations
                .iter()
                .position(|a| (a.module, a.node) == (module, node));
            let position = known.unwrap_or_else(|| {
                frame.activations.push(Watched {
                    module,
                    node,
                    activation: Activation::new(frame.enters(copies.map, node)),
                    passed: Vec::new(),
                });
                frame.activations.len() - 1
            });
            let (place, graph, steps) = copies.of(node, store);
            let Watched { activation, passed, .. } = &mut frame.activations[position];
            let mut sink = Into { place, store, passed };
            activation.pass(&self.group, graph, steps, &mut sink);
        }
        self.group.clear();
    }

    fn leave(
        &mut self,
        frame: FrameId,
        has_left: bool,
        modules: &mut FxHashMap<ModuleId, Copies<'_>>,
        store: &mut Store,
    ) {
        let frame = self.frames.remove(&frame).unwrap_or_default();
        for watched in frame.activations {
            let Watched {
                module,
                node,
                mut activation,
                mut passed,
            } = watched;
            if let Some(copies) = modules.get_mut(&module) {
                let (place, graph, steps) = copies.of(node, store);
                let mut sink = Into {
                    place,
                    store,
                    passed: &mut passed,
                };
                activation.leave(has_left, graph, steps, &mut sink);
                store.count_windows(place, graph, &passed);
            }
        }
    }

    fn end(&mut self, modules: &mut FxHashMap<ModuleId, Copies<'_>>, store: &mut Store) {
        self.flush_pending(modules, store);
        let mut frames: Vec<FrameId> = self.frames.keys().copied().collect();
        frames.sort_unstable();
        for frame in frames {
            self.leave(frame, false, modules, store);
        }
    }
}

/// Different observations of a function.
#[derive(Default)]
struct Observations {
    pieces: FxHashMap<Piece, u32>,
    others: FxHashMap<Alternatives, u32>,
    /// One for each observation.
    kinds: Vec<u32>,
    times: Vec<Times>,
}

impl Observations {
    fn finish(self) -> Vec<Observation> {
        let single = self
            .pieces
            .into_iter()
            .map(|(piece, number)| (number, vec![vec![piece]]));
        let others = self
            .others
            .into_iter()
            .map(|(alternatives, number)| (number, alternatives));
        let mut all: Vec<(u32, Alternatives)> = single.chain(others).collect();
        all.sort_unstable_by_key(|&(number, _)| number);
        let times = self.times;
        let all = all.into_iter().map(|(number, alternatives)| Observation {
            alternatives,
            times: times[number as usize],
        });
        all.collect()
    }
}

/// All observations.
#[derive(Default)]
struct Store {
    functions: Vec<Observations>,
    /// Of the current cluster: function, observation, weight.
    cluster: Vec<(u32, u32, f32)>,
    /// Weight of what is observed now.
    weight: f32,
    inconsistent: u64,
    /// Paths of the longest windows; 0 where none are counted.
    iterations: usize,
    /// By function.
    windows: FxHashMap<u32, Forest>,
}

impl Store {
    fn count_windows(&mut self, function: u32, graph: &Graph, passed: &[Piece]) {
        if self.iterations == 0 {
            return;
        }
        let forest = self.windows.entry(function);
        let forest = forest.or_insert_with(|| Forest::new(self.iterations));
        for run in runs(&graph.paths, passed) {
            forest.add(&run, self.weight.into());
        }
    }

    fn end_cluster(&mut self, count: f32, multipliers: &Times) {
        self.cluster
            .sort_unstable_by_key(|&(function, observation, _)| (function, observation));
        for same in self.cluster.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let sum: f32 = same.iter().map(|&(_, _, weight)| weight).sum();
            let (function, observation, _) = same[0];
            let times = &mut self.functions[function as usize].times[observation as usize];
            for (times, multiplier) in times.iter_mut().zip(multipliers) {
                *times += sum * count * multiplier;
            }
        }
        self.cluster.clear();
    }
}

/// Where one function's observations go.
struct Into<'a> {
    place: u32,
    store: &'a mut Store,
    passed: &'a mut Vec<Piece>,
}

impl Sink for Into<'_> {
    fn pieces(&mut self, mut alternatives: Alternatives) {
        let seen = &mut self.store.functions[self.place as usize];
        let weight = self.store.weight;
        let mut note = |kinds: &mut Vec<u32>, times: &mut Vec<Times>, number: u32| {
            if number as usize == kinds.len() {
                kinds.push(number);
                times.push([0.0; REPLICATES + 1]);
            }
            self.store.cluster.push((self.place, number, weight));
        };
        if self.store.iterations > 0 {
            match &alternatives[..] {
                [pieces] => self.passed.extend(pieces.iter().cloned()),
                // Nobody knows what it was: no window goes across.
                _ => self.passed.push(alternatives[0][0].without_ends()),
            }
        }
        if let [pieces] = &mut alternatives[..] {
            // Nothing is in doubt: each piece stands for itself.
            for piece in pieces.drain(..) {
                let next = seen.kinds.len() as u32;
                let number = *seen.pieces.entry(piece).or_insert(next);
                note(&mut seen.kinds, &mut seen.times, number);
            }
            return;
        }
        let next = seen.kinds.len() as u32;
        let number = *seen.others.entry(alternatives).or_insert(next);
        note(&mut seen.kinds, &mut seen.times, number);
    }

    fn inconsistent(&mut self) {
        self.store.inconsistent += 1;
    }
}
