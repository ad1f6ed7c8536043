//! A child that runs in this process's memory, made by `vfork` or a raw `clone`. Its signal actions and its mask are
//! its own, copied from the parent. The breakpoints in the shared code are armed for it, too, so SIGTRAP has to reach
//! our handler: as in the parent, its action and mask are virtual. What the child sets must not change what its parent
//! has set, so its actions for SIGTRAP and the tick are forgotten.

use crate::coverage;
use crate::dispositions::virtual_action;
use crate::owned_signals::{OwnedSignal, split};
use crate::process;
use crate::sys::{self, read_signal_set, write_signal_set};
use crate::thread::{self, Thread};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// Whether the caller is such a child, and breakpoints may be armed.
pub fn is_caller() -> bool {
    coverage::is_on() && process::is_active() && !process::is_own_memory()
}

/// The child that set a mask last: its process id, and the owned signals in its virtual mask. Of several children at a
/// time, the others find the mask that they began with.
static MASK: AtomicU64 = AtomicU64::new(0);

fn packed(blocked: u8) -> u64 {
    (sys::process_id() as u64) << 8 | u64::from(blocked)
}

/// The owned signals in the child's virtual mask.
pub fn blocked() -> u8 {
    let last = MASK.load(Relaxed);
    if last >> 8 == packed(0) >> 8 {
        return last as u8;
    }
    // SAFETY: Current; a child made by `vfork` inherits its parent's mask.
    unsafe { thread::current_pointer().as_ref() }.map_or(0, |thread: &Thread| thread.blocked.load(Relaxed))
}

/// Sets them.
pub fn set_blocked(blocked: u8) {
    MASK.store(packed(blocked), Relaxed);
}

/// `sigaction` in such a child.
///
/// # Safety
/// As `sigaction(2)`; `next` is the real one.
pub unsafe fn sigaction(
    next: impl FnOnce(*const libc::sigaction, *mut libc::sigaction) -> i32,
    signal: i32,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> i32 {
    // SAFETY: the caller's pointers are null or valid.
    unsafe {
        if let Some(which) = OwnedSignal::from_number(signal) {
            if let Some(old) = old.as_mut() {
                *old = virtual_action(which).into();
            }
            return 0;
        }
        let mut changed = new.as_ref().copied();
        if let Some(new) = changed.as_mut() {
            let (_, rest) = split(read_signal_set(&new.sa_mask));
            write_signal_set(&mut new.sa_mask, rest);
        }
        next(changed.as_ref().map_or(new, |new| new), old)
    }
}
