//! Places that were hit are armed again at ticks, until they are known to be rare or frequent. Their hits are exact lower
//! ends of their executions, and the times for which they were armed again give upper ends ([`Plan::watched`]).
//!
//! Only images are armed again: breakpoints of one process alone would not see what others execute.

use super::{arming, modules};
use crate::account;
use crate::settings;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use pleach_wire::coverage::Plan;

/// Places armed at a tick, at most.
const ARMED_PER_TICK: usize = 32;
/// Places looked at in a tick, at most.
const SEEN_PER_TICK: usize = 2048;

/// Where the next tick goes on: module and place.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Notes a hit.
pub fn note_hit(place: usize, plan: &Plan) {
    plan.note_hit(place, account::clock());
}

/// Arms some places again. Returns whether there were any.
pub fn tick() -> bool {
    let advance = settings::get().coverage_advance_ns;
    if !advance.is_some_and(account::affords_counting) {
        return false;
    }
    account::tell();
    let mut seen = 0;
    let mut armed = 0;
    let next = NEXT.load(Relaxed);
    let (mut position, mut place) = ((next >> 32) as usize, (next & u64::from(u32::MAX)) as usize);
    let now = account::clock();
    let modules = modules::all();
    // Each module once, at most.
    for _ in 0..=modules.len() {
        let module = modules
            .get(position)
            .filter(|module| module.is_loaded() && module.has_image());
        if let Some((module, plan)) = module.and_then(|module| Some((module, module.plan()?))) {
            let count = plan.places().len();
            while place < count && seen < SEEN_PER_TICK && armed < ARMED_PER_TICK {
                seen += 1;
                if plan.is_undecided(place) && plan.begin_exposure(place, now) {
                    if arming::arm_one(module, place) {
                        armed += 1;
                    } else {
                        plan.end_exposure(place, now);
                    }
                }
                place += 1;
            }
            if place < count {
                break;
            }
        }
        (position, place) = (if position + 1 < modules.len() { position + 1 } else { 0 }, 0);
    }
    NEXT.store(((position as u64) << 32) | place as u64, Relaxed);
    armed > 0
}
