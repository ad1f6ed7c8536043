//! Signal masks: the program sees what it set, while SIGTRAP and the tick are never really blocked.

use super::{delivery, sharing_child, stacks};
use crate::coverage;
use crate::next_symbol::NextSymbol;
use crate::owned_signals::{self, OwnedSignal, tick_signal};
use crate::process;
use crate::sys;
use crate::thread::Thread;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

type Mask = unsafe extern "C" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;
static SIGPROCMASK: NextSymbol<Mask> = NextSymbol::new(c"sigprocmask");
static PTHREAD_SIGMASK: NextSymbol<Mask> = NextSymbol::new(c"pthread_sigmask");
static SIGPENDING: NextSymbol<unsafe extern "C" fn(*mut libc::sigset_t) -> c_int> = NextSymbol::new(c"sigpending");
type Sigtimedwait =
    unsafe extern "C-unwind" fn(*const libc::sigset_t, *mut libc::siginfo_t, *const libc::timespec) -> c_int;
static SIGTIMEDWAIT: NextSymbol<Sigtimedwait> = NextSymbol::new(c"sigtimedwait");
static SIGNALFD: NextSymbol<unsafe extern "C" fn(c_int, *const libc::sigset_t, c_int) -> c_int> =
    NextSymbol::new(c"signalfd");

/// Looks the functions up.
pub fn resolve() {
    SIGPROCMASK.get();
    PTHREAD_SIGMASK.get();
    SIGPENDING.get();
    SIGTIMEDWAIT.get();
    SIGNALFD.get();
}

/// The owned signals in a virtual mask after a change.
fn after(how: c_int, before: u8, ours: u8) -> u8 {
    match how {
        libc::SIG_BLOCK => before | ours,
        libc::SIG_UNBLOCK => before & !ours,
        libc::SIG_SETMASK => ours,
        _ => before,
    }
}

/// Changes the virtual mask. Returns the owned signals blocked before, and the mask to set really; `None` if the
/// caller has no virtual mask.
pub fn change(how: c_int, set: Option<u64>) -> Option<(u8, Option<u64>)> {
    let Some(thread) = Thread::current().filter(|_| process::is_active()) else {
        return sharing_child::is_caller().then(|| {
            let before = sharing_child::blocked();
            let set = set.map(owned_signals::split);
            if let Some((ours, _)) = set {
                sharing_child::set_blocked(after(how, before, ours));
            }
            (before, set.map(|(_, rest)| rest))
        });
    };
    let before = thread.blocked.load(Relaxed);
    let Some(set) = set else { return Some((before, None)) };
    let (ours, mut rest) = owned_signals::split(set);
    // Ticks stay blocked on an alternate stack of the program.
    if how == libc::SIG_SETMASK && stacks::is_on_program_stack(thread) {
        rest |= sys::bit(tick_signal());
    }
    thread.blocked.store(after(how, before, ours), Relaxed);
    Some((before, Some(rest)))
}

unsafe fn masked(next: &NextSymbol<Mask>, how: c_int, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    let Some(next) = next.get() else { return libc::ENOSYS };
    // SAFETY: Forward: the caller's pointers are null or valid.
    unsafe {
        let Some((before, rest)) = change(how, new.as_ref().map(|set| sys::read_signal_set(set))) else {
            return next(how, new, old);
        };
        let mut changed = new.as_ref().copied();
        if let (Some(set), Some(rest)) = (changed.as_mut(), rest) {
            sys::write_signal_set(set, rest);
        }
        let result = next(how, changed.as_ref().map_or(new, |set| set), old);
        if let (0, Some(old)) = (result, old.as_mut()) {
            let (_, rest) = owned_signals::split(sys::read_signal_set(old));
            sys::write_signal_set(old, owned_signals::join(before, rest));
        }
        if let Some(thread) = Thread::current().filter(|thread| thread.pending.load(Relaxed) != 0) {
            delivery::release_pending(thread);
        }
        result
    }
}

/// # Safety
/// As `sigprocmask(2)`.
pub unsafe extern "C" fn sigprocmask(how: c_int, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: Forward.
    unsafe { masked(&SIGPROCMASK, how, new, old) }
}

/// # Safety
/// As `pthread_sigmask(3)`.
pub unsafe extern "C" fn pthread_sigmask(how: c_int, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: Forward.
    unsafe { masked(&PTHREAD_SIGMASK, how, new, old) }
}

/// # Safety
/// As `sigpending(2)`.
pub unsafe extern "C" fn sigpending(set: *mut libc::sigset_t) -> c_int {
    let Some(next) = SIGPENDING.get() else { return -1 };
    // SAFETY: the caller's set is valid where the real function succeeds.
    unsafe {
        let result = next(set);
        if let (0, Some(thread)) = (result, Thread::current()) {
            let (_, rest) = owned_signals::split(sys::read_signal_set(set));
            sys::write_signal_set(set, owned_signals::join(thread.pending.load(Relaxed), rest));
        }
        result
    }
}

/// Waits for a signal of the set without the tick. SIGTRAP is really blocked while the program waits for it.
unsafe fn wait(set: *const libc::sigset_t, info: *mut libc::siginfo_t, timeout: *const libc::timespec) -> c_int {
    let Some(next) = SIGTIMEDWAIT.get() else { return -1 };
    let Some(thread) = Thread::current().filter(|_| process::is_active()) else {
        // SAFETY: Forward.
        return unsafe { next(set, info, timeout) };
    };
    // SAFETY: Forward: the caller's pointers are valid.
    unsafe {
        let mut changed = *set;
        let wants_trap = sys::read_signal_set(set) & sys::bit(libc::SIGTRAP) != 0;
        sys::write_signal_set(&mut changed, sys::read_signal_set(set) & !sys::bit(tick_signal()));
        if !wants_trap {
            return next(&changed, info, timeout);
        }
        coverage::abandon_here(coverage::Failure::Signals);
        let before = sys::signal_mask(libc::SIG_BLOCK, sys::bit(libc::SIGTRAP));
        let bit = OwnedSignal::Trap.bit();
        let result = if thread.pending.fetch_and(!bit, Relaxed) & bit != 0 {
            if let Some(info) = info.as_mut() {
                *info = *thread.pending_info[OwnedSignal::Trap as usize].get();
            }
            libc::SIGTRAP
        } else {
            delivery::WAITER.store(sys::thread_id(), Relaxed);
            let result = next(&changed, info, timeout);
            delivery::WAITER.store(0, Relaxed);
            result
        };
        sys::signal_mask(libc::SIG_SETMASK, before);
        result
    }
}

/// # Safety
/// As `sigtimedwait(2)`.
pub unsafe extern "C-unwind" fn sigtimedwait(
    set: *const libc::sigset_t,
    info: *mut libc::siginfo_t,
    timeout: *const libc::timespec,
) -> c_int {
    // SAFETY: Forward.
    unsafe { wait(set, info, timeout) }
}

/// # Safety
/// As `sigwaitinfo(2)`.
pub unsafe extern "C-unwind" fn sigwaitinfo(set: *const libc::sigset_t, info: *mut libc::siginfo_t) -> c_int {
    // SAFETY: Forward.
    unsafe { wait(set, info, core::ptr::null()) }
}

/// # Safety
/// As `sigwait(3)`.
pub unsafe extern "C-unwind" fn sigwait(set: *const libc::sigset_t, signal: *mut c_int) -> c_int {
    loop {
        // SAFETY: Forward; `signal` is the caller's.
        unsafe {
            let got = wait(set, core::ptr::null_mut(), core::ptr::null());
            if got > 0 {
                *signal = got;
                return 0;
            }
            let error = *libc::__errno_location();
            if error != libc::EINTR {
                return error;
            }
        }
    }
}

/// Leaves the tick out of the set.
///
/// # Safety
/// As `signalfd(2)`.
pub unsafe extern "C" fn signalfd(fd: c_int, set: *const libc::sigset_t, flags: c_int) -> c_int {
    let Some(next) = SIGNALFD.get() else { return -1 };
    // SAFETY: the caller's set is null or valid.
    unsafe {
        let Some(mut changed) = set.as_ref().copied().filter(|_| process::is_active()) else {
            return next(fd, set, flags);
        };
        sys::write_signal_set(&mut changed, sys::read_signal_set(set) & !sys::bit(tick_signal()));
        next(fd, &changed, flags)
    }
}
