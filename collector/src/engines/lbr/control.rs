//! The controller of the overhead budget: from the cost of sampling so far to the next period.
//!
//! It has two outputs. The *period* makes samples as frequent as the budget allows. The kernel applies a new period to
//! threads and processes that start later, and to one running thread (usually the first). The *gate* stops sampling of
//! all threads while the cost exceeds the budget; it enforces the budget for threads whose period is too short. This
//! module makes no system calls.

use crate::stream::Generator;
use std::time::Duration;

/// The target of the controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    /// CPU time of sampling, as a fraction of the program's.
    Overhead(f64),
    /// Mean CPU time of the program between two samples, at any cost.
    Period(Duration),
}

/// CPU time of the program over which a debt is repaid, in nanoseconds.
const HORIZON_NS: f64 = 0.4e9;
/// The gate closes when the debt reaches the budget for this much CPU time of the program …
const SLACK_NS: f64 = 0.2e9;
/// … and the cost of this many samples.
const SLACK_SAMPLES: f64 = 16.0;
/// Minimum share of the budget for taking samples, whatever reading costs.
const MIN_SHARE: f64 = 0.05;
/// Maximum share of the budget for polls.
const POLLING_SHARE: f64 = 0.2;
/// Maximum factor by which the period changes in one poll.
const MAX_STEP: f64 = 4.0;
/// Minimum of samples for an estimate of the rate of events.
const MIN_SAMPLES: u64 = 4;
/// Assumed cost of a poll, until it is measured.
const POLL_NS: f64 = 30_000.0;
/// Minimum time between two polls …
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// … and when the gate has to close soon.
const MIN_INTERVAL_NEAR_LIMIT: Duration = Duration::from_millis(1);
/// Maximum time between two polls.
const MAX_INTERVAL: Duration = Duration::from_secs(1);

/// Totals since the program began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// CPU time of the program, sampling in the kernel included, in nanoseconds.
    pub cpu_ns: u64,
    /// CPU time of the reader, in nanoseconds.
    pub reader_ns: u64,
    /// The part of it that is proportional to the samples read.
    pub reading_ns: u64,
    /// Samples taken, lost ones included.
    pub samples: u64,
    /// Events between these samples: the sum of their periods.
    pub events: u64,
}

/// The outputs of the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The new period, if it changes.
    pub period: Option<u64>,
    /// Whether the gate is open, so that samples are taken.
    pub open: bool,
    /// Time until the next poll.
    pub next: Duration,
}

/// The state between two polls.
#[derive(Clone, Debug)]
pub struct Controller {
    goal: Goal,
    sample_ns: f64,
    min_period: f64,
    /// Mean of the random periods.
    period: f64,
    last: Seen,
    /// At the last change of the period.
    changed: Seen,
    /// Events in a nanosecond of the program, while the gate was open.
    rate: Option<f64>,
    /// Debt at the first poll: the cost of starting.
    start_debt: Option<f64>,
    /// CPU time of the reader for a poll, and for each sample.
    look_ns: f64,
    read_ns: f64,
    next: Duration,
    open: bool,
    random: Generator,
}

impl Controller {
    /// `sample_ns`: CPU time of the kernel for a sample; `period`: the current period.
    pub fn new(goal: Goal, sample_ns: f64, period: u64, min_period: u64, seed: u64) -> Self {
        Self {
            goal,
            sample_ns: sample_ns.max(1.0),
            min_period: min_period as f64,
            period: period as f64,
            last: Seen::default(),
            changed: Seen::default(),
            rate: None,
            start_debt: None,
            look_ns: POLL_NS,
            read_ns: 0.0,
            next: MIN_INTERVAL,
            open: true,
            random: Generator::new(seed),
        }
    }

    /// Samples per second of CPU time that a budget allows, given the cost of a sample in nanoseconds.
    pub fn samples_per_second(goal: Goal, sample_ns: f64) -> f64 {
        match goal {
            Goal::Overhead(overhead) => overhead * 1e9 / sample_ns.max(1.0),
            Goal::Period(distance) => 1e9 / distance.as_nanos().max(1) as f64,
        }
    }

    /// The cost of sampling so far, in nanoseconds of CPU time of the reader and the kernel.
    pub fn spent_ns(&self, seen: &Seen) -> f64 {
        seen.reader_ns as f64 + self.kernel_ns(seen)
    }

    /// CPU time of the program alone, in nanoseconds.
    pub fn program_ns(&self, seen: &Seen) -> f64 {
        (seen.cpu_ns as f64 - self.kernel_ns(seen)).max(0.0)
    }

    fn kernel_ns(&self, seen: &Seen) -> f64 {
        seen.samples as f64 * self.sample_ns
    }

    /// Polls: decides from the totals so far.
    pub fn look(&mut self, seen: Seen) -> Decision {
        let program = self.program_ns(&seen) - self.program_ns(&self.last);
        let reader = seen.reader_ns.saturating_sub(self.last.reader_ns) as f64;
        let reading = seen.reading_ns.saturating_sub(self.last.reading_ns) as f64;
        if program <= 0.0 {
            // The program sleeps: polls would only cost.
            self.next = (self.next * 2).min(MAX_INTERVAL);
            self.last.reader_ns = seen.reader_ns;
            self.last.reading_ns = seen.reading_ns;
            return self.decide(None);
        }
        let (samples, events) = (seen.samples - self.last.samples, seen.events - self.last.events);
        let was_open = self.open;
        self.last = seen;
        if was_open && samples >= MIN_SAMPLES {
            let now = events as f64 / program;
            self.rate = Some(self.rate.map_or(now, |rate| (rate + now) / 2.0));
        }
        self.judge_reader(reader - reading, reading, samples as f64);
        let wanted = match self.goal {
            Goal::Overhead(overhead) => {
                // Per nanosecond of wall time: the program's CPU time, and the cost of samples while the gate is open.
                let wall = (self.next.as_nanos() as f64).max(1.0);
                let pace = program / wall;
                let spending = samples as f64 * (self.sample_ns + self.read_ns) / wall;
                self.within(overhead, &seen, pace, spending)
            }
            Goal::Period(_) => Self::samples_per_second(self.goal, self.sample_ns) / 1e9,
        };
        let period = self.aim(wanted, &seen, was_open);
        self.decide(period)
    }

    fn judge_reader(&mut self, looking: f64, reading: f64, samples: f64) {
        let mean = |old: f64, new: f64| (3.0 * old + new) / 4.0;
        self.look_ns = mean(self.look_ns, looking);
        if samples > 0.0 {
            self.read_ns = mean(self.read_ns, reading / samples);
        }
    }

    /// Samples per nanosecond of the program that the budget allows; sets the gate and the time of the next poll.
    fn within(&mut self, overhead: f64, seen: &Seen, pace: f64, spending: f64) -> f64 {
        let program = self.program_ns(seen);
        let debt = self.spent_ns(seen) - overhead * program;
        let start_debt = *self.start_debt.get_or_insert(debt.max(0.0));
        // Half of the budget repays the cost of starting.
        let allowed = (start_debt - overhead * program / 2.0).max(0.0);
        let slack = (overhead * SLACK_NS).max(SLACK_SAMPLES * self.sample_ns);
        self.open = debt <= if self.open { allowed + slack } else { allowed };

        let nanoseconds = |ns: f64| Duration::from_nanos(ns.clamp(0.0, 1e12) as u64);
        let cheap = nanoseconds(self.look_ns / (overhead * POLLING_SHARE * pace)).clamp(MIN_INTERVAL, MAX_INTERVAL);
        self.next = if self.open {
            let until_closed = (allowed + slack - debt) / (spending - overhead * pace).max(1e-9);
            cheap.min(nanoseconds(until_closed).max(MIN_INTERVAL_NEAR_LIMIT))
        } else {
            nanoseconds((debt - allowed) / (overhead * pace)).clamp(MIN_INTERVAL, MAX_INTERVAL)
        };
        // Polls continue at this rate; the rest of the budget is for samples.
        let looking = self.look_ns / (cheap.as_nanos() as f64 * pace);
        let left = overhead - looking.min(overhead) - debt / HORIZON_NS;
        left.clamp(overhead * MIN_SHARE, overhead * 2.0) / (self.sample_ns + self.read_ns)
    }

    /// The next mean period for a rate of samples; `None` to keep the current one.
    fn aim(&mut self, wanted: f64, seen: &Seen, was_open: bool) -> Option<f64> {
        let samples = seen.samples - self.changed.samples;
        let program = self.program_ns(seen) - self.program_ns(&self.changed);
        let aim = match self.rate {
            Some(rate) if samples >= MIN_SAMPLES => rate / wanted,
            // Samples are rarer than wanted, or the gate was closed. (Setting a period restarts it.)
            _ if was_open && program * wanted > 8.0 * MIN_SAMPLES as f64 => self.period / 2.0,
            _ => return None,
        };
        let aim = aim
            .clamp(self.period / MAX_STEP, self.period * MAX_STEP)
            .max(self.min_period);
        self.changed = *seen;
        Some(aim)
    }

    fn decide(&mut self, period: Option<f64>) -> Decision {
        let period = period.map(|mean| {
            self.period = mean;
            // Random between 3/4 and 5/4 of the mean, and odd, to avoid resonance with loops, whose lengths are often
            // powers of two.
            let spread = (mean / 2.0) as u64 + 1;
            ((mean * 0.75) as u64 + self.random.below(spread)).max(self.min_period as u64) | 1
        });
        Decision {
            period,
            open: self.open,
            next: self.next,
        }
    }
}
