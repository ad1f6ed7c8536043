//! Signal actions. The program's actions for SIGTRAP and the tick are kept, but not installed. In its actions for other
//! signals, the masks never really block these two.

use super::{faults, masks, sharing_child, stack_handlers, stacks};
use crate::dispositions::{REMOVED, REMOVED_ONSTACK, REMOVED_TICK, REMOVED_TRAP, set_virtual_action, virtual_action};
use crate::isolation;
use crate::next_symbol::NextSymbol;
use crate::owned_signals::{OwnedSignal, join, split, tick_signal};
use crate::process;
use crate::sys::{self, KernelAction, read_signal_set, write_signal_set};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

type Sigaction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
static SIGACTION: NextSymbol<Sigaction> = NextSymbol::new(c"sigaction");
type Signal = unsafe extern "C" fn(c_int, usize) -> usize;
static SIGNAL: NextSymbol<Signal> = NextSymbol::new(c"signal");
static SYSV_SIGNAL: NextSymbol<Signal> = NextSymbol::new(c"__sysv_signal");
static SIGSET: NextSymbol<Signal> = NextSymbol::new(c"sigset");
static SIGIGNORE: NextSymbol<unsafe extern "C" fn(c_int) -> c_int> = NextSymbol::new(c"sigignore");

/// Looks the functions up.
pub fn resolve() {
    SIGACTION.get();
    SIGNAL.get();
    SYSV_SIGNAL.get();
    SIGSET.get();
    SIGIGNORE.get();
}

/// The real `sigaction`, which reports the program's handlers.
///
/// # Safety
/// As `sigaction(2)`; `next` is the real one.
unsafe fn next_reported(
    next: Sigaction,
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: Forward: the caller's pointers are null or valid.
    unsafe {
        let result = next(signal, new, old);
        if let Some(old) = old.as_mut().filter(|_| result == 0) {
            old.sa_sigaction = stack_handlers::reported(old.sa_sigaction, stack_handlers::program_handler(signal));
        }
        result
    }
}

/// # Safety
/// As `sigaction(2)`.
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    let Some(next) = SIGACTION.get() else { return -1 };
    if (1..65).contains(&signal) && sharing_child::is_caller() {
        // SAFETY: Forward.
        return unsafe { sharing_child::sigaction(|new, old| next_reported(next, signal, new, old), signal, new, old) };
    }
    if !process::is_sampled_here() || !(1..65).contains(&signal) {
        // SAFETY: Forward.
        return unsafe { next_reported(next, signal, new, old) };
    }
    // SAFETY: Forward: the caller's pointers are null or valid.
    unsafe {
        if let Some(new) = new.as_ref() {
            isolation::note_action(signal, new.sa_sigaction);
        }
        if let Some(which) = OwnedSignal::from_number(signal) {
            let before = virtual_action(which);
            let new = new.as_ref().map(|new| KernelAction {
                handler: new.sa_sigaction,
                flags: new.sa_flags as u32 as u64,
                restorer: 0,
                mask: read_signal_set(&new.sa_mask),
            });
            if let Some(old) = old.as_mut() {
                *old = before.into();
            }
            if let Some(new) = new {
                set_virtual_action(which, new);
            }
            return 0;
        }
        let removed = &REMOVED[signal as usize];
        let before = removed.load(Relaxed);
        let fault = faults::program_action(signal);
        let handler_before = stack_handlers::program_handler(signal);
        let mut changed = new.as_ref().copied();
        if let Some(new) = changed.as_mut() {
            let (ours, mut rest) = split(read_signal_set(&new.sa_mask));
            let mut bits = ours & (REMOVED_TRAP | REMOVED_TICK);
            if fault.is_none() {
                stack_handlers::replace(signal, new);
            }
            if new.sa_flags & libc::SA_ONSTACK != 0 {
                bits |= REMOVED_ONSTACK;
                if stacks::is_used() {
                    // The program sized that stack for its own handlers, so no tick may add a frame there.
                    rest |= sys::bit(tick_signal());
                } else {
                    new.sa_flags &= !libc::SA_ONSTACK;
                }
            }
            write_signal_set(&mut new.sa_mask, rest);
            removed.store(bits, Relaxed);
            *new = faults::replace(signal, new).unwrap_or(*new);
        }
        let result = next(signal, changed.as_ref().map_or(new, |new| new), old);
        if result != 0 {
            removed.store(before, Relaxed);
            stack_handlers::set_program_handler(signal, handler_before);
        } else if let Some(old) = old.as_mut() {
            let (_, rest) = split(read_signal_set(&old.sa_mask));
            write_signal_set(&mut old.sa_mask, join(before & (REMOVED_TRAP | REMOVED_TICK), rest));
            if let Some((handler, flags)) = fault {
                (old.sa_sigaction, old.sa_flags) = (handler, flags);
            }
            old.sa_sigaction = stack_handlers::reported(old.sa_sigaction, handler_before);
            if before & REMOVED_ONSTACK != 0 {
                old.sa_flags |= libc::SA_ONSTACK;
            }
        }
        result
    }
}

/// # Safety
/// As `sigaction(2)`.
pub unsafe extern "C" fn __sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // SAFETY: Forward.
    unsafe { sigaction(signal, new, old) }
}

/// The owned signal with this number, if its state is virtual for the caller.
fn virtual_signal(signal: c_int) -> Option<OwnedSignal> {
    OwnedSignal::from_number(signal).filter(|_| process::is_sampled_here() || sharing_child::is_caller())
}

/// Sets the program's action for an owned signal, but not for a child that shares this memory.
fn set_own_action(which: OwnedSignal, new: KernelAction) {
    if process::is_own_memory() {
        set_virtual_action(which, new);
    }
}

/// The older functions, which set fixed flags.
fn old_style(signal: c_int, handler: usize, flags: c_int, next: &NextSymbol<Signal>) -> usize {
    if process::is_sampled_here() {
        isolation::note_action(signal, handler);
    }
    if let Some(which) = virtual_signal(signal) {
        let before = virtual_action(which).handler;
        let mask = if flags & libc::SA_NODEFER != 0 {
            0
        } else {
            sys::bit(signal)
        };
        set_own_action(
            which,
            KernelAction {
                handler,
                flags: flags as u64,
                restorer: 0,
                mask,
            },
        );
        return before;
    }
    if (1..65).contains(&signal) && process::is_sampled_here() {
        if faults::program_action(signal).is_some() {
            return old_style_fault(signal, handler, flags);
        }
        REMOVED[signal as usize].store(0, Relaxed);
    }
    match next.get() {
        // SAFETY: Forward.
        Some(next) => stack_handlers::reported(
            unsafe { next(signal, handler) },
            stack_handlers::program_handler(signal),
        ),
        None => libc::SIG_ERR,
    }
}

/// The older functions, for signals that instructions raise.
fn old_style_fault(signal: c_int, handler: usize, flags: c_int) -> usize {
    // SAFETY: all zeroes is valid for this plain structure.
    let (mut new, mut old): (libc::sigaction, libc::sigaction) = unsafe { core::mem::zeroed() };
    new.sa_sigaction = handler;
    new.sa_flags = flags;
    if flags & libc::SA_NODEFER == 0 {
        // SAFETY: the set lives here.
        unsafe { write_signal_set(&mut new.sa_mask, sys::bit(signal)) };
    }
    // SAFETY: Kernel: both live here.
    match unsafe { sigaction(signal, &new, &mut old) } {
        0 => old.sa_sigaction,
        _ => libc::SIG_ERR,
    }
}

/// # Safety
/// As `signal(2)`.
pub unsafe extern "C" fn signal(signal: c_int, handler: usize) -> usize {
    old_style(signal, handler, libc::SA_RESTART, &SIGNAL)
}

/// # Safety
/// As `signal(2)`.
pub unsafe extern "C" fn bsd_signal(signal: c_int, handler: usize) -> usize {
    old_style(signal, handler, libc::SA_RESTART, &SIGNAL)
}

/// # Safety
/// As `signal(2)`.
pub unsafe extern "C" fn ssignal(signal: c_int, handler: usize) -> usize {
    old_style(signal, handler, libc::SA_RESTART, &SIGNAL)
}

/// # Safety
/// As `sysv_signal(3)`.
pub unsafe extern "C" fn __sysv_signal(signal: c_int, handler: usize) -> usize {
    old_style(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER, &SYSV_SIGNAL)
}

/// # Safety
/// As `sysv_signal(3)`.
pub unsafe extern "C" fn sysv_signal(signal: c_int, handler: usize) -> usize {
    old_style(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER, &SYSV_SIGNAL)
}

/// # Safety
/// As `sigset(3)`.
pub unsafe extern "C" fn sigset(signal: c_int, handler: usize) -> usize {
    const SIG_HOLD: usize = 2;
    if handler == SIG_HOLD
        && let Some(which) = virtual_signal(signal)
    {
        masks::change(libc::SIG_BLOCK, Some(sys::bit(signal)));
        return virtual_action(which).handler;
    }
    old_style(signal, handler, 0, &SIGSET)
}

/// # Safety
/// As `sigignore(3)`.
pub unsafe extern "C" fn sigignore(signal: c_int) -> c_int {
    if let Some(which) = virtual_signal(signal) {
        set_own_action(
            which,
            KernelAction {
                handler: libc::SIG_IGN,
                ..KernelAction::default()
            },
        );
        return 0;
    }
    if faults::program_action(signal).is_some() && process::is_sampled_here() {
        old_style_fault(signal, libc::SIG_IGN, 0);
        return 0;
    }
    match SIGIGNORE.get() {
        // SAFETY: Forward.
        Some(next) => unsafe { next(signal) },
        None => -1,
    }
}
