//! Holds the budget: from what sampling has cost so far to the next period.
//!
//! Two things are set. The *period* makes samples as frequent as the budget allows; it counts for threads and processes
//! that start from then on, and for one that runs already (mostly the first): the kernel changes no others. The *gate*
//! stops sampling of all threads at once while more was spent than the budget allows; it holds the budget for those
//! whose period is too short. Nothing is asked of the machine here.

use crate::stream::Generator;
use std::time::Duration;

/// What sampling shall cost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    /// This much CPU time, as a fraction of the program's.
    Overhead(f64),
    /// A sample in so much CPU time of the program, whatever that costs.
    Distance(Duration),
}

/// Over how much CPU time of the program debts are worked off.
const HORIZON_NS: f64 = 0.4e9;
/// The gate closes when the debt is as large as the budget for this much CPU time of the program …
const SLACK_NS: f64 = 0.2e9;
/// … and at least as large as this many samples' cost.
const SLACK_SAMPLES: f64 = 16.0;
/// Sampling never gets less than this part of the budget, however much reading costs.
const LEAST_SHARE: f64 = 0.05;
/// Part of the budget that looking at the state of things may take.
const LOOKING_SHARE: f64 = 0.2;
/// The period changes by no more at once.
const STEP: f64 = 4.0;
/// Samples by which the rate of events is judged.
const ENOUGH: u64 = 4;
/// What a look costs, before it is known.
const LOOK_NS: f64 = 30_000.0;
/// Shortest time between two looks …
const SOONEST: Duration = Duration::from_millis(10);
/// … and where samples come so fast that the gate has to close soon.
const RUSHED: Duration = Duration::from_millis(1);
const LATEST: Duration = Duration::from_secs(1);

/// Totals since the program began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// CPU time of the program, sampling in the kernel included, in nanoseconds.
    pub cpu_ns: u64,
    /// CPU time of the reader, in nanoseconds.
    pub reader_ns: u64,
    /// Part of it that depends on how much there was to read.
    pub reading_ns: u64,
    /// Samples taken, lost ones included.
    pub samples: u64,
    /// Events that they stand for.
    pub events: u64,
}

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// Set this period.
    pub period: Option<u64>,
    /// Let samples be taken.
    pub open: bool,
    /// Look again after so much time.
    pub next: Duration,
}

/// The state between two looks.
#[derive(Clone, Debug)]
pub struct Controller {
    goal: Goal,
    sample_ns: f64,
    least_period: f64,
    /// Mean of the random periods.
    period: f64,
    last: Seen,
    /// At the last change of the period.
    changed: Seen,
    /// Events in a nanosecond of the program, while the gate was open.
    rate: Option<f64>,
    /// Debt at the first look: what starting cost.
    start_debt: Option<f64>,
    /// What the reader takes for a look, and for each sample.
    look_ns: f64,
    read_ns: f64,
    next: Duration,
    open: bool,
    random: Generator,
}

impl Controller {
    /// `sample_ns` is what the kernel takes for a sample; `period` is in force.
    pub fn new(goal: Goal, sample_ns: f64, period: u64, least_period: u64, seed: u64) -> Self {
        Self {
            goal,
            sample_ns: sample_ns.max(1.0),
            least_period: least_period as f64,
            period: period as f64,
            last: Seen::default(),
            changed: Seen::default(),
            rate: None,
            start_debt: None,
            look_ns: LOOK_NS,
            read_ns: 0.0,
            next: SOONEST,
            open: true,
            random: Generator::new(seed),
        }
    }

    /// Samples in a second of CPU time that a budget pays for, at a cost of each in nanoseconds.
    pub fn samples_per_second(goal: Goal, sample_ns: f64) -> f64 {
        match goal {
            Goal::Overhead(overhead) => overhead * 1e9 / sample_ns.max(1.0),
            Goal::Distance(distance) => 1e9 / distance.as_nanos().max(1) as f64,
        }
    }

    /// What sampling has cost, in nanoseconds: what the reader used, and what the kernel took for samples.
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

    /// Looks at the totals.
    pub fn look(&mut self, seen: Seen) -> Decision {
        let program = self.program_ns(&seen) - self.program_ns(&self.last);
        let reader = seen.reader_ns.saturating_sub(self.last.reader_ns) as f64;
        let reading = seen.reading_ns.saturating_sub(self.last.reading_ns) as f64;
        if program <= 0.0 {
            // It sleeps: looking costs, and finds nothing.
            self.next = (self.next * 2).min(LATEST);
            self.last.reader_ns = seen.reader_ns;
            self.last.reading_ns = seen.reading_ns;
            return self.decide(None);
        }
        let (samples, events) = (seen.samples - self.last.samples, seen.events - self.last.events);
        let was_open = self.open;
        self.last = seen;
        if was_open && samples >= ENOUGH {
            let now = events as f64 / program;
            self.rate = Some(self.rate.map_or(now, |rate| (rate + now) / 2.0));
        }
        self.judge_reader(reader - reading, reading, samples as f64);
        let wanted = match self.goal {
            Goal::Overhead(overhead) => {
                // In a nanosecond of time: the program's CPU time, and what samples cost while they are taken.
                let wall = (self.next.as_nanos() as f64).max(1.0);
                let pace = program / wall;
                let spending = samples as f64 * (self.sample_ns + self.read_ns) / wall;
                self.within(overhead, &seen, pace, spending)
            }
            Goal::Distance(_) => Self::samples_per_second(self.goal, self.sample_ns) / 1e9,
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

    /// Samples in a nanosecond of the program that the budget has room for; sets the gate and the time of the next look.
    fn within(&mut self, overhead: f64, seen: &Seen, pace: f64, spending: f64) -> f64 {
        let program = self.program_ns(seen);
        let debt = self.spent_ns(seen) - overhead * program;
        let start_debt = *self.start_debt.get_or_insert(debt.max(0.0));
        // What starting cost is paid off with half of the budget.
        let allowed = (start_debt - overhead * program / 2.0).max(0.0);
        let slack = (overhead * SLACK_NS).max(SLACK_SAMPLES * self.sample_ns);
        self.open = debt <= if self.open { allowed + slack } else { allowed };

        let nanoseconds = |ns: f64| Duration::from_nanos(ns.clamp(0.0, 1e12) as u64);
        let cheap = nanoseconds(self.look_ns / (overhead * LOOKING_SHARE * pace)).clamp(SOONEST, LATEST);
        self.next = if self.open {
            let until_closed = (allowed + slack - debt) / (spending - overhead * pace).max(1e-9);
            cheap.min(nanoseconds(until_closed).max(RUSHED))
        } else {
            nanoseconds((debt - allowed) / (overhead * pace)).clamp(SOONEST, LATEST)
        };
        // Looking goes on at this pace; what is left is for samples.
        let looking = self.look_ns / (cheap.as_nanos() as f64 * pace);
        let left = overhead - looking.min(overhead) - debt / HORIZON_NS;
        left.clamp(overhead * LEAST_SHARE, overhead * 2.0) / (self.sample_ns + self.read_ns)
    }

    /// The next mean period for a rate of samples; `None` if it is better to wait.
    fn aim(&mut self, wanted: f64, seen: &Seen, was_open: bool) -> Option<f64> {
        let samples = seen.samples - self.changed.samples;
        let program = self.program_ns(seen) - self.program_ns(&self.changed);
        let aim = match self.rate {
            Some(rate) if samples >= ENOUGH => rate / wanted,
            // Samples are rarer than wanted, or the gate was closed. (Setting a period begins it anew.)
            _ if was_open && program * wanted > 8.0 * ENOUGH as f64 => self.period / 2.0,
            _ => return None,
        };
        let aim = aim.clamp(self.period / STEP, self.period * STEP).max(self.least_period);
        self.changed = *seen;
        Some(aim)
    }

    fn decide(&mut self, period: Option<f64>) -> Decision {
        let period = period.map(|mean| {
            self.period = mean;
            // Three quarters to five quarters of the mean, and odd: programs beat in powers of two.
            let spread = (mean / 2.0) as u64 + 1;
            ((mean * 0.75) as u64 + self.random.below(spread)).max(self.least_period as u64) | 1
        });
        Decision {
            period,
            open: self.open,
            next: self.next,
        }
    }
}
