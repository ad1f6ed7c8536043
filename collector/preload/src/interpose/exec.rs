//! Sampling is suspended while the process starts a new image. The stub interposes the functions.
//!
//! Nothing here allocates: a child made by `vfork` runs in its parent's memory.

use super::{faults, sharing_child};
use crate::owned_signals;
use crate::process;
use crate::shard_writer;
use crate::signal_entry::on_handlers_stack;
use crate::sys;
use crate::thread::{self, Thread};
use crate::threads;
use core::sync::atomic::Ordering::Relaxed;
use pleach_wire::start::Suspended;

/// Suspends sampling in this process until `exec` succeeds.
pub extern "C" fn suspend() -> Suspended {
    if !process::is_active() {
        return Suspended::default();
    }
    // Not in a child made by `vfork`, which shares the state of its parent.
    let is_own = process::is_own_memory();
    if is_own {
        on_handlers_stack(begin);
    }
    // The new image inherits the virtual mask.
    let blocked = match is_own {
        // SAFETY: Current.
        true => unsafe { thread::current_pointer().as_ref() }.map_or(0, |t: &Thread| t.blocked.load(Relaxed)),
        false => sharing_child::blocked(),
    };
    let has_mask = blocked != 0;
    let mask = if has_mask {
        sys::signal_mask(libc::SIG_BLOCK, owned_signals::join(blocked, 0))
    } else {
        0
    };
    Suspended { mask, has_mask, is_own }
}

/// Resumes it, since `exec` failed.
pub extern "C" fn resume(suspended: Suspended) {
    if suspended.has_mask {
        sys::signal_mask(libc::SIG_SETMASK, suspended.mask);
    }
    if suspended.is_own {
        on_handlers_stack(go_on);
    }
}

extern "C" fn begin() {
    shard_writer::conclude(false);
    threads::pause_current();
    faults::prepare_exec(true);
}

extern "C" fn go_on() {
    faults::prepare_exec(false);
    threads::resume_current();
}
