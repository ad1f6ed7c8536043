//! The time of taken branches that a recording measured: by hardware breakpoints behind some bursts, or by the cycles of
//! branch records.

use super::burst_timing::Precision;
use pleach_collector::vector::{Burst, HardwareSample, VectorSet};

/// Events that occur at a constant rate in time, whatever the program does: their samples are spread over time as timer
/// ticks are.
const TIME_EVENTS: [&str; 6] = [
    "cycles",
    "cpu-cycles",
    "bus-cycles",
    "ref-cycles",
    "cpu-clock",
    "task-clock",
];

/// Taken branches and the time for them, in a unit that is the same in the whole recording.
pub(super) type Measurement = (f32, f32);

/// Where a recording's measurements are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Measured<'v> {
    /// Nanoseconds, behind bursts.
    Timings,
    /// Cycles of the bursts themselves, if their events are of time.
    Cycles(&'v VectorSet),
}

impl<'v> Measured<'v> {
    /// Nanoseconds and cycles have no common unit: where bursts were timed, cycles are not used.
    pub(super) fn new(vectors: &'v VectorSet) -> Self {
        match vectors.bursts.iter().any(|burst| burst.timing.is_some()) {
            true => Self::Timings,
            false => Self::Cycles(vectors),
        }
    }

    /// How precise a single measurement is.
    pub(super) fn precision(&self) -> Precision {
        match self {
            Self::Timings => Precision::Low,
            Self::Cycles(_) => Precision::High,
        }
    }

    /// What was measured for a burst.
    pub(super) fn time(&self, burst: &Burst) -> Option<Measurement> {
        match self {
            Self::Timings => burst.timing.map(|timing| (timing.branches, timing.nanoseconds)),
            Self::Cycles(vectors) => {
                let hardware = burst.hardware.as_deref()?;
                let event = vectors.events.get(hardware.event.0 as usize)?;
                is_of_time(event).then(|| cycles(hardware))?
            }
        }
    }
}

/// Whether samples of an event are spread over time.
fn is_of_time(event: &str) -> bool {
    // cycles, cycles:upp, cpu/cycles/u, cpu_core/cycles/, cpu/cpu-cycles,period=1000/
    let name = event.split_once('/').map_or(event, |(_, rest)| rest);
    let name = name.split(['/', ':', ',']).next().unwrap_or_default();
    TIME_EVENTS.contains(&name)
}

/// Branches whose cycles are known, and these cycles. A record of zero cycles is one of which the processor does not
/// say them, and one with all bits set ended at that limit or beyond it, as after a wait.
fn cycles(hardware: &HardwareSample) -> Option<Measurement> {
    let known = hardware.facts.iter().map(|facts| facts.cycles);
    let known = known.filter(|cycles| (1..u16::MAX).contains(cycles));
    let (branches, cycles) = known.fold((0.0, 0.0), |(branches, sum), cycles| {
        (branches + 1.0, sum + f32::from(cycles))
    });
    (branches > 0.0).then_some((branches, cycles))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_time() {
        for event in [
            "cycles",
            "cycles:u",
            "cycles:upp",
            "cpu/cycles/u",
            "cpu_core/cycles/",
            "cpu-clock:u",
            "cpu/ref-cycles,period=9/",
        ] {
            assert!(is_of_time(event), "{event}");
        }
        for event in [
            "",
            "near_taken:u",
            "cache-misses",
            "instructions:u",
            "branches",
            "cycles_stalled",
            "cpu/branch-misses/",
        ] {
            assert!(!is_of_time(event), "{event}");
        }
    }
}
