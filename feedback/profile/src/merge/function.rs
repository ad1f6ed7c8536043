//! Sums of one function's counts and estimates.

use super::MergeError;
use crate::data::{
    BranchPrediction, CallCrossingPath, CallTargets, Caller, Covered, EstimatedPath, Executions, FunctionProfile,
    PathWindow, ValueCounts, ValueSite,
};
use crate::sums::{self, PathSum, PredictionSum, Sum};
use pleach_annotate::id::{BlockIndex, FunctionGuid};
use pleach_annotate::manifest::decode_graph;
use pleach_ball_larus::Path;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// A sum, and the estimate of the only recording that contributed to it, which stays what it is.
struct Term<E, S> {
    only: Option<E>,
    sum: S,
}

impl<E, S: Sum> Term<E, S> {
    /// Of a profile with a weight: `known` if its estimate is a sum already.
    fn new(estimate: E, known: Option<S>, sum: impl FnOnce(&E) -> S, weight: u64) -> Self {
        let is_sum = known.is_some();
        let sum = known.unwrap_or_else(|| sum(&estimate)).times(weight);
        Self {
            only: (!is_sum && weight == 1).then_some(estimate),
            sum,
        }
    }

    /// The estimate, and the sum if it is one of several recordings.
    fn finish(self, estimate: impl FnOnce(&S) -> E) -> (E, Option<S>) {
        match self.only {
            Some(only) => (only, None),
            None => (estimate(&self.sum), Some(self.sum)),
        }
    }
}

/// Adds a term to those of a list.
fn add<K: Eq + Hash, E, S: Sum>(terms: &mut FxHashMap<K, Term<E, S>>, key: K, term: Term<E, S>) {
    match terms.entry(key) {
        Entry::Vacant(place) => drop(place.insert(term)),
        Entry::Occupied(mut known) => {
            let known = known.get_mut();
            known.only = None;
            known.sum.add(&term.sum);
        }
    }
}

/// A path's count, ends of its interval, and effective sample size.
type PathNumbers = [f64; 4];

/// Sums of a function's counts.
pub(super) struct FunctionSum {
    /// The sums of counts; lists of estimates are empty until the end.
    function: FunctionProfile,
    /// The encoded graph; empty if none is known.
    graph: Vec<u8>,
    /// Nothing was added yet.
    is_first: bool,
    /// Checksums of records that were added and that add nothing again.
    idempotent: Vec<u64>,
    targets: BTreeMap<u32, FxHashMap<FunctionGuid, u64>>,
    values: BTreeMap<ValueSite, ValueSums>,
    paths: FxHashMap<Path, Term<PathNumbers, PathSum>>,
    windows: FxHashMap<Vec<Path>, Term<f64, u128>>,
    called: FxHashMap<(Caller, Path), Term<f64, u128>>,
    predictions: FxHashMap<BlockIndex, Term<BranchPrediction, PredictionSum>>,
}

/// Sums of the values of one operand.
#[derive(Default)]
struct ValueSums {
    bursts: u64,
    values: FxHashMap<u64, u64>,
    others: u64,
}

impl ValueSums {
    fn add(&mut self, other: &ValueCounts, weight: u64) {
        self.bursts = self.bursts.saturating_add(other.bursts);
        self.others = self.others.saturating_add(other.others.saturating_mul(weight));
        for &(value, count) in &other.values {
            let sum = self.values.entry(value).or_default();
            *sum = sum.saturating_add(count.saturating_mul(weight));
        }
    }

    /// All values: leaving rare ones out would make the result depend on the order of merges.
    fn finish(self, site: ValueSite) -> ValueCounts {
        let mut values: Vec<(u64, u64)> = self.values.into_iter().collect();
        values.sort_unstable_by_key(|&(value, count)| (Reverse(count), value));
        ValueCounts {
            site,
            bursts: self.bursts,
            values,
            others: self.others,
        }
    }
}

impl FunctionSum {
    pub fn new(like: &FunctionProfile) -> Self {
        Self {
            function: FunctionProfile {
                id: like.id,
                cfg_hash: like.cfg_hash,
                name: like.name.clone(),
                blocks: vec![0; like.blocks.len()],
                edges: vec![0; like.edges.len()],
                ..FunctionProfile::default()
            },
            graph: Vec::new(),
            is_first: true,
            idempotent: Vec::new(),
            targets: BTreeMap::new(),
            values: BTreeMap::new(),
            paths: FxHashMap::default(),
            windows: FxHashMap::default(),
            called: FxHashMap::default(),
            predictions: FxHashMap::default(),
        }
    }

    /// Whether a record with this checksum was added and would add nothing again.
    pub fn knows(&self, checksum: u64) -> bool {
        self.idempotent.contains(&checksum)
    }

    /// Remembers the record that was added last, which adds nothing if it is added again.
    pub fn remember(&mut self, checksum: u64) {
        self.idempotent.push(checksum);
    }

    /// Whether this encoded graph is the one that is kept.
    pub fn has_graph(&self, graph: &[u8]) -> bool {
        self.graph == graph
    }

    /// Adds a function. `graph`: its encoded graph, or nothing.
    pub fn add(&mut self, other: FunctionProfile, graph: &[u8], weight: u64) -> Result<(), MergeError> {
        let sum = &mut self.function;
        if (sum.blocks.len(), sum.edges.len()) != (other.blocks.len(), other.edges.len()) {
            return Err(MergeError::Shape {
                id: other.id,
                name: other.name,
            });
        }
        let is_first = std::mem::take(&mut self.is_first);
        // Whatever the order of profiles, the same name and graph win.
        if (other.name.is_empty(), &other.name) < (sum.name.is_empty(), &sum.name) {
            sum.name.clone_from(&other.name);
        }
        if !graph.is_empty() && (self.graph.is_empty() || graph < self.graph.as_slice()) {
            self.graph = graph.to_vec();
        }
        sum.samples = sum.samples.saturating_add(other.samples);
        add_coverage(sum, &other, is_first);
        let sums = sum.blocks.iter_mut().chain(&mut sum.edges);
        for (sum, count) in sums.zip(other.blocks.iter().chain(&other.edges)) {
            *sum = sum.saturating_add(count.saturating_mul(weight));
        }
        for site in other.call_targets {
            let targets = self.targets.entry(site.call).or_default();
            for (target, count) in site.targets {
                let sum = targets.entry(target).or_default();
                *sum = sum.saturating_add(count.saturating_mul(weight));
            }
        }
        for operand in &other.values {
            self.values.entry(operand.site).or_default().add(operand, weight);
        }
        let mut known = other.sums.map(|sums| *sums).unwrap_or_default();
        for path in other.paths {
            let sum = known.paths.remove(&path.path);
            let numbers = [path.count, path.low, path.high, path.effective];
            let term = Term::new(numbers, sum, |_| PathSum::from_path(&path), weight);
            add(&mut self.paths, path.path, term);
        }
        for window in other.windows {
            let sum = known.windows.remove(&window.paths);
            let term = Term::new(window.count, sum, |count| sums::count_units(*count), weight);
            add(&mut self.windows, window.paths, term);
        }
        for called in other.called {
            let key = (called.caller, called.path);
            let sum = known.called.remove(&key);
            let term = Term::new(called.count, sum, |count| sums::count_units(*count), weight);
            add(&mut self.called, key, term);
        }
        for prediction in other.predictions {
            let sum = known.predictions.remove(&prediction.block);
            let term = Term::new(prediction, sum, PredictionSum::from_prediction, weight);
            add(&mut self.predictions, prediction.block, term);
        }
        Ok(())
    }

    /// The sum, with its lists in order.
    pub fn finish(mut self) -> FunctionProfile {
        let by_count = |targets: FxHashMap<FunctionGuid, u64>| {
            let mut targets: Vec<_> = targets.into_iter().collect();
            targets.sort_unstable_by_key(|&(guid, count)| (Reverse(count), guid));
            targets
        };
        let function = &mut self.function;
        let sites = self.targets.into_iter().map(|(call, targets)| CallTargets {
            call,
            targets: by_count(targets),
        });
        function.call_targets = sites.collect();
        let values = self.values.into_iter();
        function.values = values.map(|(site, sums)| sums.finish(site)).collect();
        if !self.graph.is_empty() {
            function.graph = decode_graph(&self.graph).map(Box::new);
        }
        let mut sums = sums::FunctionSums::default();
        for (path, term) in self.paths {
            let numbers = |p: EstimatedPath| [p.count, p.low, p.high, p.effective];
            let ([count, low, high, effective], sum) = term.finish(|sum| numbers(sum.estimate(path.clone())));
            sum.map(|sum| sums.paths.insert(path.clone(), sum));
            function.paths.push(EstimatedPath {
                path,
                count,
                low,
                high,
                effective,
            });
        }
        function.paths.sort_unstable_by(EstimatedPath::hottest_first);
        for (paths, term) in self.windows {
            let (count, sum) = term.finish(|sum| sums::count_of_units(*sum));
            sum.map(|sum| sums.windows.insert(paths.clone(), sum));
            function.windows.push(PathWindow { paths, count });
        }
        function.windows.sort_unstable_by(|a, b| a.paths.cmp(&b.paths));
        for ((caller, path), term) in self.called {
            let (count, sum) = term.finish(|sum| sums::count_of_units(*sum));
            sum.map(|sum| sums.called.insert((caller.clone(), path.clone()), sum));
            function.called.push(CallCrossingPath { caller, path, count });
        }
        function
            .called
            .sort_unstable_by(|a, b| (&a.caller, &a.path).cmp(&(&b.caller, &b.path)));
        for (block, term) in self.predictions {
            let (prediction, sum) = term.finish(|sum| sum.estimate(block));
            sum.map(|sum| sums.predictions.insert(block, sum));
            function.predictions.push(prediction);
        }
        function.predictions.sort_unstable_by_key(|p| p.block);
        function.sums = (!sums.is_empty()).then(|| Box::new(sums));
        leave_out_what_is_implied(function);
        self.function
    }
}

/// Whether adding the function a second time changes nothing: it was not sampled, and nothing was counted.
pub(super) fn is_idempotent(function: &FunctionProfile) -> bool {
    let zero = |counts: &[u64]| counts.iter().all(|&count| count == 0);
    function.samples == 0
        && zero(&function.blocks)
        && zero(&function.edges)
        && function.call_targets.is_empty()
        && function.values.is_empty()
        && function.paths.is_empty()
        && function.windows.is_empty()
        && function.called.is_empty()
        && function.predictions.is_empty()
        && function.counted.is_empty()
        && function.sums.is_none()
}

/// Adds what is known about the execution of blocks. A profile without coverage knows nothing.
fn add_coverage(sum: &mut FunctionProfile, other: &FunctionProfile, is_first: bool) {
    let blocks = other.blocks.len();
    let state = |block: usize| other.coverage.get(block).copied().unwrap_or(Covered::Unknown);
    if is_first {
        sum.coverage = (0..blocks).map(state).collect();
        sum.counted = (0..blocks).map(|block| other.executions(block)).collect();
        return;
    }
    for block in 0..blocks {
        let (known, counted) = (&mut sum.coverage[block], &mut sum.counted[block]);
        *counted = counted.plus(other.executions(block));
        *known = state(block).max(*known);
    }
}

/// Clears the lists whose elements are all what a reader assumes without them.
fn leave_out_what_is_implied(function: &mut FunctionProfile) {
    let implied = |&state: &Covered| match state < Covered::Unknown {
        true => Executions::NONE,
        false => Executions::UNKNOWN,
    };
    let states = function.coverage.iter();
    if states.map(implied).eq(function.counted.iter().copied()) {
        function.counted.clear();
    }
    if function.coverage.iter().all(|&state| state == Covered::Unknown) {
        function.coverage.clear();
    }
}
