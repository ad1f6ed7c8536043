//! Detects a low limit on queued signals that the program sets: an event's signal that cannot be queued would arrive as
//! a fatal SIGIO.

use crate::next_symbol::NextSymbol;
use crate::process;
use crate::{descriptors, perf_event, quiesce};
use core::ffi::c_int;

type Set = unsafe extern "C" fn(c_int, *const libc::rlimit) -> c_int;
static SETRLIMIT: NextSymbol<Set> = NextSymbol::new(c"setrlimit");
type Change = unsafe extern "C" fn(libc::pid_t, c_int, *const libc::rlimit, *mut libc::rlimit) -> c_int;
static PRLIMIT: NextSymbol<Change> = NextSymbol::new(c"prlimit");

/// Looks the functions up.
pub fn resolve() {
    SETRLIMIT.get();
    PRLIMIT.get();
}

/// # Safety
/// `new` is null or valid.
unsafe fn notice_limit(resource: c_int, new: *const libc::rlimit) {
    // SAFETY: the caller passes null or a valid pointer.
    let limit = unsafe { new.as_ref() }.filter(|_| resource == libc::RLIMIT_SIGPENDING as c_int);
    if limit.is_some_and(|limit| limit.rlim_cur < perf_event::MIN_QUEUED_SIGNALS) && process::is_sampled_here() {
        perf_event::forbid();
        quiesce::all_threads();
    }
}

/// Changes a limit. The sampler raises that of descriptors for moments.
fn changed(resource: c_int, change: impl FnOnce() -> c_int) -> c_int {
    match resource == libc::RLIMIT_NOFILE as c_int && process::is_sampled_here() {
        true => descriptors::with_limit(change),
        false => change(),
    }
}

/// # Safety
/// As `setrlimit(2)`.
pub unsafe extern "C" fn setrlimit(resource: c_int, new: *const libc::rlimit) -> c_int {
    let Some(next) = SETRLIMIT.get() else { return -1 };
    // SAFETY: Forward.
    unsafe {
        notice_limit(resource, new);
        changed(resource, || next(resource, new))
    }
}

/// # Safety
/// As `setrlimit(2)`.
pub unsafe extern "C" fn setrlimit64(resource: c_int, new: *const libc::rlimit) -> c_int {
    // SAFETY: the structures are the same here.
    unsafe { setrlimit(resource, new) }
}

/// # Safety
/// As `prlimit(2)`.
pub unsafe extern "C" fn prlimit(
    pid: libc::pid_t,
    resource: c_int,
    new: *const libc::rlimit,
    old: *mut libc::rlimit,
) -> c_int {
    let Some(next) = PRLIMIT.get() else { return -1 };
    // SAFETY: Forward.
    unsafe {
        if pid == 0 || pid == crate::process::pid() {
            notice_limit(resource, new);
        }
        changed(resource, || next(pid, resource, new, old))
    }
}

/// # Safety
/// As `prlimit(2)`.
pub unsafe extern "C" fn prlimit64(
    pid: libc::pid_t,
    resource: c_int,
    new: *const libc::rlimit,
    old: *mut libc::rlimit,
) -> c_int {
    // SAFETY: the structures are the same here.
    unsafe { prlimit(pid, resource, new, old) }
}
