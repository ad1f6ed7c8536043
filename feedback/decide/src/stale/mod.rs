//! Profiles of an older version of the source: which blocks of a function's new graph are which blocks of the recorded
//! one, and what the old counts say about the new graph.
//!
//! 1. [`features`]: what tells blocks apart, from their kind and calls to hashes of their neighbourhood, as in BOLT's
//!    matching of stale profiles (Ayupov, Panchenko and Pupyrev: *Stale Profile Matching*, CC 2024);
//! 2. [`align`]: blocks in the order of the source are matched as two sequences are aligned, so that an edit moves
//!    what follows it; then along edges;
//! 3. [`transfer`]: counts of matched blocks are evidence, and inference finds counts of all blocks;
//! 4. [`paths`]: paths through blocks that did not change;
//! 5. [`rename`]: which recorded function a new name stands for.
//!
//! A salvaged profile has branch weights, call targets, lengths of memory operations, coverage, and predictions of
//! branches that did not change. It has paths if hardly any of their executions were in what changed.

pub mod align;
pub mod features;
pub mod paths;
pub mod rename;
pub mod transfer;

use crate::support::MIN_BURSTS_FOR_SIZE;
use crate::weights::RecordingEvidence;
use align::{BlockMatch, Graph};
use features::Features;
use paths::OlderPaths;
use pleach_annotate::cfg::Cfg;
use pleach_profile::{Covered, FunctionProfile};

/// Minimum similarity of a function's versions: the similarity of matched blocks, weighted by their executions; blocks
/// without a match count as 0. Blocks without calls that only end alike have a similarity of .4 at most, equal blocks
/// one of .7.
const MIN_EXECUTED_SIMILARITY: f64 = 0.5;

/// How a function's profile was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MatchKind {
    /// Its graph changed.
    ChangedGraph,
    /// It is the same, in another module. Of a local function, each module has a copy.
    OtherModule,
    /// It has another name. The old one:
    Renamed(String),
    /// It changed, and has no samples.
    Unsampled,
    /// The profile has functions of its name in other files only, without samples.
    SameNameUnsampled,
}

impl MatchKind {
    /// Whether the older version has samples.
    pub fn has_samples(&self) -> bool {
        !matches!(self, Self::Unsampled | Self::SameNameUnsampled)
    }
}

/// The profile of an older version of a function, for its new graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Salvaged {
    /// The profile.
    pub profile: FunctionProfile,
    /// How it was found.
    pub match_kind: MatchKind,
    /// Blocks of the new graph that are blocks of the old one.
    pub matched_blocks: usize,
    /// Share of the old executions that are of matched blocks.
    pub matched_flow: f64,
    /// What recorded paths are in the new graph, if the profile has paths.
    pub older_paths: Option<OlderPaths>,
}

/// Salvages the profile of an older version of a function. `scale`: the profile's executions in a sample. `None` if the
/// record has no graph, or not its shape, or if too little of what was executed is in the new graph.
pub fn salvage(old: &FunctionProfile, new: &Cfg, match_kind: MatchKind, scale: f64) -> Option<Salvaged> {
    let graph = old.graph.as_deref()?;
    old.check_shape(graph).ok()?;
    let (before, after) = (Graph::new(graph), Graph::new(new));
    let matched = BlockMatch::find(&before, &after)?;
    let similarity = matched_share(old, &matched, |old, new| {
        before.features[old].similarity(&after.features[new]) / Features::ALIKE
    });
    if similarity < MIN_EXECUTED_SIMILARITY {
        return None;
    }
    let matched_flow = matched_share(old, &matched, |_, _| 1.0);
    let mut profile = transfer::transfer(old, &before, &after, &matched, scale);
    let older_paths = OlderPaths::find(old, &before, &after, &matched);
    if let Some(older) = &older_paths {
        profile.paths = older.paths(&old.paths);
        profile.windows = older.windows(&old.windows);
    }
    profile.samples = (old.samples as f64 * matched_flow).round() as u64;
    Some(Salvaged {
        profile,
        match_kind,
        matched_blocks: matched.len(),
        matched_flow,
        older_paths,
    })
}

/// The evidence for decisions about a salvaged function. An older version proves nothing: what did not run then is not
/// optimised for size now, not even by exact counts.
pub fn evidence(of_profile: &RecordingEvidence) -> RecordingEvidence {
    RecordingEvidence {
        exact: false,
        bursts: of_profile.bursts.min(MIN_BURSTS_FOR_SIZE - 1),
        ..*of_profile
    }
}

/// The profile of a function that changed and was not sampled: that nothing is known of it, except whether it was
/// called. `old`: the records of its name that have no samples.
pub fn without_samples(old: &[FunctionProfile], new: &Cfg) -> FunctionProfile {
    let entry = old.iter().filter_map(|record| record.coverage.first()).max();
    let entry = entry.copied().filter(|state| state.is_executed());
    let mut coverage = vec![Covered::Unknown; new.blocks.len()];
    if let (Some(known), Some(entry)) = (coverage.first_mut(), entry) {
        *known = entry;
    }
    FunctionProfile {
        id: new.id,
        cfg_hash: new.hash(),
        name: new.name.clone(),
        blocks: vec![0; new.blocks.len()],
        edges: vec![0; new.edge_count()],
        coverage: if entry.is_some() { coverage } else { Vec::new() },
        ..FunctionProfile::default()
    }
}

/// The share of executions that are of matched blocks, each pair weighted.
fn matched_share(old: &FunctionProfile, matched: &BlockMatch, weight: impl Fn(usize, usize) -> f64) -> f64 {
    let all: f64 = old.blocks.iter().map(|&count| count as f64).sum();
    let of_pair = |(block, new): (usize, usize)| old.blocks[block] as f64 * weight(block, new);
    let of_matched: f64 = matched.pairs().map(of_pair).sum();
    if all > 0.0 { of_matched / all } else { 0.0 }
}

#[cfg(test)]
mod tests;
