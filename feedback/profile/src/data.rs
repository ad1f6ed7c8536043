//! Profiles in memory.

use crate::bytes::stored;
use crate::events::EventProfile;
use crate::sums::{FunctionSums, RunSums};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId};
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::Path;
use serde::{Deserialize, Serialize};
use std::cmp::{Ordering, Reverse};

/// Estimated execution counts of one function at the anchor.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FunctionProfile {
    /// Identifier, unique in a program.
    pub id: FunctionId,
    /// The graph that the counts refer to.
    pub cfg_hash: CfgHash,
    /// Linkage name, for people.
    pub name: String,
    /// The graph itself, kept where there are samples: after a change of the source, it tells which blocks of the new
    /// graph the counts are of.
    pub graph: Option<Box<Cfg>>,
    /// Number of sampled block entries behind the estimate, not scaled: its weight as evidence.
    pub samples: u64,
    /// Estimated executions of each block, in block order.
    pub blocks: Vec<u64>,
    /// Estimated executions of each edge: the successor slots of block 0, then of block 1, …
    pub edges: Vec<u64>,
    /// Indirect calls with observed targets, by call index.
    pub call_targets: Vec<CallTargets>,
    /// Operands with observed values, by site.
    pub values: Vec<ValueCounts>,
    /// Estimated paths, by descending count and then by path. Paths without samples are not listed.
    pub paths: Vec<EstimatedPath>,
    /// Estimated windows of consecutive paths, in the order of their paths. The count of a window includes its
    /// executions within longer windows. All paths of windows are in `paths`.
    pub windows: Vec<PathWindow>,
    /// Paths from the function's entry with the blocks that their callers executed before, in order. The paths are in
    /// `paths`.
    pub called: Vec<CallCrossingPath>,
    /// Predictions of branches, in block order. Branches without samples are not listed.
    pub predictions: Vec<BranchPrediction>,
    /// What the recording proves or predicts about the execution of each block, in block order; empty if coverage was
    /// not recorded.
    pub coverage: Vec<Covered>,
    /// What breakpoints counted of each block, in block order; empty if nothing.
    pub counted: Vec<Executions>,
    /// The exact sums that estimates of a merged profile follow from; `None` if each is of one recording.
    pub sums: Option<Box<FunctionSums>>,
}

impl FunctionProfile {
    /// What breakpoints tell of the number of executions of a block.
    pub fn executions(&self, block: usize) -> Executions {
        let is_absent = self.coverage.get(block).is_some_and(|&state| state < Covered::Unknown);
        match self.counted.get(block) {
            Some(&counted) => counted,
            None if is_absent => Executions::NONE,
            None => Executions::UNKNOWN,
        }
    }
}

/// Counted executions of a block: true ones, not in the unit of [`FunctionProfile::blocks`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Executions {
    /// Executions that are proved.
    pub at_least: u64,
    /// The upper bound of a two-sided 90 % interval of the executions of its code, if breakpoints went on watching all
    /// of it. It assumes that executions are spread over the recording.
    pub at_most: Option<u64>,
}

impl Executions {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        at_least: 0,
        at_most: None,
    };

    /// There were none.
    pub const NONE: Self = Self {
        at_least: 0,
        at_most: Some(0),
    };

    /// The executions of two recordings, or of two pieces of a block's code.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            at_least: self.at_least.saturating_add(other.at_least),
            at_most: self.at_most.zip(other.at_most).map(|(a, b)| a.saturating_add(b)),
        }
    }
}

/// An acyclic path and the estimate of its executions.
#[derive(Clone, PartialEq, Debug)]
pub struct EstimatedPath {
    /// A path of the graph that [`pleach_ball_larus`] numbers with its default options.
    pub path: Path,
    /// Estimated executions, in the profile's counts (sampled executions × [`Profile::scale`]).
    pub count: f64,
    /// Lower bound of the interval that contains the true count with 90 % probability, given the profile's total.
    pub low: f64,
    /// Upper bound of that interval.
    pub high: f64,
    /// Effective sample size: the number of independent observations with the same information. It is less than the
    /// number of samples, because the samples of a burst are correlated, and infinite if the estimate has no variance.
    pub effective: f64,
}

/// Consecutive paths of an activation, from one iteration of a loop to the next: a k-iteration path
/// (feedback/ALGORITHMS.md, Path crediting).
#[derive(Clone, PartialEq, Debug)]
pub struct PathWindow {
    /// The paths, oldest first: 2 to [`PathWindow::MAX_PATHS`].
    pub paths: Vec<Path>,
    /// Estimated executions, in the profile's counts.
    pub count: f64,
}

/// A path from a function's entry and its caller's path: a call-crossing path (feedback/ALGORITHMS.md, Path crediting).
#[derive(Clone, PartialEq, Debug)]
pub struct CallCrossingPath {
    /// The end of the caller's path.
    pub caller: Caller,
    /// The path.
    pub path: Path,
    /// Estimated executions, in the profile's counts.
    pub count: f64,
}

/// The blocks that a caller executed before a call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Caller {
    /// The calling function.
    pub id: FunctionId,
    /// Its graph.
    pub cfg_hash: CfgHash,
    /// The last blocks of the caller's path, up to and including the call's block.
    pub before: Vec<BlockIndex>,
}

/// How well a processor predicts a branch: the estimate of a simulated predictor on the sampled branches
/// (`pleach_analysis::prediction`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BranchPrediction {
    /// The block that ends in the branch. It has two successors.
    pub block: BlockIndex,
    /// Executions, in the profile's counts: where only some had a known direction, as many as inferred.
    pub watched: f64,
    /// Mispredicted executions among them.
    pub mispredicted: f64,
    /// Lower bound of the interval that contains `mispredicted` with 90 % probability.
    pub low: f64,
}

impl BranchPrediction {
    /// A branch without samples.
    pub fn none(block: BlockIndex) -> Self {
        Self {
            block,
            watched: 0.0,
            mispredicted: 0.0,
            low: 0.0,
        }
    }

    /// Adds an independent estimate of the same branch.
    pub fn add(&mut self, other: &Self) {
        let width = (self.mispredicted - self.low).hypot(other.mispredicted - other.low);
        self.watched += other.watched;
        self.mispredicted += other.mispredicted;
        self.low = (self.mispredicted - width).max(0.0);
    }

    /// The same estimate with all counts multiplied by `factor`.
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
    /// Number of paths of the longest windows in a profile.
    pub const MAX_PATHS: usize = 4;
    /// Windows with a smaller share of their function's path executions are left out.
    pub const MIN_SHARE: f64 = 1e-4;
}

impl EstimatedPath {
    /// The order of [`FunctionProfile::paths`].
    pub fn hottest_first(a: &Self, b: &Self) -> Ordering {
        b.count.total_cmp(&a.count).then_with(|| a.path.cmp(&b.path))
    }
}

/// What is known about the execution of a block, such that `max` combines recordings: a block is not executed only if
/// that is proved in all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Covered {
    /// Proved not to have been executed: breakpoints were armed from the start of all processes to their ends.
    NotExecuted = 0,
    /// Its machine code was not executed, but the optimiser may have led control around that code, because the block
    /// does nothing on some paths.
    CodeNotExecuted = 1,
    /// No evidence.
    #[default]
    Unknown = 2,
    /// Implied by predicted blocks: every path through one of them passes it.
    PredictedByDominance = 3,
    /// Shadow execution passed it, but the program itself may have taken another path (other threads, signals).
    Predicted = 4,
    /// Implied by executed blocks: every path through one of them passes it.
    ByDominance = 5,
    /// A breakpoint was hit in it, or in a block that it dominates. It may be executed rarely: no burst shows it.
    Hit = 6,
    /// A recorded branch passed it.
    Proved = 7,
}

impl Covered {
    /// Whether it was executed, proved or predicted.
    pub fn is_executed(self) -> bool {
        self > Self::Unknown
    }

    /// Decodes the discriminant that a profile stores.
    pub fn from_u8(value: u8) -> Option<Self> {
        Some(match value {
            0 => Self::NotExecuted,
            1 => Self::CodeNotExecuted,
            2 => Self::Unknown,
            3 => Self::PredictedByDominance,
            4 => Self::Predicted,
            5 => Self::ByDominance,
            6 => Self::Hit,
            7 => Self::Proved,
            _ => return None,
        })
    }
}

/// Observed targets of one indirect call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallTargets {
    /// Position of the call in the function's list of calls.
    pub call: u32,
    /// Targets and their estimated counts, by descending count.
    pub targets: Vec<(FunctionGuid, u64)>,
}

/// The operand of which values are observed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ValueSite {
    /// The length, in bytes, of a call of `memcpy`, `memmove`, `memset`, `memcmp` or `bcmp`, at this position of the
    /// function's list of calls.
    Length(u32),
    /// Whether a model of a processor's predictor tells if the length of this call is its most frequent one: 1 if it does,
    /// 0 if not.
    LengthPrediction(u32),
    /// What the integer divisions of a block divide by.
    Divisor(BlockIndex),
    /// Whether a model of a processor's predictor tells where the switch at the end of this block goes: 1 if it does, 0 if
    /// not.
    SwitchPrediction(BlockIndex),
}

impl ValueSite {
    /// The number of call 0's prediction.
    const FIRST_PREDICTION: u32 = 1 << 30;
    /// The number of block 0's divisions.
    const FIRST_DIVISOR: u32 = 2 << 30;
    /// The number of the prediction of block 0's switch.
    const FIRST_SWITCH: u32 = 3 << 30;
    /// Positions and blocks are smaller.
    const END: u32 = 1 << 30;

    /// As files have it: the position of the call, 2^30 and the position of the call, 2^31 and the block of divisions, or
    /// 2^31 + 2^30 and the block of a switch.
    pub fn number(self) -> u32 {
        match self {
            Self::Length(call) => call & (Self::END - 1),
            Self::LengthPrediction(call) => call & (Self::END - 1) | Self::FIRST_PREDICTION,
            Self::Divisor(block) => block.0 & (Self::END - 1) | Self::FIRST_DIVISOR,
            Self::SwitchPrediction(block) => block.0 & (Self::END - 1) | Self::FIRST_SWITCH,
        }
    }

    /// The site with a number.
    pub fn from_number(number: u32) -> Self {
        match number {
            Self::FIRST_SWITCH.. => Self::SwitchPrediction(BlockIndex(number - Self::FIRST_SWITCH)),
            Self::FIRST_DIVISOR.. => Self::Divisor(BlockIndex(number - Self::FIRST_DIVISOR)),
            Self::FIRST_PREDICTION.. => Self::LengthPrediction(number - Self::FIRST_PREDICTION),
            _ => Self::Length(number),
        }
    }
}

/// Observed values of one operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueCounts {
    /// The operand.
    pub site: ValueSite,
    /// Bursts that showed it: its weight as evidence.
    pub bursts: u64,
    /// The most frequent values, and their estimated counts, by descending count.
    pub values: Vec<(u64, u64)>,
    /// Estimated count of all other values.
    pub others: u64,
}

impl ValueCounts {
    /// Values that are kept apart.
    pub const MAX_VALUES: usize = 16;

    /// Sorts the values, and adds the less frequent ones up.
    pub fn keep_most_frequent(&mut self) {
        self.values.sort_by_key(|&(value, count)| (Reverse(count), value));
        let rare = self.values.split_off(self.values.len().min(Self::MAX_VALUES));
        let rare = rare.iter().fold(0u64, |sum, &(_, count)| sum.saturating_add(count));
        self.others = self.others.saturating_add(rare);
    }

    /// Estimated executions with a value, if it is one of the most frequent ones; otherwise 0.
    pub fn count_of(&self, value: u64) -> u64 {
        let found = self.values.iter().find(|(other, _)| *other == value);
        found.map_or(0, |&(_, count)| count)
    }

    /// Estimated executions of the operation.
    pub fn total(&self) -> u64 {
        let values = self.values.iter();
        values.fold(self.others, |sum, &(_, count)| sum.saturating_add(count))
    }

    /// Executions of the operation, with one burst more, of other values: that no burst showed another value does not
    /// prove that there is none.
    pub fn total_with_one_more_burst(&self) -> u64 {
        let total = self.total();
        total.saturating_add(total / self.bursts.max(1))
    }
}

/// Where a profile comes from. Stored as JSON.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// Recorded commands, one for each run.
    pub commands: Vec<String>,
    /// Names of the sampling engines.
    pub engines: Vec<String>,
    /// CPU seconds of the programs.
    pub program_cpu_seconds: f64,
    /// CPU seconds of the sampler.
    pub own_cpu_seconds: f64,
    /// Number of recorded bursts.
    pub bursts: u64,
    /// Number of recorded taken branches.
    pub taken_branches: u64,
    /// The smallest count among the hottest blocks that together have 99 % of all executions, with the blocks of each
    /// inline instance counted separately; 0 if unknown. (The counts of functions are sums over inline instances.) Of
    /// exact counts: as if small functions had been inlined.
    pub hot_instance_count: u64,
    /// The annotated files that were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<RecordedModule>,
    /// Exact sums of a merged profile; `None` of a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sums: Option<RunSums>,
}

/// An annotated file that was recorded.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct RecordedModule {
    /// Where it was.
    pub path: String,
    /// Its GNU build-id in hexadecimal; empty if it had none.
    pub build_id: String,
}

impl Provenance {
    /// The engine that exact counts come from.
    pub const EXACT_ENGINE: &str = "exact";

    /// Whether everything was counted, so that there is no sampling error.
    pub fn is_exact(&self) -> bool {
        self.engines == [Self::EXACT_ENGINE]
    }
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
    /// Annotated functions, those never sampled included, sorted by identifier. An identifier may come with several
    /// graphs (an inline function that translation units compiled differently), but with each only once.
    pub functions: Vec<FunctionProfile>,
    /// Paths that lead to events, by the event's name.
    pub events: Vec<EventProfile>,
    /// The raw vectors, as a vector file of the collector, if they were kept.
    pub vectors: Option<Vec<u8>>,
}

impl Profile {
    /// Estimated executions of all paths of all functions, with each count rounded as in a file.
    pub fn path_flow(&self) -> f64 {
        // In the order that a reader of the file finds, so that writing it again gives the same.
        let mut order: Vec<(f32, &Path)> = Vec::new();
        let mut flow = 0.0;
        for function in &self.functions {
            order.clear();
            order.extend(function.paths.iter().map(|p| (stored(p.count), &p.path)));
            order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
            flow = order.iter().fold(flow, |sum, (count, _)| sum + f64::from(*count));
        }
        flow
    }
}
