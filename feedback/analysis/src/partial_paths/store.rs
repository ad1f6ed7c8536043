//! Observations summed up by what was observed.

use super::callers::{Called, Waiting};
use super::copy::Graph;
use super::gather::Observation;
use super::walk::Sink;
use crate::iterations::{Forest, runs};
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

    pub fn count_windows(&mut self, function: u32, graph: &Graph, passed: &[PartialPath]) {
        if self.iterations == 0 {
            return;
        }
        let forest = self.windows.entry(function);
        let forest = forest.or_insert_with(|| Forest::new(self.iterations));
        for run in runs(&graph.paths, passed) {
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
pub(super) struct Into<'a> {
    pub place: u32,
    pub store: &'a mut Store,
    pub passed: &'a mut Vec<PartialPath>,
    pub callers: &'a mut Waiting,
}

impl Into<'_> {
    /// Notes what the callers of these activations had passed.
    fn called(&mut self, alternatives: &Alternatives) {
        let is_certain = alternatives.len() == 1;
        for piece in alternatives.iter().take(1).flatten() {
            let Some(caller) = self.callers.of(piece) else { continue };
            if let Some(path) = piece.whole().filter(|_| is_certain && self.store.iterations > 0) {
                let called = self.store.called.entry(self.place).or_default();
                called.add(caller, path, self.store.weight.into());
            }
        }
    }
}

impl Sink for Into<'_> {
    fn pieces(&mut self, mut alternatives: Alternatives) {
        self.called(&alternatives);
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
                _ => self
                    .passed
                    .extend(alternatives.iter().flatten().next().map(PartialPath::without_ends)),
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
        self.callers.lose();
    }

    fn lost(&mut self) {
        self.store.lost += 1;
        self.callers.lose();
    }
}
