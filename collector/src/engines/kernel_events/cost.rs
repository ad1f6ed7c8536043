//! Measures the costs of an event and of a sample: page faults of this thread without the event, with it, and with
//! sampling.

use super::gate::Costs;
use crate::engines::lbr::attr::{KernelSampling, Rate, Scope};
use crate::engines::lbr::open::map;
use crate::engines::lbr::sys::{Event, page_size};
use crate::events::KernelEventKind;
use memmap2::MmapMut;
use std::time::{Duration, Instant};

/// The costs if they cannot be measured.
const DEFAULT: Costs = Costs {
    event_ns: 200.0,
    sample_ns: 2000.0,
};
/// Lower bounds of the measured costs.
const MIN: Costs = Costs {
    event_ns: 20.0,
    sample_ns: 100.0,
};
/// A period without samples.
const NEVER: u64 = 1 << 40;
/// Pages of each measurement: few enough that some are without interference by other programs.
const PAGES: usize = 256;
const TRIALS: usize = 9;
/// Holds all samples of a measurement.
const BUFFER: usize = 64 << 10;

/// CPU time of the kernel.
pub(super) fn measure() -> Costs {
    measured().unwrap_or(DEFAULT)
}

fn measured() -> Option<Costs> {
    let sampling = |period| KernelSampling {
        config: KernelEventKind::PageFaults.config(),
        rate: Rate::Period(period),
        scope: Scope::This,
        with_kernel: false,
    };
    let open = |period| Event::open(&sampling(period).to_bytes(), 0, -1).ok();
    let (event, quiet) = (open(1)?, open(NEVER)?);
    let ring = map(event.fd(), &mut BUFFER.clone()).ok()?;
    let (mut without, mut counted, mut with) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..TRIALS {
        without = without.min(touch()?);
        for (event, least) in [(&quiet, &mut counted), (&event, &mut with)] {
            event.run(true).ok()?;
            let time = touch();
            event.run(false).ok()?;
            *least = time?.min(*least);
        }
        ring.drain(drop).ok()?;
    }
    let each = |more: Duration, less: Duration| more.saturating_sub(less).as_nanos() as f64 / PAGES as f64;
    Some(Costs {
        event_ns: each(counted, without).max(MIN.event_ns),
        sample_ns: each(with, counted).max(MIN.sample_ns),
    })
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
