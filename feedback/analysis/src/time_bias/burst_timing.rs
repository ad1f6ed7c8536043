//! Weights from timed bursts: the program's time for a taken branch, phase by phase (feedback/ALGORITHMS.md, Time
//! bias).
//!
//! Ticks are spread over CPU time, so a phase with twice the time for a branch is sampled twice as often as its
//! branches warrant. A burst alone does not show this. For some bursts the sampler measured it: hardware breakpoints
//! timed the program on the next branches. Of branch records, the processor tells the cycles ([`super::measured`]).
//! Bursts with similar branches are assumed to run at the same speed, so every burst gets the mean time of the timed
//! ones, weighted by similarity; a burst unlike all of them gets the mean of all. A burst's weight is the inverse of
//! that time.

use super::measured::Measurement;
use crate::replicates::{REPLICATES, Times, multipliers};
use pleach_collector::vector::Burst;
use xxhash_rust::xxh3::Xxh3;

/// Number of hash values that distinguish branches.
const BUCKETS: usize = 256;
/// Weight of the mean of all timed bursts, in timed bursts of the same content, for times by hardware breakpoints: a
/// single time has a standard deviation of twice its mean; phases differ by a factor of about two.
const PRIOR_OF_TIMINGS: f32 = 6.0;
/// The same for cycles, which the processor counts for each branch: of bursts with the same content, they vary by less
/// than phases differ.
const PRIOR_OF_CYCLES: f32 = 0.5;
/// Maximum number of timed bursts that are used.
const MAX_TIMINGS: usize = 512;

/// A burst's distribution of branches.
type Content = Box<[f32; BUCKETS]>;

fn content(burst: &Burst) -> Content {
    let mut content = Box::new([0.0; BUCKETS]);
    let each = 1.0 / burst.branches.len().max(1) as f32;
    for branch in &burst.branches {
        let mut hasher = Xxh3::new();
        for word in [u64::from(branch.from.module.0), branch.from.offset, branch.to.offset] {
            hasher.update(&word.to_le_bytes());
        }
        content[hasher.digest() as usize % BUCKETS] += each;
    }
    content
}

/// Σ min over all branches: 1 for equal bursts, 0 for bursts that have nothing in common.
fn likeness(a: &Content, b: &Content) -> f32 {
    a.iter().zip(b.iter()).map(|(a, b)| a.min(*b)).sum()
}

/// Weights by burst, of the recording and in each replicate; empty if no burst was timed.
pub(super) fn weights(
    bursts: &[Burst],
    precision: Precision,
    time_of: impl Fn(&Burst) -> Option<Measurement>,
) -> Vec<Times> {
    let timed: Vec<(usize, Measurement)> = bursts
        .iter()
        .enumerate()
        .filter_map(|(number, burst)| Some((number, time_of(burst)?)))
        .filter(|(_, (branches, _))| *branches > 0.0)
        .collect();
    if timed.is_empty() {
        return Vec::new();
    }
    let every = timed.len().div_ceil(MAX_TIMINGS);
    let mut known: Vec<(Content, Known)> = timed
        .iter()
        .step_by(every)
        .map(|&(number, time)| (content(&bursts[number]), Known::new(number, time)))
        .collect();
    let most = limit(&known);
    known
        .iter_mut()
        .for_each(|(_, known)| known.time = known.time.min(most));
    let of_all = mean(known.iter().map(|(_, known)| (1.0, known)), None);
    let prior = match precision {
        Precision::Low => (PRIOR_OF_TIMINGS, &of_all),
        Precision::High => (PRIOR_OF_CYCLES, &of_all),
    };
    let mut own = vec![None; bursts.len()];
    if precision == Precision::High {
        for &(number, measured) in &timed {
            let known = Known::new(number, measured);
            own[number] = Some(Known {
                time: known.time.min(most),
                ..known
            });
        }
    }
    let times: Vec<Times> = bursts
        .iter()
        .zip(&own)
        .map(|(burst, own)| expected(&content(burst), &known, own.as_ref(), prior))
        .collect();
    normalised(bursts, times)
}

/// The 90th percentile of times: beyond it the program was interrupted, or executed other code meanwhile.
fn limit(known: &[(Content, Known)]) -> f32 {
    let mut times: Vec<f32> = known.iter().map(|(_, known)| known.time).collect();
    times.sort_unstable_by(f32::total_cmp);
    times[times.len() * 9 / 10]
}

/// How precise a single measurement is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Precision {
    /// Times by hardware breakpoints: only the mean of several says anything.
    Low,
    /// Cycles of the burst's own branches, which say something of that burst.
    High,
}

impl Known {
    fn new(number: usize, (branches, time): Measurement) -> Self {
        Self {
            time: time / branches,
            multipliers: multipliers(number as u64),
        }
    }
}

/// A measured time.
#[derive(Clone)]
struct Known {
    /// For a taken branch.
    time: f32,
    multipliers: Times,
}

/// Mean time of a taken branch, with a prior mean and its weight.
fn mean<'k>(known: impl Iterator<Item = (f32, &'k Known)>, prior: Option<(f32, &Times)>) -> Times {
    let mut weights = [prior.map_or(0.0, |(weight, _)| weight); REPLICATES + 1];
    let mut sums: Times = std::array::from_fn(|lane| prior.map_or(0.0, |(weight, mean)| weight * mean[lane]));
    for (weight, known) in known {
        for lane in 0..=REPLICATES {
            let weight = weight * known.multipliers[lane];
            weights[lane] += weight;
            sums[lane] += weight * known.time;
        }
    }
    std::array::from_fn(|lane| {
        if weights[lane] > 0.0 {
            sums[lane] / weights[lane]
        } else {
            1.0
        }
    })
}

fn expected(content: &Content, known: &[(Content, Known)], own: Option<&Known>, prior: (f32, &Times)) -> Times {
    // Squared: half of the branches in common gives a weight of a quarter.
    let like = known
        .iter()
        .map(|(other, known)| (likeness(content, other).powi(2), known));
    mean(like.chain(own.map(|own| (1.0, own))), Some(prior))
}

/// Inverse times, 1 on average over all branches.
fn normalised(bursts: &[Burst], times: Vec<Times>) -> Vec<Times> {
    // The clock may have stopped: no burst has a time of less than a hundredth of the largest.
    let fastest = times.iter().map(|t| t[0]).fold(0.0, f32::max) / 100.0;
    let inverse = |t: f32| 1.0 / t.max(fastest).max(f32::MIN_POSITIVE);
    let (mut sum, mut all) = (0.0_f64, 0.0_f64);
    for (burst, times) in bursts.iter().zip(&times) {
        let branches = burst.branches.len() as f64 * burst.count as f64;
        sum += branches * f64::from(inverse(times[0]));
        all += branches;
    }
    let scale = (all / sum.max(f64::MIN_POSITIVE)) as f32;
    let weight = |times: Times| times.map(|t| inverse(t) * scale);
    times.into_iter().map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_collector::vector::{Branch, CodeAddress, EndReason, Engine, ModuleId};

    fn burst(offset: u64) -> Burst {
        let at = |offset| CodeAddress {
            module: ModuleId(0),
            offset,
        };
        Burst {
            process: 0,
            thread: 1,
            time_ns: 0,
            engine: Engine::RunAhead,
            start: None,
            branches: (0..50)
                .map(|i| Branch {
                    from: at(offset + i % 10),
                    to: at(offset),
                })
                .collect(),
            end: None,
            end_reason: EndReason::Budget,
            instructions: 0,
            count: 1,
            proved: true,
            system_call: None,
            hardware: None,
            values: Vec::new(),
            timing: None,
        }
    }

    #[test]
    fn slow_phases_weigh_less_and_bursts_of_a_phase_the_same() {
        // Two phases, every second burst of each timed: 2 and 20 ns for a branch.
        let bursts: Vec<Burst> = (0..80).map(|i| burst(if i < 40 { 0x1000 } else { 0x9000 })).collect();
        let timed = |burst: &Burst| {
            let number = bursts.iter().position(|b| std::ptr::eq(b, burst)).unwrap();
            let slow = burst.branches[0].from.offset == 0x9000;
            number
                .is_multiple_of(2)
                .then_some((1000.0, if slow { 20_000.0 } else { 2_000.0 }))
        };
        let weights = weights(&bursts, Precision::Low, timed);
        assert!(weights[..40].iter().all(|w| (w[0] - weights[0][0]).abs() < 1e-4));
        let ratio = weights[0][0] / weights[79][0];
        // Less than ten: what all have in common counts as six measurements.
        assert!((3.0..10.0).contains(&ratio), "{ratio}");
        let mean = weights.iter().map(|w| w[0]).sum::<f32>() / 80.0;
        assert!((mean - 1.0).abs() < 1e-3, "{mean}");
    }

    #[test]
    fn without_clocks_there_are_no_weights() {
        assert!(weights(&[burst(0)], Precision::Low, |_| None).is_empty());
    }

    #[test]
    fn a_clock_that_stood_still_does_not_count_for_everything() {
        let bursts: Vec<Burst> = (0..20).map(|i| burst(if i == 0 { 0x9000 } else { 0x1000 })).collect();
        let weights = weights(&bursts, Precision::Low, |burst| {
            Some((
                1000.0,
                if burst.branches[0].from.offset == 0x9000 {
                    0.0
                } else {
                    5000.0
                },
            ))
        });
        assert!(
            weights[0][0] < 2.0 * weights[1][0],
            "{} {}",
            weights[0][0],
            weights[1][0]
        );
    }
}
