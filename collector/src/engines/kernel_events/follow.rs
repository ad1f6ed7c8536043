//! Reads the buffers of kernel events while the command runs, and turns the events on and off.

use super::gate::{Gate, Seen};
use super::open::Opened;
use crate::engines::lbr::record_reader::{Arrived, RecordReader};
use crate::sys::monotonic_ns;
use crate::vector::{EventSample, VectorSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Length of a slice: at the highest rates, a buffer fills in some 30 ms.
const SLICE: Duration = Duration::from_millis(10);

/// Totals of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Followed {
    pub(super) samples: u64,
    pub(super) lost: u64,
    pub(super) throttled: u64,
    /// CPU time that the kernel took for the events, in nanoseconds.
    pub(super) cost_ns: f64,
}

/// Adds the samples of a run to a set.
pub(super) struct KernelEventReader<'a> {
    pub(super) opened: &'a Opened,
    pub(super) samples: &'a mut VectorSet,
    pub(super) gate: Gate,
}

impl KernelEventReader<'_> {
    /// Reads while `wait` waits for the end of the command, the process `pid`.
    pub(super) fn until<T>(self, pid: u32, wait: impl FnOnce() -> T) -> (T, Followed) {
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| self.follow(pid, &ended));
            let result = wait();
            ended.store(true, Ordering::Release);
            reader.thread().unpark();
            let followed = reader.join();
            (
                result,
                followed.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            )
        })
    }

    fn follow(self, pid: u32, ended: &AtomicBool) -> Followed {
        let Self {
            opened,
            samples,
            mut gate,
        } = self;
        let first = samples.samples.len();
        let mut reader = RecordReader::of_kernel_events(samples, opened.live());
        let seen = |arrived: Arrived| Seen {
            cpu_ns: opened.cpu_ns(),
            samples: arrived.samples,
            events: arrived.events,
        };
        let mut is_open = true;
        while !ended.load(Ordering::Acquire) {
            std::thread::park_timeout(SLICE);
            reader.round(opened.rings());
            let opens = gate.next(monotonic_ns(), seen(reader.arrived()));
            if opens != is_open {
                is_open = opens;
                opened.sample(is_open);
            }
        }
        // Descendants that are still running continue without events.
        opened.stop();
        gate.end(monotonic_ns());
        reader.round(opened.rings());
        let arrived = reader.arrived();
        let cost_ns = gate.cost(seen(arrived));
        let report = reader.finish(pid, 0.0, 0.0);
        let found = samples.samples.split_off(first);
        let counts: Vec<u64> = samples.events.iter().map(|name| opened.count(name)).collect();
        samples.samples.extend(weighted(found, &counts, &gate));
        Followed {
            samples: arrived.samples,
            lost: arrived.lost,
            throttled: report.throttled,
            cost_ns,
        }
    }
}

/// Samples with the numbers of events that they stand for. `counts`: of each event, the number while it was on; what no
/// sample tells of (lost ones, and events after the last sample) is spread over the samples.
fn weighted(samples: Vec<EventSample>, counts: &[u64], gate: &Gate) -> Vec<EventSample> {
    let mut told = vec![0u64; counts.len()];
    for sample in &samples {
        if let Some(sum) = told.get_mut(sample.event.0 as usize) {
            *sum = sum.saturating_add(sample.period);
        }
    }
    let factor = |event: usize| match (counts.get(event), told.get(event)) {
        (Some(&count), Some(&told)) if told > 0 => (count as f64 / told as f64).max(1.0),
        _ => 1.0,
    };
    let factors: Vec<f64> = (0..counts.len()).map(factor).collect();
    let weight = |sample: EventSample| {
        let factor = factors.get(sample.event.0 as usize).copied().unwrap_or(1.0);
        let period = gate.weight(sample.time_ns, sample.period as f64 * factor)?;
        Some(EventSample { period, ..sample })
    };
    samples.into_iter().filter_map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::super::gate::Costs;
    use super::*;
    use crate::vector::{CodeAddress, EventId, ModuleId};
    use pleach_wire::random::Random;

    #[test]
    fn what_was_lost_is_spread_over_the_samples() {
        let sample = |event, time_ns, period| EventSample {
            event: EventId(event),
            thread: 1,
            time_ns,
            at: CodeAddress {
                module: ModuleId(0),
                offset: 0,
            },
            period,
        };
        let costs = Costs {
            event_ns: 1.0,
            sample_ns: 1.0,
        };
        let mut gate = Gate::new(1.0, costs, Random::from_seed(1, 0), 0);
        gate.end(100);
        let samples = vec![sample(0, 5, 10), sample(0, 6, 30), sample(1, 7, 1), sample(0, 101, 40)];
        let periods: Vec<_> = weighted(samples, &[160, 1], &gate).iter().map(|s| s.period).collect();
        assert_eq!(periods, [20, 60, 1]);
    }
}
