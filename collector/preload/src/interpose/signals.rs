//! What the program set for the two signals that are really ours, SIGTRAP and the tick.
//!
//! Its actions for them are kept here; a signal that is not ours gets the action the program set: its handler is entered
//! through a signal frame built as the kernel would have built it, on the stack and with the mask that the program expects.
//! In its actions for other signals, our two are never really blocked.

use super::{faults, stacks};
use crate::isolation;
use crate::next_symbol::Real;
use crate::process;
use crate::signal_entry::{self, Context, TRAP_FLAG};
use crate::sys::{self, KernelAction};
use crate::thread::Thread;
use crate::tick;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU64};

/// One of our two signals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Virtual {
    /// SIGTRAP.
    Trap = 0,
    /// The tick.
    Tick = 1,
}

impl Virtual {
    /// Which one a signal is.
    pub fn of(signal: i32) -> Option<Self> {
        match signal {
            libc::SIGTRAP => Some(Self::Trap),
            _ if signal == tick::SIGNAL.load(Relaxed) => Some(Self::Tick),
            _ => None,
        }
    }

    /// Its bit in [`Thread::blocked`] and the like.
    pub fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Splits a mask into the bits of our two signals and the rest.
pub fn split(mask: u64) -> (u8, u64) {
    let (trap, tick) = (sys::bit(libc::SIGTRAP), sys::bit(tick::SIGNAL.load(Relaxed)));
    let ours = u8::from(mask & trap != 0) | u8::from(mask & tick != 0) << 1;
    (ours, mask & !(trap | tick))
}

/// The reverse of [`split`].
pub fn join(ours: u8, rest: u64) -> u64 {
    let mut mask = rest;
    if ours & Virtual::Trap.bit() != 0 {
        mask |= sys::bit(libc::SIGTRAP);
    }
    if ours & Virtual::Tick.bit() != 0 {
        mask |= sys::bit(tick::SIGNAL.load(Relaxed));
    }
    mask
}

struct Action {
    handler: [AtomicU64; 2],
    flags: [AtomicU64; 2],
    mask: [AtomicU64; 2],
}

static ACTION: Action = Action {
    handler: [const { AtomicU64::new(0) }; 2],
    flags: [const { AtomicU64::new(0) }; 2],
    mask: [const { AtomicU64::new(0) }; 2],
};

fn action(which: Virtual) -> KernelAction {
    let at = which as usize;
    KernelAction {
        handler: ACTION.handler[at].load(Relaxed) as usize,
        flags: ACTION.flags[at].load(Relaxed),
        restorer: 0,
        mask: ACTION.mask[at].load(Relaxed),
    }
}

fn set_action(which: Virtual, new: KernelAction) {
    let at = which as usize;
    ACTION.mask[at].store(new.mask, Relaxed);
    ACTION.flags[at].store(new.flags, Relaxed);
    ACTION.handler[at].store(new.handler as u64, Relaxed);
}

/// Takes over what SIGTRAP was set to before us.
pub fn inherit(before: KernelAction) {
    set_action(Virtual::Trap, before);
}

/// A thread that waits for SIGTRAP in `sigwait` or the like, with SIGTRAP really blocked.
pub static WAITER: AtomicI32 = AtomicI32::new(0);

/// Whether the program has handlers of signals that others send.
pub fn has_handlers() -> bool {
    (1..=SIGNALS).any(has_handler)
}

const SIGNALS: i32 = 64;

/// Whether the program has a handler of one signal that others send.
pub fn has_handler(signal: i32) -> bool {
    let is_handler = |handler: usize| !matches!(handler, libc::SIG_DFL | libc::SIG_IGN);
    if let Some(which) = Virtual::of(signal) {
        return is_handler(action(which).handler);
    }
    let mut action = KernelAction::default();
    !faults::SIGNALS.contains(&signal)
        && sys::signal_action(signal, None, Some(&mut action)) == 0
        && is_handler(action.handler)
}

/// The next signal to ask about, in turn.
pub fn next_in_turn() -> i32 {
    static TURN: AtomicI32 = AtomicI32::new(0);
    1 + TURN.fetch_add(1, Relaxed).rem_euclid(SIGNALS)
}

/// Does with a signal that is not ours what the program wants.
///
/// Call from a handler, with its context; the program's handler starts when that handler returns.
pub fn deliver(signal: i32, info: &mut libc::siginfo_t, context: &mut Context) {
    let Some(which) = Virtual::of(signal) else { return };
    let action = action(which);
    // Raised by an instruction: it cannot be held back or ignored.
    let forced = which == Virtual::Trap && info.si_code > 0;
    if which == Virtual::Tick && tick::is_stray(info) {
        return;
    }
    let thread = signal_entry::current_thread();
    // SAFETY: null or this thread's.
    let blocked = unsafe { thread.as_ref() }.map_or(0, |t| t.blocked.load(Relaxed)) & which.bit() != 0;
    if blocked && !forced {
        let waiter = WAITER.load(Relaxed);
        if which == Virtual::Trap && waiter != 0 && waiter != sys::thread_id() {
            sys::queue_signal(waiter, signal, info);
            return;
        }
        // SAFETY: handlers of a thread do not nest, and whoever takes a signal out blocks them.
        if let Some(thread) = unsafe { thread.as_ref() } {
            // SAFETY: as above.
            unsafe { thread.pending_info[which as usize].get().write(*info) };
            thread.pending.fetch_or(which.bit(), Relaxed);
        }
        return;
    }
    match action.handler {
        libc::SIG_IGN if !forced => {}
        libc::SIG_DFL | libc::SIG_IGN => die(signal, info, context),
        _ if forced && blocked => die(signal, info, context),
        _ => enter_handler(which, signal, info, context, action),
    }
}

/// Lets the default action happen, as the handler returns.
fn die(signal: i32, info: &libc::siginfo_t, context: &mut Context) {
    let default = KernelAction::default();
    sys::signal_action(signal, Some(&default), None);
    context.mask &= !sys::bit(signal);
    context.set_trap_flag(false);
    sys::queue_signal(sys::thread_id(), signal, info);
}

/// The kernel's frame without the floating-point state.
#[repr(C)]
struct Frame {
    restorer: usize,
    context: Context,
    info: libc::siginfo_t,
}

/// What the kernel leaves alone below the stack pointer.
const RED_ZONE: u64 = 128;
const FXSAVE: usize = 512;

/// Bytes of the floating-point state that a context points to.
///
/// # Safety
/// It points to the kernel's.
unsafe fn floating_size(state: *const u8) -> usize {
    const EXTENDED: u32 = 0x4650_5853;
    // SAFETY: struct _fpx_sw_bytes at the end of the legacy area: magic, then the size with everything extended.
    let (magic, size) = unsafe { (state.add(464).cast::<u32>().read(), state.add(468).cast::<u32>().read()) };
    if magic == EXTENDED { size as usize } else { FXSAVE }
}

fn enter_handler(which: Virtual, signal: i32, info: &libc::siginfo_t, context: &mut Context, action: KernelAction) {
    let mut stack = context.registers[libc::REG_RSP as usize].wrapping_sub(RED_ZONE);
    let here = context as *const Context as u64;
    let [base, _flags, size] = context.stack;
    // SAFETY: null or this thread's.
    let ours = unsafe { signal_entry::current_thread().as_ref() }.map_or(0, |t| t.alternate_stack() as u64);
    let on_program_alternate = base != 0 && base != ours && (base..base + size).contains(&here);
    if action.flags & libc::SA_ONSTACK as u64 != 0 && on_program_alternate && !(base..base + size).contains(&stack) {
        // Our own frame lies at its top.
        stack = here - size_of::<usize>() as u64;
    }
    // SAFETY: the stack that the kernel would have used, below everything in use; the floating-point state that the
    // kernel saved is as large as it says.
    unsafe {
        let mut floating = core::ptr::null_mut();
        if !context.floating.is_null() {
            let size = floating_size(context.floating);
            stack = stack.wrapping_sub(size as u64) & !63;
            floating = stack as *mut u8;
            core::ptr::copy_nonoverlapping(context.floating, floating, size);
        }
        // As after a call: the return address is at a multiple of 16 minus 8.
        let frame = ((stack.wrapping_sub(size_of::<Frame>() as u64) & !15) - 8) as *mut Frame;
        (*frame).restorer = signal_entry::pleach_restorer as *const () as usize;
        (*frame).context = *context;
        (*frame).context.floating = floating;
        (*frame).info = *info;
        let registers = &mut context.registers;
        registers[libc::REG_RDI as usize] = signal as u64;
        registers[libc::REG_RSI as usize] = &raw const (*frame).info as u64;
        registers[libc::REG_RDX as usize] = &raw const (*frame).context as u64;
        registers[libc::REG_RAX as usize] = 0;
        registers[libc::REG_RIP as usize] = action.handler as u64;
        registers[libc::REG_RSP as usize] = frame as u64;
        const DIRECTION_AND_RESUME: u64 = 0x400 | 0x10000;
        registers[libc::REG_EFL as usize] &= !(TRAP_FLAG | DIRECTION_AND_RESUME);
    }
    context.mask |= split(action.mask).1;
    if action.flags & libc::SA_NODEFER as u64 == 0 {
        // Really, so that the kernel's rules hold; sampling declines meanwhile.
        context.mask |= sys::bit(signal);
    }
    if action.flags & libc::SA_RESETHAND as u64 != 0 {
        set_action(which, KernelAction::default());
    }
}

/// Sends a signal again that was held back and is not blocked any more.
pub fn release_pending(thread: &Thread) {
    for which in [Virtual::Trap, Virtual::Tick] {
        let free = thread.blocked.load(Relaxed) & which.bit() == 0;
        if free && thread.pending.fetch_and(!which.bit(), Relaxed) & which.bit() != 0 {
            let signal = if which == Virtual::Trap {
                libc::SIGTRAP
            } else {
                tick::SIGNAL.load(Relaxed)
            };
            sys::queue_signal(sys::thread_id(), signal, thread.pending_info[which as usize].get());
        }
    }
}

// For every signal: what was taken out of its action, to be shown when the program asks.
const HAD_TRAP: u8 = 1;
const HAD_TICK: u8 = 2;
pub(super) const HAD_STACK: u8 = 4;
pub(super) static TAKEN: [AtomicU8; 65] = [const { AtomicU8::new(0) }; 65];

type Sigaction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
static SIGACTION: Real<Sigaction> = Real::new(c"sigaction");
type Signal = unsafe extern "C" fn(c_int, usize) -> usize;
static SIGNAL: Real<Signal> = Real::new(c"signal");
static SYSV_SIGNAL: Real<Signal> = Real::new(c"__sysv_signal");
static SIGSET: Real<Signal> = Real::new(c"sigset");
static SIGIGNORE: Real<unsafe extern "C" fn(c_int) -> c_int> = Real::new(c"sigignore");

/// Looks the functions up.
pub fn resolve() {
    SIGACTION.get();
    SIGNAL.get();
    SYSV_SIGNAL.get();
    SIGSET.get();
    SIGIGNORE.get();
}

/// The first 64 signals of libc's set, which are all there are.
///
/// # Safety
/// `set` is valid.
pub unsafe fn low(set: *const libc::sigset_t) -> u64 {
    // SAFETY: given.
    unsafe { set.cast::<u64>().read() }
}

/// Writes them.
///
/// # Safety
/// `set` is valid.
pub unsafe fn set_low(set: *mut libc::sigset_t, bits: u64) {
    // SAFETY: given.
    unsafe { set.cast::<u64>().write(bits) };
}

/// A child made by `vfork` has actions of its own, and our memory.
pub(super) fn pretends() -> bool {
    process::is_active() && process::is_own_memory()
}

/// # Safety
/// As `sigaction(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    let Some(real) = SIGACTION.get() else { return -1 };
    if !pretends() || !(1..65).contains(&signal) {
        // SAFETY: forwarded.
        return unsafe { real(signal, new, old) };
    }
    // SAFETY: the caller's pointers are null or valid.
    unsafe {
        if let Some(new) = new.as_ref() {
            isolation::note_action(signal, new.sa_sigaction);
        }
        if let Some(which) = Virtual::of(signal) {
            let before = action(which);
            let new = new.as_ref().map(|new| KernelAction {
                handler: new.sa_sigaction,
                flags: new.sa_flags as u32 as u64,
                restorer: 0,
                mask: low(&new.sa_mask),
            });
            if let Some(old) = old.as_mut() {
                *old = core::mem::zeroed();
                old.sa_sigaction = before.handler;
                old.sa_flags = before.flags as i32;
                set_low(&mut old.sa_mask, before.mask);
            }
            if let Some(new) = new {
                set_action(which, new);
            }
            return 0;
        }
        let taken = &TAKEN[signal as usize];
        let before = taken.load(Relaxed);
        let fault = faults::shown(signal);
        let mut changed = new.as_ref().copied();
        if let Some(new) = changed.as_mut() {
            let (ours, mut rest) = split(low(&new.sa_mask));
            let mut bits = ours & (HAD_TRAP | HAD_TICK);
            if new.sa_flags & libc::SA_ONSTACK != 0 {
                bits |= HAD_STACK;
                if stacks::is_used() {
                    // The program sized that stack for its own handlers: no tick's frame on top of theirs.
                    rest |= sys::bit(tick::SIGNAL.load(Relaxed));
                } else {
                    new.sa_flags &= !libc::SA_ONSTACK;
                }
            }
            set_low(&mut new.sa_mask, rest);
            taken.store(bits, Relaxed);
            *new = faults::replace(signal, new).unwrap_or(*new);
        }
        let result = real(signal, changed.as_ref().map_or(new, |new| new), old);
        if result != 0 {
            taken.store(before, Relaxed);
        } else if let Some(old) = old.as_mut() {
            let (_, rest) = split(low(&old.sa_mask));
            set_low(&mut old.sa_mask, join(before & (HAD_TRAP | HAD_TICK), rest));
            if let Some((handler, flags)) = fault {
                (old.sa_sigaction, old.sa_flags) = (handler, flags);
            }
            if before & HAD_STACK != 0 {
                old.sa_flags |= libc::SA_ONSTACK;
            }
        }
        result
    }
}

/// # Safety
/// As `sigaction(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // SAFETY: forwarded.
    unsafe { sigaction(signal, new, old) }
}

/// The older functions, for our two signals; they set fixed flags.
fn old_style(signal: c_int, handler: usize, flags: c_int, real: &Real<Signal>) -> usize {
    if pretends() {
        isolation::note_action(signal, handler);
    }
    let which = Virtual::of(signal).filter(|_| pretends());
    if let Some(which) = which {
        let before = action(which).handler;
        let mask = if flags & libc::SA_NODEFER != 0 {
            0
        } else {
            sys::bit(signal)
        };
        set_action(
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
    if (1..65).contains(&signal) && pretends() {
        if faults::shown(signal).is_some() {
            return old_style_fault(signal, handler, flags);
        }
        TAKEN[signal as usize].store(0, Relaxed);
    }
    match real.get() {
        // SAFETY: forwarded.
        Some(real) => unsafe { real(signal, handler) },
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
        unsafe { set_low(&mut new.sa_mask, sys::bit(signal)) };
    }
    // SAFETY: both live here.
    match unsafe { sigaction(signal, &new, &mut old) } {
        0 => old.sa_sigaction,
        _ => libc::SIG_ERR,
    }
}

/// # Safety
/// As `signal(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(signal: c_int, handler: usize) -> usize {
    old_style(signal, handler, libc::SA_RESTART, &SIGNAL)
}

/// # Safety
/// As `signal(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsd_signal(signal: c_int, handler: usize) -> usize {
    old_style(signal, handler, libc::SA_RESTART, &SIGNAL)
}

/// # Safety
/// As `signal(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ssignal(signal: c_int, handler: usize) -> usize {
    old_style(signal, handler, libc::SA_RESTART, &SIGNAL)
}

/// # Safety
/// As `sysv_signal(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sysv_signal(signal: c_int, handler: usize) -> usize {
    old_style(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER, &SYSV_SIGNAL)
}

/// # Safety
/// As `sysv_signal(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sysv_signal(signal: c_int, handler: usize) -> usize {
    old_style(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER, &SYSV_SIGNAL)
}

/// # Safety
/// As `sigset(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigset(signal: c_int, handler: usize) -> usize {
    const SIG_HOLD: usize = 2;
    if handler == SIG_HOLD && Virtual::of(signal).is_some() && pretends() {
        let set = sys::bit(signal);
        super::masks::change(libc::SIG_BLOCK, Some(set));
        return Virtual::of(signal).map_or(libc::SIG_ERR, |which| action(which).handler);
    }
    old_style(signal, handler, 0, &SIGSET)
}

/// # Safety
/// As `sigignore(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigignore(signal: c_int) -> c_int {
    if let Some(which) = Virtual::of(signal).filter(|_| pretends()) {
        set_action(
            which,
            KernelAction {
                handler: libc::SIG_IGN,
                ..KernelAction::default()
            },
        );
        return 0;
    }
    if faults::shown(signal).is_some() && pretends() {
        old_style_fault(signal, libc::SIG_IGN, 0);
        return 0;
    }
    match SIGIGNORE.get() {
        // SAFETY: forwarded.
        Some(real) => unsafe { real(signal) },
        None => -1,
    }
}
