//! The signals that instructions raise. Shadow execution may read unmapped memory: its faults must not
//! reach the program, and the program's own faults must.
//!
//! The installed actions have the program's flags and mask, but our handler. It jumps to the program's handler with all
//! registers and the stack as the kernel left them.

use super::stack_handlers;
use crate::burst::engines;
use crate::owned_signals::FAULTS;
use crate::process;
use crate::signal_entry::{self, Context, SA_RESTORER, handler_that_forwards};
use crate::sys::{self, KernelAction};
use crate::thread;
use core::ffi::c_void;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize};

handler_that_forwards!(
    /// Handler of the signals that instructions raise.
    fault_entry,
    on_fault
);

/// The handlers and flags that the program set.
static HANDLERS: [AtomicUsize; 4] = [const { AtomicUsize::new(libc::SIG_DFL) }; 4];
static FLAGS: [AtomicI32; 4] = [const { AtomicI32::new(0) }; 4];

fn index(signal: i32) -> Option<usize> {
    FAULTS.iter().position(|s| *s == signal)
}

/// Whether the program has handlers of these signals, which may jump anywhere.
pub fn are_handled() -> bool {
    let is_handler = |handler: usize| !matches!(handler, libc::SIG_DFL | libc::SIG_IGN);
    FAULTS
        .iter()
        .zip(&HANDLERS)
        .any(|(&signal, handler)| match are_taken_over() {
            true => is_handler(handler.load(Relaxed)),
            false => {
                let mut action = KernelAction::default();
                sys::signal_action(signal, None, Some(&mut action)) == 0 && is_handler(action.handler)
            }
        })
}

static TAKEN_OVER: AtomicBool = AtomicBool::new(false);

/// Whether our handler is installed for the signals that instructions raise.
pub fn are_taken_over() -> bool {
    TAKEN_OVER.load(Relaxed)
}

/// Installs our handler for the four signals, and keeps their present actions. False if the kernel refuses.
pub fn install() -> bool {
    let installed = FAULTS.iter().enumerate().all(|(at, &signal)| {
        let mut action = KernelAction::default();
        if sys::signal_action(signal, None, Some(&mut action)) != 0 {
            return false;
        }
        HANDLERS[at].store(action.handler, Relaxed);
        FLAGS[at].store(action.flags as i32, Relaxed);
        action.handler = handler();
        action.flags = flags(action.flags as i32) as u32 as u64 | SA_RESTORER;
        action.restorer = signal_entry::pleach_restorer as *const () as usize;
        sys::signal_action(signal, Some(&action), None) == 0
    });
    TAKEN_OVER.store(installed, Relaxed);
    installed
}

fn handler() -> usize {
    fault_entry as *const () as usize
}

/// The flags for our handler in place of the program's: it needs the context, and stays installed.
fn flags(programs: i32) -> i32 {
    (programs | libc::SA_SIGINFO) & !libc::SA_RESETHAND
}

/// Whether faults would reach us: the program may have changed an action by a raw system call.
pub fn are_ours() -> bool {
    [libc::SIGSEGV, libc::SIGBUS].iter().all(|&signal| {
        let mut action = KernelAction::default();
        sys::signal_action(signal, None, Some(&mut action)) == 0 && action.handler == handler()
    })
}

/// The action to install in place of the program's; `None` for other signals, and where faults are not taken over.
pub fn replace(signal: i32, action: &libc::sigaction) -> Option<libc::sigaction> {
    let at = index(signal).filter(|_| are_taken_over())?;
    let mut ours = *action;
    HANDLERS[at].store(action.sa_sigaction, Relaxed);
    // libc adds this flag, and reports it to the program.
    FLAGS[at].store(action.sa_flags | SA_RESTORER as i32, Relaxed);
    ours.sa_sigaction = handler();
    ours.sa_flags = flags(action.sa_flags);
    Some(ours)
}

/// The handler and flags that the program set, to be reported to it.
pub fn program_action(signal: i32) -> Option<(usize, i32)> {
    let at = index(signal).filter(|_| are_taken_over())?;
    Some((HANDLERS[at].load(Relaxed), FLAGS[at].load(Relaxed)))
}

/// Installs the program's own actions, for good.
pub fn give_back() {
    if !are_taken_over() {
        return;
    }
    for (at, &signal) in FAULTS.iter().enumerate() {
        let mut action = KernelAction::default();
        if sys::signal_action(signal, None, Some(&mut action)) == 0 && action.handler == handler() {
            action.handler = HANDLERS[at].load(Relaxed);
            action.flags = FLAGS[at].load(Relaxed) as u32 as u64 | SA_RESTORER;
            sys::signal_action(signal, Some(&action), None);
        }
    }
}

/// Installs the ignored signals as ignored before `exec` (`leaving`), which inherits them; undoes that if `exec`
/// failed.
pub fn prepare_exec(leaving: bool) {
    if !are_taken_over() {
        return;
    }
    for (at, &signal) in FAULTS.iter().enumerate() {
        let mut action = KernelAction::default();
        if HANDLERS[at].load(Relaxed) == libc::SIG_IGN && sys::signal_action(signal, None, Some(&mut action)) == 0 {
            action.handler = if leaving { libc::SIG_IGN } else { handler() };
            sys::signal_action(signal, Some(&action), None);
        }
    }
}

/// The program's handler to jump to; 0 if there is nothing more to do.
pub extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) -> usize {
    // SAFETY: Frame.
    let (info, context) = unsafe { (&mut *info, &mut *context.cast::<Context>()) };
    let raised = info.si_code > 0;
    // SAFETY: Current.
    let thread = unsafe { thread::current_pointer().as_ref() };
    if let Some(engine) = thread.and_then(|thread| thread.running_engine.get()) {
        if !raised {
            // A sent signal is queued again, to be delivered when the burst, which ends here, is over.
            context.mask |= sys::bit(signal);
            sys::queue_signal(sys::thread_id(), signal, info);
        }
        if engines::recover(engine, context) {
            return 0;
        }
    }
    let Some(at) = index(signal) else { return 0 };
    let handler = HANDLERS[at].load(Relaxed);
    match handler {
        libc::SIG_IGN if !raised => 0,
        libc::SIG_DFL | libc::SIG_IGN => {
            // The instruction runs again and meets the default action; a sent signal is sent again.
            sys::signal_action(signal, Some(&KernelAction::default()), None);
            if !raised {
                context.mask &= !sys::bit(signal);
                sys::queue_signal(sys::thread_id(), signal, info);
            }
            0
        }
        _ => {
            if FLAGS[at].load(Relaxed) & libc::SA_RESETHAND != 0 && process::is_own_memory() {
                HANDLERS[at].store(libc::SIG_DFL, Relaxed);
            }
            stack_handlers::make_room(context);
            handler
        }
    }
}
