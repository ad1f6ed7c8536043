//! Crediting: from partial paths to how often each path was executed (feedback/ALGORITHMS.md, Path crediting, Confidence).
//!
//! A whole path that a burst saw is one execution. A piece that lacks a beginning or an end may be of several paths, its
//! *matching set*. Three ways to share it out:
//!
//! - [`Crediting::Em`]: to each path of the matching set in proportion to how often that path is executed, as far as all
//!   evidence tells: expectation maximisation, until nothing changes. A piece counts as the fraction of its path that it
//!   is: all blocks of an execution are as likely to be inside a burst, so that fraction is what makes long paths, which
//!   more bursts see a piece of, count once in the end (the correction of length bias).
//! - [`Crediting::Equal`]: the same to each path of the matching set, and a whole count for each piece, as Shye et al.
//!   (INTERACT 2005, §3.3) do it.
//! - [`Crediting::Independent`]: pieces are taken apart into edges, and a path's count is the product of its edges'
//!   probabilities: what an edge profile knows.
//!
//! Everything is computed for the bursts as they were, and for [`REPLICATES`] replicates in
//! which each burst weighs a Poisson number: bursts are independent, what one burst sees is not. The
//! spread of a path's share over the replicates makes its interval ([`interval`]).

mod candidates;
mod em;
mod equal;
pub mod interval;
mod markov;

use crate::partial_paths::{Evidence, FunctionEvidence};
use crate::replicates::{REPLICATES, Times};
use candidates::Candidates;
use interval::Interval;
use pleach_profile::path_profile::{FunctionPaths, PathProfile};
use pleach_profile::{Anchor, EstimatedPath};

/// How pieces are shared out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Crediting {
    /// In proportion to how often each path is executed.
    #[default]
    Em,
    /// Equally, as the papers do.
    Equal,
    /// As products of edge probabilities.
    Independent,
}

/// Estimates how often each path was executed.
pub fn credit(evidence: &Evidence, anchor: Anchor, crediting: Crediting) -> PathProfile {
    let functions: Vec<_> = evidence
        .functions
        .iter()
        .map(|(&key, function)| (key, function, credited(function, crediting)))
        .collect();
    let mut total = [0.0_f64; REPLICATES + 1];
    for (_, _, credited) in &functions {
        for times in credited.counts.iter().chain([&credited.unlisted]) {
            total.iter_mut().zip(times).for_each(|(sum, &t)| *sum += f64::from(t));
        }
    }
    let functions = functions.into_iter().map(|((id, cfg_hash), function, credited)| {
        let paths = credited.candidates.into_paths().into_iter().zip(&credited.counts);
        let paths = paths.filter(|(_, times)| times[0] > 0.0).map(|(path, times)| {
            let Interval { low, high, effective } = Interval::from_replicates(times, &total, evidence.clusters);
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
    /// What no candidate stands for.
    unlisted: Times,
}

fn credited(function: &FunctionEvidence, crediting: Crediting) -> Credited {
    match crediting {
        Crediting::Em => em::credit(function),
        Crediting::Equal => equal::credit(function),
        Crediting::Independent => markov::credit(function),
    }
}
