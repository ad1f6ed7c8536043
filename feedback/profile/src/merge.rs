//! Merges several profiles into one.
//!
//! Merging is commutative and associative to the last bit of the resulting file, without raw vectors: evidence is added,
//! not estimates. Counts are integers. Estimates have exact sums ([`sums`](crate::sums)), which a merged profile keeps,
//! so that merging it again continues where it ended. Lists without an order of their own are sorted.
//!
//! Counts are summed by function and graph, in executions: a profile's counts already contain its scale. The result's
//! scale relates its counts to its samples. Weights become integers, because a sum of rounded counts would not conserve
//! flow; fractional weights become integers in a finer unit, down to 1/1024. A block was executed if it was in any
//! profile, and not executed if it was not in all. A function that changed between recordings keeps the counts of each
//! of its graphs: the compiler takes those of the graph that it has, or salvages the best known ones.
//!
//! [`merge`] merges profiles in memory, [`files::merge_files`] any number of files in memory for one.

pub mod files;
mod function;
mod provenance;

use crate::data::{FunctionProfile, Profile};
use crate::events::{EventProfile, merge_events};
use function::FunctionSum;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::manifest::{Anchor, encode_graph};
use provenance::ProvenanceSum;
use rustc_hash::FxHashMap;

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

/// Summary of a merge.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MergeReport {
    /// Number of merged profiles.
    pub profiles: usize,
    /// Number of functions in the result, each with one graph.
    pub functions: usize,
    /// Number of functions with different graphs in different profiles.
    pub changed: usize,
    /// Number of profiles that have raw vectors.
    pub with_vectors: usize,
}

/// A merged profile.
#[derive(Clone, PartialEq, Debug)]
pub struct Merged {
    /// The profile, without vectors.
    pub profile: Profile,
    /// What became of the functions.
    pub report: MergeReport,
    /// The vector files of the profiles that have one, sorted. The collector can join them.
    pub vectors: Vec<Vec<u8>>,
}

/// Merges profiles, each with a weight.
///
/// # Errors
/// Says which profile does not fit the others, and why.
pub fn merge(profiles: Vec<(Profile, f64)>) -> Result<Merged, MergeError> {
    let weights: Vec<f64> = profiles.iter().map(|&(_, weight)| weight).collect();
    let weights = whole_weights(&weights)?;
    let mut merger = Merger::default();
    for ((profile, _), weight) in profiles.into_iter().zip(weights) {
        merger.add(profile, weight)?;
    }
    merger.finish()
}

/// Merges profiles one at a time, in memory for the result alone.
#[derive(Default)]
pub struct Merger {
    whole: ProvenanceSum,
    functions: FunctionSums,
    events: Vec<EventProfile>,
    vectors: Vec<Vec<u8>>,
}

impl Merger {
    /// Adds a profile with all counts multiplied by `weight`.
    ///
    /// # Errors
    /// It does not fit those before.
    pub fn add(&mut self, profile: Profile, weight: u64) -> Result<(), MergeError> {
        let samples = profile
            .functions
            .iter()
            .fold(0u64, |sum, f| sum.saturating_add(f.samples));
        self.whole
            .add(profile.anchor, profile.scale, samples, profile.provenance, weight)?;
        merge_events(&mut self.events, profile.events, weight);
        self.vectors.extend(profile.vectors);
        self.functions.begin_profile();
        for mut function in profile.functions {
            let graph = function
                .graph
                .take()
                .map(|graph| encode_graph(&graph))
                .unwrap_or_default();
            self.functions.add(function, &graph, weight)?;
        }
        Ok(())
    }

    /// The sum.
    ///
    /// # Errors
    /// Nothing was added.
    pub fn finish(self) -> Result<Merged, MergeError> {
        if self.whole.profiles() == 0 {
            return Err(MergeError::Nothing);
        }
        let with_vectors = self.vectors.len();
        let mut merged = finish(self.whole, self.functions, self.vectors, with_vectors);
        merged.profile.events = self.events;
        Ok(merged)
    }
}

impl Merged {
    /// One profile as it is.
    pub fn of_one(mut profile: Profile) -> Self {
        let vectors: Vec<Vec<u8>> = profile.vectors.take().into_iter().collect();
        let report = MergeReport {
            profiles: 1,
            functions: profile.functions.len(),
            changed: 0,
            with_vectors: vectors.len(),
        };
        Self {
            profile,
            report,
            vectors,
        }
    }
}

/// The result, of functions in any order.
fn finish(whole: ProvenanceSum, functions: FunctionSums, mut vectors: Vec<Vec<u8>>, with_vectors: usize) -> Merged {
    vectors.sort_unstable();
    let (profiles, changed) = (whole.profiles(), functions.changed());
    let functions = functions.finish();
    let report = MergeReport {
        profiles,
        functions: functions.len(),
        changed,
        with_vectors,
    };
    let (anchor, scale, provenance) = whole.finish();
    Merged {
        profile: Profile {
            provenance,
            scale,
            anchor,
            functions,
            events: Vec::new(),
            vectors: None,
        },
        report,
        vectors,
    }
}

/// Weights in the coarsest unit in which all of them are nearly whole.
fn whole_weights(weights: &[f64]) -> Result<Vec<u64>, MergeError> {
    if weights.is_empty() {
        return Err(MergeError::Nothing);
    }
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

type Key = (FunctionId, CfgHash);

/// Sums of functions, by identifier and graph.
#[derive(Default)]
struct FunctionSums {
    sums: FxHashMap<Key, FunctionSum>,
    /// The most graphs that one profile has of a function, if more than one.
    most_graphs: FxHashMap<FunctionId, usize>,
    /// The function that was added last, and how many graphs of it.
    latest: Option<(FunctionId, usize)>,
}

impl FunctionSums {
    /// The functions that follow are of another profile than those before.
    fn begin_profile(&mut self) {
        self.latest = None;
    }

    /// The next function of a profile is this one.
    fn note(&mut self, id: FunctionId) {
        let graphs = self
            .latest
            .filter(|latest| latest.0 == id)
            .map_or(1, |latest| latest.1 + 1);
        self.latest = Some((id, graphs));
        if graphs > 1 {
            let most = self.most_graphs.entry(id).or_default();
            *most = graphs.max(*most);
        }
    }

    /// Whether adding a function with this checksum changes nothing.
    fn knows(&self, key: Key, checksum: u64) -> bool {
        self.sums.get(&key).is_some_and(|sum| sum.knows(checksum))
    }

    /// Whether this encoded graph is the one that is kept of a function.
    fn has_graph(&self, key: Key, graph: &[u8]) -> bool {
        self.sums.get(&key).is_some_and(|sum| sum.has_graph(graph))
    }

    /// Adds a function, with its encoded graph.
    fn add(&mut self, function: FunctionProfile, graph: &[u8], weight: u64) -> Result<&mut FunctionSum, MergeError> {
        self.note(function.id);
        let sum = (self.sums.entry((function.id, function.cfg_hash))).or_insert_with(|| FunctionSum::new(&function));
        sum.add(function, graph, weight)?;
        Ok(sum)
    }

    /// Adds sums of other functions.
    fn extend(&mut self, other: Self) {
        self.sums.extend(other.sums);
        self.most_graphs.extend(other.most_graphs);
    }

    fn changed(&self) -> usize {
        let mut graphs: FxHashMap<FunctionId, usize> = FxHashMap::default();
        for (id, _) in self.sums.keys() {
            *graphs.entry(*id).or_default() += 1;
        }
        let most = |id| self.most_graphs.get(id).copied().unwrap_or(1);
        graphs.iter().filter(|(id, graphs)| **graphs > most(id)).count()
    }

    fn finish(self) -> Vec<FunctionProfile> {
        let mut functions: Vec<FunctionProfile> = self.sums.into_values().map(FunctionSum::finish).collect();
        functions.sort_unstable_by_key(|f| (f.id, f.cfg_hash));
        functions
    }
}

/// The error of a profile whose anchor is not that of the first.
fn check_anchor(expected: Anchor, found: Anchor, position: usize) -> Result<(), MergeError> {
    if found == expected {
        return Ok(());
    }
    Err(MergeError::Anchors {
        position,
        found: found.name(),
        expected: expected.name(),
    })
}
