//! How sure a path's share is (feedback/ALGORITHMS.md, Confidence).

use crate::replicates::{REPLICATES, Times};

/// What holds the true count with 90 % probability.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Independent observations that the count is worth.
    pub effective: f64,
}

/// Standard normal quantile of 0.95.
const Z: f64 = 1.644_853_626_951_472_7;

impl Interval {
    /// The interval of a count, from its replicates and those of the sum of all counts.
    ///
    /// The share's variance over the replicates says how many independent events would scatter as much: n = share² ÷
    /// variance. The ends are those of a Poisson count of n events (χ² quantiles), scaled: unlike ± 1.645 σ they are right for few
    /// events too, and never below 0.
    pub fn of(times: &Times, total: &[f64; REPLICATES + 1]) -> Self {
        let count = f64::from(times[0]);
        let shares = times[1..].iter().zip(&total[1..]).filter(|&(_, &all)| all > 0.0);
        let shares: Vec<f64> = shares.map(|(&times, &all)| f64::from(times) / all).collect();
        let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        let squares = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>();
        let variance = squares / (shares.len().max(2) - 1) as f64;
        let share = count / total[0].max(f64::MIN_POSITIVE);
        let effective = if variance > 0.0 {
            share * share / variance
        } else {
            f64::INFINITY
        };
        if !effective.is_finite() {
            return Self {
                low: count,
                high: count,
                effective,
            };
        }
        // An estimate is worth one event at least: it was seen.
        let events = effective.max(1.0);
        Self {
            low: count / events * chi_squared(2.0 * events, -Z) / 2.0,
            high: count / events * chi_squared(2.0 * (events + 1.0), Z) / 2.0,
            effective,
        }
    }
}

/// Quantile of a χ² variable with so many degrees of freedom, by the normal quantile (Wilson and Hilferty 1931).
fn chi_squared(degrees: f64, z: f64) -> f64 {
    let ninth = 2.0 / (9.0 * degrees);
    degrees * (1.0 - ninth + z * ninth.sqrt()).max(0.0).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        // χ² with 2, 10 and 100 degrees of freedom at 0.05 and 0.95.
        for (degrees, low, high) in [(2.0, 0.103, 5.991), (10.0, 3.940, 18.307), (100.0, 77.929, 124.342)] {
            assert!((chi_squared(degrees, -Z) - low).abs() < 0.03, "{degrees}");
            assert!((chi_squared(degrees, Z) - high).abs() < 0.08, "{degrees}");
        }
    }

    #[test]
    fn replicates_that_scatter_like_nine_events_give_the_interval_of_nine_events() {
        let mut times = [9.0_f32; REPLICATES + 1];
        for (number, times) in times[1..].iter_mut().enumerate() {
            *times = if number % 2 == 0 { 6.0 } else { 12.0 };
        }
        let interval = Interval::of(&times, &[1000.0; REPLICATES + 1]);
        assert!((interval.effective - 8.72).abs() < 0.01, "{interval:?}");
        // Exact Poisson limits of 9 events: 4.70 and 15.71.
        assert!(
            (interval.low - 4.6).abs() < 0.2 && (interval.high - 15.8).abs() < 0.3,
            "{interval:?}"
        );
    }
}
