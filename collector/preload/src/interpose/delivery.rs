//! Delivery of SIGTRAP and of the tick's signal if the sampler did not cause them: the program's handler is entered
//! through a signal frame like the kernel's, on the stack and with the mask that the program expects.

use crate::coverage;
use crate::dispositions::{set_virtual_action, virtual_action};
use crate::owned_signals::{OwnedSignal, split};
use crate::signal_entry::{self, Context, TRAP_FLAG};
use crate::sys::{self, KernelAction};
use crate::thread::{self, Thread};
use crate::tick;
use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::Relaxed;

/// A thread that waits for SIGTRAP in `sigwait` or the like, with SIGTRAP really blocked.
pub static WAITER: AtomicI32 = AtomicI32::new(0);

/// Performs the program's action for an owned signal that the sampler did not cause.
///
/// Call from a handler, with its context; the program's handler starts when that handler returns.
pub fn deliver(signal: i32, info: &mut libc::siginfo_t, context: &mut Context) {
    let Some(which) = OwnedSignal::from_number(signal) else {
        return;
    };
    let action = virtual_action(which);
    // An instruction raised it: it cannot stay pending or be ignored.
    let forced = which == OwnedSignal::Trap && info.si_code > 0;
    if which == OwnedSignal::Tick && tick::is_stray(info) {
        return;
    }
    let thread = thread::current_pointer();
    // SAFETY: Current.
    let blocked = unsafe { thread.as_ref() }.map_or(0, |t| t.blocked.load(Relaxed)) & which.bit() != 0;
    if blocked && !forced {
        let waiter = WAITER.load(Relaxed);
        if which == OwnedSignal::Trap && waiter != 0 && waiter != sys::thread_id() {
            sys::queue_signal(waiter, signal, info);
            return;
        }
        // SAFETY: Current.
        if let Some(thread) = unsafe { thread.as_ref() } {
            // SAFETY: Handler: only handlers of this thread write it, and they do not nest; the program's functions
            // read it after they cleared the pending bit, while the signal is delivered instead of kept.
            unsafe { thread.pending_info[which as usize].get().write(*info) };
            thread.pending.fetch_or(which.bit(), Relaxed);
        }
        return;
    }
    match action.handler {
        libc::SIG_IGN if !forced => {}
        libc::SIG_DFL | libc::SIG_IGN => default_action(signal, info, context),
        _ if forced && blocked => default_action(signal, info, context),
        _ => {
            if which == OwnedSignal::Trap {
                // The handler runs with SIGTRAP really blocked: a breakpoint in it would be fatal.
                coverage::abandon(coverage::Failure::Signals);
            }
            enter_handler(which, signal, info, context, action);
        }
    }
}

/// Makes the default action happen when our handler returns.
fn default_action(signal: i32, info: &libc::siginfo_t, context: &mut Context) {
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

/// Bytes below the stack pointer that code may use.
const RED_ZONE: u64 = 128;
const FXSAVE: usize = 512;

/// Bytes of the floating-point state that a context points to.
///
/// # Safety
/// `state` points to a floating-point state that the kernel saved.
unsafe fn floating_size(state: *const u8) -> usize {
    const EXTENDED: u32 = 0x4650_5853;
    // SAFETY: struct _fpx_sw_bytes at the end of the legacy area: magic, then the size with everything extended.
    let (magic, size) = unsafe { (state.add(464).cast::<u32>().read(), state.add(468).cast::<u32>().read()) };
    if magic == EXTENDED { size as usize } else { FXSAVE }
}

fn enter_handler(which: OwnedSignal, signal: i32, info: &libc::siginfo_t, context: &mut Context, action: KernelAction) {
    let mut stack = context.registers[libc::REG_RSP as usize].wrapping_sub(RED_ZONE);
    let here = context as *const Context as u64;
    let [base, _flags, size] = context.stack;
    // SAFETY: Current.
    let ours = unsafe { thread::current_pointer().as_ref() }.map_or(0, |t| t.alternate_stack() as u64);
    let on_program_alternate = base != 0 && base != ours && (base..base + size).contains(&here);
    if action.flags & libc::SA_ONSTACK as u64 != 0 && on_program_alternate && !(base..base + size).contains(&stack) {
        // Our own frame is at the top of that stack.
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
        // Really blocked, as the kernel does; bursts are declined meanwhile.
        context.mask |= sys::bit(signal);
    }
    if action.flags & libc::SA_RESETHAND as u64 != 0 {
        set_virtual_action(which, KernelAction::default());
    }
}

/// Sends the pending signals again that the program no longer blocks.
pub fn release_pending(thread: &Thread) {
    for which in [OwnedSignal::Trap, OwnedSignal::Tick] {
        let free = thread.blocked.load(Relaxed) & which.bit() == 0;
        if free && thread.pending.fetch_and(!which.bit(), Relaxed) & which.bit() != 0 {
            // SAFETY: the bit was set, and is clear now: nobody writes it.
            let info = unsafe { *thread.pending_info[which as usize].get() };
            sys::queue_signal(sys::thread_id(), which.number(), &info);
        }
    }
}
