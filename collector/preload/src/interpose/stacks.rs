//! Alternate signal stacks: the program's replaces ours, which the program never sees.

use crate::burst::sampler::Sampler;
use crate::counters;
use crate::dispositions::{REMOVED, REMOVED_ONSTACK};
use crate::next_symbol::NextSymbol;
use crate::owned_signals::tick_signal;
use crate::process;
use crate::signal_frame;
use crate::sys::{self, KernelAction};
use crate::thread::Thread;
use crate::threads;
use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

/// Whether the program set an alternate stack in any thread. Until then, ours is the only one, and the program's
/// handlers must not run on it.
static PROGRAM_STACK: AtomicBool = AtomicBool::new(false);
type Sigaltstack = unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> c_int;
static SIGALTSTACK: NextSymbol<Sigaltstack> = NextSymbol::new(c"sigaltstack");

/// Signal frames that the program's alternate stack must have room for. A handler that leaves it by `siglongjmp` unblocks
/// ticks first, and one that is pending then comes on top of the frame of the program's own signal.
const FRAMES: usize = 2;

/// Looks the function up.
pub fn resolve() {
    SIGALTSTACK.get();
}

/// Whether the program ever set one.
pub fn is_used() -> bool {
    PROGRAM_STACK.load(Relaxed)
}

/// Whether the thread runs on an alternate stack of the program's.
pub fn is_on_program_stack(thread: &Thread) -> bool {
    if !PROGRAM_STACK.load(Relaxed) {
        return false;
    }
    let mut now = libc::stack_t {
        ss_sp: core::ptr::null_mut(),
        ss_flags: 0,
        ss_size: 0,
    };
    // SAFETY: Kernel: `now` lives here.
    unsafe { sys::syscall!(libc::SYS_sigaltstack, 0, &raw mut now) };
    now.ss_flags & libc::SS_ONSTACK != 0 && now.ss_sp as usize != thread.alternate_stack()
}

/// Replaces our alternate stack by the program's, and reports the program's only.
///
/// # Safety
/// As `sigaltstack(2)`.
pub unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    let Some(next) = SIGALTSTACK.get() else { return -1 };
    let Some(thread) = Thread::current().filter(|_| process::is_sampled_here()) else {
        // SAFETY: Forward.
        return unsafe { next(new, old) };
    };
    let ours = thread.alternate_stack() as *mut c_void;
    let mut before = libc::stack_t {
        ss_sp: core::ptr::null_mut(),
        ss_flags: 0,
        ss_size: 0,
    };
    // SAFETY: Forward: the caller's pointers are null or valid.
    unsafe {
        let result = match new.as_ref() {
            Some(new) if new.ss_flags & libc::SS_DISABLE != 0 => {
                let mut result = next(core::ptr::null(), &mut before);
                if before.ss_sp != ours {
                    result = next(new, core::ptr::null_mut());
                    if result == 0 {
                        thread.use_alternate_stack();
                        pause(thread, false);
                    }
                }
                result
            }
            _ => next(new, &mut before),
        };
        if result != 0 {
            return result;
        }
        if let Some(new) = new.as_ref().filter(|new| new.ss_flags & libc::SS_DISABLE == 0) {
            pause(thread, new.ss_size < FRAMES * signal_frame::size());
            if !PROGRAM_STACK.swap(true, Relaxed) {
                give_handlers_their_stack();
            }
        }
        if let Some(old) = old.as_mut() {
            if before.ss_sp == ours {
                before = libc::stack_t {
                    ss_sp: core::ptr::null_mut(),
                    ss_flags: libc::SS_DISABLE,
                    ss_size: 0,
                };
            }
            *old = before;
        }
    }
    0
}

/// Disables ticks while the program's alternate stack is too small for them.
fn pause(thread: &Thread, paused: bool) {
    if thread.paused.swap(paused.into(), Relaxed) == u8::from(paused) {
        return;
    }
    threads::end_wait();
    let _blocked = sys::SignalsBlocked::new();
    let change = |sampler: &mut Sampler| {
        if paused {
            counters::UNSAMPLED.fetch_add(1, Relaxed);
            sampler.ticker.disable();
        } else {
            sampler.ticker.arm_next();
        }
    };
    // SAFETY: Owner: signals are blocked.
    unsafe { thread.with_sampler(change) };
}

/// Restores `SA_ONSTACK` in the actions from which it was removed.
fn give_handlers_their_stack() {
    let tick = sys::bit(tick_signal());
    for (signal, taken) in REMOVED.iter().enumerate().skip(1) {
        if taken.load(Relaxed) & REMOVED_ONSTACK == 0 {
            continue;
        }
        let mut action = KernelAction::default();
        if sys::signal_action(signal as i32, None, Some(&mut action)) == 0 && action.handler > libc::SIG_IGN {
            action.flags |= libc::SA_ONSTACK as u64;
            action.mask |= tick;
            sys::signal_action(signal as i32, Some(&action), None);
        }
    }
}
