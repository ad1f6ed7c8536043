//! Sites are armed again at ticks.
//!
//! - Those whose breakpoints were removed without a hit, to keep the budget: they may be hit yet.
//! - Those that were hit, until they are known to be rare or frequent, by an eighth of the breakpoints' advance and
//!   their share of the budget. Only in images: breakpoints of one process alone would not see what others execute.
//!
//! Hits are exact lower bounds of executions, and the times for which sites were armed again give upper bounds
//! ([`Plan::watched`]).

use super::arming;
use super::loader;
use super::modules::{self, Module};
use crate::account;
use crate::settings;
use crate::sys;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use pleach_wire::coverage::Plan;

/// Sites armed at a tick, at most.
const ARMED_PER_TICK: usize = 32;
/// Sites looked at in a tick, at most.
const SEEN_PER_TICK: usize = 2048;

/// Where the next tick goes on: module and site.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Notes a hit.
pub fn note_hit(site: usize, plan: &Plan) {
    plan.note_hit(site, account::clock(), sys::now_ns);
}

/// Arms some sites again. Returns whether there were any.
pub fn tick() -> bool {
    account::report_cpu_time();
    if loader::is_busy() {
        return false;
    }
    let counts = settings::get()
        .coverage_advance_ns
        .is_some_and(account::affords_counting);
    let mut seen = 0;
    let mut armed = 0;
    let next = NEXT.load(Relaxed);
    let (mut position, mut site) = ((next >> 32) as usize, (next & u64::from(u32::MAX)) as usize);
    let now = account::clock();
    let modules = modules::all();
    // Each module once, at most.
    for _ in 0..=modules.len() {
        let module = modules.get(position).filter(|module| module.is_loaded());
        if let Some((module, plan)) = module.and_then(|module| Some((module, module.plan()?))) {
            let count = plan.sites().len();
            while site < count && seen < SEEN_PER_TICK && armed < ARMED_PER_TICK {
                seen += 1;
                let is_wanted = plan.was_removed_unhit(site) && !plan.was_hit(site) || counts && module.has_image();
                if is_wanted && arm_again(module, &plan, site, now) {
                    armed += 1;
                }
                site += 1;
            }
            if site < count {
                break;
            }
        }
        (position, site) = (if position + 1 < modules.len() { position + 1 } else { 0 }, 0);
    }
    NEXT.store(((position as u64) << 32) | site as u64, Relaxed);
    armed > 0
}

fn arm_again(module: &Module, plan: &Plan, site: usize, now: u64) -> bool {
    if !module.has_image() {
        return !module.is_armed(site) && arming::arm_one(module, site);
    }
    if !plan.is_undecided(site) || !plan.begin_exposure(site, now) {
        return false;
    }
    let is_armed = arming::arm_one(module, site);
    if !is_armed {
        plan.end_exposure(site, now);
    }
    is_armed
}
