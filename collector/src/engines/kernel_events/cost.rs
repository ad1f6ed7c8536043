//! Measures the cost of a sample: page faults of this thread with and without sampling.

use crate::engines::lbr::attr::{KernelSampling, Rate, Scope};
use crate::engines::lbr::open::map;
use crate::engines::lbr::sys::{Event, page_size};
use crate::events::KernelEventKind;
use memmap2::MmapMut;
use std::time::{Duration, Instant};

/// The cost if it cannot be measured.
const DEFAULT_NS: f64 = 2000.0;
/// Lower bound of the measured cost.
const MIN_NS: f64 = 100.0;
/// Pages of each measurement: few enough that some are without interference by other programs.
const PAGES: usize = 256;
const TRIALS: usize = 9;
/// Holds all samples of a measurement.
const BUFFER: usize = 64 << 10;

/// CPU time of the kernel for a sample, in nanoseconds.
pub(super) fn of_sample() -> f64 {
    measured().unwrap_or(DEFAULT_NS)
}

fn measured() -> Option<f64> {
    let sampling = KernelSampling {
        config: KernelEventKind::PageFaults.config(),
        rate: Rate::Period(1),
        scope: Scope::This,
        with_kernel: false,
    };
    let event = Event::open(&sampling.to_bytes(), 0, -1).ok()?;
    let ring = map(event.fd(), &mut BUFFER.clone()).ok()?;
    let (mut without, mut with) = (Duration::MAX, Duration::MAX);
    for _ in 0..TRIALS {
        without = without.min(touch()?);
        event.run(true).ok()?;
        let time = touch();
        event.run(false).ok()?;
        with = with.min(time?);
        ring.drain(drop).ok()?;
    }
    let extra = with.checked_sub(without)?.as_nanos() as f64;
    Some((extra / PAGES as f64).max(MIN_NS))
}

/// Touches fresh pages.
fn touch() -> Option<Duration> {
    let page = page_size();
    let mut memory = MmapMut::map_anon(PAGES * page).ok()?;
    let start = Instant::now();
    for at in (0..memory.len()).step_by(page) {
        std::hint::black_box(&mut memory)[at] = 1;
    }
    Some(start.elapsed())
}
