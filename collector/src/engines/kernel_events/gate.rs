//! When events are on: an event costs time even where it is not sampled, and a program may have a million a second.
//!
//! Time is cut into slices, and events are on in each with a probability that follows what the slices before cost. A
//! sample then stands for as many events as its period says, divided by the probability of its slice: since that
//! depends on earlier slices only, sums are unbiased (Horvitz and Thompson 1952).

use pleach_wire::random::Random;

/// Smallest probability: fewer slices would say too little.
const MIN_PROBABILITY: f64 = 0.02;
/// Weight of the latest slice in the expected cost.
const NEWEST: f64 = 0.5;
/// CPU time from which on a slice tells the cost, in nanoseconds.
const MIN_CPU_NS: u64 = 1_000_000;

/// Costs in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Costs {
    /// Of an event that is on.
    pub event_ns: f64,
    /// Of a sample, beyond that.
    pub sample_ns: f64,
}

/// What was seen since the beginning of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Seen {
    /// CPU time of the program in nanoseconds.
    pub cpu_ns: u64,
    pub samples: u64,
    pub events: u64,
}

/// A slice of time in which events were on.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Slice {
    from_ns: u64,
    to_ns: u64,
    probability: f64,
}

/// Decides slice by slice.
#[derive(Debug)]
pub(super) struct Gate {
    /// CPU time that events may take, as a fraction of the program's.
    budget: f64,
    costs: Costs,
    random: Random,
    slices: Vec<Slice>,
    is_open: bool,
    from_ns: u64,
    probability: f64,
    before: Seen,
    /// Expected cost while events are on, as a fraction of CPU time.
    expected: Option<f64>,
}

impl Gate {
    /// Events are on in the first slice, which begins at `now_ns`.
    pub(super) fn new(budget: f64, costs: Costs, random: Random, now_ns: u64) -> Self {
        Self {
            budget,
            costs,
            random,
            slices: Vec::new(),
            is_open: true,
            from_ns: now_ns,
            probability: 1.0,
            before: Seen::default(),
            expected: None,
        }
    }

    /// Ends a slice at `now_ns`; returns whether events are on in the next one.
    pub(super) fn next(&mut self, now_ns: u64, seen: Seen) -> bool {
        self.end(now_ns);
        let cpu_ns = seen.cpu_ns.saturating_sub(self.before.cpu_ns);
        if self.is_open && cpu_ns >= MIN_CPU_NS {
            let cost = self.cost(seen) - self.cost(self.before);
            let latest = cost / cpu_ns as f64;
            self.expected = Some(
                self.expected
                    .map_or(latest, |before| before + NEWEST * (latest - before)),
            );
        }
        if !self.is_open || cpu_ns >= MIN_CPU_NS {
            self.before = seen;
        }
        self.probability = match self.expected {
            Some(expected) if expected > self.budget => (self.budget / expected).max(MIN_PROBABILITY),
            _ => 1.0,
        };
        self.from_ns = now_ns;
        self.is_open = self.probability >= 1.0 || self.random.fraction() < self.probability;
        self.is_open
    }

    /// Ends the last slice.
    pub(super) fn end(&mut self, now_ns: u64) {
        if self.is_open {
            self.slices.push(Slice {
                from_ns: self.from_ns,
                to_ns: now_ns,
                probability: self.probability,
            });
        }
    }

    /// The cost of what was seen, in nanoseconds.
    pub(super) fn cost(&self, seen: Seen) -> f64 {
        seen.events as f64 * self.costs.event_ns + seen.samples as f64 * self.costs.sample_ns
    }

    /// The number of events that a sample stands for. `None`: it came while events should have been off.
    pub(super) fn weight(&self, time_ns: u64, period: f64) -> Option<u64> {
        let after = self.slices.partition_point(|slice| slice.from_ns <= time_ns);
        let slice = self.slices[..after].last().filter(|slice| time_ns <= slice.to_ns)?;
        Some((period / slice.probability).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs {
        event_ns: 100.0,
        sample_ns: 900.0,
    };
    const SLICE: u64 = 10_000_000;

    /// Runs a program with so many events in each slice: the sum of the weights, and the cost.
    fn run(events: impl Fn(u64) -> u64, slices: u64, seed: u64) -> (f64, f64) {
        let mut gate = Gate::new(0.002, COSTS, Random::from_seed(seed, 0), 0);
        let (mut seen, mut times, mut open) = (Seen::default(), Vec::new(), true);
        for slice in 0..slices {
            seen.cpu_ns += SLICE;
            if open {
                // One in a hundred is sampled.
                seen.events += events(slice);
                seen.samples += events(slice) / 100;
                times.extend((0..events(slice) / 100).map(|at| slice * SLICE + 1 + at));
            }
            open = gate.next((slice + 1) * SLICE, seen);
        }
        let weights = times.iter().filter_map(|time| gate.weight(*time, 100.0));
        (weights.sum::<u64>() as f64, gate.cost(seen) / seen.cpu_ns as f64)
    }

    #[test]
    fn storms_stay_within_the_budget_and_sums_are_unbiased() {
        // 500 000 a second: 5.5 % if always on.
        let mut sum = 0.0;
        for seed in 1..=40 {
            let (number, cost) = run(|_| 5000, 1000, seed);
            assert!(cost < 0.004, "{cost}");
            sum += number / 40.0;
        }
        assert!((4_600_000.0..5_400_000.0).contains(&sum), "{sum}");
        // Storms that come and go.
        let mut sum = 0.0;
        for seed in 1..=40 {
            sum += run(|slice| if slice % 100 < 50 { 5000 } else { 100 }, 1000, seed).0 / 40.0;
        }
        assert!((2_300_000.0..2_800_000.0).contains(&sum), "{sum}");
    }

    #[test]
    fn rare_events_are_always_on() {
        let (number, _) = run(|_| 100, 300, 1);
        assert_eq!(number, 30_000.0);
    }

    #[test]
    fn samples_between_slices_do_not_count() {
        let mut gate = Gate::new(0.01, COSTS, Random::from_seed(1, 0), 100);
        assert_eq!(gate.weight(200, 3.0), None, "the slice has not ended");
        gate.end(300);
        assert_eq!(
            [99, 100, 300, 301].map(|time| gate.weight(time, 3.0)),
            [None, Some(3), Some(3), None]
        );
    }
}
