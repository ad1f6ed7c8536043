//! The handlers of the tick and of SIGTRAP.

use crate::account;
use crate::burst::engines::RunningEngine;
use crate::burst::sampler::Sampler;
use crate::coverage;
use crate::dispositions;
use crate::interpose::{delivery, faults};
use crate::owned_signals::{self, OwnedSignal};
use crate::signal_entry::{self, Context, SA_RESTORER, handler_on_own_stack};
use crate::sys::{self, KernelAction};
use crate::{process, settings, thread, threads, waiting};
use core::ffi::c_void;
use pleach_wire::kinds::Engine;

handler_on_own_stack!(
    /// Handler of the tick's signal.
    tick_entry,
    on_tick
);
handler_on_own_stack!(
    /// Handler of SIGTRAP.
    trap_entry,
    on_trap
);

/// Chooses the tick's signal and installs the handlers. False: no real-time signal is free.
pub fn install() -> bool {
    // Programs often use the last real-time signals.
    let (top, bottom) = (libc::SIGRTMAX() - 3, libc::SIGRTMIN());
    let free = (bottom..=top).rev().find(|&signal| {
        let mut action = KernelAction::default();
        sys::signal_action(signal, None, Some(&mut action)) == 0 && action.handler == libc::SIG_DFL
    });
    let Some(signal) = free else { return false };
    owned_signals::set_tick_signal(signal);
    let mut action = KernelAction {
        handler: tick_entry as *const () as usize,
        flags: SA_RESTORER | (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART) as u64,
        restorer: signal_entry::pleach_restorer as *const () as usize,
        // All signals are blocked: a handler of the program must find the program's mask, not ours.
        mask: sys::ALL_SIGNALS,
    };
    let mut before = KernelAction::default();
    let ticks = sys::signal_action(signal, Some(&action), None) == 0;
    action.handler = trap_handler();
    let traps = sys::signal_action(libc::SIGTRAP, Some(&action), Some(&mut before)) == 0;
    dispositions::set_virtual_action(OwnedSignal::Trap, before);
    ticks && traps
}

fn trap_handler() -> usize {
    trap_entry as *const () as usize
}

/// Whether traps would reach our handler. The program may block them, or have changed the action by a raw system call.
fn are_traps_ours(context: &Context) -> bool {
    let mut action = KernelAction::default();
    context.mask & sys::bit(libc::SIGTRAP) == 0
        && sys::signal_action(libc::SIGTRAP, None, Some(&mut action)) == 0
        && action.handler == trap_handler()
}

/// Whether faults would reach our handler. The program may block them, because a burst unblocks them.
fn are_faults_ours() -> bool {
    faults::are_taken_over() && faults::are_ours()
}

/// The tick's signal. Runs on the handlers' stack with all signals blocked.
extern "C" fn on_tick(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    let pointer = thread::current_pointer();
    // SAFETY: Frame.
    let (info, context) = unsafe { (&mut *info, &mut *context.cast::<Context>()) };
    if waiting::sent(info) {
        // Otherwise a late one.
        if waiting::is_waiting() && !process::is_stopped() {
            threads::end_wait();
        }
        return;
    }
    // SAFETY: Current.
    if let Some(thread) = unsafe { pointer.as_ref() } {
        let act = |sampler: &mut Sampler| {
            let is_tick = sampler.ticker.sent(pointer.cast(), info);
            let is_timing = !is_tick && sampler.timing.sent(info);
            if is_tick && !process::is_stopped() {
                begin_burst(sampler, context, &thread.running_engine);
            } else if is_timing && !process::is_stopped() {
                sampler.timing.on_overflow(&mut sampler.ticker);
            }
            is_tick || is_timing
        };
        // SAFETY: Owner: a handler of this thread.
        if unsafe { thread.with_sampler(act) } {
            return;
        }
    }
    delivery::deliver(signal, info, context);
}

/// Whether the settings want this thread sampled. Its name may change, so it is asked for at each tick.
fn is_wanted_thread() -> bool {
    let wanted = &settings::get().threads;
    if wanted.is_all() {
        return true;
    }
    let name = sys::thread_name();
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    wanted.admits(name, sys::thread_id() as u32)
}

/// Begins a burst where the program was interrupted, continues a stepped burst, or declines the tick.
fn begin_burst(sampler: &mut Sampler, context: &mut Context, running: &RunningEngine) {
    coverage::tick();
    let cpu = sys::thread_cpu_ns();
    sampler.timing.cancel(&mut sampler.ticker);
    if sampler.stepper.is_active() {
        sampler.step_again(context, cpu);
        return;
    }
    let engine = settings::engine();
    let verifies = engine == Engine::RunAhead && settings::get().verify;
    let steps = engine == Engine::Step || verifies;
    let declined =
        !context.is_64_bit() || engine == Engine::RunAhead && !are_faults_ours() || steps && !are_traps_ours(context);
    if declined || account::is_full() || !is_wanted_thread() {
        sampler.decline(cpu);
        return;
    }
    let cpu = if engine == Engine::RunAhead {
        sampler.reserve_engine(cpu)
    } else {
        cpu
    };
    sampler.record.begin(context.pc(), cpu);
    if verifies
        && !(sampler.stepper.can_begin(context) && sampler.verification.begin(sampler.ordinal, context, running))
    {
        sampler.decline(cpu);
    } else if steps {
        sampler.step_first(context);
    } else {
        sampler.run_ahead(context, running);
    }
}

/// SIGTRAP. Runs on the handlers' stack with all signals blocked.
extern "C" fn on_trap(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    const TRAP_TRACE: i32 = 2;
    // SAFETY: Frame.
    let (info, context) = unsafe { (&mut *info, &mut *context.cast::<Context>()) };
    if coverage::is_breakpoint(info) && coverage::pass(context) {
        return;
    }
    if info.si_code == TRAP_TRACE
        // SAFETY: Current.
        && let Some(thread) = unsafe { thread::current_pointer().as_ref() }
        // SAFETY: Owner: a handler of this thread.
        && unsafe { thread.with_sampler(|sampler| sampler.trap(context)) }
    {
        return;
    }
    delivery::deliver(signal, info, context);
}
