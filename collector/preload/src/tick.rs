//! Ticks: a signal after a random amount of the thread's own CPU time.
//!
//! A perf event on the task clock sends the signal, from user mode only, at any period. The event disables itself with
//! each overflow. If the kernel refuses events, or descriptors run out, a POSIX CPU timer sends the signal, at the
//! kernel's timer rate.
//!
//! The intervals are exponential, but for a shortest time, from a thread's start on, with a mean that follows the account
//! of the whole recording ([`account`]). So neither the age of a thread or process nor the cost of its own start affects the rate. Children
//! made by `fork` have the same rate in another way ([`pleach_wire::forked`]).

use crate::account;
use crate::counters;
use crate::owned_signals::tick_signal;
use crate::perf_event::{self, Attributes, Event};
use crate::random::{self, Random};
use crate::sys::{self, syscall};
use crate::{descriptors, settings};
use core::ffi::c_void;
use core::sync::atomic::Ordering::Relaxed;
use pleach_wire::account::mean_interval;
use pleach_wire::burst_length;
use pleach_wire::forked::EarlySampling;
use pleach_wire::kinds::{EndReason, Engine};
use pleach_wire::random::interval;

/// Minimum time between ticks. If the budget allows more ticks, bursts become longer instead.
const MIN_PERIOD_NS: f64 = 200_000.0;
/// Shortest time to a tick of an event. The timer of an event of user mode that fires while the kernel runs starts over. If
/// handling its interrupt takes longer than the event's period, some 25 µs in a virtual machine, the kernel does nothing
/// else: it came no further for 108 s once.
const SHORTEST_NS: u64 = 100_000;

/// The same, where the signal of a tick takes long as well.
fn shortest_ns() -> u64 {
    SHORTEST_NS.max(settings::get().signal_ns.saturating_mul(2))
}

/// Timers tick at the kernel's rate, which is 100 to 1000 Hz.
const TIMER_PERIOD_NS: f64 = 4_000_000.0;
/// Instructions between two taken branches, for the first guess.
const BRANCH_DISTANCE: u64 = 6;

/// Source of a thread's ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// None.
    None,
    /// A perf event.
    Event(Event),
    /// A CPU timer.
    Timer(i32),
}

fn open_event() -> Option<Source> {
    if settings::get().timer_only {
        return None;
    }
    Event::open(&Attributes::task_clock()).map(Source::Event)
}

/// What timers of a thread send with their signals. No address and no number of the program's timers has these upper
/// bits.
fn timer_value(thread: *const c_void) -> *mut c_void {
    thread.map_addr(|address| address | TIMER_MARK).cast_mut()
}

const TIMER_MARK: usize = 0x9e37 << 48;

/// What a timer sent with a signal.
fn sent_value(info: &libc::siginfo_t) -> Option<*mut c_void> {
    // SAFETY: timers send a value.
    (info.si_code == libc::SI_TIMER).then(|| unsafe { info.si_value() }.sival_ptr)
}

/// Whether a timer of this thread sent a signal; `thread` as given to [`open_timer`].
pub fn timer_sent(thread: *const c_void, info: &libc::siginfo_t) -> bool {
    sent_value(info) == Some(timer_value(thread))
}

/// Opens a CPU timer of the calling thread, not yet armed. `thread` identifies its signals; `id`: the thread's.
pub fn open_timer(thread: *const c_void, id: i32) -> Option<Source> {
    // SAFETY: all zeroes is valid for this plain structure.
    let mut event: libc::sigevent = unsafe { core::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = tick_signal();
    event.sigev_notify_thread_id = id;
    event.sigev_value.sival_ptr = timer_value(thread);
    let mut timer = 0i32;
    let clock = libc::CLOCK_THREAD_CPUTIME_ID;
    // SAFETY: Kernel: both live here.
    let result = unsafe { syscall!(libc::SYS_timer_create, clock, &raw mut event, &raw mut timer) };
    (result == 0).then_some(Source::Timer(timer))
}

/// Arms a timer after `ns` of its thread's CPU time; 0: disarms it.
pub fn set_timer(source: Source, ns: u64) {
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
        // SAFETY: Kernel: our timer; the time lives here.
        unsafe { syscall!(libc::SYS_timer_settime, id, 0, &raw const time, 0) };
    }
}

/// CPU time after which a thread looks again whether shards may grow: they may when a collection has taken samples.
const FULL_WAIT_NS: u64 = 10_000_000_000;

/// Whether the recording is over.
pub fn is_over() -> bool {
    settings::deadline_ns() != u64::MAX && sys::now_ns() > settings::deadline_ns()
}

/// First guess of a burst's cost.
fn expected_cost() -> f64 {
    let instruction_ns = match settings::engine() {
        Engine::RunAhead => burst_length::INSTRUCTION_NS as u64,
        _ => settings::get().step_ns,
    };
    (settings::burst() * BRANCH_DISTANCE * instruction_ns) as f64
}

/// Whether the signal is a late tick of a thread that is no longer sampled.
pub fn is_stray(info: &libc::siginfo_t) -> bool {
    sent_value(info).is_some_and(|value| value.addr() & TIMER_MARK == TIMER_MARK)
        || perf_event::sender(info).is_some_and(|fd| descriptors::was_ours(fd, tick_signal()))
}

/// Disarms the source of any thread.
pub fn disable(source: Source) {
    match source {
        Source::Event(event) => event.disable(),
        Source::Timer(_) => set_timer(source, 0),
        Source::None => {}
    }
}

/// Deletes a timer.
pub fn delete(source: Source) {
    if let Source::Timer(id) = source {
        // SAFETY: Kernel: our timer.
        unsafe { syscall!(libc::SYS_timer_delete, id) };
    }
}

/// Mean CPU time from one tick to the next that the budget allows, in nanoseconds; `cost_ns`: expected cost of a burst,
/// where none was learned.
fn affordable_mean(cost_ns: f64) -> f64 {
    let cost_ns = account::burst_cost().unwrap_or(cost_ns);
    mean_interval(settings::get().overhead, cost_ns, account::totals()) * account::probability()
}

/// Taken branches of bursts that the budget allows, with so many instructions for each.
fn affordable_length(instructions_a_branch: f64) -> u64 {
    match settings::engine() {
        Engine::RunAhead => {
            burst_length::affordable_length(instructions_a_branch, settings::burst(), settings::get().overhead)
        }
        _ => settings::burst(),
    }
}

/// How a child made by `fork` is sampled at first, and the mean CPU time between its ticks.
pub fn of_child(source: Source) -> (EarlySampling, f64) {
    if let Some(period_ns) = settings::get().period_ns {
        return (EarlySampling::NONE, period_ns as f64);
    }
    let mean_ns = affordable_mean(expected_cost());
    // Timers are never exact. What they cost does not depend on when they fire.
    if let Source::Timer(_) = source {
        return (EarlySampling::NONE, mean_ns.max(TIMER_PERIOD_NS));
    }
    let mean_ns = mean_ns.max(MIN_PERIOD_NS);
    let probability = account::forked_probability(MIN_PERIOD_NS / mean_ns);
    (EarlySampling::new(sys::kernel_tick_ns(), probability), mean_ns)
}

/// The ticks of a thread: their source, and when the next one comes.
#[derive(Debug)]
pub struct Ticker {
    source: Source,
    /// CPU time of this thread before it was sampled.
    base_cpu_ns: u64,
    /// Expected cost of a burst in this thread.
    cost_ns: f64,
    /// Taken branches of bursts that are not cut, as far as is known.
    longest: u64,
    /// Expected instructions for each taken branch that a burst in this thread may have; none before the first one.
    instructions_a_branch: Option<f64>,
    /// Taken branches of the next burst.
    burst: u64,
    /// How the thread is sampled at first, if it is that of a child made by `fork`.
    early: EarlySampling,
    /// Whether nothing is to be armed.
    is_paused: bool,
    /// The thread's random numbers.
    pub random: Random,
}

impl Ticker {
    /// Makes zeroed memory a valid value.
    ///
    /// # Safety
    /// `this` points to a zeroed value.
    pub unsafe fn reset(this: *mut Self) {
        // SAFETY: the caller passes a zeroed value; `source` is the only field for which zeroes may be invalid.
        unsafe { (&raw mut (*this).source).write(Source::None) };
    }

    /// Starts over in a new thread or process.
    pub fn begin(&mut self, ordinal: u32) {
        self.base_cpu_ns = sys::thread_cpu_ns();
        self.cost_ns = account::burst_cost().unwrap_or_else(expected_cost);
        let longest = settings::burst();
        let has_budget = settings::get().period_ns.is_none();
        let learned = account::burst_length().filter(|_| has_budget);
        self.burst = learned.map_or(longest, |learned| learned.min(longest));
        (self.longest, self.instructions_a_branch) = (longest, None);
        self.early = EarlySampling::NONE;
        self.random = random::of_thread(settings::get().seed, ordinal);
    }

    /// Says how the thread of a child made by `fork` is sampled at first.
    pub fn set_early_sampling(&mut self, early: EarlySampling) {
        self.early = early;
    }

    /// Sets whether nothing is armed from now on.
    pub fn set_paused(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Where ticks come from.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Taken branches of the next burst.
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// Adds a cost to the account.
    pub fn spend(&mut self, cost: u64) {
        counters::OWN_NS.fetch_add(cost, Relaxed);
    }

    /// Adds a cost to the account that does not depend on the number of bursts.
    pub fn spend_on_start(&mut self, cost: u64) {
        self.spend(cost);
        account::spend_on_start(cost);
    }

    /// Adds the cost of a burst of so many instructions that ended for `reason`, and chooses the length of the next one.
    pub fn spend_on_burst(&mut self, cost: u64, instructions: u64, reason: EndReason) {
        self.spend(cost);
        account::learn_burst(cost);
        self.cost_ns += (cost as f64 - self.cost_ns) * 0.25;
        let now = instructions as f64 / self.burst.max(1) as f64;
        let known = self.instructions_a_branch.unwrap_or(now);
        let expected = known + (now - known) * 0.25;
        self.instructions_a_branch = Some(expected);
        if settings::get().period_ns.is_none() {
            let affordable = affordable_length(expected);
            account::learn_burst_length(affordable);
            self.burst = self.next_length(affordable, reason);
        }
    }

    /// Sets the CPU time at which sampling began.
    pub fn set_base(&mut self, base_cpu_ns: u64) {
        self.base_cpu_ns = base_cpu_ns;
    }

    /// CPU time since sampling began, when the thread's is `thread_cpu_ns`.
    pub fn sampled_cpu_ns(&self, thread_cpu_ns: u64) -> u64 {
        thread_cpu_ns.saturating_sub(self.base_cpu_ns)
    }

    /// Opens a source of ticks for the calling thread, not yet armed. `thread` identifies the thread's signals.
    /// False: there is none.
    pub fn open(&mut self, thread: *const c_void) -> bool {
        self.source = open_event()
            .or_else(|| open_timer(thread, sys::thread_id()))
            .unwrap_or(Source::None);
        self.source != Source::None
    }

    /// Closes the source.
    pub fn close(&mut self) {
        self.disable();
        match self.source {
            Source::Event(event) => event.close(),
            Source::Timer(_) => delete(self.source),
            Source::None => {}
        }
        self.source = Source::None;
    }

    /// Drops the parent's source in a child made by `fork`, which has none of its parent's timers.
    pub fn abandon(&mut self) {
        if let Source::Event(event) = self.source {
            event.close();
        }
        self.source = Source::None;
    }

    /// Disarms the source.
    pub fn disable(&self) {
        disable(self.source);
    }

    /// Arms one tick after `ns` of the thread's CPU time, unless the ticks are paused or the recording is over.
    pub fn arm(&self, ns: u64) {
        if self.is_paused || is_over() {
            return;
        }
        let ns = if account::is_full() { ns.max(FULL_WAIT_NS) } else { ns };
        match self.source {
            Source::Event(_) if perf_event::are_forbidden() => {}
            Source::Event(event) => event.arm_once(ns.max(shortest_ns())),
            Source::Timer(_) => set_timer(self.source, ns.max(1000)),
            Source::None => {}
        }
    }

    /// Arms the next tick: the thread's first, or one after a burst or a declined tick. Intervals are memoryless: the
    /// probability of a tick does not depend on the age of the thread or the process.
    pub fn arm_next(&mut self) {
        let mean = match settings::get().period_ns {
            Some(period) => period as f64,
            None => {
                account::report_cpu_time();
                self.mean_ns().max(self.floor_ns())
            }
        };
        let uniform = self.random.fraction();
        let ns = if settings::get().has_equal_periods {
            mean
        } else if self.early == EarlySampling::NONE {
            let shortest = shortest_ns() as f64;
            shortest + interval((mean - shortest).max(0.0), uniform)
        } else {
            self.early_interval(mean, uniform)
        };
        self.arm(ns as u64);
    }

    fn early_interval(&mut self, mean: f64, uniform: f64) -> f64 {
        let age = sys::thread_cpu_ns();
        let ns = self.early.interval(age, mean, uniform);
        if age >= self.early.end_ns {
            self.early = EarlySampling::NONE;
        }
        ns
    }

    /// Arms the tick that is due when the thread's CPU time is `due_ns`.
    pub fn arm_at(&self, due_ns: u64) {
        self.arm(due_ns.saturating_sub(sys::thread_cpu_ns()));
    }

    /// Mean CPU time from one tick to the next that the budget allows, in nanoseconds.
    fn mean_ns(&self) -> f64 {
        affordable_mean(self.cost_ns)
    }

    fn floor_ns(&self) -> f64 {
        match self.source {
            Source::Timer(_) => TIMER_PERIOD_NS,
            _ => MIN_PERIOD_NS,
        }
    }

    /// Taken branches of the next burst: more if the budget allows more ticks than the minimum time between them.
    fn next_length(&mut self, affordable: u64, reason: EndReason) -> u64 {
        let (mean, floor, longest) = (self.mean_ns(), self.floor_ns(), settings::burst());
        let burst = self.burst as f64;
        if mean < floor {
            return (burst * (floor / mean).min(4.0)).min(settings::MAX_BURST as f64) as u64 + 1;
        }
        if self.burst > longest {
            // A large budget had made it longer.
            let next = (burst * 0.75) as u64;
            return if mean > 2.0 * floor {
                next.max(affordable)
            } else {
                self.burst
            };
        }
        if reason == EndReason::Budget && settings::engine() == Engine::RunAhead {
            let overhead = settings::get().overhead;
            self.longest = burst_length::length_after_cut(self.burst, longest, self.cost_ns, overhead);
        }
        affordable.min(self.longest)
    }

    /// Whether the source sent this signal; `thread` as given to [`Ticker::open`].
    pub fn sent(&self, thread: *const c_void, info: &libc::siginfo_t) -> bool {
        match self.source {
            Source::Event(event) => event.sent(info),
            Source::Timer(_) => timer_sent(thread, info),
            Source::None => false,
        }
    }
}
