//! Ticks: a signal after a random amount of the thread's own CPU time.
//!
//! A perf event on the task clock sends it, one at a time (it disables itself with each overflow), from user mode only, at
//! any period. Where that is refused, or descriptors run out, a POSIX CPU timer sends it, at the kernel's timer rate.
//!
//! The controller keeps a debt: the next tick comes when the program has used so much CPU time that everything spent
//! so far is within the budget again.

use crate::burst::sampler::Sampler;
use crate::interpose::signals;
use crate::perf_event::{self, Attributes, Event};
use crate::signal_entry::{self, Context};
use crate::sys::{self, KernelAction, syscall};
use crate::thread::Thread;
use crate::{descriptors, process, settings};
use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::Relaxed;
use pleach_collector::vector::{EndReason, Engine};

/// The signal.
pub static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Ticks below this distance make bursts shorter than they need be; bursts are made longer instead.
const MIN_PERIOD_NS: f64 = 200_000.0;
/// Timers tick at the kernel's rate, which is 100 to 1000 Hz.
const TIMER_PERIOD_NS: u64 = 4_000_000;
/// Instructions between two taken branches, for the first guess.
const BRANCH_DISTANCE: u64 = 6;
/// What shadow execution of an instruction costs, for the first guess.
const SHADOW_NS: u64 = 50;
/// CPU time between two shadow bursts where the budget allows shorter ones only.
const BURST_DISTANCE_NS: f64 = 40_000_000.0;

/// Where a thread's ticks come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// None.
    None,
    /// A perf event.
    Event(Event),
    /// A CPU timer.
    Timer(i32),
}

/// Chooses the signal and installs the handlers. False: no real-time signal is free.
pub fn install() -> bool {
    // The top ones are popular with programs.
    let (top, bottom) = (libc::SIGRTMAX() - 3, libc::SIGRTMIN());
    let free = (bottom..=top).rev().find(|&signal| {
        let mut action = KernelAction::default();
        sys::signal_action(signal, None, Some(&mut action)) == 0 && action.handler == libc::SIG_DFL
    });
    let Some(signal) = free else { return false };
    SIGNAL.store(signal, Relaxed);
    let mut action = KernelAction {
        handler: signal_entry::pleach_tick_entry as *const () as usize,
        flags: SA_RESTORER | (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART) as u64,
        restorer: signal_entry::pleach_restorer as *const () as usize,
        // Everything: a handler of the program must find the program's mask, not ours.
        mask: sys::ALL_SIGNALS,
    };
    let mut before = KernelAction::default();
    let ticks = sys::signal_action(signal, Some(&action), None) == 0;
    action.handler = trap_handler();
    let traps = sys::signal_action(libc::SIGTRAP, Some(&action), Some(&mut before)) == 0;
    signals::inherit(before);
    ticks && traps
}

/// The kernel's flag for a handler that brings its own return path.
const SA_RESTORER: u64 = 0x0400_0000;

/// Address of our handler of SIGTRAP.
pub fn trap_handler() -> usize {
    signal_entry::pleach_trap_entry as *const () as usize
}

fn open_event() -> Option<Source> {
    if settings::timer_only() {
        return None;
    }
    Event::open(&Attributes::task_clock()).map(Source::Event)
}

fn open_timer(thread: *mut Thread) -> Option<Source> {
    // SAFETY: all zeroes is valid for this plain structure.
    let mut event: libc::sigevent = unsafe { core::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = SIGNAL.load(Relaxed);
    event.sigev_notify_thread_id = sys::thread_id();
    event.sigev_value.sival_ptr = thread.cast();
    let mut id = 0i32;
    let clock = libc::CLOCK_THREAD_CPUTIME_ID;
    // SAFETY: both live here.
    let result = unsafe { syscall!(libc::SYS_timer_create, clock, &raw mut event, &raw mut id) };
    (result == 0).then_some(Source::Timer(id))
}

/// Gives the calling thread a source of ticks, not yet armed.
pub fn open(sampler: &mut Sampler, thread: *mut Thread) -> bool {
    sampler.source = open_event().or_else(|| open_timer(thread)).unwrap_or(Source::None);
    sampler.source != Source::None
}

/// Takes it away.
pub fn close(sampler: &mut Sampler) {
    disable(sampler);
    match sampler.source {
        Source::Event(event) => event.close(),
        Source::Timer(id) => {
            // SAFETY: our timer.
            unsafe { syscall!(libc::SYS_timer_delete, id) };
        }
        _ => {}
    }
    sampler.source = Source::None;
}

/// Forgets the parent's source in a child made by `fork`; timers do not come along.
pub fn abandon(sampler: &mut Sampler) {
    if let Source::Event(event) = sampler.source {
        event.close();
    }
    sampler.source = Source::None;
}

/// No more ticks until armed.
pub fn disable(sampler: &mut Sampler) {
    silence(sampler.source);
}

/// The same for the source of any thread.
pub fn silence(source: Source) {
    match source {
        Source::Event(event) => event.disable(),
        Source::Timer(_) => set_timer(source, 0),
        _ => {}
    }
}

fn set_timer(source: Source, ns: u64) {
    if let Source::Timer(id) = source {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        };
        let time = libc::itimerspec {
            it_interval: zero,
            it_value: value,
        };
        // SAFETY: our timer; the time lives here.
        unsafe { syscall!(libc::SYS_timer_settime, id, 0, &raw const time, 0) };
    }
}

/// Whether the recording is over.
pub fn is_over() -> bool {
    settings::deadline_ns() != u64::MAX && sys::now_ns() > settings::deadline_ns()
}

/// One tick, after this much CPU time of the thread, unless the recording is over.
pub fn arm(sampler: &Sampler, ns: u64) {
    if is_over() {
        return;
    }
    match sampler.source {
        Source::Event(_) if perf_event::are_forbidden() => {}
        Source::Event(event) => event.arm_once(ns),
        Source::Timer(_) => set_timer(sampler.source, ns),
        Source::None => {}
    }
}

/// The first tick of a thread: at a random point of the first period, so that short threads have their fair chance.
pub fn arm_first(sampler: &mut Sampler) {
    let mean = match settings::period_ns() {
        Some(period) => period as f64,
        None => (sampler.cost_ns / settings::overhead()).max(MIN_PERIOD_NS),
    };
    let ns = mean * sampler.random_fraction();
    arm(sampler, (ns as u64).max(1000));
}

/// First guess of a burst's cost.
pub fn expected_cost() -> f64 {
    let instruction_ns = match settings::engine() {
        Engine::RunAhead => SHADOW_NS,
        _ => settings::step_ns(),
    };
    (settings::burst() * BRANCH_DISTANCE * instruction_ns) as f64
}

/// Taken branches that the next burst should have.
///
/// A shadow burst costs little beside the tick: few long bursts show most branches. But branches of one burst are not
/// independent, so there are at least so many bursts in a second.
fn next_burst(sampler: &Sampler, reason: EndReason) -> f64 {
    match settings::engine() {
        Engine::RunAhead if reason == EndReason::Budget => {
            let affordable = settings::overhead() * BURST_DISTANCE_NS / sampler.cost_ns;
            let next = sampler.burst as f64 * affordable.clamp(0.5, 2.0);
            next.clamp(settings::SHORTEST_BURST as f64, settings::burst() as f64)
        }
        Engine::RunAhead => sampler.burst as f64,
        _ => settings::burst() as f64,
    }
}

/// Arms the next tick after a burst, or after one that was declined.
pub fn arm_next(sampler: &mut Sampler, thread_cpu_ns: u64, reason: EndReason) {
    let jitter = 0.5 + sampler.random_fraction();
    if let Some(period) = settings::period_ns() {
        arm(sampler, ((period as f64 * jitter) as u64).max(1000));
        return;
    }
    let overhead = settings::overhead();
    let program_ns = thread_cpu_ns
        .saturating_sub(sampler.base_cpu_ns)
        .saturating_sub(sampler.own_ns);
    let nominal = sampler.cost_ns / overhead;
    // What the program must run until all that was spent is within the budget.
    let debt = sampler.own_ns as f64 / overhead - program_ns as f64;
    let mean = debt.clamp(nominal * 0.5, nominal * 4.0);
    let floor = match sampler.source {
        Source::Timer(_) => TIMER_PERIOD_NS as f64,
        _ => MIN_PERIOD_NS,
    };
    let (base, burst) = (next_burst(sampler, reason), sampler.burst as f64);
    if mean < floor {
        sampler.burst = (burst * (floor / mean).min(4.0)).min(settings::MAX_BURST as f64) as u64 + 1;
    } else if burst < base {
        sampler.burst = base as u64;
    } else if burst > base && mean > 2.0 * floor {
        sampler.burst = (burst * 0.75).max(base) as u64;
    }
    arm(sampler, (mean.max(floor) * jitter) as u64);
}

fn is_ours(sampler: &Sampler, thread: *mut Thread, info: &libc::siginfo_t) -> bool {
    match sampler.source {
        Source::Event(event) => event.sent(info),
        // SAFETY: timers send a value.
        Source::Timer(_) => info.si_code == libc::SI_TIMER && unsafe { info.si_value() }.sival_ptr == thread.cast(),
        Source::None => false,
    }
}

/// Whether it is a late tick, of a thread that is not sampled any more.
pub fn is_stray(info: &libc::siginfo_t) -> bool {
    // Nobody else has timers of this signal while it is ours.
    info.si_code == libc::SI_TIMER || perf_event::sender(info).is_some_and(descriptors::is_in_range)
}

/// The tick. Runs on the handlers' stack with all signals blocked.
pub extern "C" fn on_tick(signal: i32, info: *mut libc::siginfo_t, context: *mut core::ffi::c_void) {
    let thread = signal_entry::current_thread();
    // SAFETY: the kernel's frame.
    let (info, context) = unsafe { (&mut *info, &mut *context.cast::<Context>()) };
    // SAFETY: null, or this thread's, or the parent's of a `vfork` child, which sleeps.
    if let Some(state) = unsafe { thread.as_ref() } {
        // SAFETY: it belongs to handlers, which do not nest.
        let sampler = unsafe { &mut *state.sampler.get() };
        if is_ours(sampler, thread, info) {
            if !process::is_stopped() {
                sampler.tick(context, &state.ahead);
            }
            return;
        }
        if sampler.clock.sent(info) {
            if !process::is_stopped() {
                sampler.clock_overflowed();
            }
            return;
        }
    }
    signals::deliver(signal, info, context);
}
