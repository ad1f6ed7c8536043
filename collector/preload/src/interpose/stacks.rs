//! Alternate signal stacks: the program's replaces ours, which the program never sees.

use crate::burst::sampler::Sampler;
use crate::counters;
use crate::coverage::{self, Failure};
use crate::dispositions::{REMOVED, REMOVED_ONSTACK};
use crate::next_symbol::NextSymbol;
use crate::owned_signals::tick_signal;
use crate::process;
use crate::signal_frame;
use crate::sys::{self, KernelAction};
use crate::thread::Thread;
use crate::threads;
use crate::tick;
use crate::waiting;
use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

/// Whether the program set an alternate stack in any thread. Until then, ours is the only one, and the program's
/// handlers must not run on it.
static PROGRAM_STACK: AtomicBool = AtomicBool::new(false);
type Sigaltstack = unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> c_int;
static SIGALTSTACK: NextSymbol<Sigaltstack> = NextSymbol::new(c"sigaltstack");

/// Flag of `sigaltstack(2)`: the stack is disarmed while a handler runs on it.
const SS_AUTODISARM: c_int = 1 << 31;

/// Looks the function up.
pub fn resolve() {
    SIGALTSTACK.get();
}

/// Whether the program ever set one.
pub fn is_used() -> bool {
    PROGRAM_STACK.load(Relaxed)
}

/// The program's alternate stack, if the thread runs on it.
fn program_stack_in_use(thread: &Thread) -> Option<libc::stack_t> {
    if !PROGRAM_STACK.load(Relaxed) {
        return None;
    }
    let mut now = libc::stack_t {
        ss_sp: core::ptr::null_mut(),
        ss_flags: 0,
        ss_size: 0,
    };
    // SAFETY: Kernel: `now` lives here.
    unsafe { sys::syscall!(libc::SYS_sigaltstack, 0, &raw mut now) };
    (now.ss_flags & libc::SS_ONSTACK != 0 && now.ss_sp as usize != thread.alternate_stack()).then_some(now)
}

/// Whether the thread runs on an alternate stack of the program's.
pub fn is_on_program_stack(thread: &Thread) -> bool {
    program_stack_in_use(thread).is_some()
}

/// Call before a jump that may leave a handler. If it leaves the program's alternate stack, which has no room for a
/// second frame, ticks are off until there is another alternate stack: the jump unblocks them before it leaves it.
///
/// It runs on that stack, so it uses little of it, and calls nothing that takes the sampler.
pub extern "C" fn before_jump() {
    if !PROGRAM_STACK.load(Relaxed) || !process::is_sampled_here() {
        return;
    }
    let Some(thread) = Thread::current() else { return };
    if program_stack_in_use(thread).is_none_or(|stack| stack.ss_size >= 2 * signal_frame::size())
        || thread.paused.swap(1, Relaxed) != 0
    {
        return;
    }
    counters::UNSAMPLED.fetch_add(1, Relaxed);
    if waiting::is_waiting() {
        waiting::pause();
    }
    // From now on, a burst that is going on arms nothing at its end.
    tick::disable(thread.published.tick_source());
    thread.published.disable_timing();
    // The handler's mask blocks it.
    let tick = sys::bit(tick_signal());
    let before = sys::signal_mask(libc::SIG_BLOCK, tick);
    sys::drop_pending(tick);
    sys::signal_mask(libc::SIG_SETMASK, before);
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
            Some(new) => {
                // No tick may find a stack that is too small for it. The kernel does not say of a stack that it disarms
                // whether a handler runs on it.
                let was_paused = thread.paused.load(Relaxed) != 0;
                let frames = if new.ss_flags & SS_AUTODISARM != 0 { 2 } else { 1 };
                let is_small = new.ss_size < frames * signal_frame::size();
                if is_small {
                    pause(thread, true);
                }
                if new.ss_size < signal_frame::size() {
                    coverage::abandon_here(Failure::Stack);
                }
                let result = next(new, &mut before);
                pause(thread, if result == 0 { is_small } else { was_paused });
                result
            }
            None => next(new, &mut before),
        };
        if result != 0 {
            return result;
        }
        if new.as_ref().is_some_and(|new| new.ss_flags & libc::SS_DISABLE == 0) && !PROGRAM_STACK.swap(true, Relaxed) {
            give_handlers_their_stack();
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
            sampler.timing.stop();
            sys::drop_pending(sys::bit(tick_signal()));
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
