//! Sums equal observations.

use super::callers::{Called, PendingCallers};
use super::evidence::Observation;
use super::inline_instance::Graph;
use super::walk::Sink;
use crate::iterations::{Forest, PassedPath, runs_of_passed};
use crate::partial_path::{Alternatives, PartialPath};
use crate::replicates::{REPLICATES, Times};
use rustc_hash::FxHashMap;

/// The distinct observations of a function.
#[derive(Default)]
pub(super) struct FunctionObservations {
    partial_paths: FxHashMap<PartialPath, u32>,
    others: FxHashMap<Alternatives, u32>,
    /// The number of each observation.
    pub kinds: Vec<u32>,
    times: Vec<Times>,
    /// By observation: its path, if it is a single one.
    passed: Vec<Option<PassedPath>>,
}

impl FunctionObservations {
    pub fn finish(self) -> Vec<Observation> {
        let single = self
            .partial_paths
            .into_iter()
            .map(|(partial_path, number)| (number, vec![vec![partial_path]]));
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
pub(super) struct Store {
    pub functions: Vec<FunctionObservations>,
    /// The observations of the current cluster: function, observation, weight.
    cluster: Vec<(u32, u32, f32)>,
    /// Weight of the next observations.
    pub weight: f32,
    pub inconsistent: u64,
    pub lost: u64,
    /// Maximum number of paths of a window; 0 if none are counted.
    iterations: usize,
    /// By function.
    pub windows: FxHashMap<u32, Forest>,
    /// By function: the callers' blocks before its first paths.
    pub called: FxHashMap<u32, Called>,
}

impl Store {
    /// Counts windows of up to `iterations` paths; none if 0.
    pub fn new(iterations: usize) -> Self {
        Self {
            iterations,
            ..Self::default()
        }
    }

    pub fn count_windows(&mut self, function: u32, passed: &[PassedPath]) {
        if self.iterations == 0 {
            return;
        }
        let forest = self.windows.entry(function);
        let forest = forest.or_insert_with(|| Forest::new(self.iterations));
        for run in runs_of_passed(passed) {
            forest.add(&run, self.weight.into());
        }
    }

    pub fn end_cluster(&mut self, count: f32, multipliers: &Times) {
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

/// The destination of one function's observations.
pub(super) struct ObservationSink<'a> {
    pub place: u32,
    pub store: &'a mut Store,
    pub graph: &'a Graph,
    pub passed: &'a mut Vec<PassedPath>,
    pub callers: &'a mut PendingCallers,
}

impl ObservationSink<'_> {
    /// Counts the callers' last blocks with the first paths of these activations. `is_certain`: the paths are known.
    fn called(&mut self, paths: &[PartialPath], is_certain: bool) {
        for path in paths {
            let Some(caller) = self.callers.take_caller(path) else {
                continue;
            };
            if let Some(path) = path.whole().filter(|_| is_certain && self.store.iterations > 0) {
                let called = self.store.called.entry(self.place).or_default();
                called.add(caller, path, self.store.weight.into());
            }
        }
    }
}

impl ObservationSink<'_> {
    /// Adds an observation to the current cluster. `number` is a new observation's if it equals the count of
    /// observations.
    fn note(&mut self, number: u32, passed: impl FnOnce() -> Option<PassedPath>) {
        let seen = &mut self.store.functions[self.place as usize];
        if number as usize == seen.kinds.len() {
            seen.kinds.push(number);
            seen.times.push([0.0; REPLICATES + 1]);
            seen.passed.push(passed());
        }
        let weight = self.store.weight;
        self.store.cluster.push((self.place, number, weight));
    }
}

impl Sink for ObservationSink<'_> {
    fn passed(&mut self, paths: &mut Vec<PartialPath>) {
        self.called(paths, true);
        // The paths are certain: each is an observation of its own.
        for path in paths.drain(..) {
            let seen = &mut self.store.functions[self.place as usize];
            let number = match seen.partial_paths.get(&path) {
                Some(&number) => {
                    self.note(number, || None);
                    number
                }
                None => {
                    let passed = PassedPath::new(&self.graph.paths, &path);
                    let number = seen.kinds.len() as u32;
                    seen.partial_paths.insert(path, number);
                    self.note(number, || Some(passed));
                    number
                }
            };
            if self.store.iterations > 0 {
                let seen = &self.store.functions[self.place as usize];
                self.passed.extend(seen.passed[number as usize]);
            }
        }
    }

    fn alternatives(&mut self, alternatives: Alternatives) {
        let first = alternatives.first().map_or(&[][..], Vec::as_slice);
        self.called(first, false);
        if self.store.iterations > 0 {
            // The path is unknown: no window crosses it.
            self.passed
                .extend(alternatives.iter().flatten().next().map(|path| PassedPath {
                    start: None,
                    first: path.blocks[0],
                    end: None,
                    number: None,
                }));
        }
        let seen = &mut self.store.functions[self.place as usize];
        let next = seen.kinds.len() as u32;
        let number = *seen.others.entry(alternatives).or_insert(next);
        self.note(number, || None);
    }

    fn inconsistent(&mut self) {
        self.store.inconsistent += 1;
        self.callers.lose();
    }

    fn lost(&mut self) {
        self.store.lost += 1;
        self.callers.lose();
    }
}
