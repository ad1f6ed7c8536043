//! Observations summed up by what was observed.

use super::callers::{Called, Waiting};
use super::evidence::Observation;
use super::inline_instance::Graph;
use super::walk::Sink;
use crate::iterations::{Forest, PassedPath, runs_of_passed};
use crate::partial_path::{Alternatives, PartialPath};
use crate::replicates::{REPLICATES, Times};
use rustc_hash::FxHashMap;

/// Different observations of a function.
#[derive(Default)]
pub(super) struct Observations {
    pieces: FxHashMap<PartialPath, u32>,
    others: FxHashMap<Alternatives, u32>,
    /// One for each observation.
    pub kinds: Vec<u32>,
    times: Vec<Times>,
    /// By observation: the path, where it is one.
    passed: Vec<Option<PassedPath>>,
}

impl Observations {
    pub fn finish(self) -> Vec<Observation> {
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
pub(super) struct Store {
    pub functions: Vec<Observations>,
    /// Of the current cluster: function, observation, weight.
    cluster: Vec<(u32, u32, f32)>,
    /// Weight of what is observed now.
    pub weight: f32,
    pub inconsistent: u64,
    pub lost: u64,
    /// Paths of the longest windows; 0 where none are counted.
    iterations: usize,
    /// By function.
    pub windows: FxHashMap<u32, Forest>,
    /// By function: what its first paths came after.
    pub called: FxHashMap<u32, Called>,
}

impl Store {
    /// Counts windows of up to so many paths; none if 0.
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

/// Where one function's observations go.
pub(super) struct ObservationSink<'a> {
    pub place: u32,
    pub store: &'a mut Store,
    pub graph: &'a Graph,
    pub passed: &'a mut Vec<PassedPath>,
    pub callers: &'a mut Waiting,
}

impl ObservationSink<'_> {
    /// Notes what the callers of these activations had passed, where it is certain what they passed themselves.
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
    /// One of these observations was made in the current cluster. `number` is a new one's where it equals the count so far.
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
        // Nothing is in doubt: each path stands for itself.
        for path in paths.drain(..) {
            let seen = &mut self.store.functions[self.place as usize];
            let number = match seen.pieces.get(&path) {
                Some(&number) => {
                    self.note(number, || None);
                    number
                }
                None => {
                    let passed = PassedPath::new(&self.graph.paths, &path);
                    let number = seen.kinds.len() as u32;
                    seen.pieces.insert(path, number);
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
            // Nobody knows what it was: no window goes across.
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
