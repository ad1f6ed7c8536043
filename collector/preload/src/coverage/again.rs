//! Places are armed again at ticks.
//!
//! - Those whose breakpoints were removed without a hit, to keep the budget: they may be hit yet.
//! - Those that were hit, until they are known to be rare or frequent, by an eighth of the breakpoints' advance and
//!   their share of the budget. Only in images: breakpoints of one process alone would not see what others execute.
//!
//! Hits are exact lower ends of executions, and the times for which places were armed again give upper ends
//! ([`Plan::watched`]).

use super::arming;
use super::modules::{self, Module};
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
    account::tell();
    let counts = settings::get()
        .coverage_advance_ns
        .is_some_and(account::affords_counting);
    let mut seen = 0;
    let mut armed = 0;
    let next = NEXT.load(Relaxed);
    let (mut position, mut place) = ((next >> 32) as usize, (next & u64::from(u32::MAX)) as usize);
    let now = account::clock();
    let modules = modules::all();
    // Each module once, at most.
    for _ in 0..=modules.len() {
        let module = modules.get(position).filter(|module| module.is_loaded());
        if let Some((module, plan)) = module.and_then(|module| Some((module, module.plan()?))) {
            let count = plan.places().len();
            while place < count && seen < SEEN_PER_TICK && armed < ARMED_PER_TICK {
                seen += 1;
                let is_wanted = plan.has_lapsed(place) && !plan.was_hit(place) || counts && module.has_image();
                if is_wanted && arm_again(module, &plan, place, now) {
                    armed += 1;
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

fn arm_again(module: &Module, plan: &Plan, place: usize, now: u64) -> bool {
    if !module.has_image() {
        return !module.is_armed(place) && arming::arm_one(module, place);
    }
    if !plan.is_undecided(place) || !plan.begin_exposure(place, now) {
        return false;
    }
    let is_armed = arming::arm_one(module, place);
    if !is_armed {
        plan.end_exposure(place, now);
    }
    is_armed
}
