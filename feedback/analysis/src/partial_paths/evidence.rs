//! The evidence that a recording gives about the paths of a program.

use super::callers::Called;
use super::inline_instance::Graph;
use crate::decode::DecodeReport;
use crate::iterations::Forest;
use crate::partial_path::Alternatives;
use crate::replicates::Times;
use pleach_annotate::id::{CfgHash, FunctionId};
use std::collections::BTreeMap;

/// An observation of a function's paths.
#[derive(Clone, PartialEq, Debug)]
pub struct Observation {
    /// The lists of partial paths of which one was passed.
    pub alternatives: Alternatives,
    /// Weighted number of occurrences, in each replicate.
    pub times: Times,
}

/// The evidence about one function, summed over its inline instances.
#[derive(Debug)]
pub struct FunctionEvidence {
    /// Its graph.
    pub graph: Graph,
    /// Linkage name.
    pub name: String,
    /// By block: whether some inline instance always shows it.
    pub shown: Vec<bool>,
    /// Distinct observations, in the order of their first occurrence.
    pub observations: Vec<Observation>,
    /// Windows of consecutive paths of one activation; empty unless
    /// [`PartialPathOptions::iterations`](super::PartialPathOptions::iterations) is positive.
    pub windows: Forest,
    /// The callers' blocks before the first paths of activations; empty where windows are.
    pub called: Called,
}

impl FunctionEvidence {
    /// Adds the evidence of another module about the same function.
    pub(super) fn add(&mut self, other: Self) {
        for (shown, other) in self.shown.iter_mut().zip(other.shown) {
            *shown |= other;
        }
        self.observations.extend(other.observations);
        self.windows.merge(&other.windows);
        self.called.merge(other.called);
    }
}

/// The evidence about a program.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Functions with at least one observation.
    pub functions: BTreeMap<(FunctionId, CfgHash), FunctionEvidence>,
    /// Independent observations (bursts); 0 if unknown.
    pub clusters: u64,
    /// How much of the vectors the address maps explained.
    pub report: DecodeReport,
    /// Number of times that an observed block was unreachable in its function's graph from the block before.
    pub inconsistent: u64,
    /// Number of times that more than the maximum of hypotheses led through unprobed blocks, so that the path is
    /// unknown.
    pub lost: u64,
}

impl Evidence {
    /// Limits the clusters to the number of bursts: one burst may be stored as several windows.
    pub fn cap_clusters(&mut self, bursts: u64) {
        self.clusters = self.clusters.min(bursts);
    }
}
