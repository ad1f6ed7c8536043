//! Samples events of the kernel (page faults, context switches) beside the sampler in the program.
//!
//! The kernel writes the samples into buffers of the recorder, one for each processor. Nothing of it is in the program:
//! no signal, no descriptor, no memory. Threads and children inherit the events, and `execve` keeps them. A system call
//! that waits is not interrupted, which a signal at a context switch would do.
//!
//! [`cost`] measures what an event and a sample cost on this machine, [`open`] opens the events on the stopped command,
//! [`follow`] reads the buffers while it runs, [`gate`] decides when events are on, and [`absorb`] adds the samples to
//! the vectors.

mod absorb;
mod cost;
mod follow;
mod gate;
mod open;

use super::error::{RecordError, io};
use super::lbr::attr::Rate;
use super::lbr::facts::Facts;
use super::lbr::spawn_stopped::StoppedChild;
use crate::events::KernelEvent;
use crate::signals::Forwarding;
use crate::stats::Stats;
use crate::sys::monotonic_ns;
use crate::vector::VectorSet;
use follow::KernelEventReader;
use gate::{Costs, Gate};
use open::Opened;
use pleach_wire::random::Random;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// The part of the budget that samples of kernel events may take.
pub(crate) const BUDGET_SHARE: f64 = 0.2;

/// The kernel events of a recording.
#[derive(Debug)]
pub(crate) struct KernelEvents {
    events: Vec<KernelEvent>,
    facts: Facts,
    costs: Costs,
    overhead: f64,
    /// The samples of all runs, with modules and events of their own.
    samples: VectorSet,
    taken: u64,
    /// CPU time of the kernel, in nanoseconds.
    spent_ns: f64,
    lost: u64,
    throttled: u64,
    /// Notes for the user on events that the kernel refuses or grants in part, by name.
    notes: BTreeMap<&'static str, String>,
}

impl KernelEvents {
    /// Measures the cost of a sample. `overhead`: CPU time of the whole recording, as a fraction of the program's.
    pub(crate) fn new(events: &[KernelEvent], overhead: f64) -> Self {
        Self {
            events: events.to_vec(),
            facts: Facts::read(),
            costs: cost::measure(),
            overhead,
            samples: VectorSet::default(),
            taken: 0,
            spent_ns: 0.0,
            lost: 0,
            throttled: 0,
            notes: BTreeMap::new(),
        }
    }

    /// How often an event is sampled.
    fn rate(&self, event: &KernelEvent) -> Rate {
        match event.period {
            Some(period) => Rate::Period(period),
            None => Rate::Frequency(frequency(
                self.overhead * BUDGET_SHARE,
                self.costs.sample_ns,
                self.events.len(),
                max_frequency(),
            )),
        }
    }

    /// Runs the command to its end.
    ///
    /// # Errors
    /// The command cannot be run. Events that the kernel refuses are no error: the user gets a note.
    pub(crate) fn run(&mut self, command: Command, program: &Path) -> Result<ExitStatus, RecordError> {
        let cannot_run = || io(format!("cannot run {}", program.display()));
        let mut forwarding = Forwarding::begin();
        let stopped = StoppedChild::spawn(command).map_err(cannot_run())?;
        let pid = stopped.pid();
        let wanted: Vec<_> = self.events.iter().map(|event| (event.kind, self.rate(event))).collect();
        // Who names a period pays for it.
        let is_bounded = self.events.iter().any(|event| event.period.is_none());
        let budget = if is_bounded {
            self.overhead * BUDGET_SHARE
        } else {
            f64::INFINITY
        };
        let opened = Opened::new(&wanted, &self.facts, pid, &mut self.notes);
        let mut child = stopped.release().map_err(cannot_run())?;
        forwarding.to(pid);
        let status = match &opened {
            None => child.wait(),
            Some(opened) => {
                let now = monotonic_ns();
                let follower = KernelEventReader {
                    opened,
                    samples: &mut self.samples,
                    gate: Gate::new(budget, self.costs, Random::from_seed(now, 0), now),
                };
                let (status, seen) = follower.until(pid, || child.wait());
                self.spent_ns += seen.cost_ns;
                self.taken += seen.samples;
                self.lost += seen.lost;
                self.throttled += seen.throttled;
                status
            }
        };
        status.map_err(cannot_run())
    }

    /// Adds the samples of all runs to the vectors, and their cost to the figures. Returns notes for the user, a line
    /// each.
    pub(crate) fn finish(self, vectors: &mut VectorSet, stats: &mut Stats) -> Vec<String> {
        let own = absorb::absorb(vectors, self.samples);
        account(vectors, stats, self.spent_ns * 1e-9);
        stats.event_samples = self.taken;
        let mut notes: Vec<String> = self.notes.into_values().collect();
        if own > 0 {
            notes.push(format!("left out: {own} kernel events in the sampler's own code"));
        }
        if self.lost > 0 {
            notes.push(format!(
                "the kernel lost {} samples of kernel events: its buffers were full",
                self.lost
            ));
        }
        if self.throttled > 0 {
            notes.push(format!(
                "the kernel stopped sampling of events {} times for a moment: their numbers are too low; ask for fewer samples, such as \
                 page-faults:100",
                self.throttled
            ));
        }
        notes
    }
}

/// Samples a second that take at most `budget` of a thread's time, shared by `events` events.
fn frequency(budget: f64, cost_ns: f64, events: usize, max: u64) -> u64 {
    const MIN: u64 = 10;
    /// So that a buffer holds the samples of many threads, until it is read.
    const MAX: u64 = 10_000;
    let most = budget * 1e9 / cost_ns / events.max(1) as f64;
    (most as u64).clamp(MIN, max.clamp(MIN, MAX))
}

/// The kernel's limit.
fn max_frequency() -> u64 {
    const DEFAULT: u64 = 10_000;
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(DEFAULT)
}

/// The kernel takes samples in the program's time: it is the recording's cost, not the program's.
fn account(vectors: &mut VectorSet, stats: &mut Stats, seconds: f64) {
    if let Some(first) = vectors.processes.first_mut() {
        let seconds = seconds.min(first.program_cpu_seconds);
        first.own_cpu_seconds += seconds;
        first.program_cpu_seconds -= seconds;
        stats.own_cpu_seconds += seconds;
        stats.program_cpu_seconds -= seconds;
        stats.overhead = stats.own_cpu_seconds / stats.program_cpu_seconds.max(f64::MIN_POSITIVE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_take_a_part_of_the_budget() {
        assert_eq!(frequency(0.01 * BUDGET_SHARE, 1000.0, 1, 100_000), 2000);
        assert_eq!(frequency(0.01 * BUDGET_SHARE, 1000.0, 4, 100_000), 500);
        assert_eq!(frequency(0.000_01, 5000.0, 1, 100_000), 10);
        assert_eq!(frequency(3.0, 1000.0, 1, 7000), 7000);
        assert_eq!(frequency(3.0, 1000.0, 1, 100_000), 10_000);
    }
}
