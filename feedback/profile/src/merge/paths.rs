//! Estimated paths of several profiles → one.
//!
//! Profiles are independent estimates. Of a sum Σ wᵢcᵢ the variance is Σ wᵢ²vᵢ. An interval is taken for one of a normal
//! distribution whose spread differs on both sides of the count: half-widths are 1.645 standard deviations of their side,
//! so that each side's half-widths add up as squares, low ends by low ends and high ends by high ends, and an asymmetric
//! interval stays one. (That overstates the asymmetry of sums of many; of a few it loses none.)
//!
//! A path that a profile does not list counts nothing in it, and adds nothing to the interval: the profile says nothing on
//! how often it may have been missed.
//!
//! Effective sizes become Kish's: (Σ wᵢcᵢ)² / Σ wᵢ²cᵢ²/eᵢ. That is Σ eᵢ where all observations weigh the same, and less
//! where few of them weigh much.

use crate::EstimatedPath;
use pleach_ball_larus::Path;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Paths of one function while they add up.
#[derive(Default)]
pub(super) struct PathSums(BTreeMap<Path, PathSum>);

impl PathSums {
    pub fn add(&mut self, paths: Vec<EstimatedPath>, weight: u64) {
        for path in paths {
            let sum = PathSum::of(&path, weight as f64);
            match self.0.entry(path.path) {
                Entry::Vacant(place) => drop(place.insert(sum)),
                Entry::Occupied(mut known) => known.get_mut().add(&sum),
            }
        }
    }

    /// The sums, in the order of a profile.
    pub fn finish(self) -> Vec<EstimatedPath> {
        let mut paths: Vec<_> = self.0.into_iter().map(|(path, sum)| sum.finish(path)).collect();
        paths.sort_unstable_by(EstimatedPath::hottest_first);
        paths
    }
}

/// Σ of what adds up.
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
    /// Of one profile: known as it is.
    End(f64),
    /// Of several: the sum of squared half-widths.
    Squares(f64),
}

impl Side {
    fn squares(self, count: f64) -> f64 {
        match self {
            Self::End(end) => (end - count).powi(2),
            Self::Squares(squares) => squares,
        }
    }

    /// The end that lies in this direction from a count.
    fn end(self, count: f64, direction: f64) -> f64 {
        match self {
            Self::End(end) => end,
            Self::Squares(squares) => (count + direction * squares.sqrt()).max(0.0),
        }
    }
}

impl PathSum {
    fn of(path: &EstimatedPath, weight: f64) -> Self {
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
        // Where all weigh the same, rounding must not take the sum for less or more than it is.
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
