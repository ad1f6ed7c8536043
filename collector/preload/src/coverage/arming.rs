//! Arms and disarms breakpoints.
//!
//! At a module's start nobody runs its code, so whole pages are written. Later, one byte is written at a time, which
//! threads see at once or not at all.

use super::code;
use super::modules::{self, Module};
use crate::isolation;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};
use pleach_wire::coverage::{BREAKPOINT, Failure, PAGE, Page, Plan, page_hash};

/// Arms all places of a module that were hit in no process so far.
pub fn arm(module: &Module) {
    let Some(plan) = module.plan() else { return };
    let is_single = isolation::is_single();
    for page in plan.pages() {
        if let Err(failure) = arm_page(module, &plan, page, is_single) {
            module.fail(failure);
        }
    }
}

fn arm_page(module: &Module, plan: &Plan, page: &Page, is_single: bool) -> Result<(), Failure> {
    let wanted = || plan.places_of(page).filter(|&place| !plan.was_hit(place));
    if wanted().next().is_none() {
        return Ok(());
    }
    let address = module.base().wrapping_add(page.file_offset);
    let mut bytes = [0u8; PAGE];
    if !module.contains(address) || !code::read_page(address, &mut bytes) || page_hash(&bytes) != page.hash {
        return Err(Failure::Differs);
    }
    let places = plan.places();
    for place in wanted() {
        let Some(at) = places.get(place).map(|place| usize::from(place.offset())) else {
            continue;
        };
        if !module.set_armed(place) {
            return Err(Failure::Write);
        }
        if let Some(byte) = bytes.get_mut(at) {
            *byte = BREAKPOINT;
        }
        if !is_single && !code::write(address + at as u64, &[BREAKPOINT]) {
            module.clear_armed(place);
            return Err(Failure::Write);
        }
    }
    if is_single && !code::write(address, &bytes) {
        for place in wanted() {
            module.clear_armed(place);
        }
        return Err(Failure::Write);
    }
    Ok(())
}

/// Address of a place in this process, and its original byte.
pub fn locate(module: &Module, plan: &Plan, place: usize) -> Option<(u64, u8)> {
    let page = plan
        .pages()
        .partition_point(|page| page.first as usize <= place)
        .checked_sub(1)?;
    let (page, place) = (plan.pages().get(page)?, plan.places().get(place)?);
    let address = module.base().wrapping_add(page.file_offset + u64::from(place.offset()));
    module.contains(address).then(|| (address, place.byte()))
}

/// Arms one place. False if that failed.
pub fn arm_one(module: &Module, place: usize) -> bool {
    let Some((address, byte)) = module.plan().and_then(|plan| locate(module, &plan, place)) else {
        return false;
    };
    // SAFETY: code of a loaded module, which was readable when it was registered.
    if unsafe { (address as *const u8).read_volatile() } != byte || !module.set_armed(place) {
        return false;
    }
    let is_written = code::write(address, &[BREAKPOINT]);
    if !is_written {
        module.clear_armed(place);
    }
    is_written
}

/// Removes one breakpoint that was not hit.
fn disarm_one(module: &Module, plan: &Plan, place: usize) {
    if module.clear_armed(place)
        && let Some((address, byte)) = locate(module, plan, place)
    {
        code::restore(address, byte);
        if !plan.was_hit(place) {
            plan.note_lapse(place);
        }
    }
}

/// Removes all breakpoints.
pub fn disarm_all(failure: Failure) {
    for module in modules::all() {
        let Some(plan) = module.plan() else { continue };
        for place in 0..plan.places().len() {
            disarm_one(module, &plan, place);
        }
        module.fail(failure);
    }
}

/// Places of the function of a place.
fn places_around(plan: &Plan, place: usize) -> core::ops::Range<usize> {
    let functions = plan.functions();
    let Some(function) = functions.get(place) else {
        return 0..0;
    };
    let before = functions.get(..place).unwrap_or_default();
    let after = functions.get(place..).unwrap_or_default();
    let start = place - before.iter().rev().take_while(|other| *other == function).count();
    start..place + after.iter().take_while(|other| *other == function).count()
}

/// Functions whose breakpoints were removed to keep the budget: module and first place, plus one.
static LAPSED: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];
static NEXT_LAPSED: AtomicU32 = AtomicU32::new(0);
static NEXT_RESUMED: AtomicU32 = AtomicU32::new(0);

/// Removes the breakpoints of a function, because the budget is spent and the function is being executed: its next hits
/// would come soon. Those of functions that do not run stay.
pub fn lapse_function(position: usize, module: &Module, plan: &Plan, place: usize) {
    let range = places_around(plan, place);
    if range.clone().any(|place| module.is_armed(place)) {
        let slot = NEXT_LAPSED.fetch_add(1, Relaxed) as usize % LAPSED.len();
        if let Some(slot) = LAPSED.get(slot) {
            slot.store(((position as u64) << 32) | (range.start as u64 + 1), Relaxed);
        }
    }
    for place in range {
        disarm_one(module, plan, place);
    }
}

/// Arms the breakpoints of one function again. Returns whether there was one.
pub fn resume() -> bool {
    let (next, last) = (NEXT_RESUMED.load(Relaxed), NEXT_LAPSED.load(Relaxed));
    if next == last {
        return false;
    }
    NEXT_RESUMED.store(next.wrapping_add(1), Relaxed);
    let Some(slot) = LAPSED.get(next as usize % LAPSED.len()) else {
        return false;
    };
    let entry = slot.swap(0, Relaxed);
    let module = modules::all()
        .get((entry >> 32) as usize)
        .filter(|module| module.is_loaded());
    let Some((module, plan)) = module.and_then(|module| Some((module, module.plan()?))) else {
        return false;
    };
    let Some(place) = ((entry & u64::from(u32::MAX)) as usize).checked_sub(1) else {
        return false;
    };
    for place in places_around(&plan, place).filter(|&place| !plan.was_hit(place)) {
        arm_one(module, place);
    }
    true
}

/// Forgets the functions that are waiting, in a child made by `fork`: it may be short, and has its own budget.
pub fn begin_child() {
    NEXT_RESUMED.store(NEXT_LAPSED.load(Relaxed), Relaxed);
}
