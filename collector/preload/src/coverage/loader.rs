//! Libraries that are loaded later.
//!
//! The dynamic loader calls an empty function when its list of libraries has changed, before the initialisers of new
//! ones run, so that debuggers can set a breakpoint there (`r_brk` in `link.h`). So do we.

use super::code;
use super::discovery;
use crate::account;
use crate::settings;
use crate::signal_entry::Context;
use crate::sys;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU64};
use pleach_wire::coverage::{BREAKPOINT, Failure};

/// The loader's structure; null: it is not watched.
static DEBUG: AtomicPtr<Debug> = AtomicPtr::new(null_mut());
/// The function's address; 0: it is not watched.
static FUNCTION: AtomicU64 = AtomicU64::new(0);
/// Bytes to skip: those of `endbr64`; 0: the function consists of `ret`.
static SKIPPED: AtomicU64 = AtomicU64::new(0);

/// CPU time that libraries which were loaded later cost in this process.
static COST_NS: AtomicU64 = AtomicU64::new(0);

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const RET: u8 = 0xc3;

/// The loader's `struct r_debug`.
#[derive(Debug)]
#[repr(C)]
struct Debug {
    version: i32,
    map: *const core::ffi::c_void,
    function: u64,
    state: i32,
    base: u64,
}

/// The list is complete.
const CONSISTENT: i32 = 0;

fn debug() -> Option<&'static Debug> {
    // SAFETY: null or the loader's structure, which stays.
    unsafe { DEBUG.load(Relaxed).as_ref() }
}

/// Whether the loader maps or unmaps modules at the moment: what is listed as loaded may be gone.
pub fn is_busy() -> bool {
    debug().is_some_and(|debug| debug.state != CONSISTENT)
}

/// Watches the loader. False: its function is none that can be passed by.
pub fn watch() -> bool {
    // SAFETY: the name is terminated.
    DEBUG.store(
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_r_debug".as_ptr()).cast() },
        Relaxed,
    );
    let Some(function) = debug().map(|debug| debug.function).filter(|f| *f != 0) else {
        return false;
    };
    let mut head = [0u8; 5];
    if sys::read_memory(function, &mut head) != head.len() {
        return false;
    }
    let skipped = if head.starts_with(&ENDBR64) && head.ends_with(&[RET]) {
        ENDBR64.len() as u64
    } else if head.starts_with(&[RET]) {
        0
    } else {
        return false;
    };
    SKIPPED.store(skipped, Relaxed);
    FUNCTION.store(function, Relaxed);
    let is_written = code::write(function, &[BREAKPOINT]);
    if !is_written {
        FUNCTION.store(0, Relaxed);
    }
    is_written
}

/// Watches the loader no more.
pub fn unwatch() {
    let function = FUNCTION.load(Relaxed);
    if let Some(byte) = original(function) {
        code::restore(function, byte);
    }
}

/// Whether a program that loads libraries for ever may be observed further. While they cost less than hits do, it may.
fn is_affordable() -> bool {
    let advance = settings::get().coverage_advance_ns.unwrap_or(0);
    COST_NS.load(Relaxed) < advance / 2 || super::is_affordable()
}

/// Goes on after the breakpoint in the loader. False: it is another.
pub fn pass(context: &mut Context, is_on: fn() -> bool) -> bool {
    let function = FUNCTION.load(Relaxed);
    if function == 0 || context.pc() != function + 1 {
        return false;
    }
    if is_on() && debug().is_some_and(|debug| debug.state == CONSISTENT) {
        let before = sys::thread_cpu_ns();
        let can = if is_affordable() { Ok(()) } else { Err(Failure::Budget) };
        discovery::discover(can, true);
        if let Err(failure) = can {
            super::abandon(failure);
        }
        let cost = sys::thread_cpu_ns().saturating_sub(before);
        COST_NS.fetch_add(cost, Relaxed);
        account::spend_on_coverage(cost);
    }
    match SKIPPED.load(Relaxed) {
        0 => {
            let stack = context.registers[libc::REG_RSP as usize];
            // SAFETY: the loader's return address, at the top of its stack.
            context.set_pc(unsafe { (stack as *const u64).read() });
            context.registers[libc::REG_RSP as usize] = stack + 8;
        }
        skipped => context.set_pc(function + skipped),
    }
    true
}

/// The loader's function as it was, at an address.
pub fn original(address: u64) -> Option<u8> {
    let function = FUNCTION.load(Relaxed);
    (function != 0 && function == address).then(|| if SKIPPED.load(Relaxed) == 0 { RET } else { ENDBR64[0] })
}
