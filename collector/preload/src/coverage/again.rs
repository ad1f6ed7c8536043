//! Rare places are armed again, at most some at each tick. Their hits are exact lower ends of their executions, and the
//! times for which they were armed give rates.
//!
//! A place that is hit again within a tick is not rare, and is left alone after a few hits.

use super::{arming, modules};
use crate::sys;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};
use pleach_wire::coverage::Plan;

/// Hits that wait for being armed again.
static WAITING: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];
static LAST: AtomicU32 = AtomicU32::new(0);
static NEXT: AtomicU32 = AtomicU32::new(0);
/// Places armed again in this process: since when, in nanoseconds of its CPU time plus one, and which.
static ARMED: [Armed; 256] = [const {
    Armed {
        since: AtomicU64::new(0),
        place: AtomicU64::new(0),
    }
}; 256];

struct Armed {
    since: AtomicU64,
    place: AtomicU64,
}

/// Places armed at a tick, at most.
const PER_TICK: usize = 4;
/// Hits after which a place must have been armed for [`RARE_NS`] for each hit to be armed again.
const FREE_HITS: u32 = 2;
/// CPU time between two hits of a rare place, at least.
const RARE_NS: u64 = 25_000_000;

fn entry(module: usize, place: usize) -> u64 {
    ((module as u64) << 32) | (place as u64 + 1)
}

fn slot(entry: u64) -> Option<&'static Armed> {
    // Neighbours are seldom armed at the same time; one that is in the way is not armed.
    ARMED.get((entry ^ entry >> 29) as usize % ARMED.len())
}

/// Notes a hit.
pub fn note_hit(module: usize, place: usize, plan: &Plan) {
    let entry = entry(module, place);
    if let Some(armed) = slot(entry).filter(|armed| armed.place.load(Relaxed) == entry) {
        let since = armed.since.swap(0, Relaxed);
        armed.place.store(0, Relaxed);
        if let (Some(exposure), Some(since)) = (plan.exposures().get(place), since.checked_sub(1)) {
            exposure.fetch_add(sys::process_cpu_ns().saturating_sub(since), Relaxed);
        }
    }
    let position = LAST.fetch_add(1, Relaxed) as usize % WAITING.len();
    if let Some(waiting) = WAITING.get(position) {
        waiting.store(entry, Relaxed);
    }
}

/// Arms some places again. Returns whether there were any.
pub fn tick() -> bool {
    let mut any = false;
    for _ in 0..PER_TICK {
        let (next, last) = (NEXT.load(Relaxed), LAST.load(Relaxed));
        // Older hits were overwritten.
        let next = if last.wrapping_sub(next) > WAITING.len() as u32 {
            last.wrapping_sub(WAITING.len() as u32)
        } else {
            next
        };
        if next == last {
            break;
        }
        NEXT.store(next.wrapping_add(1), Relaxed);
        let waiting = WAITING.get(next as usize % WAITING.len());
        any |= waiting.is_some_and(|waiting| arm(waiting.swap(0, Relaxed)));
    }
    any
}

fn arm(entry: u64) -> bool {
    let (position, place) = ((entry >> 32) as usize, (entry & u64::from(u32::MAX)) as usize);
    let module = modules::all().get(position).filter(|module| module.is_loaded());
    let (Some(module), Some(place)) = (module, place.checked_sub(1)) else {
        return false;
    };
    let Some(plan) = module.plan() else { return false };
    let (Some(hits), Some(exposure)) = (plan.hits().get(place), plan.exposures().get(place)) else {
        return false;
    };
    let hits = hits.load(Relaxed);
    let is_frequent = hits > FREE_HITS && exposure.load(Relaxed) / u64::from(hits) < RARE_NS;
    let Some(armed) = slot(entry).filter(|armed| armed.place.load(Relaxed) == 0) else {
        return false;
    };
    if is_frequent {
        return false;
    }
    armed.place.store(entry, Relaxed);
    armed.since.store(sys::process_cpu_ns() + 1, Relaxed);
    if !arming::arm_one(module, place) {
        armed.place.store(0, Relaxed);
        armed.since.store(0, Relaxed);
    }
    true
}

/// Adds the times of the places that are armed at the end.
pub fn conclude() {
    let now = sys::process_cpu_ns();
    for armed in &ARMED {
        let (entry, since) = (armed.place.swap(0, Relaxed), armed.since.swap(0, Relaxed));
        let module = modules::all().get((entry >> 32) as usize);
        let place = ((entry & u64::from(u32::MAX)) as usize).checked_sub(1);
        let plan = module.and_then(|module| module.plan());
        if let (Some(plan), Some(place), Some(since)) = (plan, place, since.checked_sub(1))
            && let Some(exposure) = plan.exposures().get(place)
        {
            exposure.fetch_add(now.saturating_sub(since), Relaxed);
        }
    }
}

/// Starts over in a child made by `fork`: its CPU time begins at zero.
pub fn begin_child() {
    for armed in &ARMED {
        if armed.place.load(Relaxed) != 0 {
            armed.since.store(1, Relaxed);
        }
    }
    NEXT.store(LAST.load(Relaxed), Relaxed);
}
