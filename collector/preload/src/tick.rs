//! Ticks: a signal after a random amount of the thread's own CPU time.
//!
//! A perf event on the task clock sends it, one at a time (it disables itself with each overflow), from user mode only, at
//! any period. Where that is refused, or descriptors run out, a POSIX CPU timer sends it, at the kernel's timer rate.
//!
//! The controller keeps a debt: the next tick comes when the program has used so much CPU time that everything spent
//! so far is within the budget again.

use crate::entry::{self, Context};
use crate::interpose::signals;
use crate::sampler::Sampler;
use crate::sys::{self, KernelAction, syscall};
use crate::thread::Thread;
use crate::{config, fds, process};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicI32};
use pleach_collector::vector::{EndReason, Engine};

/// The signal.
pub static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Ticks below this distance make bursts shorter than they need be; bursts are made longer instead.
const MIN_PERIOD_NS: f64 = 200_000.0;
/// Timers tick at the kernel's rate, which is 100 to 1000 Hz.
const TIMER_PERIOD_NS: u64 = 4_000_000;
/// So many signals must fit in the program's queue, or events are not used.
pub const QUEUE: u64 = 256;
static NO_EVENTS: AtomicBool = AtomicBool::new(false);
/// Instructions between two taken branches, for the first guess.
const BRANCH_DISTANCE: u64 = 6;
/// What shadow execution of an instruction costs, for the first guess.
const SHADOW_NS: u64 = 50;
/// CPU time between two shadow bursts where the budget allows shorter ones only.
const BURST_DISTANCE_NS: f64 = 40_000_000.0;

const PERIOD: u32 = 0x4008_2404;
const ID: u32 = 0x8008_2407;
const DISABLE: u32 = 0x2401;
const REFRESH: u32 = 0x2402;

/// Where a thread's ticks come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// None.
    None,
    /// A perf event: descriptor and the kernel's id for it.
    Event(i32, u64),
    /// A CPU timer.
    Timer(i32),
}

/// The part of `struct perf_event_attr` that its first version had.
#[repr(C)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
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
        handler: entry::pleach_tick_entry as *const () as usize,
        flags: SA_RESTORER | (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART) as u64,
        restorer: entry::pleach_restorer as *const () as usize,
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
    entry::pleach_trap_entry as *const () as usize
}

fn open_event() -> Option<Source> {
    if config::timer_only() || NO_EVENTS.load(Relaxed) {
        return None;
    }
    // The event's signal needs a queue entry; without one it would arrive as a fatal SIGIO.
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let none = core::ptr::null::<libc::rlimit>();
    // SAFETY: `limit` lives here.
    unsafe { syscall!(libc::SYS_prlimit64, 0, libc::RLIMIT_SIGPENDING, none, &raw mut limit) };
    if limit.rlim_cur < QUEUE {
        return None;
    }
    const DISABLED: u64 = 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    let attributes = EventAttributes {
        kind: 1,   // PERF_TYPE_SOFTWARE
        config: 1, // PERF_COUNT_SW_TASK_CLOCK
        size: size_of::<EventAttributes>() as u32,
        sample_period: 1_000_000_000,
        sample_type: 0,
        read_format: 0,
        flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        wakeup_events: 1,
        breakpoint_type: 0,
        breakpoint_address: 0,
    };
    const CLOSE_ON_EXEC: usize = 8;
    // SAFETY: the attributes live here.
    let fd = unsafe {
        syscall!(
            libc::SYS_perf_event_open,
            &raw const attributes,
            0,
            -1isize,
            -1isize,
            CLOSE_ON_EXEC
        )
    };
    let fd = fds::move_up(fd as i32)?;
    let owner = [0, sys::thread_id()]; // F_OWNER_TID
    let mut id = 0u64;
    // SAFETY: our descriptor; the structures live here.
    let set_up = unsafe {
        syscall!(libc::SYS_fcntl, fd, 15, owner.as_ptr()) == 0 // F_SETOWN_EX
            && syscall!(libc::SYS_fcntl, fd, 10, SIGNAL.load(Relaxed)) == 0 // F_SETSIG
            && syscall!(libc::SYS_fcntl, fd, libc::F_SETFL, libc::O_RDWR | libc::O_ASYNC) == 0
            && syscall!(libc::SYS_ioctl, fd, ID, &raw mut id) == 0
    };
    if !set_up {
        fds::drop_ours(fd);
        return None;
    }
    Some(Source::Event(fd, id))
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
        Source::Event(fd, id) if is_event(fd, id) => fds::drop_ours(fd),
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
    if let Source::Event(fd, id) = sampler.source
        && is_event(fd, id)
    {
        fds::drop_ours(fd);
    }
    sampler.source = Source::None;
}

/// Whether a descriptor still is our event: the program may have closed it behind our back.
fn is_event(fd: i32, id: u64) -> bool {
    let mut now = 0u64;
    // SAFETY: `now` lives here; other files refuse the request.
    unsafe { syscall!(libc::SYS_ioctl, fd, ID, &raw mut now) == 0 && now == id }
}

/// No event is armed any more.
pub fn forbid_events() {
    NO_EVENTS.store(true, Relaxed);
}

/// No more ticks until armed.
pub fn disable(sampler: &mut Sampler) {
    silence(sampler.source);
}

/// The same for the source of any thread.
pub fn silence(source: Source) {
    match source {
        Source::Event(fd, id) if is_event(fd, id) => {
            // SAFETY: our event.
            unsafe { syscall!(libc::SYS_ioctl, fd, DISABLE, 0) };
        }
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

/// One tick, after this much CPU time of the thread, unless the recording is over.
pub fn arm(sampler: &Sampler, ns: u64) {
    if config::deadline_ns() != u64::MAX && sys::now_ns() > config::deadline_ns() {
        return;
    }
    match sampler.source {
        Source::Event(..) if NO_EVENTS.load(Relaxed) => {}
        Source::Event(fd, _) => {
            // SAFETY: if the descriptor is not our event any more, other files refuse the requests.
            unsafe {
                syscall!(libc::SYS_ioctl, fd, PERIOD, &raw const ns);
                syscall!(libc::SYS_ioctl, fd, REFRESH, 1);
            }
        }
        Source::Timer(_) => set_timer(sampler.source, ns),
        Source::None => {}
    }
}

/// The first tick of a thread: at a random point of the first period, so that short threads have their fair chance.
pub fn arm_first(sampler: &mut Sampler) {
    let mean = match config::period_ns() {
        Some(period) => period as f64,
        None => (sampler.cost_ns / config::overhead()).max(MIN_PERIOD_NS),
    };
    let ns = mean * sampler.random_fraction();
    arm(sampler, (ns as u64).max(1000));
}

/// First guess of a burst's cost.
pub fn expected_cost() -> f64 {
    let instruction_ns = match config::engine() {
        Engine::RunAhead => SHADOW_NS,
        _ => config::step_ns(),
    };
    (config::burst() * BRANCH_DISTANCE * instruction_ns) as f64
}

/// Taken branches that the next burst should have.
///
/// A shadow burst costs little beside the tick: few long bursts show most branches. But branches of one burst are not
/// independent, so there are at least so many bursts in a second.
fn next_burst(sampler: &Sampler, reason: EndReason) -> f64 {
    match config::engine() {
        Engine::RunAhead if reason == EndReason::Budget => {
            let affordable = config::overhead() * BURST_DISTANCE_NS / sampler.cost_ns;
            let next = sampler.burst as f64 * affordable.clamp(0.5, 2.0);
            next.clamp(config::SHORTEST_BURST as f64, config::burst() as f64)
        }
        Engine::RunAhead => sampler.burst as f64,
        _ => config::burst() as f64,
    }
}

/// Arms the next tick after a burst, or after one that was declined.
pub fn arm_next(sampler: &mut Sampler, thread_cpu_ns: u64, reason: EndReason) {
    let jitter = 0.5 + sampler.random_fraction();
    if let Some(period) = config::period_ns() {
        arm(sampler, ((period as f64 * jitter) as u64).max(1000));
        return;
    }
    let overhead = config::overhead();
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
        sampler.burst = (burst * (floor / mean).min(4.0)).min(config::MAX_BURST as f64) as u64 + 1;
    } else if burst < base {
        sampler.burst = base as u64;
    } else if burst > base && mean > 2.0 * floor {
        sampler.burst = (burst * 0.75).max(base) as u64;
    }
    arm(sampler, (mean.max(floor) * jitter) as u64);
}

fn is_ours(sampler: &Sampler, thread: *mut Thread, info: &libc::siginfo_t) -> bool {
    match sampler.source {
        // SAFETY: a code of POLL_… comes with a descriptor, at the same place as this value.
        Source::Event(fd, _) => (1..=6).contains(&info.si_code) && unsafe { poll_descriptor(info) } == fd,
        // SAFETY: timers send a value.
        Source::Timer(_) => info.si_code == libc::SI_TIMER && unsafe { info.si_value() }.sival_ptr == thread.cast(),
        Source::None => false,
    }
}

/// Whether it is a late tick, of a thread that is not sampled any more.
pub fn is_stray(info: &libc::siginfo_t) -> bool {
    // SAFETY: a code of POLL_… comes with a descriptor. Nobody else has timers of this signal while it is ours.
    info.si_code == libc::SI_TIMER
        || (1..=6).contains(&info.si_code) && fds::is_in_range(unsafe { poll_descriptor(info) })
}

/// # Safety
/// The signal is one of `SIGPOLL`'s kind.
unsafe fn poll_descriptor(info: &libc::siginfo_t) -> i32 {
    // struct { int si_signo, si_errno, si_code, pad; long si_band; int si_fd; }
    // SAFETY: within the structure's 128 bytes.
    unsafe { (info as *const libc::siginfo_t).cast::<i32>().add(6).read() }
}

/// The tick. Runs on the handlers' stack with all signals blocked.
pub extern "C" fn on_tick(signal: i32, info: *mut libc::siginfo_t, context: *mut core::ffi::c_void) {
    let thread = entry::current_thread();
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
    }
    signals::deliver(signal, info, context);
}
