//! Exact sums behind the estimates of merged profiles, so that merging is commutative and associative to the last bit.
//!
//! A recording's estimates are rounded numbers. Their sums are kept beside the estimates that follow from them, as
//! integers in a fixed unit:
//!
//! | sum of | unit |
//! |---|---|
//! | counts, effective sample sizes | 2⁻³² |
//! | squares: of half-widths, and Kish's | 2⁻⁸ |
//!
//! A number is rounded to its unit once, where it is first added, and integers add up in any order. Sums stop at
//! [`MAX_SUM`], the largest number that SQL's `DECIMAL(38)` has. An estimate of one recording has no sums: it stays what
//! the recording said.
//!
//! Profiles are independent estimates, so the variance of Σ wᵢcᵢ is Σ wᵢ²vᵢ. An interval is treated as that of a normal
//! distribution with a different standard deviation on each side of the count: a half-width is 1.645 standard
//! deviations of its side. The squares of the half-widths add up, separately for low and high ends, so an asymmetric
//! interval stays asymmetric. (This overstates the asymmetry of sums of many profiles.)
//!
//! A path that a profile does not list has count 0 there and adds nothing to the interval, because the profile has no
//! information on executions that its samples missed.
//!
//! The effective sample size is Kish's: (Σ wᵢcᵢ)² / Σ wᵢ²cᵢ²/eᵢ. It equals Σ eᵢ if all observations have the same
//! weight, and is smaller if few observations have most of the weight.

use crate::bytes::stored;
use crate::data::{BranchPrediction, Caller, EstimatedPath};
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::Path;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest sum: 10³⁸ − 1.
pub const MAX_SUM: u128 = 10u128.pow(38) - 1;
/// Base-2 logarithm of the number of units in 1, of counts and sample sizes.
const COUNT_BITS: i32 = 32;
/// The same of squares.
const SQUARE_BITS: i32 = 8;
/// The largest count that is added: larger ones are no counts of executions.
const MAX_COUNT: u128 = 1 << (64 + COUNT_BITS);

/// A number ≥ 0 in units of 2 to the power of −`bits`.
fn units(value: f64, bits: i32) -> u128 {
    // The cast saturates.
    ((value * 2f64.powi(bits)).round() as u128).min(MAX_SUM)
}

fn value(units: u128, bits: i32) -> f64 {
    units as f64 * 2f64.powi(-bits)
}

/// A value, rounded as in a file.
fn rounded(value: f64) -> f64 {
    stored(value).into()
}

/// The sum of two sums.
fn plus(a: u128, b: u128) -> u128 {
    a.saturating_add(b).min(MAX_SUM)
}

fn times(a: u128, weight: u64) -> u128 {
    a.saturating_mul(weight.into()).min(MAX_SUM)
}

/// Executions as a sum of one.
pub fn count_units(count: f64) -> u128 {
    units(rounded(count), COUNT_BITS).min(MAX_COUNT)
}

/// Executions that a sum stands for, rounded as in a file.
pub fn count_of_units(units: u128) -> f64 {
    rounded(value(units, COUNT_BITS))
}

/// Something that is added up exactly.
pub trait Sum: Sized {
    /// The sum of independent estimates.
    fn add(&mut self, other: &Self);
    /// The sum of estimates with all counts multiplied by `weight`.
    #[must_use]
    fn times(self, weight: u64) -> Self;
}

/// Sums of a count: units of 2⁻³² executions.
impl Sum for u128 {
    fn add(&mut self, other: &Self) {
        *self = plus(*self, *other);
    }

    fn times(self, weight: u64) -> Self {
        times(self, weight)
    }
}

/// Sums of a path's estimates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathSum {
    /// Σ wᵢcᵢ, in units of 2⁻³² executions.
    pub count: u128,
    /// Σ wᵢ²(cᵢ − lowᵢ)², in units of 2⁻⁸.
    pub low: u128,
    /// Σ wᵢ²(highᵢ − cᵢ)², in units of 2⁻⁸.
    pub high: u128,
    /// Σ eᵢ of the finite ones, in units of 2⁻³².
    pub effective: u128,
    /// Number of estimates without variance, whose eᵢ are infinite.
    pub certain: u64,
    /// Σ wᵢ²cᵢ²/eᵢ, in units of 2⁻⁸.
    pub kish: u128,
}

impl PathSum {
    /// Of one estimate.
    pub fn from_path(path: &EstimatedPath) -> Self {
        let [count, low, high, effective] = [path.count, path.low, path.high, path.effective].map(rounded);
        let is_certain = effective.is_infinite();
        let weighs = effective > 0.0 && !is_certain;
        Self {
            count: count_units(count),
            low: units((low - count).powi(2), SQUARE_BITS),
            high: units((high - count).powi(2), SQUARE_BITS),
            effective: if is_certain { 0 } else { count_units(effective) },
            certain: u64::from(is_certain),
            kish: if weighs {
                units(count * count / effective, SQUARE_BITS)
            } else {
                0
            },
        }
    }

    /// The estimate that the sums give, rounded as in a file.
    pub fn estimate(&self, path: Path) -> EstimatedPath {
        let count = value(self.count, COUNT_BITS);
        let [below, above] = [self.low, self.high].map(|squares| value(squares, SQUARE_BITS).sqrt());
        let effective = match self.certain {
            0 => value(self.effective, COUNT_BITS),
            _ => f64::INFINITY,
        };
        // With equal weights, both are Σ eᵢ up to rounding errors.
        let kish = count * count / value(self.kish, SQUARE_BITS);
        EstimatedPath {
            path,
            count: rounded(count),
            low: rounded((count - below).max(0.0)),
            high: rounded(count + above),
            effective: rounded(if kish < effective { kish } else { effective }),
        }
    }
}

impl Sum for PathSum {
    fn add(&mut self, other: &Self) {
        self.count = plus(self.count, other.count);
        self.low = plus(self.low, other.low);
        self.high = plus(self.high, other.high);
        self.effective = plus(self.effective, other.effective);
        self.certain = self.certain.saturating_add(other.certain);
        self.kish = plus(self.kish, other.kish);
    }

    fn times(self, weight: u64) -> Self {
        let squared = |squares| times(times(squares, weight), weight);
        Self {
            count: times(self.count, weight),
            low: squared(self.low),
            high: squared(self.high),
            kish: squared(self.kish),
            ..self
        }
    }
}

/// Sums of a branch's predictions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PredictionSum {
    /// Executions with a known direction, in units of 2⁻³².
    pub watched: u128,
    /// Mispredicted executions, in units of 2⁻³².
    pub mispredicted: u128,
    /// Squares of the half-widths below, in units of 2⁻⁸.
    pub low: u128,
}

impl PredictionSum {
    /// Of one estimate.
    pub fn from_prediction(p: &BranchPrediction) -> Self {
        let [watched, mispredicted, low] = [p.watched, p.mispredicted, p.low].map(rounded);
        Self {
            watched: count_units(watched),
            mispredicted: count_units(mispredicted),
            low: units((mispredicted - low).powi(2), SQUARE_BITS),
        }
    }

    /// The estimate that the sums give, rounded as in a file.
    pub fn estimate(&self, block: BlockIndex) -> BranchPrediction {
        let mispredicted = value(self.mispredicted, COUNT_BITS);
        BranchPrediction {
            block,
            watched: rounded(value(self.watched, COUNT_BITS)),
            mispredicted: rounded(mispredicted),
            low: rounded((mispredicted - value(self.low, SQUARE_BITS).sqrt()).max(0.0)),
        }
    }
}

impl Sum for PredictionSum {
    fn add(&mut self, other: &Self) {
        self.watched = plus(self.watched, other.watched);
        self.mispredicted = plus(self.mispredicted, other.mispredicted);
        self.low = plus(self.low, other.low);
    }

    fn times(self, weight: u64) -> Self {
        Self {
            watched: times(self.watched, weight),
            mispredicted: times(self.mispredicted, weight),
            low: times(times(self.low, weight), weight),
        }
    }
}

/// Sums of a function's estimates: of those that more than one recording, or one with a weight, contributed to.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FunctionSums {
    /// By path.
    pub paths: BTreeMap<Path, PathSum>,
    /// Counts of windows of paths, in units of 2⁻³² executions.
    pub windows: BTreeMap<Vec<Path>, u128>,
    /// Counts of called paths, in units of 2⁻³² executions.
    pub called: BTreeMap<(Caller, Path), u128>,
    /// By the block that ends in the branch.
    pub predictions: BTreeMap<BlockIndex, PredictionSum>,
}

impl FunctionSums {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.windows.is_empty() && self.called.is_empty() && self.predictions.is_empty()
    }
}

/// Sums of what belongs to whole profiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RunSums {
    /// Sampled block entries of all functions.
    pub samples: u64,
    /// The executions that they stand for (samples × scale × weight), in units of 2⁻³²; hexadecimal in JSON.
    #[serde(with = "hexadecimal")]
    pub executions: u128,
    /// CPU time of the programs.
    pub program_nanoseconds: u64,
    /// CPU time of the sampler.
    pub own_nanoseconds: u64,
}

impl RunSums {
    /// Of one recording.
    pub fn from_recording(samples: u64, scale: f64, program_cpu_seconds: f64, own_cpu_seconds: f64) -> Self {
        Self {
            samples,
            executions: units(samples as f64 * scale, COUNT_BITS),
            program_nanoseconds: (program_cpu_seconds * 1e9).round() as u64,
            own_nanoseconds: (own_cpu_seconds * 1e9).round() as u64,
        }
    }

    /// Executions per sample, so that counts ≈ samples × scale holds for the sums as for the parts; `None` without
    /// samples.
    pub fn scale(&self) -> Option<f64> {
        (self.samples > 0).then(|| value(self.executions, COUNT_BITS) / self.samples as f64)
    }
}

impl Sum for RunSums {
    fn add(&mut self, other: &Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.executions = plus(self.executions, other.executions);
        self.program_nanoseconds = self.program_nanoseconds.saturating_add(other.program_nanoseconds);
        self.own_nanoseconds = self.own_nanoseconds.saturating_add(other.own_nanoseconds);
    }

    fn times(self, weight: u64) -> Self {
        Self {
            executions: times(self.executions, weight),
            ..self
        }
    }
}

mod hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{value:x}"))
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}
