//! The sampler's state in one thread: its budget, and the burst that is being recorded.

use crate::burst::shadow_burst::{self, Running};
use crate::burst::stepped_burst::Stepper;
use crate::burst::timing::Clock;
use crate::burst::verification::Verify;
use crate::signal_entry::Context;
use crate::sys;
use crate::tick::{self, Source};
use crate::{process, settings};
use core::sync::atomic::Ordering::Relaxed;
use pleach_collector::shard::{BurstHead, Encoder, FRAME_HEADER, FrameKind};
use pleach_collector::vector::{EndReason, Engine};

/// A branch takes at most 20 bytes.
const RECORD_ROOM: usize = FRAME_HEADER + BurstHead::LENGTH + 20 * (settings::MAX_BURST as usize + 1);

/// The sampler's state in one thread.
#[derive(Debug)]
pub struct Sampler {
    /// Where ticks come from.
    pub source: Source,
    /// CPU time of this thread that went into sampling.
    pub own_ns: u64,
    /// CPU time of this thread before it was sampled.
    pub base_cpu_ns: u64,
    /// Expected cost of a burst.
    pub cost_ns: f64,
    /// Taken branches of the next burst.
    pub burst: u64,
    /// Shadow execution's comparison with it.
    pub verify: Verify,
    /// The trap-flag engine's part.
    pub step: Stepper,
    /// The thread's number in the process.
    pub ordinal: u32,
    /// Where chance comes from.
    pub random: Random,
    /// How long branches take, here and there.
    pub clock: Clock,
    /// The burst.
    pub record: Record,
}

/// A sequence of random numbers.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Uniform in 0..1.
    pub fn fraction(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The burst that is being recorded.
#[derive(Debug)]
pub struct Record {
    /// Where the thread was interrupted.
    pub start: u64,
    /// Thread CPU time at that moment.
    pub begin_cpu_ns: u64,
    /// Instructions so far.
    pub instructions: u32,
    /// Taken branches so far.
    pub branches: u32,
    /// Whether code was met that is in no known mapping.
    pub unknown: bool,
    /// Whether the program will do what shadow execution shows, if it goes on.
    pub alone: bool,
    /// `CLOCK_MONOTONIC` at that moment.
    pub begin_ns: u64,
    last_target: u64,
    length: usize,
    bytes: [u8; RECORD_ROOM],
}

impl Record {
    fn begin(&mut self, pc: u64, cpu: u64) {
        self.begin_ns = sys::now_ns();
        self.begin_cpu_ns = cpu;
        self.start = pc;
        self.last_target = pc;
        (self.instructions, self.branches) = (0, 0);
        self.length = FRAME_HEADER + BurstHead::LENGTH;
        (self.unknown, self.alone) = (false, false);
    }

    /// Notes a taken branch.
    pub fn branch(&mut self, from: u64, to: u64) {
        let mut e = Encoder::resume(&mut self.bytes, self.length);
        e.delta(self.last_target, from);
        e.delta(from, to);
        self.length = e.length();
        self.last_target = to;
        self.branches += 1;
    }
}

impl Sampler {
    /// Makes zeroed memory a valid value.
    ///
    /// # Safety
    /// `this` points to a zeroed value.
    pub unsafe fn reset(this: *mut Self) {
        // SAFETY: these are the fields for which zeroes may be no value.
        unsafe {
            (&raw mut (*this).source).write(Source::None);
            Stepper::reset(&raw mut (*this).step);
            Clock::reset(&raw mut (*this).clock);
        }
    }

    /// Starts over in a new thread or process.
    pub fn begin(&mut self, ordinal: u32) {
        self.base_cpu_ns = sys::thread_cpu_ns();
        self.own_ns = 0;
        self.cost_ns = tick::expected_cost();
        self.burst = settings::burst();
        self.step.begin();
        self.ordinal = ordinal;
        let mut seed = settings::seed().unwrap_or_else(|| {
            let mut random = sys::now_ns() ^ (sys::thread_id() as u64) << 32;
            // SAFETY: `random` lives here.
            unsafe { sys::syscall!(libc::SYS_getrandom, &raw mut random, 8, libc::GRND_NONBLOCK) };
            random
        });
        // Neighbouring seeds must not give neighbouring sequences.
        seed = seed.wrapping_add(u64::from(ordinal).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        seed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        seed = (seed ^ seed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.random = Random((seed ^ seed >> 31) | 1);
    }

    /// Uniform in 0..1.
    pub fn random_fraction(&mut self) -> f64 {
        self.random.fraction()
    }

    /// A tick in the program's code at `context`.
    pub fn tick(&mut self, context: &mut Context, running: &Running) {
        let cpu = sys::thread_cpu_ns();
        self.drop_clock();
        if self.step.is_active() {
            self.step_again(context, cpu);
            return;
        }
        let engine = settings::engine();
        let verifies = engine == Engine::RunAhead && settings::verifies();
        let steps = engine == Engine::Step || verifies;
        let declined = !context.is_64_bit()
            || engine == Engine::RunAhead && !shadow_burst::is_possible()
            || steps && !Stepper::is_possible(context);
        if declined {
            self.decline(cpu);
            return;
        }
        self.record.begin(context.pc(), cpu);
        if verifies && !(self.step.can_begin(context) && self.verify.begin(self.ordinal, context, running)) {
            self.decline(cpu);
        } else if steps {
            self.step_first(context);
        } else {
            self.run_ahead(context, running);
        }
    }

    /// A tick that is not used.
    pub fn decline(&mut self, cpu: u64) {
        process::DECLINED.fetch_add(1, Relaxed);
        self.spend(sys::thread_cpu_ns().saturating_sub(cpu) + settings::signal_ns());
        tick::arm_next(self, cpu, EndReason::Signal);
    }

    /// Stores the burst, and arms the next tick. `cpu` is the thread's CPU time now, of which `ours` since the burst
    /// began was not the program's.
    pub fn finish(&mut self, engine: Engine, reason: EndReason, end: u64, cpu: u64, ours: u64) {
        let record = &mut self.record;
        process::ready(record.unknown);
        let mut counters = process::counters();
        counters.own_ns += ours;
        let head = BurstHead {
            engine: engine as u8,
            end_reason: reason as u8,
            alone: record.alone,
            thread: sys::thread_id() as u32,
            time_ns: record.begin_ns,
            start: record.start,
            end,
            instructions: record.instructions,
            branches: record.branches,
            thread_cpu_ns: cpu.saturating_sub(self.base_cpu_ns),
            counters,
        };
        let mut e = Encoder::resume(&mut record.bytes, record.length);
        e.patch(FRAME_HEADER, &head.to_bytes());
        process::append(e.finish(FrameKind::Burst));
        let now = sys::thread_cpu_ns();
        let cost = ours + now.saturating_sub(cpu) + settings::signal_ns();
        self.spend(cost);
        // Costs differ by the burst's length; the budget is kept by the debt, this only sets the pace.
        self.cost_ns += (cost as f64 - self.cost_ns) * 0.25;
        tick::arm_next(self, now, reason);
    }

    /// Puts a cost on the sampler's account.
    pub fn spend(&mut self, cost: u64) {
        self.own_ns += cost;
        process::OWN_NS.fetch_add(cost, Relaxed);
    }
}
