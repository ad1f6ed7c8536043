//! When a child made by `fork` is sampled.
//!
//! Opening a source of exact ticks costs more than many children run: a shell's subshell, say. So most children begin
//! with a CPU timer, which costs little but comes only at the kernel's own ticks, milliseconds late. It cannot sample a
//! short child, but it tells in time when a child turns out to be long.
//!
//! # The estimator
//! Let `mean` be the mean CPU time between two ticks that the budget allows. A child is *chosen* with a probability
//! `p`, whatever it will do. In its *early part*, while its CPU time is below [`EarlySampling::end_ns`],
//! - a chosen child has exact ticks, `p · mean` apart in the mean;
//! - any other child has none.
//!
//! After that, every child has exact ticks, `mean` apart in the mean. So the expected rate of ticks is `1 / mean` at
//! each age of each child: `p · 1 / (p · mean)` in its early part, and `1 / mean` later. Bursts need no weights, prefork
//! servers and shells can be in one recording, and neither the length of a child nor what it does at which age affects
//! the rate.
//!
//! All intervals are exponential, so a child that was not chosen knows from the start when its first tick is due: an
//! interval after its early part. Its timer fires that interval after its *start*, and the length of the early part is the time that
//! a timer may be late.

use crate::random::interval;

/// Minimum probability of being chosen.
pub const MIN_PROBABILITY: f64 = 1.0 / 64.0;
/// Kernel ticks by which a CPU timer may be late: it is checked at kernel ticks that find the thread running. A thread
/// that runs in short slices may escape a few of them.
const LATE_TICKS: u64 = 4;

/// How a child, or one of its threads, is sampled in its early part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EarlySampling {
    /// CPU time at which it ends, in nanoseconds.
    pub end_ns: u64,
    /// The probability with which the child was chosen.
    pub probability: f64,
}

impl EarlySampling {
    /// That of a thread whose process always has exact ticks.
    pub const NONE: Self = Self {
        end_ns: 0,
        probability: 1.0,
    };

    /// That of a child. `kernel_tick_ns`: time between two ticks of the kernel.
    pub fn new(kernel_tick_ns: u64, probability: f64) -> Self {
        Self {
            end_ns: LATE_TICKS * kernel_tick_ns.clamp(1_000_000, 10_000_000),
            probability: probability.clamp(f64::MIN_POSITIVE, 1.0),
        }
    }

    /// CPU time from `age_ns` to the next tick of a chosen child, in nanoseconds; `uniform`: a random number in 0..1.
    pub fn interval(&self, age_ns: u64, mean_ns: f64, uniform: f64) -> f64 {
        let left = self.end_ns.saturating_sub(age_ns) as f64;
        let dense = interval(mean_ns * self.probability, uniform);
        if dense <= left {
            dense
        } else {
            // What is beyond the end of the early part is exponential again, and only has to be stretched.
            left + (dense - left) / self.probability
        }
    }

    /// When a child that was not chosen has its first tick, and when its timer has to fire: CPU time since its start.
    pub fn late(&self, mean_ns: f64, uniform: f64) -> Late {
        let timer_ns = interval(mean_ns, uniform).min(1e18) as u64;
        Late {
            timer_ns: timer_ns.max(1),
            due_ns: timer_ns + self.end_ns,
        }
    }
}

/// The first tick of a child that was not chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// CPU time for which the timer is set, in nanoseconds.
    pub timer_ns: u64,
    /// CPU time at which the tick is due, in nanoseconds.
    pub due_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const MEAN: f64 = 25e6;
    const KERNEL_TICK: u64 = 4_000_000;

    /// Ages at which a child of a length has ticks. The timer is late by up to four kernel ticks.
    fn ticks(early: &EarlySampling, length_ns: f64, random: &mut Random, mut tick: impl FnMut(f64)) {
        let is_chosen = random.fraction() < early.probability;
        let mut age = if is_chosen {
            early.interval(0, MEAN, random.fraction())
        } else {
            let late = early.late(MEAN, random.fraction());
            let fires = late.timer_ns as f64 + random.fraction() * early.end_ns as f64;
            if fires > length_ns {
                return;
            }
            assert!(fires <= late.due_ns as f64);
            late.due_ns as f64
        };
        let early = if is_chosen { *early } else { EarlySampling::NONE };
        while age < length_ns {
            tick(age);
            age += early.interval(age as u64, MEAN, random.fraction());
        }
    }

    #[test]
    fn every_age_of_every_child_has_the_same_rate() {
        let mut random = Random::from_seed(1, 0);
        for probability in [MIN_PROBABILITY, 0.2, 1.0] {
            let early = EarlySampling::new(KERNEL_TICK, probability);
            // Subshells, builds, prefork servers, and a mixture.
            for (lengths, children) in [
                (&[0.25e6][..], 4_000_000),
                (&[14e6], 100_000),
                (&[40e6], 60_000),
                (&[5e9], 400),
                (&[0.25e6, 0.25e6, 0.25e6, 300e6], 40_000),
            ] {
                // By tenths of the longest child's life.
                let longest = lengths.iter().fold(0.0, |a: f64, b| a.max(*b));
                let (mut seen, mut lived) = ([0u64; 10], [0.0; 10]);
                for child in 0..children {
                    let length = lengths[child % lengths.len()];
                    ticks(&early, length, &mut random, |age| {
                        seen[(age / longest * 10.0) as usize] += 1
                    });
                    for (part, lived) in lived.iter_mut().enumerate() {
                        let from = longest / 10.0 * part as f64;
                        *lived += (length - from).clamp(0.0, longest / 10.0);
                    }
                }
                for (seen, lived) in seen.iter().zip(lived) {
                    let expected = lived / MEAN;
                    let deviation = (*seen as f64 - expected) / expected.sqrt();
                    // A chosen child may have several ticks: more than Poisson's variance, by their number.
                    let clustering = 1.0 + longest.min(early.end_ns as f64) / (MEAN * probability);
                    assert!(
                        deviation.abs() < 5.0 * clustering.sqrt(),
                        "p = {probability}, {lengths:?}: {seen} ticks, {expected} expected"
                    );
                }
            }
        }
    }

    #[test]
    fn intervals_go_on_where_the_early_part_ends() {
        let early = EarlySampling::new(KERNEL_TICK, 0.25);
        assert_eq!(early.end_ns, 16_000_000);
        // Within the early part, and beyond it.
        let uniform = |ns: f64| 1.0 - (-ns / (MEAN * 0.25)).exp();
        assert!((early.interval(1_000_000, MEAN, uniform(3e6)) - 3e6).abs() < 1.0);
        assert!((early.interval(1_000_000, MEAN, uniform(17e6)) - (15e6 + 4.0 * 2e6)).abs() < 1.0);
        assert!((early.interval(20_000_000, MEAN, uniform(5e6)) - 20e6).abs() < 1.0);
        assert_eq!(EarlySampling::NONE.interval(0, MEAN, 0.0), 0.0);
        let late = early.late(MEAN, 0.0);
        assert_eq!((late.timer_ns, late.due_ns), (1, 16_000_000));
    }

    #[test]
    fn strange_numbers_are_limited() {
        assert_eq!(EarlySampling::new(0, f64::NAN.max(0.0)).end_ns, 4_000_000);
        assert_eq!(EarlySampling::new(u64::MAX, 7.0).probability, 1.0);
        assert_eq!(EarlySampling::new(u64::MAX, 7.0).end_ns, 40_000_000);
        let late = EarlySampling::NONE.late(f64::MAX, 0.999);
        assert!(late.due_ns >= late.timer_ns);
    }
}
