//! Crediting: from partial paths to the executions of each path (feedback/ALGORITHMS.md, Path crediting, Confidence).
//!
//! A whole path inside a burst is one execution. A partial path without beginning or end may belong to several paths,
//! its *matching set*. There are three ways of distributing it:
//!
//! - [`Crediting::Em`]: over the matching set in proportion to the executions of each path, estimated from all evidence
//!   by expectation maximisation. A partial path counts as the fraction of its path's blocks that it holds. All blocks
//!   of an execution are equally likely to be inside a burst, so this fraction corrects length bias: more bursts meet a
//!   long path. Paths that no evidence tells apart are in the ratio of the inferred counts of their edges ([`Flows`]).
//! - [`Crediting::Equal`]: equally over the matching set, with a whole count for each partial path (Shye et al.,
//!   INTERACT 2005, §3.3).
//! - [`Crediting::Independent`]: partial paths are split into edges, and a path's count is the product of its edges'
//!   probabilities: the information of an edge profile.
//!
//! Counts are computed for the recording and for [`REPLICATES`] replicates, in each of which every burst has a Poisson
//! weight: bursts are independent, the branches of one burst are not. The variance of a path's share over the
//! replicates determines its interval ([`interval`]). Where nothing tells paths apart, it holds all that each may have had
//! (`indistinct`).

mod candidates;
mod em;
mod equal;
mod flow;
mod indistinct;
pub mod interval;
mod markov;

use crate::partial_paths::{Evidence, FunctionEvidence};
use crate::replicates::{REPLICATES, Times};
use candidates::Candidates;
pub use flow::{EdgeProbabilities, Flows};
use indistinct::Bounds;
use interval::Interval;
use pleach_profile::path_profile::{FunctionPaths, PathProfile};
use pleach_profile::{Anchor, EstimatedPath};
use rustc_hash::FxHashMap;

/// How partial paths are distributed over their matching sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Crediting {
    /// In proportion to how often each path is executed.
    #[default]
    Em,
    /// Equally, as in the papers.
    Equal,
    /// As products of edge probabilities.
    Independent,
}

/// Estimates the executions of each path, in sampled executions. `flows`: for [`Crediting::Em`], the inferred counts of
/// edges.
pub fn credit(evidence: &Evidence, anchor: Anchor, crediting: Crediting, flows: &Flows) -> PathProfile {
    let functions: Vec<_> = evidence
        .functions
        .iter()
        .map(|(key, function)| (*key, function, credited(function, crediting, flows.of_function(key))))
        .collect();
    let mut total = [0.0_f64; REPLICATES + 1];
    for (_, _, credited) in &functions {
        for times in credited.counts.iter().chain([&credited.unlisted]) {
            total.iter_mut().zip(times).for_each(|(sum, &t)| *sum += f64::from(t));
        }
    }
    let functions = functions.into_iter().map(|((id, cfg_hash), function, credited)| {
        let paths = credited
            .candidates
            .into_paths()
            .into_iter()
            .zip(&credited.counts)
            .zip(0..);
        let paths = paths
            .filter(|((_, times), _)| times[0] > 0.0)
            .map(|((path, times), number)| {
                let interval = |times| Interval::from_replicates(times, &total, evidence.clusters);
                let Interval {
                    mut low,
                    mut high,
                    effective,
                } = interval(times);
                if let Some(bounds) = credited.bounds.get(&number) {
                    low = low.min(interval(&bounds.least).low);
                    high = high.max(interval(&bounds.most).high);
                }
                EstimatedPath {
                    path,
                    count: times[0].into(),
                    low,
                    high,
                    effective,
                }
            });
        let mut paths: Vec<_> = paths.collect();
        paths.sort_by(|a, b| b.count.total_cmp(&a.count).then_with(|| a.path.cmp(&b.path)));
        FunctionPaths {
            id,
            cfg_hash,
            name: function.name.clone(),
            paths,
            shown: function.shown.clone(),
            unlisted: credited.unlisted[0].into(),
        }
    });
    PathProfile {
        anchor,
        functions: functions.collect(),
    }
}

/// Paths with their counts.
struct Credited {
    candidates: Candidates,
    /// By candidate.
    counts: Vec<Times>,
    /// Observations that no candidate explains.
    unlisted: Times,
    /// Of candidates that share indistinct observations.
    bounds: FxHashMap<u32, Bounds>,
}

fn credited(function: &FunctionEvidence, crediting: Crediting, flow: Option<&EdgeProbabilities>) -> Credited {
    match crediting {
        Crediting::Em => em::credit(function, flow),
        Crediting::Equal => equal::credit(function),
        Crediting::Independent => markov::credit(function),
    }
}
