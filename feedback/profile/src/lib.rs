//! The profile: in memory, here, and on disk ([`file`]).

mod bytes;
pub mod error;
mod estimates;
pub mod file;
mod layout;
pub mod merge;
pub mod path_profile;
mod predictions;
pub mod random_profile;
mod record;
pub mod summary;
pub mod write;

use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId};
pub use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::Path;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

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
    /// Estimated paths, by descending count and then by path; only those that something was seen of.
    pub paths: Vec<EstimatedPath>,
    /// Estimated windows of consecutive paths, in the order of their paths. Shorter windows count all executions, those within longer ones as
    /// well. All their paths are in `paths`.
    pub windows: Vec<PathWindow>,
    /// Paths from the function's entry with what their callers had passed, in order. Their paths are in `paths`.
    pub called: Vec<CalledPath>,
    /// How well branches are predicted, in block order; those that nothing was seen of are missing.
    pub predictions: Vec<BranchPrediction>,
    /// What the recording says about whether each block was executed, in block order; empty where it says nothing.
    pub coverage: Vec<Covered>,
}

/// An acyclic path and how often it was executed, as far as samples tell.
#[derive(Clone, PartialEq, Debug)]
pub struct EstimatedPath {
    /// The path, of the graph that [`pleach_ball_larus`] numbers with its default options.
    pub path: Path,
    /// Estimated executions, in the profile's counts (sampled executions × [`Profile::scale`]).
    pub count: f64,
    /// Lower end of the interval that holds the true count with 90 % probability, given the profile's total.
    pub low: f64,
    /// Upper end of that interval.
    pub high: f64,
    /// How many independent observations the estimate is worth: what bursts see is not independent. Infinitely many where
    /// nothing varies.
    pub effective: f64,
}

/// Paths that followed one another in an activation, from one iteration of a loop to the next (k-iteration paths, ALGORITHMS 5.1).
#[derive(Clone, PartialEq, Debug)]
pub struct PathWindow {
    /// The paths, oldest first: 2 to [`PathWindow::LONGEST`].
    pub paths: Vec<Path>,
    /// Estimated executions, in the profile's counts.
    pub count: f64,
}

/// A path from a function's entry, and where it was called from (call-crossing paths, ALGORITHMS 5).
#[derive(Clone, PartialEq, Debug)]
pub struct CalledPath {
    /// The end of the caller's path.
    pub caller: Caller,
    /// The path.
    pub path: Path,
    /// Estimated executions, in the profile's counts.
    pub count: f64,
}

/// What a caller passed before a call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Caller {
    /// The calling function.
    pub id: FunctionId,
    /// Its graph.
    pub cfg_hash: CfgHash,
    /// The last blocks of the path that it was on, the call's block last.
    pub before: Vec<BlockIndex>,
}

/// How well a processor predicts a branch, as far as samples tell ([`pleach_analysis::prediction`]).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BranchPrediction {
    /// The block that ends in the branch. It has two successors.
    pub block: BlockIndex,
    /// Executions that were seen to go one way or the other, in the profile's counts.
    pub watched: f64,
    /// Executions among them that are mispredicted.
    pub mispredicted: f64,
    /// Lower end of the interval that holds `mispredicted` with 90 % probability.
    pub low: f64,
}

impl BranchPrediction {
    /// A branch that nothing was seen of.
    pub fn none(block: BlockIndex) -> Self {
        Self {
            block,
            watched: 0.0,
            mispredicted: 0.0,
            low: 0.0,
        }
    }

    /// Adds what was seen of the same branch elsewhere, independently.
    pub fn add(&mut self, other: &Self) {
        let width = (self.mispredicted - self.low).hypot(other.mispredicted - other.low);
        self.watched += other.watched;
        self.mispredicted += other.mispredicted;
        self.low = (self.mispredicted - width).max(0.0);
    }

    /// The same, counted in a unit of `1 / factor`.
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            block: self.block,
            watched: self.watched * factor,
            mispredicted: self.mispredicted * factor,
            low: self.low * factor,
        }
    }
}

impl PathWindow {
    /// Paths of the longest windows that are kept.
    pub const LONGEST: usize = 4;
    /// Windows of a smaller share of their function's paths are not worth keeping.
    pub const LEAST_SHARE: f64 = 1e-4;
}

impl EstimatedPath {
    /// The order of [`FunctionProfile::paths`].
    pub fn hottest_first(a: &Self, b: &Self) -> Ordering {
        b.count.total_cmp(&a.count).then_with(|| a.path.cmp(&b.path))
    }
}

/// What is known about whether a block was executed. The order is that of what is known: `max` combines recordings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Covered {
    /// Nothing says that it was.
    #[default]
    No = 0,
    /// Implied by blocks that shadow execution passed where the program may have gone elsewhere.
    PredictedByDominance = 1,
    /// Shadow execution passed it where the program may have gone elsewhere (other threads, signals).
    Predicted = 2,
    /// Implied by blocks that were executed: the graph has no way around it.
    ByDominance = 3,
    /// A recorded branch proves it.
    Seen = 4,
}

impl Covered {
    /// Decodes the discriminant that a profile stores.
    pub fn from_u8(value: u8) -> Option<Self> {
        Some(match value {
            0 => Self::No,
            1 => Self::PredictedByDominance,
            2 => Self::Predicted,
            3 => Self::ByDominance,
            4 => Self::Seen,
            _ => return None,
        })
    }
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
    /// The least count among the hottest blocks that make up 99 % of all executions, where each inlined copy's blocks count by themselves; 0
    /// where that is not known. Functions' own counts are sums over copies.
    pub hot_in_copies: u64,
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

impl Profile {
    /// Estimated executions of all paths of all functions, as far as a file holds them.
    pub fn path_flow(&self) -> f64 {
        let paths = self.functions.iter().flat_map(|f| &f.paths);
        // Not `sum`, which makes −0 of nothing.
        paths.fold(0.0, |sum, p| sum + f64::from(estimates::stored(p.count)))
    }
}
