//! A breakpoint is hit: it is removed, the hit is noted, and the instruction runs.

use super::modules::{self, Module};
use super::{again, arming};
use crate::account;
use crate::settings;
use crate::signal_entry::Context;
use crate::sys;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};
use pleach_wire::coverage::{BREAKPOINT, Plan};

/// Cost of the handler itself, apart from the trap; measured once in a while.
static HANDLER_NS: AtomicU64 = AtomicU64::new(1_500);
static HITS: AtomicU32 = AtomicU32::new(0);
/// Hits for each measurement of the cost.
const MEASURED: u32 = 32;

/// Whether a signal may come from a breakpoint.
pub fn is_breakpoint(info: &libc::siginfo_t) -> bool {
    const SI_KERNEL: i32 = 0x80;
    info.si_code == SI_KERNEL
}

fn site_at(address: u64) -> Option<(&'static Module, Plan, usize)> {
    let (_, module) = modules::find(address)?;
    let plan = module.plan()?;
    let site = plan.find(address.wrapping_sub(module.base()))?;
    Some((module, plan, site))
}

/// Goes on after a breakpoint of a module. False: it is another.
pub fn pass(context: &mut Context) -> bool {
    let address = context.pc().wrapping_sub(1);
    let is_ours = remove(address);
    if is_ours {
        context.set_pc(address);
    }
    is_ours
}

/// Removes the breakpoint at an instruction that the program is about to run, as if it had been hit.
pub fn step_on(address: u64) {
    if original(address).is_some() {
        remove(address);
    }
}

/// Removes a breakpoint and notes the hit. False: there is no site.
fn remove(address: u64) -> bool {
    let Some((module, plan, site)) = site_at(address) else {
        return false;
    };
    let lapses = !super::is_affordable();
    // Some functions have thousands of breakpoints: the time to remove them is always measured.
    let is_measured = lapses || HITS.fetch_add(1, Relaxed).is_multiple_of(MEASURED);
    let before = if is_measured { sys::thread_cpu_ns() } else { 0 };
    let Some(byte) = plan.sites().get(site).map(|site| site.byte()) else {
        return false;
    };
    // SAFETY: the instruction at this address was just fetched. Another thread may have removed the breakpoint
    // meanwhile, or may be about to: whoever comes writes the same byte.
    let is_there = unsafe { (address as *const u8).read_volatile() } == BREAKPOINT;
    if is_there && !arming::restore(module, address, byte) {
        return false;
    }
    // With an image, each process and thread that got here executes the site.
    if !module.clear_armed(site) && !module.has_image() {
        return true;
    }
    again::note_hit(site, &plan);
    if lapses {
        arming::disarm_function(module, &plan, site);
    }
    let mut cost = HANDLER_NS.load(Relaxed);
    if is_measured {
        let now = sys::thread_cpu_ns().saturating_sub(before);
        if lapses {
            cost = now;
        } else {
            HANDLER_NS.store((3 * cost + now) / 4, Relaxed);
        }
    }
    account::spend_on_coverage(settings::get().int3_ns + cost);
    true
}

/// The byte that a breakpoint at an address replaced, if one is armed there.
pub fn original(address: u64) -> Option<u8> {
    let (module, plan, site) = site_at(address)?;
    arming::is_armed(module, &plan, site).then(|| plan.sites().get(site).map(|site| site.byte()))?
}
