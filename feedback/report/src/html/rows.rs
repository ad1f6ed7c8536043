//! All functions by share.

use super::detail::has_detail;
use super::files::Files;
use super::{Function, Functions, PageInputs, share};
use crate::block_state::covered;
use crate::names::demangled;
use pleach_profile::Covered;
use serde::Serialize;

/// Numbers of blocks by what is known about their execution: proved executed, only predicted, proved not executed,
/// unknown.
pub type States = [u32; 4];

/// A function.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FunctionRow {
    /// As in the source.
    pub name: String,
    /// Linkage name, where it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linkage: Option<String>,
    /// Identifier.
    pub id: String,
    /// The graph that the counts are of.
    pub hash: String,
    /// Position of its source file in [`Files::files`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<usize>,
    /// The first line of its first block that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Its share of all executed IR instructions, and of executed blocks of functions without a known graph.
    pub share: f64,
    /// Its share of the executions of all paths: estimate and 90 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_share: Option<[f64; 3]>,
    /// Executions of its entry.
    pub calls: u64,
    /// Sampled block entries behind the counts.
    pub samples: u64,
    /// Its blocks.
    pub states: States,
    /// Number of paths with samples.
    pub paths: usize,
    /// Mispredicted branches, as a share of its branches with a known direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mispredicted: Option<f64>,
    /// Position in [`HtmlReport::details`](super::HtmlReport::details).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<usize>,
}

/// The states of a function's blocks.
pub(super) fn states(function: &Function<'_>) -> States {
    let mut states = States::default();
    for block in 0..function.profile.blocks.len() {
        states[state(covered(function.profile, block))] += 1;
    }
    states
}

/// The position of a state in [`States`].
pub(super) fn state(covered: Covered) -> usize {
    match covered {
        Covered::Proved | Covered::Hit | Covered::ByDominance => 0,
        Covered::Predicted | Covered::PredictedByDominance => 1,
        Covered::NotExecuted => 2,
        Covered::CodeNotExecuted | Covered::Unknown => 3,
    }
}

pub(super) fn rows(functions: &Functions<'_>, inputs: &PageInputs<'_>, files: &Files) -> Vec<FunctionRow> {
    let mut details = 0;
    let rows = functions.all.iter().enumerate().map(|(at, function)| {
        let profile = function.profile;
        let name = demangled(&profile.name).into_owned();
        let detail = (details < inputs.detailed && has_detail(function)).then_some(details);
        details += usize::from(detail.is_some());
        FunctionRow {
            linkage: (name != profile.name).then(|| profile.name.clone()),
            name,
            id: profile.id.to_string(),
            hash: profile.cfg_hash.to_string(),
            file: files.of_function[at],
            line: function
                .graph
                .and_then(|g| g.blocks.iter().map(|b| b.line).find(|&line| line > 0)),
            share: share(function.work, functions.work),
            path_share: path_share(function, functions.path_flow),
            calls: profile.blocks.first().copied().unwrap_or(0),
            samples: profile.samples,
            states: states(function),
            paths: profile.paths.len(),
            mispredicted: mispredicted(function),
            detail,
        }
    });
    rows.collect()
}

/// Half-widths of intervals add up: the same bursts saw all paths of a function, so their errors are not independent.
fn path_share(function: &Function<'_>, whole: f64) -> Option<[f64; 3]> {
    let paths = &function.profile.paths;
    if paths.is_empty() || whole <= 0.0 {
        return None;
    }
    let sum = |of: fn(&pleach_profile::EstimatedPath) -> f64| paths.iter().map(of).sum::<f64>() / whole;
    Some([sum(|p| p.count), sum(|p| p.low).max(0.0), sum(|p| p.high).min(1.0)])
}

fn mispredicted(function: &Function<'_>) -> Option<f64> {
    let all = &function.profile.predictions;
    let watched: f64 = all.iter().map(|p| p.watched).sum();
    (watched > 0.0).then(|| all.iter().map(|p| p.mispredicted).sum::<f64>() / watched)
}
