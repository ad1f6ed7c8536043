//! Timed bursts: measures how long the program takes per branch right after a burst, see
//! [`pleach_wire::timing_target`].
//!
//! A breakpoint of the thread sends a signal when the program has passed the timing target a number of times. By then
//! the program has left the code and data that shadow execution has just brought into the caches. The time is measured
//! until the program has passed the timing target as often again. The measured costs of the traps and the signal are
//! subtracted. A tick during the measurement cancels it.

use crate::perf_event::{self, Attributes, Event};
use crate::tick::{self, Source, Ticker};
use crate::{settings, shard_writer, sys};
use core::hint::black_box;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use pleach_wire::kinds::EndReason;
use pleach_wire::shard::{BurstTimingFrame, Encoder, FrameKind};
use pleach_wire::timing_target::{self, MIN_BRANCHES};

/// Share of bursts that are timed, if a timing target is found.
const TIMED_SHARE: f64 = 1.0 / 3.0;
/// Maximum number of threads of a process with a breakpoint: ticks need descriptors, too.
const MAX_OPEN: u32 = 64;
/// Threads with a breakpoint, or [`REFUSED`].
static OPEN: AtomicU32 = AtomicU32::new(0);
/// The kernel refuses breakpoints; no thread tries again.
const REFUSED: u32 = u32::MAX;
/// Traps measured before a breakpoint is armed. The first ones are slower, because the kernel's code is not in the
/// caches, and other virtual machines disturb some.
const TRAPS: usize = 6;
/// Number of these that are expected to be faster than a trap within the program.
const FASTER_TRAPS: usize = 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing is armed.
    Idle,
    /// The program has yet to leave the code and data that the burst touched.
    Warming,
    /// The time is being measured.
    Running,
}

/// Burst timing of a thread.
#[derive(Debug)]
pub struct BurstTiming {
    /// The thread's breakpoint.
    event: Option<Event>,
    phase: Phase,
    /// The event's count when it was armed.
    base: u64,
    /// Thread CPU time at the first signal.
    begin_ns: u64,
    /// Present cost of a trap, and of a signal with its handler.
    trap_ns: u64,
    signal_ns: u64,
    /// The frame to store.
    frame: BurstTimingFrame,
    /// Whether this burst may be timed: its targets are kept.
    wanted: bool,
    length: usize,
    targets: [u64; settings::MAX_BURST as usize],
}

impl BurstTiming {
    /// Makes zeroed memory a valid value.
    ///
    /// # Safety
    /// `this` points to a zeroed value.
    pub unsafe fn reset(this: *mut Self) {
        // SAFETY: these are the fields for which zeroes may be no value.
        unsafe {
            (&raw mut (*this).event).write(None);
            (&raw mut (*this).phase).write(Phase::Idle);
        }
    }

    /// Adds a branch target, if the burst may be timed.
    pub fn add_target(&mut self, target: u64) {
        if self.wanted
            && let Some(slot) = self.targets.get_mut(self.length)
        {
            *slot = target;
            self.length += 1;
        }
    }

    /// Whether it sent a signal.
    pub fn sent(&self, info: &libc::siginfo_t) -> bool {
        self.event.is_some_and(|event| event.sent(info))
    }

    /// Stops a measurement without storing it.
    pub fn stop(&mut self) {
        self.phase = Phase::Idle;
        if let Some(event) = self.event {
            event.disable();
        }
    }

    /// Closes the breakpoint.
    pub fn close(&mut self) {
        if self.event.is_some() {
            self.stop();
            self.abandon();
            let one_less = |open: u32| (open != REFUSED).then_some(open.saturating_sub(1));
            let _ = OPEN.fetch_update(Relaxed, Relaxed, one_less);
        }
    }

    /// Drops the parent's breakpoint in a child made by `fork`.
    pub fn abandon(&mut self) {
        self.phase = Phase::Idle;
        if let Some(event) = self.event.take() {
            event.close();
        }
    }

    /// The breakpoint, if it is open.
    pub fn event(&self) -> Option<Event> {
        self.event
    }

    /// The breakpoint, opened at the first call.
    fn open_event(&mut self, address: u64) -> Option<Event> {
        if self.event.is_none() {
            let more = |open: u32| (open < MAX_OPEN).then_some(open + 1);
            OPEN.fetch_update(Relaxed, Relaxed, more).ok()?;
            self.event = Event::open(&Attributes::breakpoint(address, 1));
            self.base = 0;
            if self.event.is_none() {
                OPEN.store(REFUSED, Relaxed);
            }
        }
        self.event
    }
}

/// The function with the breakpoint while traps are measured.
#[inline(never)]
extern "C" fn trap_target(round: usize) -> usize {
    black_box(round)
}

/// Present cost of a trap in nanoseconds: it changes with the machine's load. Adds what the event
/// counted to `count`.
fn measure_trap(event: Event, count: &mut u64) -> Option<u64> {
    let target = black_box(trap_target as extern "C" fn(usize) -> usize);
    if !event.arm_at(target as usize as u64, u64::from(u32::MAX)) {
        return None;
    }
    let mut times = [0u64; TRAPS];
    let mut before = sys::thread_cpu_ns();
    for (round, time) in times.iter_mut().enumerate() {
        black_box(target(round));
        let now = sys::thread_cpu_ns();
        (*time, before) = (now.saturating_sub(before), now);
    }
    event.disable();
    let start = sys::thread_cpu_ns();
    let reading = sys::thread_cpu_ns().saturating_sub(start);
    *count += TRAPS as u64;
    times.sort_unstable();
    times.get(FASTER_TRAPS).map(|time| time.saturating_sub(reading))
}

/// A child made by `fork` has no events.
pub fn begin_child() {
    let _ = OPEN.fetch_update(Relaxed, Relaxed, |open| (open != REFUSED).then_some(0));
}

impl BurstTiming {
    /// Decides whether the burst that begins may be timed.
    pub fn begin(&mut self, ticker: &mut Ticker) {
        let is_possible = settings::get().trap_ns > 0 && matches!(ticker.source(), Source::Event(_));
        let is_refused = self.event.is_none() && OPEN.load(Relaxed) >= MAX_OPEN;
        self.length = 0;
        self.wanted = is_possible && !is_refused && ticker.random.fraction() < TIMED_SHARE;
    }

    /// Arms the breakpoint after a burst that began at `time_ns`.
    pub fn arm(&mut self, ticker: &mut Ticker, reason: EndReason, time_ns: u64) {
        if !self.wanted || reason != EndReason::Budget || self.length < MIN_BRANCHES || perf_event::are_forbidden() {
            return;
        }
        let before = sys::thread_cpu_ns();
        self.find_and_arm(ticker, time_ns);
        ticker.spend(sys::thread_cpu_ns().saturating_sub(before));
    }

    fn find_and_arm(&mut self, ticker: &mut Ticker, time_ns: u64) -> Option<()> {
        let target = timing_target::choose(self.targets.get(..self.length)?, || ticker.random.fraction())?;
        if tick::is_over() {
            return None;
        }
        let event = self.open_event(target.address)?;
        self.frame = BurstTimingFrame {
            thread: sys::thread_id() as u32,
            time_ns,
            passes: target.timed_passes(),
            distance_16: (target.distance * 16.0) as u32,
            elapsed_ns: 0,
        };
        self.trap_ns = measure_trap(event, &mut self.base).unwrap_or(settings::get().trap_ns);
        self.signal_ns = settings::get().trap_signal_ns * self.trap_ns / settings::get().trap_ns;
        self.phase = Phase::Warming;
        if !event.arm_at(target.address, u64::from(self.frame.passes)) {
            // The program closed the descriptor, or the kernel cannot move the breakpoint.
            self.close();
            OPEN.store(REFUSED, Relaxed);
        }
        Some(())
    }

    /// The breakpoint overflowed: the measurement begins or ends.
    pub fn on_overflow(&mut self, ticker: &mut Ticker) {
        let now = sys::thread_cpu_ns();
        let (Some(event), passes) = (self.event, u64::from(self.frame.passes)) else {
            return;
        };
        match self.phase {
            // The signal was pending when a tick cancelled the measurement.
            Phase::Idle => {}
            // Another count means that the signal was delayed, because the program had blocked it.
            Phase::Warming if event.count() == Some(self.base + passes) => {
                (self.begin_ns, self.phase) = (now, Phase::Running);
            }
            Phase::Warming => self.cancel(ticker),
            Phase::Running => {
                event.disable();
                let count = event.count().unwrap_or(0);
                let elapsed = now.saturating_sub(self.begin_ns) as i64;
                let ours = passes * self.trap_ns + self.signal_ns;
                self.frame.elapsed_ns = elapsed.saturating_sub(ours as i64);
                let is_whole = count == self.base + 2 * passes;
                self.end(ticker, count, is_whole);
                ticker.spend(sys::thread_cpu_ns().saturating_sub(now));
            }
        }
    }

    /// Cancels the measurement, if there is one.
    pub fn cancel(&mut self, ticker: &mut Ticker) {
        if self.phase == Phase::Idle {
            return;
        }
        if let Some(event) = self.event {
            event.disable();
            let count = event.count().unwrap_or(self.base);
            self.end(ticker, count, false);
        }
    }

    /// Accounts for all traps and signals, and stores the measurement or its failure.
    fn end(&mut self, ticker: &mut Ticker, count: u64, is_whole: bool) {
        self.phase = Phase::Idle;
        let mut frame = self.frame;
        let traps = count.saturating_sub(self.base);
        let signals = traps.checked_div(frame.passes.into()).unwrap_or(0);
        self.base = count;
        if !is_whole {
            frame.passes = 0;
        }
        let cost = traps * self.trap_ns + signals * self.signal_ns;
        ticker.spend(cost);
        let mut buffer = [0u8; 64];
        let mut e = Encoder::new(&mut buffer);
        frame.encode(&mut e);
        shard_writer::append(e.finish(FrameKind::BurstTiming));
    }
}
