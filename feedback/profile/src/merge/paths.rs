//! Sums of estimated paths over several profiles.
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

use crate::data::EstimatedPath;
use pleach_ball_larus::Path;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Sums of the paths of one function.
#[derive(Default)]
pub(super) struct PathSums(BTreeMap<Path, PathSum>);

impl PathSums {
    pub fn add(&mut self, paths: Vec<EstimatedPath>, weight: u64) {
        for path in paths {
            let sum = PathSum::from_path(&path, weight as f64);
            match self.0.entry(path.path) {
                Entry::Vacant(place) => drop(place.insert(sum)),
                Entry::Occupied(mut known) => known.get_mut().add(&sum),
            }
        }
    }

    /// The sums, in the order of [`FunctionProfile::paths`](crate::FunctionProfile::paths).
    pub fn finish(self) -> Vec<EstimatedPath> {
        let mut paths: Vec<_> = self.0.into_iter().map(|(path, sum)| sum.finish(path)).collect();
        paths.sort_unstable_by(EstimatedPath::hottest_first);
        paths
    }
}

/// Sums of one path.
#[derive(Clone, Copy)]
struct PathSum {
    count: f64,
    low: Side,
    high: Side,
    /// Σ eᵢ.
    effective: f64,
    /// Σ wᵢ²cᵢ²/eᵢ.
    squares: f64,
}

/// One end of an interval.
#[derive(Clone, Copy)]
enum Side {
    /// Of one profile: the end itself.
    End(f64),
    /// Of several profiles: the sum of squared half-widths.
    Squares(f64),
}

impl Side {
    fn squares(self, count: f64) -> f64 {
        match self {
            Self::End(end) => (end - count).powi(2),
            Self::Squares(squares) => squares,
        }
    }

    /// The end below (`direction` −1) or above (`direction` 1) a count.
    fn end(self, count: f64, direction: f64) -> f64 {
        match self {
            Self::End(end) => end,
            Self::Squares(squares) => (count + direction * squares.sqrt()).max(0.0),
        }
    }
}

impl PathSum {
    fn from_path(path: &EstimatedPath, weight: f64) -> Self {
        let count = path.count * weight;
        Self {
            count,
            low: Side::End(path.low * weight),
            high: Side::End(path.high * weight),
            effective: path.effective,
            squares: if path.effective > 0.0 {
                count * count / path.effective
            } else {
                0.0
            },
        }
    }

    fn add(&mut self, other: &Self) {
        let both = |a: Side, b: Side| Side::Squares(a.squares(self.count) + b.squares(other.count));
        (self.low, self.high) = (both(self.low, other.low), both(self.high, other.high));
        self.count += other.count;
        self.effective += other.effective;
        self.squares += other.squares;
    }

    fn finish(self, path: Path) -> EstimatedPath {
        // With equal weights, both are Σ eᵢ up to rounding errors, which must not accumulate.
        let kish = self.count * self.count / self.squares;
        EstimatedPath {
            path,
            count: self.count,
            low: self.low.end(self.count, -1.0),
            high: self.high.end(self.count, 1.0),
            effective: if kish < self.effective * (1.0 - 1e-12) {
                kish
            } else {
                self.effective
            },
        }
    }
}
