//! Opens the shard of a process that is about to change its user, since the new one may have no access to the recording's
//! folder: servers begin as root, and their workers give that up.

use crate::next_symbol::NextSymbol;
use crate::process;
use crate::shard_writer;
use crate::sys;
use core::ffi::c_int;

type Set = unsafe extern "C" fn(libc::uid_t) -> c_int;
type SetBoth = unsafe extern "C" fn(libc::uid_t, libc::uid_t) -> c_int;
type SetAll = unsafe extern "C" fn(libc::uid_t, libc::uid_t, libc::uid_t) -> c_int;
static SETUID: NextSymbol<Set> = NextSymbol::new(c"setuid");
static SETEUID: NextSymbol<Set> = NextSymbol::new(c"seteuid");
static SETREUID: NextSymbol<SetBoth> = NextSymbol::new(c"setreuid");
static SETRESUID: NextSymbol<SetAll> = NextSymbol::new(c"setresuid");

/// Looks the functions up.
pub fn resolve() {
    SETUID.get();
    SETEUID.get();
    SETREUID.get();
    SETRESUID.get();
}

/// Call with the user whose rights the process will have; -1: the same as before.
fn prepare_for(user: libc::uid_t) {
    // SAFETY: the call has no arguments.
    let present = unsafe { libc::geteuid() };
    if user != libc::uid_t::MAX && user != present && process::is_sampled_here() {
        let _blocked = sys::SignalsBlocked::new();
        shard_writer::open_early();
    }
}

/// # Safety
/// As `setuid(2)`.
pub unsafe extern "C" fn setuid(user: libc::uid_t) -> c_int {
    let Some(next) = SETUID.get() else { return -1 };
    prepare_for(user);
    // SAFETY: Forward.
    unsafe { next(user) }
}

/// # Safety
/// As `seteuid(2)`.
pub unsafe extern "C" fn seteuid(user: libc::uid_t) -> c_int {
    let Some(next) = SETEUID.get() else { return -1 };
    prepare_for(user);
    // SAFETY: Forward.
    unsafe { next(user) }
}

/// # Safety
/// As `setreuid(2)`.
pub unsafe extern "C" fn setreuid(real: libc::uid_t, effective: libc::uid_t) -> c_int {
    let Some(next) = SETREUID.get() else { return -1 };
    prepare_for(effective);
    // SAFETY: Forward.
    unsafe { next(real, effective) }
}

/// # Safety
/// As `setresuid(2)`.
pub unsafe extern "C" fn setresuid(real: libc::uid_t, effective: libc::uid_t, saved: libc::uid_t) -> c_int {
    let Some(next) = SETRESUID.get() else { return -1 };
    prepare_for(effective);
    // SAFETY: Forward.
    unsafe { next(real, effective, saved) }
}
