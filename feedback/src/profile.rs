//! The profile: in memory, here, and on disk ([`file`]).

pub mod error;
pub mod file;
mod layout;
mod record;
pub mod summary;
mod write;

use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId};
pub use pleach_annotate::manifest::Anchor;
use serde::{Deserialize, Serialize};

/// Estimated execution counts of one function at the anchor.
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionProfile {
    /// Identifier, unique in a program.
    pub id: FunctionId,
    /// The graph that the counts refer to.
    pub cfg_hash: CfgHash,
    /// Linkage name, for people.
    pub name: String,
    /// Sampled block entries behind the estimate: its weight as evidence, not scaled.
    pub samples: u64,
    /// Estimated executions of each block, in block order.
    pub blocks: Vec<u64>,
    /// Estimated executions of each edge: the successor slots of block 0, then of block 1, …
    pub edges: Vec<u64>,
    /// Indirect calls with observed targets, by call index.
    pub call_targets: Vec<CallTargets>,
}

/// Observed targets of one indirect call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallTargets {
    /// Position of the call in the function's list of calls.
    pub call: u32,
    /// Targets and their estimated counts, most frequent first.
    pub targets: Vec<(FunctionGuid, u64)>,
}

/// Where a profile comes from.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// Recorded commands, one for each run.
    pub commands: Vec<String>,
    /// Engines that contributed, by name.
    pub engines: Vec<String>,
    /// CPU seconds of the programs.
    pub program_cpu_seconds: f64,
    /// CPU seconds of the sampler.
    pub own_cpu_seconds: f64,
    /// Bursts behind the profile.
    pub bursts: u64,
    /// Taken branches behind the profile.
    pub taken_branches: u64,
}

/// A whole profile.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Profile {
    /// Where it comes from.
    pub provenance: Provenance,
    /// Factor from sampled to estimated executions: `blocks` ≈ sampled block entries × `scale`.
    pub scale: f64,
    /// The anchor (`early` or `late`) that the counts refer to.
    pub anchor: Anchor,
    /// Annotated functions, those never sampled included, sorted by identifier. An identifier may come with several graphs
    /// (an inline function that translation units compiled differently), but with each only once.
    pub functions: Vec<FunctionProfile>,
    /// The raw vectors as a file of the collector, where they were kept.
    pub vectors: Option<Vec<u8>>,
}
