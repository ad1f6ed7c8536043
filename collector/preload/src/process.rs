//! Whether this process is sampled, and whether the caller runs in it.

use crate::state_section::state_section;
use crate::sys;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicU8};

state_section! {
    static STATE: AtomicU8 = AtomicU8::new(OFF);
    static PID: AtomicI32 = AtomicI32::new(0);
}
const OFF: u8 = 0;
const ACTIVE: u8 = 1;
/// The program confined itself by seccomp, which may forbid our system calls.
const STOPPED: u8 = 2;

/// Starts sampling in the calling process.
pub fn activate() {
    set_pid();
    STATE.store(ACTIVE, Release);
}

/// Records the process id, at the start and in a child made by `fork`.
#[inline(always)]
pub fn set_pid() {
    PID.store(sys::process_id(), Relaxed);
}

/// Whether the process is sampled.
#[inline(always)]
pub fn is_active() -> bool {
    STATE.load(Relaxed) == ACTIVE
}

/// Whether children that the process starts belong to the recording.
pub extern "C" fn is_recorded() -> bool {
    is_active()
}

/// Whether sampling ended because the program confined itself.
#[inline(always)]
pub fn is_stopped() -> bool {
    STATE.load(Relaxed) == STOPPED
}

/// Ends sampling for good, without a system call.
pub fn stop() {
    let _ = STATE.compare_exchange(ACTIVE, STOPPED, AcqRel, Relaxed);
}

/// Whether the caller runs in the process that owns this memory: false in a child made by `vfork` or a raw `clone`.
#[inline(always)]
pub fn is_own_memory() -> bool {
    pid() == sys::process_id()
}

/// Whether the caller's signals, limits and descriptors are those of a sampled process. A child made by `vfork` has its
/// own signals, limits and descriptors, but shares the parent's memory.
#[inline(always)]
pub fn is_sampled_here() -> bool {
    is_active() && is_own_memory()
}

/// Process id, as recorded when sampling began.
#[inline(always)]
pub fn pid() -> i32 {
    PID.load(Relaxed)
}
