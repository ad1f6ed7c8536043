//! Clocked bursts: how long the program takes for a branch where a burst was, see [`pleach_collector::clock`].
//!
//! A breakpoint of the thread signals when the program has passed the anchor so many times: by then it is beyond the code and
//! data that shadow execution has just touched. The clock runs until it has passed it as often again. Of the time
//! between, the traps and the signal are ours; what they take was measured by the recorder. A tick that comes first ends the
//! measurement.

use crate::burst::sampler::Sampler;
use crate::perf_event::{self, Attributes, Event};
use crate::sys;
use crate::tick::{self, Source};
use crate::{process, settings};
use core::hint::black_box;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use pleach_collector::clock::{self, LEAST_BRANCHES};
use pleach_collector::shard::{ClockFrame, Encoder, FrameKind};
use pleach_collector::vector::EndReason;

/// Which share of bursts is clocked, where an anchor is found.
const SHARE: f64 = 1.0 / 3.0;
/// So many threads of a process have a breakpoint: ticks need descriptors, too.
const MOST: u32 = 64;
/// Threads that have one, or [`NONE`].
static OPEN: AtomicU32 = AtomicU32::new(0);
/// The kernel refuses them: nobody asks again.
const NONE: u32 = u32::MAX;
/// Traps measured before a clock is armed. Their time falls from the first to the last, as the kernel's code comes back to the caches,
/// and other machines disturb some.
const TRAPS: usize = 6;
/// So many of them are faster than one within the program.
const FASTER: usize = 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing is armed.
    Idle,
    /// The program has to come to new code and data first.
    Away,
    /// The clock runs.
    Running,
}

/// The clock of a thread.
#[derive(Debug)]
pub struct Clock {
    /// Its breakpoint.
    event: Option<Event>,
    phase: Phase,
    /// What the event had counted when the clock was armed.
    base: u64,
    /// Thread CPU time at the first signal.
    begin_ns: u64,
    /// What a trap and a signal take just now.
    trap_ns: u64,
    signal_ns: u64,
    /// What is going to be stored.
    frame: ClockFrame,
    /// Whether this burst's targets are noted.
    wanted: bool,
    length: usize,
    targets: [u64; settings::MAX_BURST as usize],
}

impl Clock {
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

    /// Notes a branch's target, if the burst may be clocked.
    pub fn meet(&mut self, target: u64) {
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

    /// Stops whatever is going on, as the recording of this thread does.
    pub fn silence(&mut self) {
        self.phase = Phase::Idle;
        if let Some(event) = self.event {
            event.disable();
        }
    }

    /// Takes the event away.
    pub fn close(&mut self) {
        if self.event.is_some() {
            self.silence();
            self.abandon();
            let one_less = |open: u32| (open != NONE).then_some(open.saturating_sub(1));
            let _ = OPEN.fetch_update(Relaxed, Relaxed, one_less);
        }
    }

    /// Forgets the parent's event in a child made by `fork`.
    pub fn abandon(&mut self) {
        self.phase = Phase::Idle;
        if let Some(event) = self.event.take() {
            event.close();
        }
    }

    /// The event, opened at the first call.
    fn event(&mut self, address: u64) -> Option<Event> {
        if self.event.is_none() {
            let more = |open: u32| (open < MOST).then_some(open + 1);
            OPEN.fetch_update(Relaxed, Relaxed, more).ok()?;
            self.event = Event::open(&Attributes::breakpoint(address, 1));
            self.base = 0;
            if self.event.is_none() {
                OPEN.store(NONE, Relaxed);
            }
        }
        self.event
    }
}

/// Where the breakpoint is while a trap is measured.
#[inline(never)]
extern "C" fn place(round: usize) -> usize {
    black_box(round)
}

/// What a trap takes now, in nanoseconds: the machine's speed changes with what else runs on it. Adds what the event counted
/// to `count`.
fn measure_trap(event: Event, count: &mut u64) -> Option<u64> {
    let place = black_box(place as extern "C" fn(usize) -> usize);
    if !event.arm_at(place as usize as u64, u64::from(u32::MAX)) {
        return None;
    }
    let mut times = [0u64; TRAPS];
    let mut before = sys::thread_cpu_ns();
    for (round, time) in times.iter_mut().enumerate() {
        black_box(place(round));
        let now = sys::thread_cpu_ns();
        (*time, before) = (now.saturating_sub(before), now);
    }
    event.disable();
    let start = sys::thread_cpu_ns();
    let reading = sys::thread_cpu_ns().saturating_sub(start);
    *count += TRAPS as u64;
    times.sort_unstable();
    times.get(FASTER).map(|time| time.saturating_sub(reading))
}

/// The event of another thread is stopped.
///
/// # Safety
/// The clock's thread is alive, and does not use it.
pub unsafe fn silence(clock: *const Clock) {
    // SAFETY: given; no reference is made.
    if let Some(event) = unsafe { (&raw const (*clock).event).read_volatile() } {
        event.disable();
    }
}

/// A child made by `fork` has no events.
pub fn begin_child() {
    let _ = OPEN.fetch_update(Relaxed, Relaxed, |open| (open != NONE).then_some(0));
}

impl Sampler {
    /// Decides whether the burst that begins may be clocked.
    pub fn begin_clock(&mut self) {
        let is_possible = settings::trap_ns() > 0 && matches!(self.source, Source::Event(_));
        let is_refused = self.clock.event.is_none() && OPEN.load(Relaxed) >= MOST;
        self.clock.length = 0;
        self.clock.wanted = is_possible && !is_refused && self.random_fraction() < SHARE;
    }

    /// Arms the clock after a burst that began at `time_ns`.
    pub fn arm_clock(&mut self, reason: EndReason, time_ns: u64) {
        let clock = &self.clock;
        if !clock.wanted || reason != EndReason::Budget || clock.length < LEAST_BRANCHES || perf_event::are_forbidden()
        {
            return;
        }
        let before = sys::thread_cpu_ns();
        self.find_and_arm(time_ns);
        self.spend(sys::thread_cpu_ns().saturating_sub(before));
    }

    fn find_and_arm(&mut self, time_ns: u64) -> Option<()> {
        let Self { clock, random, .. } = self;
        let anchor = clock::choose(clock.targets.get(..clock.length)?, || random.fraction())?;
        if tick::is_over() {
            return None;
        }
        let event = clock.event(anchor.address)?;
        clock.frame = ClockFrame {
            thread: sys::thread_id() as u32,
            time_ns,
            passes: anchor.timed_passes(),
            distance_16: (anchor.distance * 16.0) as u32,
            elapsed_ns: 0,
        };
        clock.trap_ns = measure_trap(event, &mut clock.base).unwrap_or(settings::trap_ns());
        clock.signal_ns = settings::trap_signal_ns() * clock.trap_ns / settings::trap_ns();
        clock.phase = Phase::Away;
        if !event.arm_at(anchor.address, u64::from(clock.frame.passes)) {
            // Closed behind our back, or the kernel cannot move it.
            clock.close();
            OPEN.store(NONE, Relaxed);
        }
        Some(())
    }

    /// The breakpoint was passed so many times.
    pub fn clock_overflowed(&mut self) {
        let now = sys::thread_cpu_ns();
        let clock = &mut self.clock;
        let (Some(event), passes) = (clock.event, u64::from(clock.frame.passes)) else {
            return;
        };
        match clock.phase {
            // It was on its way when a tick came.
            Phase::Idle => {}
            // Later ones: the program had blocked the signal.
            Phase::Away if event.count() == Some(clock.base + passes) => {
                (clock.begin_ns, clock.phase) = (now, Phase::Running);
            }
            Phase::Away => self.drop_clock(),
            Phase::Running => {
                event.disable();
                let count = event.count().unwrap_or(0);
                let elapsed = now.saturating_sub(clock.begin_ns) as i64;
                let ours = passes * clock.trap_ns + clock.signal_ns;
                clock.frame.elapsed_ns = elapsed.saturating_sub(ours as i64);
                let is_whole = count == clock.base + 2 * passes;
                self.end_clock(count, is_whole);
                self.spend(sys::thread_cpu_ns().saturating_sub(now));
            }
        }
    }

    /// Ends a measurement that did not come to its end.
    pub fn drop_clock(&mut self) {
        if self.clock.phase == Phase::Idle {
            return;
        }
        if let Some(event) = self.clock.event {
            event.disable();
            let count = event.count().unwrap_or(self.clock.base);
            self.end_clock(count, false);
        }
    }

    /// Accounts for all traps and signals, and stores what was measured, or that nothing was.
    fn end_clock(&mut self, count: u64, is_whole: bool) {
        let clock = &mut self.clock;
        clock.phase = Phase::Idle;
        let mut frame = clock.frame;
        let traps = count.saturating_sub(clock.base);
        let signals = traps.checked_div(frame.passes.into()).unwrap_or(0);
        clock.base = count;
        if !is_whole {
            frame.passes = 0;
        }
        let cost = traps * clock.trap_ns + signals * clock.signal_ns;
        self.spend(cost);
        let mut buffer = [0u8; 64];
        let mut e = Encoder::new(&mut buffer);
        frame.encode(&mut e);
        process::append(e.finish(FrameKind::Clock));
    }
}
