//! What a recording shows of the paths of a program's functions.

use super::callers::Called;
use super::inline_instance::Graph;
use crate::decode::DecodeReport;
use crate::iterations::Forest;
use crate::partial_path::Alternatives;
use crate::replicates::Times;
use pleach_annotate::id::{CfgHash, FunctionId};
use std::collections::BTreeMap;

/// Something that was observed of a function's paths, and how often.
#[derive(Clone, PartialEq, Debug)]
pub struct Observation {
    /// What was passed: one of these lists of pieces.
    pub alternatives: Alternatives,
    /// How often, weighted.
    pub times: Times,
}

/// What was observed of one function's paths, in all its copies.
#[derive(Debug)]
pub struct FunctionEvidence {
    /// Its graph.
    pub graph: Graph,
    /// Linkage name.
    pub name: String,
    /// By block: some copy shows it.
    pub shown: Vec<bool>,
    /// Different ones, in the order in which they were made first.
    pub observations: Vec<Observation>,
    /// Windows of consecutive paths of one activation; empty unless [`PartialPathOptions::iterations`](super::PartialPathOptions::iterations) asks for them.
    pub windows: Forest,
    /// What first paths of activations came after; nothing where windows are not asked for.
    pub called: Called,
}

impl FunctionEvidence {
    /// Adds what another module's copies showed of the same function.
    pub(super) fn add(&mut self, other: Self) {
        for (shown, other) in self.shown.iter_mut().zip(other.shown) {
            *shown |= other;
        }
        self.observations.extend(other.observations);
        self.windows.merge(&other.windows);
        self.called.merge(other.called);
    }
}

/// What was observed of a program's paths.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Functions of which something was observed.
    pub functions: BTreeMap<(FunctionId, CfgHash), FunctionEvidence>,
    /// Independent observations (bursts); 0 if unknown.
    pub clusters: u64,
    /// What the address maps explained.
    pub report: DecodeReport,
    /// How often control got to a block in no way that its function's graph has.
    pub inconsistent: u64,
    /// How often what was passed is not known because too many ways led through blocks without code.
    pub lost: u64,
}

impl Evidence {
    /// A recording has no more independent observations than bursts: one burst may be stored as several windows.
    pub fn cap_clusters(&mut self, bursts: u64) {
        self.clusters = self.clusters.min(bursts);
    }
}
