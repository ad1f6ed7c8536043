//! Intervals of path counts (feedback/ALGORITHMS.md, Confidence).

use crate::replicates::{REPLICATES, Times};

/// A 90 % interval of a count, in the unit of the count.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Number of independent observations with the same relative variance.
    pub effective: f64,
}

/// Standard normal quantile of 0.95.
const Z: f64 = 1.644_853_626_951_472_7;

impl Interval {
    /// The interval of a part of a count that has `effective` independent observations. They are divided as the count
    /// is: as if each burst showed only executions in the part, or only others. Where bursts show both, the interval is
    /// wider than it had to be.
    pub fn of_part(part: f64, count: f64, effective: f64) -> Self {
        let effective = effective * (part / count.max(f64::MIN_POSITIVE)).min(1.0);
        let (low, high) = if effective.is_finite() {
            poisson_ends(part, effective)
        } else {
            (part, part)
        };
        Self {
            low: low.clamp(0.0, part),
            high: high.max(part),
            effective,
        }
    }

    /// The interval of a count.
    ///
    /// - `times`: the count in each replicate; `total`: the sum of all counts in each replicate.
    /// - `clusters`: independent observations (bursts) that the counts are from; 0 if unknown.
    ///
    /// The variance of the share over the replicates gives the number of independent events with the same scatter: n =
    /// share² ÷ variance. The ends are those of a Poisson count of n events (χ² quantiles), scaled: unlike ± 1.645 σ
    /// they hold for few events too, and are never below 0. For a share above one half they are computed for the rest.
    ///
    /// With few clusters, the scatter of replicates is too small; with one cluster it is zero. Therefore one more
    /// cluster is assumed whose events are all of one kind: its variance is p (1 − p), where p is the
    /// Krichevsky–Trofimov estimate of the share. Quantiles are Student's. Degrees of freedom: the clusters (the
    /// assumed one makes up for the mean), but no more than the replicates have.
    pub fn from_replicates(times: &Times, total: &[f64; REPLICATES + 1], clusters: u64) -> Self {
        let count = f64::from(times[0]);
        let shares = times[1..].iter().zip(&total[1..]).filter(|&(_, &all)| all > 0.0);
        let shares: Vec<f64> = shares.map(|(&times, &all)| f64::from(times) / all).collect();
        let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        let squares = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>();
        let variance = squares / (shares.len().max(2) - 1) as f64;
        let all = total[0].max(f64::MIN_POSITIVE);
        let share = (count / all).min(1.0);
        let variance = match clusters {
            0 => variance,
            n => small_sample_variance(share, variance, n as f64),
        };
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
        let (low, high) = if share > 0.5 && clusters > 0 {
            // If only one path was sampled, the other paths count as half a cluster.
            let rest = (1.0 - share).max(0.5 / (clusters as f64 + 1.0));
            let (low, high) = poisson_ends(rest, rest * rest / variance);
            (all * (1.0 - high), all * (1.0 - low))
        } else {
            poisson_ends(count, effective)
        };
        Self {
            low: low.clamp(0.0, count),
            high: if clusters > 0 { high.min(all) } else { high }.max(count),
            effective,
        }
    }
}

/// The variance of a share that was estimated from few clusters, given its variance over the replicates.
fn small_sample_variance(share: f64, variance: f64, clusters: f64) -> f64 {
    let p = (share * clusters + 0.5) / (clusters + 1.0);
    // The bootstrap's variance is that of a mean, and misses the degree of freedom that the mean takes.
    let seen = variance * clusters * clusters;
    let of_cluster = (seen + p * (1.0 - p)) / clusters;
    let quantile = if clusters < 2.0 {
        // One cluster has no scatter to estimate.
        Z
    } else {
        student(clusters.min(REPLICATES as f64 - 1.0))
    };
    of_cluster / clusters * (quantile / Z).powi(2)
}

/// Quantile of Student's t at 0.95 with 2 degrees of freedom or more (Abramowitz and Stegun 1964, 26.7.5).
fn student(degrees: f64) -> f64 {
    let z = Z;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / degrees + second / degrees.powi(2) + third / degrees.powi(3)
}

/// The ends of the interval of a count whose relative variance is that of a Poisson count of `events`; at least one
/// event was sampled.
fn poisson_ends(count: f64, events: f64) -> (f64, f64) {
    let events = events.max(1.0);
    (
        count / events * chi_squared(2.0 * events, -Z) / 2.0,
        count / events * chi_squared(2.0 * (events + 1.0), Z) / 2.0,
    )
}

/// Quantile of a χ² variable with `degrees` degrees of freedom, from the normal quantile `z` (Wilson and Hilferty
/// 1931).
fn chi_squared(degrees: f64, z: f64) -> f64 {
    let ninth = 2.0 / (9.0 * degrees);
    degrees * (1.0 - ninth + z * ninth.sqrt()).max(0.0).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::SplitMix64;

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
        let interval = Interval::from_replicates(&times, &[1000.0; REPLICATES + 1], 0);
        assert!((interval.effective - 8.72).abs() < 0.01, "{interval:?}");
        // Exact Poisson limits of 9 events: 4.70 and 15.71.
        assert!(
            (interval.low - 4.6).abs() < 0.2 && (interval.high - 15.8).abs() < 0.3,
            "{interval:?}"
        );
    }

    #[test]
    fn one_cluster_leaves_nearly_everything_open() {
        let of = |count: f32| Interval::from_replicates(&[count; REPLICATES + 1], &[100.0; REPLICATES + 1], 1);
        // One burst: no replicate changes the shares.
        let third = of(29.0);
        assert!(third.low < 5.0 && third.high > 90.0, "{third:?}");
        let all = of(100.0);
        assert!(all.low < 60.0 && all.high == 100.0, "{all:?}");
        // A thousand bursts that agree leave little.
        let sure = Interval::from_replicates(&[29.0; REPLICATES + 1], &[100.0; REPLICATES + 1], 1000);
        assert!(sure.low > 28.9 && sure.high < 29.1 && sure.low < 29.0, "{sure:?}");
    }

    #[test]
    fn quantiles_of_student_are_those_of_tables() {
        for (degrees, quantile) in [(2.0, 2.920), (3.0, 2.353), (5.0, 2.015), (10.0, 1.812), (31.0, 1.696)] {
            assert!(
                (student(degrees) - quantile).abs() < 0.05,
                "{degrees}: {}",
                student(degrees)
            );
        }
    }

    /// Shares that add up to 1.
    fn random_shares(random: &mut SplitMix64, number: usize) -> Vec<f64> {
        let parts: Vec<f64> = (0..number).map(|_| -random.random::<f64>().ln()).collect();
        let sum: f64 = parts.iter().sum();
        parts.into_iter().map(|part| part / sum).collect()
    }

    /// An index, each with the probability that its share says.
    fn pick(random: &mut SplitMix64, shares: &[f64]) -> usize {
        let mut left: f64 = random.random();
        let found = shares.iter().position(|share| {
            left -= share;
            left < 0.0
        });
        found.unwrap_or(shares.len() - 1)
    }

    /// Programs of phases, each with its own shares of paths. A burst is of one phase, and repeats its last path with a
    /// given probability.
    #[test]
    fn intervals_of_any_number_of_bursts_hold_the_truth() {
        for (phases, paths, length, repeats) in [(1, 3, 20, 0.0), (2, 5, 50, 0.5), (3, 8, 50, 0.9), (6, 20, 200, 0.5)] {
            for (bursts, trials) in [
                (1, 300),
                (2, 300),
                (3, 300),
                (5, 300),
                (10, 300),
                (100, 300),
                (1000, 100),
            ] {
                let (mut held, mut seen) = (0, 0);
                for trial in 0..trials {
                    let mut random = SplitMix64::seed_from_u64(trial * 7919 + bursts * 104_729 + phases as u64);
                    let phase_shares = random_shares(&mut random, phases);
                    let shares: Vec<_> = (0..phases).map(|_| random_shares(&mut random, paths)).collect();
                    let mut times = vec![[0.0_f32; REPLICATES + 1]; paths];
                    let mut total = [0.0; REPLICATES + 1];
                    for burst in 0..bursts {
                        let weights = crate::replicates::multipliers(burst);
                        let of = &shares[pick(&mut random, &phase_shares)];
                        let mut path = pick(&mut random, of);
                        for _ in 0..length {
                            if random.random::<f64>() >= repeats {
                                path = pick(&mut random, of);
                            }
                            for (lane, weight) in weights.iter().enumerate() {
                                times[path][lane] += weight;
                                total[lane] += f64::from(*weight);
                            }
                        }
                    }
                    for (path, times) in times.iter().enumerate().filter(|(_, times)| times[0] > 0.0) {
                        let share = |phase: usize| phase_shares[phase] * shares[phase][path];
                        let truth = (0..phases).map(share).sum::<f64>() * total[0];
                        let interval = Interval::from_replicates(times, &total, bursts);
                        held += u32::from(interval.low <= truth && truth <= interval.high);
                        seen += 1;
                    }
                }
                let held = f64::from(held) / f64::from(seen);
                assert!(held >= 0.85, "{bursts} bursts of {phases} phases: {held}");
            }
        }
    }
}
