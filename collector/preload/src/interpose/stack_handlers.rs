//! Handlers of the program for its alternate signal stacks.
//!
//! A breakpoint in such a handler, or in what it calls, puts a second signal frame on the same stack. Programs size their
//! stacks for one: the kernel would kill them. So all breakpoints are removed before a handler begins on a stack without
//! room. Until one does, they stay: most such handlers, those of crashes, never run.
//!
//! The installed actions have the program's flags and mask, but our handler, which jumps to the program's.

use crate::coverage::{self, Failure};
use crate::process;
use crate::signal_entry::{Context, handler_that_forwards, on_handlers_stack};
use crate::signal_frame;
use crate::thread::{self, Thread};
use core::ffi::c_void;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

handler_that_forwards!(
    /// Handler in place of the program's.
    stack_entry,
    on_signal
);

/// The program's handlers, by signal.
static HANDLERS: [AtomicUsize; 65] = [const { AtomicUsize::new(libc::SIG_DFL) }; 65];

/// Bytes below a handler's frame that it may use before it meets a breakpoint: more than it takes to print a stack.
const USED_BY_HANDLER: usize = 64 * 1024;

fn entry() -> usize {
    stack_entry as *const () as usize
}

/// Puts our handler in the program's place, if it may run on an alternate stack while there are breakpoints.
pub fn replace(signal: i32, action: &mut libc::sigaction) {
    let is_handler = !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) && action.sa_sigaction != entry();
    if is_handler && action.sa_flags & libc::SA_ONSTACK != 0 && coverage::is_on() {
        set_program_handler(signal, action.sa_sigaction);
        action.sa_sigaction = entry();
    }
}

/// Sets what ours jumps to.
pub fn set_program_handler(signal: i32, handler: usize) {
    if let Some(known) = HANDLERS.get(signal as usize) {
        known.store(handler, Relaxed);
    }
}

/// The program's handler of a signal, if ours is in its place. Read it before [`replace`].
pub fn program_handler(signal: i32) -> usize {
    HANDLERS
        .get(signal as usize)
        .map_or(libc::SIG_DFL, |handler| handler.load(Relaxed))
}

/// What the program is told of an installed handler. `programs`: its own, if ours is in its place.
pub fn reported(installed: usize, programs: usize) -> usize {
    if installed == entry() { programs } else { installed }
}

/// The handler to jump to.
extern "C" fn on_signal(signal: i32, _info: *mut libc::siginfo_t, context: *mut c_void) -> usize {
    // SAFETY: Frame.
    make_room(unsafe { &*context.cast::<Context>() });
    program_handler(signal)
}

/// Removes all breakpoints if the handler that begins has no room for them. It runs on the handler's stack.
pub fn make_room(context: &Context) {
    if !coverage::is_on() || !process::is_own_memory() {
        return;
    }
    let frame = &raw const *context as usize;
    let [base, _flags, size] = context.stack.map(|part| part as usize);
    // SAFETY: Current.
    let ours = unsafe { thread::current_pointer().as_ref() }.map_or(0, Thread::alternate_stack);
    let is_on_programs = base != 0 && base != ours && (base..base.saturating_add(size)).contains(&frame);
    if is_on_programs && frame - base < signal_frame::size() + USED_BY_HANDLER {
        on_handlers_stack(remove_all);
    }
}

extern "C" fn remove_all() {
    coverage::abandon_here(Failure::Stack);
}
