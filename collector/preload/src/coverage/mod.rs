//! Coverage by one-shot breakpoints ([`pleach_wire::coverage`]): `int3` at each site that is not known to have run,
//! removed by the first thread that executes it.
//!
//! - [`plans`]: the plan of a module, from the recorder.
//! - [`modules`]: the observed modules of this process, and which of their breakpoints are armed; [`discovery`]: new ones.
//! - [`loader`]: libraries that the program loads later.
//! - [`code`]: writes to this process's code.
//! - [`arming`]: arms and disarms breakpoints.
//! - [`trap`]: a breakpoint is hit.
//! - [`verification`]: whether the code in memory is that of the module's file.
//! - [`again`]: sites are armed again that were hit, or whose breakpoints were removed to keep the budget.
//!
//! # Why it is safe
//! - Nothing is written where the bytes in memory are not those of the module's file ([`verification`]).
//! - Whoever meets a breakpoint that is being removed removes it, too, and goes on: the instruction itself runs, nothing
//!   is emulated.
//! - SIGTRAP reaches our handler: masks and actions of the program are virtual ([`crate::interpose`]). Modules that make
//!   system calls of their own are not observed, because these could change that.
//! - Where anything is in doubt, all breakpoints are removed ([`abandon`]), and what was not hit is unknown.
//!
//! A program that reads its own code sees the breakpoints.

mod again;
mod arming;
mod code;
mod discovery;
mod loader;
mod modules;
mod plans;
mod trap;
mod verification;

use crate::account;
use crate::interpose::faults;
use crate::isolation;
use crate::process;
use crate::settings;
use crate::signal_entry::Context;
use crate::state_section::state_section;
use crate::sys::{self, SignalsBlocked};
pub use code::read as read_memory;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};
pub use pleach_wire::coverage::Failure;
pub use trap::is_breakpoint;

/// Whether breakpoints may be armed.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Whether breakpoints may take more time.
fn is_affordable() -> bool {
    settings::get()
        .coverage_advance_ns
        .is_some_and(account::affords_coverage)
}

/// Whether this process prepared what later ones find: plans, and the comparison of code.
static HAS_PREPARED: AtomicBool = AtomicBool::new(false);

/// Notes work that later processes need not do.
fn note_preparation() {
    HAS_PREPARED.store(true, Relaxed);
}

/// Reports the cost of the start of a process with breakpoints, if it is typical.
pub fn learn_start(ns: u64) {
    if !HAS_PREPARED.load(Relaxed) {
        account::learn_observed_start(ns);
    }
}

/// Whether breakpoints may be armed.
pub fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Arms the breakpoints of all modules. Call in the constructor, once the main thread's mask is virtual. `directory`:
/// that of the shards.
pub fn begin(directory: &[u8]) {
    if settings::get().coverage_advance_ns.is_none() {
        return;
    }
    let _blocked = SignalsBlocked::new();
    let before = sys::thread_cpu_ns();
    if !plans::open(directory) {
        account::note_modules_unknown();
        return;
    }
    // Needed where images cannot be mapped, and for the loader.
    code::open();
    let can = if is_traced() { Err(Failure::Traced) } else { Ok(()) };
    pleach_shadow::set_original(original);
    IS_ON.store(can.is_ok(), Relaxed);
    discovery::discover(can, false);
    // A process that may load libraries unseen.
    if can.is_err() {
        account::note_may_load_unobserved();
    } else if !loader::watch() {
        account::note_loader_not_watched();
    }
    let cost = sys::thread_cpu_ns().saturating_sub(before);
    if is_affordable() {
        account::spend_on_coverage(cost);
    } else {
        account::spend_on_arming(cost);
    }
}

/// Notes, in a process without breakpoints, that it has the modules. `signature`: a hash of them; 0: unknown.
pub fn begin_unobserved(directory: &[u8], signature: u64) {
    if settings::get().coverage_advance_ns.is_none() {
        return;
    }
    // Ticks may be armed already, and a burst takes the same locks.
    let _blocked = SignalsBlocked::new();
    if plans::open(directory) {
        let is_complete = discovery::discover(Err(Failure::Budget), false);
        if is_complete && signature != 0 && plans::store_modules(signature, &modules::keys()) {
            account::remember_modules(signature);
        }
        plans::close();
        account::note_may_load_unobserved();
    } else {
        account::note_modules_unknown();
    }
}

/// Goes on in a child made by `fork`, which inherits the breakpoints, whether it has ticks or not.
#[inline(always)]
pub fn begin_child() {
    HAS_ENDED.store(false, Relaxed);
    if !is_on() {
        modules::begin_child();
        return;
    }
    discovery::begin_child();
    modules::begin_child();
}

/// Ends the wait of a child made by `fork`, which does not use its parent's descriptor of memory meanwhile.
pub fn settle() {
    if is_on() {
        // Without it, breakpoints are removed in another way.
        code::reopen();
    }
}

/// Removes all breakpoints for good. Call with signals blocked.
pub fn abandon(failure: Failure) {
    if IS_ON.swap(false, Relaxed) {
        arming::disarm_all(failure);
        loader::unwatch();
        account::note_may_load_unobserved();
    }
}

/// Goes on after a breakpoint. False: it is the program's own.
pub fn pass(context: &mut Context) -> bool {
    trap::pass(context) || loader::pass(context, is_on)
}

/// Removes the breakpoint at the instruction that the program runs next, as if it had been hit.
pub fn step_on(address: u64) {
    trap::step_on(address);
}

/// The byte that a breakpoint at an address replaced, if there is one.
pub fn original(address: u64) -> Option<u8> {
    trap::original(address).or_else(|| loader::original(address))
}

/// The same for functions of the program.
pub fn abandon_here(failure: Failure) {
    if is_on() && process::is_own_memory() {
        let _blocked = SignalsBlocked::new();
        abandon(failure);
    }
}

/// Work that is left for ticks: sites that are armed again.
pub fn tick() {
    if !is_on() {
        return;
    }
    let before = sys::thread_cpu_ns();
    let now = sys::now_ns();
    // While the loader is busy, code that a removal would write to may be gone.
    let is_due = now.saturating_sub(LAST_CHECK_NS.load(Relaxed)) > CHECK_INTERVAL_NS && !loader::is_busy();
    if is_due {
        LAST_CHECK_NS.store(now, Relaxed);
        if is_traced() {
            abandon(Failure::Traced);
            return;
        }
    }
    let any = is_affordable() && again::tick();
    if any || is_due {
        account::spend_on_coverage(sys::thread_cpu_ns().saturating_sub(before));
    }
}

/// Time between two checks whether a debugger was attached.
const CHECK_INTERVAL_NS: u64 = 1_000_000_000;
static LAST_CHECK_NS: AtomicU64 = AtomicU64::new(0);
state_section! {
    /// Whether the end of this process was noted.
    static HAS_ENDED: AtomicBool = AtomicBool::new(false);
}

/// At the end of the process, or of its image: notes how it ended. Call with signals blocked.
#[inline(always)]
pub fn conclude() {
    // A thread that still runs, or a handler that jumps out of an instruction's fault, may have left code midway.
    let any = !modules::all().is_empty();
    if any && isolation::is_single() && !faults::are_handled() && !HAS_ENDED.swap(true, Relaxed) {
        modules::note_completed(1);
    }
}

/// Undoes [`conclude`], where `exec` failed.
pub fn go_on() {
    if HAS_ENDED.swap(false, Relaxed) {
        modules::note_completed(u64::MAX);
    }
}

/// Whether another program traces this one: it would get the traps.
fn is_traced() -> bool {
    let mut buffer = [0u8; 4096];
    let status = sys::read_file(c"/proc/self/status", &mut buffer);
    let mut lines = status.split(|byte| *byte == b'\n');
    let tracer = lines.find_map(|line| line.strip_prefix(b"TracerPid:"));
    tracer.is_some_and(|pid| pid.trim_ascii() != b"0")
}
