//! Merges several profiles into one.
//!
//! Counts are summed by function and graph, in executions: a profile's counts already contain its scale. The result's
//! scale relates its counts to its samples. Weights become integers, because a sum of rounded counts would not conserve
//! flow; fractional weights become integers in a finer unit, down to 1/1024. Estimated paths are summed with their
//! intervals (see [`paths`]). A block was executed if it was in any profile, and not executed if it was not in all.

mod paths;

use crate::data::{
    BranchPrediction, CallTargets, CalledPath, Caller, Covered, Executions, FunctionProfile, MemoryLengths, PathWindow,
    Profile, Provenance,
};
use paths::PathSums;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId};
use pleach_ball_larus::Path;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Weights are integers in a unit of 1 ÷ this or coarser.
const FINEST_UNIT: u64 = 1024;
/// Largest relative rounding error of a weight.
const WEIGHT_TOLERANCE: f64 = 1e-3;

/// Why profiles could not be merged.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There is nothing to merge.
    #[error("no profiles to merge: name at least one")]
    Nothing,
    /// The profiles refer to different anchors, so their blocks are not comparable.
    #[error(
        "profile {position} was recorded at the {found} anchor, but the first one at the {expected} anchor: merge profiles of one anchor only"
    )]
    Anchors {
        /// Position of the profile in the list, from 1.
        position: usize,
        /// Its anchor.
        found: &'static str,
        /// The first profile's anchor.
        expected: &'static str,
    },
    /// A weight that is no positive number, or too far from the others.
    #[error(
        "profile {position} has weight {weight}: weights must be positive, and within a factor of a million of each other"
    )]
    Weight {
        /// Position of the profile in the list, from 1.
        position: usize,
        /// Its weight.
        weight: f64,
    },
    /// Two profiles disagree on the number of blocks or edges of the same graph.
    #[error("profiles disagree on the blocks of function {name} ({id}): one of them is damaged; record it again")]
    Shape {
        /// The function.
        id: FunctionId,
        /// Its name.
        name: String,
    },
}

/// A graph of a function that was left out because the function changed between recordings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DroppedGraph {
    /// The function.
    pub id: FunctionId,
    /// Its name.
    pub name: String,
    /// The graph that was left out.
    pub cfg_hash: CfgHash,
    /// Number of samples that were left out with it.
    pub samples: u64,
}

/// Summary of a merge.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MergeReport {
    /// Number of merged profiles.
    pub profiles: usize,
    /// Number of functions in the result.
    pub functions: usize,
    /// Graphs that were left out, by identifier.
    pub dropped: Vec<DroppedGraph>,
}

/// A merged profile.
#[derive(Clone, PartialEq, Debug)]
pub struct Merged {
    /// The profile, without vectors.
    pub profile: Profile,
    /// What was left out.
    pub report: MergeReport,
    /// The vector files of the profiles that have one, in the profiles' order. The collector can join them.
    pub vectors: Vec<Vec<u8>>,
}

/// Merges profiles, each with a weight.
///
/// A function that has different graphs in different profiles keeps the graphs of the profile that sampled it most; the
/// others are left out and reported.
pub fn merge(profiles: Vec<(Profile, f64)>) -> Result<Merged, MergeError> {
    check_anchors(&profiles)?;
    let weights = whole_weights(&profiles)?;
    let scale = merged_scale(&profiles, &weights);
    let anchor = profiles.first().map(|(p, _)| p.anchor).unwrap_or_default();
    let provenance = merged_provenance(&profiles, &weights);
    let (mut vectors, mut report) = (
        Vec::new(),
        MergeReport {
            profiles: profiles.len(),
            ..MergeReport::default()
        },
    );
    let (kept, dropped) = choose_graphs(&profiles);
    report.dropped = dropped;
    let mut sums: BTreeMap<(FunctionId, CfgHash), FunctionSum> = BTreeMap::new();
    for ((profile, _), weight) in profiles.into_iter().zip(weights) {
        vectors.extend(profile.vectors);
        for function in profile
            .functions
            .into_iter()
            .filter(|f| kept.contains_key(&(f.id, f.cfg_hash)))
        {
            sums.entry((function.id, function.cfg_hash))
                .or_insert_with(|| FunctionSum::new(&function))
                .add(function, weight)?;
        }
    }
    let functions: Vec<FunctionProfile> = sums.into_values().map(FunctionSum::finish).collect();
    report.functions = functions.len();
    Ok(Merged {
        profile: Profile {
            provenance,
            scale,
            anchor,
            functions,
            vectors: None,
        },
        report,
        vectors,
    })
}

fn check_anchors(profiles: &[(Profile, f64)]) -> Result<(), MergeError> {
    let expected = profiles.first().ok_or(MergeError::Nothing)?.0.anchor;
    match profiles.iter().position(|(p, _)| p.anchor != expected) {
        Some(at) => Err(MergeError::Anchors {
            position: at + 1,
            found: profiles[at].0.anchor.name(),
            expected: expected.name(),
        }),
        None => Ok(()),
    }
}

/// Weights in the coarsest unit in which all of them are nearly whole.
fn whole_weights(profiles: &[(Profile, f64)]) -> Result<Vec<u64>, MergeError> {
    let weights: Vec<f64> = profiles.iter().map(|&(_, w)| w).collect();
    let bad = |at: usize| MergeError::Weight {
        position: at + 1,
        weight: weights[at],
    };
    if let Some(at) = weights.iter().position(|w| !(w.is_finite() && *w > 0.0)) {
        return Err(bad(at));
    }
    let mut unit = 1;
    let off = |unit: u64| {
        weights
            .iter()
            .any(|w| (w * unit as f64 - (w * unit as f64).round()).abs() > WEIGHT_TOLERANCE * w * unit as f64)
    };
    while unit < FINEST_UNIT && off(unit) {
        unit += 1;
    }
    let whole: Vec<f64> = weights.iter().map(|w| (w * unit as f64).round()).collect();
    match whole.iter().position(|w| !(1.0..=1e9).contains(w)) {
        Some(at) => Err(bad(at)),
        None => Ok(whole.into_iter().map(|w| w as u64).collect()),
    }
}

/// Executions per sample, so that counts ≈ samples × scale holds for the sums as for the parts.
fn merged_scale(profiles: &[(Profile, f64)], weights: &[u64]) -> f64 {
    let samples = |p: &Profile| p.functions.iter().map(|f| f.samples as f64).sum::<f64>();
    let (mut executions, mut all) = (0.0, 0.0);
    for ((profile, _), &weight) in profiles.iter().zip(weights) {
        executions += samples(profile) * profile.scale * weight as f64;
        all += samples(profile);
    }
    if all > 0.0 {
        executions / all
    } else {
        profiles.iter().map(|(p, _)| p.scale).fold(0.0, f64::max)
    }
}

fn merged_provenance(profiles: &[(Profile, f64)], weights: &[u64]) -> Provenance {
    let mut merged = Provenance::default();
    for p in profiles.iter().map(|(p, _)| &p.provenance) {
        merged.commands.extend_from_slice(&p.commands);
        merged.engines.extend_from_slice(&p.engines);
        merged.program_cpu_seconds += p.program_cpu_seconds;
        merged.own_cpu_seconds += p.own_cpu_seconds;
        merged.bursts = merged.bursts.saturating_add(p.bursts);
        merged.taken_branches = merged.taken_branches.saturating_add(p.taken_branches);
    }
    // If the same inline instances are hot in all profiles, their counts add up. Otherwise the sum is too high, and
    // fewer blocks count as hot.
    let hot = profiles
        .iter()
        .map(|(p, _)| p.provenance.hot_instance_count)
        .zip(weights);
    let hot: Vec<u64> = hot.map(|(count, weight)| count.saturating_mul(*weight)).collect();
    if !hot.contains(&0) {
        merged.hot_instance_count = hot.into_iter().fold(0, u64::saturating_add);
    }
    merged.engines.sort_unstable();
    merged.engines.dedup();
    let modules = profiles.iter().flat_map(|(p, _)| &p.provenance.modules);
    merged.modules = modules.cloned().collect();
    merged.modules.sort_unstable();
    merged.modules.dedup();
    merged
}

type Graphs = FxHashMap<(FunctionId, CfgHash), ()>;

/// The graphs to keep: for each function, those in the profile with the most samples of it (the first of equals).
fn choose_graphs(profiles: &[(Profile, f64)]) -> (Graphs, Vec<DroppedGraph>) {
    let mut best: FxHashMap<FunctionId, (u64, usize)> = FxHashMap::default();
    for (at, (profile, _)) in profiles.iter().enumerate() {
        let mut samples: FxHashMap<FunctionId, u64> = FxHashMap::default();
        for function in &profile.functions {
            *samples.entry(function.id).or_default() += function.samples;
        }
        for (id, samples) in samples {
            let known = best.entry(id).or_insert((samples, at));
            if samples > known.0 {
                *known = (samples, at);
            }
        }
    }
    let all = || {
        profiles
            .iter()
            .enumerate()
            .flat_map(|(at, (p, _))| p.functions.iter().map(move |f| (at, f)))
    };
    let kept: Graphs = all()
        .filter(|(at, f)| best.get(&f.id).is_some_and(|b| b.1 == *at))
        .map(|(_, f)| ((f.id, f.cfg_hash), ()))
        .collect();
    let mut dropped: BTreeMap<(FunctionId, CfgHash), DroppedGraph> = BTreeMap::new();
    for (_, function) in all().filter(|(_, f)| !kept.contains_key(&(f.id, f.cfg_hash))) {
        let entry = dropped
            .entry((function.id, function.cfg_hash))
            .or_insert_with(|| DroppedGraph {
                id: function.id,
                name: function.name.clone(),
                cfg_hash: function.cfg_hash,
                samples: 0,
            });
        entry.samples += function.samples;
    }
    (kept, dropped.into_values().collect())
}

/// Sums of a function's counts.
struct FunctionSum {
    function: FunctionProfile,
    /// Nothing was added yet.
    is_first: bool,
    targets: BTreeMap<u32, FxHashMap<FunctionGuid, u64>>,
    lengths: BTreeMap<u32, LengthSums>,
    paths: PathSums,
    windows: BTreeMap<Vec<Path>, f64>,
    called: BTreeMap<(Caller, Path), f64>,
    predictions: BTreeMap<BlockIndex, BranchPrediction>,
}

/// Sums of the lengths of one call.
#[derive(Default)]
struct LengthSums {
    bursts: u64,
    lengths: FxHashMap<u64, u64>,
    others: u64,
}

impl LengthSums {
    fn add(&mut self, other: &MemoryLengths, weight: u64) {
        self.bursts = self.bursts.saturating_add(other.bursts);
        self.others = self.others.saturating_add(other.others.saturating_mul(weight));
        for &(length, count) in &other.lengths {
            let sum = self.lengths.entry(length).or_default();
            *sum = sum.saturating_add(count.saturating_mul(weight));
        }
    }

    fn finish(self, call: u32) -> MemoryLengths {
        let mut sum = MemoryLengths {
            call,
            bursts: self.bursts,
            lengths: self.lengths.into_iter().collect(),
            others: self.others,
        };
        sum.keep_most_frequent();
        sum
    }
}

impl FunctionSum {
    fn new(like: &FunctionProfile) -> Self {
        Self {
            function: FunctionProfile {
                name: like.name.clone(),
                graph: None,
                samples: 0,
                blocks: vec![0; like.blocks.len()],
                edges: vec![0; like.edges.len()],
                memory_lengths: Vec::new(),
                call_targets: Vec::new(),
                paths: Vec::new(),
                windows: Vec::new(),
                called: Vec::new(),
                predictions: Vec::new(),
                coverage: Vec::new(),
                counted: Vec::new(),
                ..*like
            },
            is_first: true,
            targets: BTreeMap::new(),
            lengths: BTreeMap::new(),
            paths: PathSums::default(),
            windows: BTreeMap::new(),
            called: BTreeMap::new(),
            predictions: BTreeMap::new(),
        }
    }

    fn add(&mut self, other: FunctionProfile, weight: u64) -> Result<(), MergeError> {
        let sum = &mut self.function;
        if (sum.blocks.len(), sum.edges.len()) != (other.blocks.len(), other.edges.len()) {
            return Err(MergeError::Shape {
                id: other.id,
                name: other.name,
            });
        }
        let blocks = sum.blocks.len();
        let executions: Vec<Executions> = (0..blocks).map(|block| other.executions(block)).collect();
        sum.samples = sum.samples.saturating_add(other.samples);
        sum.graph = sum.graph.take().or(other.graph);
        for (sum, count) in sum
            .blocks
            .iter_mut()
            .zip(other.blocks)
            .chain(sum.edges.iter_mut().zip(other.edges))
        {
            *sum = sum.saturating_add(count.saturating_mul(weight));
        }
        for site in other.call_targets {
            let targets = self.targets.entry(site.call).or_default();
            for (target, count) in site.targets {
                let sum = targets.entry(target).or_default();
                *sum = sum.saturating_add(count.saturating_mul(weight));
            }
        }
        for of_call in &other.memory_lengths {
            self.lengths.entry(of_call.call).or_default().add(of_call, weight);
        }
        self.paths.add(other.paths, weight);
        for window in other.windows {
            *self.windows.entry(window.paths).or_default() += window.count * weight as f64;
        }
        for called in other.called {
            *self.called.entry((called.caller, called.path)).or_default() += called.count * weight as f64;
        }
        for prediction in other.predictions {
            let sum = self.predictions.entry(prediction.block);
            sum.or_insert(BranchPrediction::none(prediction.block))
                .add(&prediction.scaled(weight as f64));
        }
        // A profile without coverage knows nothing.
        let states = other.coverage.into_iter().chain(std::iter::repeat(Covered::Unknown));
        let covered = &mut self.function.coverage;
        match self.is_first {
            true => *covered = states.take(blocks).collect(),
            false => covered
                .iter_mut()
                .zip(states)
                .for_each(|(state, other)| *state = (*state).max(other)),
        }
        let counted = &mut self.function.counted;
        match self.is_first {
            true => *counted = executions,
            false => counted
                .iter_mut()
                .zip(executions)
                .for_each(|(sum, other)| *sum = sum.plus(other)),
        }
        self.is_first = false;
        Ok(())
    }

    fn finish(mut self) -> FunctionProfile {
        let by_count = |targets: FxHashMap<FunctionGuid, u64>| {
            let mut targets: Vec<_> = targets.into_iter().collect();
            targets.sort_by_key(|&(guid, count)| (std::cmp::Reverse(count), guid));
            targets
        };
        let sites = self.targets.into_iter();
        self.function.call_targets = sites
            .map(|(call, targets)| CallTargets {
                call,
                targets: by_count(targets),
            })
            .collect();
        let lengths = self.lengths.into_iter();
        self.function.memory_lengths = lengths.map(|(call, sums)| sums.finish(call)).collect();
        self.function.paths = self.paths.finish();
        let windows = self.windows.into_iter();
        self.function.windows = windows.map(|(paths, count)| PathWindow { paths, count }).collect();
        let called = self.called.into_iter();
        let called = called.map(|((caller, path), count)| CalledPath { caller, path, count });
        self.function.called = called.collect();
        self.function.predictions = self.predictions.into_values().collect();
        if self.function.coverage.iter().all(|&state| state == Covered::Unknown) {
            self.function.coverage.clear();
        }
        if self.function.counted.iter().all(|counted| counted.at_least == 0) {
            self.function.counted.clear();
        }
        self.function
    }
}
