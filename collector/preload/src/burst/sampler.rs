//! The sampler's state in one thread, and the storage of complete bursts in the shard.

use crate::burst::engines;
use crate::burst::stepper::Stepper;
use crate::burst::timing::BurstTiming;
use crate::burst::verification::Verification;
use crate::counters;
use crate::settings;
use crate::shard_writer;
use crate::sys;
use crate::tick::Ticker;
use core::sync::atomic::Ordering::Relaxed;
use pleach_wire::kinds::{EndReason, Engine};
use pleach_wire::shard::{BurstHead, Encoder, FRAME_HEADER, FrameKind, RawValue};

/// Values of a burst that are recorded, at most.
const MAX_VALUES: usize = 256;
/// Divisors among them, at most: loops that divide must not displace lengths of memory operations.
const MAX_DIVISORS: usize = MAX_VALUES / 2;
/// A branch takes at most 20 bytes, and a value 30.
const RECORD_CAPACITY: usize =
    FRAME_HEADER + BurstHead::LENGTH + 20 * (settings::MAX_BURST as usize + 1) + 30 * MAX_VALUES;

/// The sampler's state in one thread.
#[derive(Debug)]
pub struct Sampler {
    /// Source of ticks, and the account of costs.
    pub ticker: Ticker,
    /// Comparison of shadow execution with the program.
    pub verification: Verification,
    /// The trap-flag engine's state.
    pub stepper: Stepper,
    /// The thread's number in the process.
    pub ordinal: u32,
    /// Measurement of the time that branches take.
    pub timing: BurstTiming,
    /// The burst that is being recorded.
    pub record: Record,
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
    /// Whether a branch led to code in no known mapping.
    pub unknown: bool,
    /// The number of the system call at which the burst ended, plus one; 0: none.
    pub system_call: u32,
    /// Whether threads, signals or shared memory cannot change the program's control flow.
    pub is_isolated: bool,
    /// `CLOCK_MONOTONIC` at that moment.
    pub begin_ns: u64,
    last_target: u64,
    values: [RawValue; MAX_VALUES],
    value_count: usize,
    divisor_count: usize,
    byte_count: usize,
    bytes: [u8; RECORD_CAPACITY],
}

impl Record {
    /// Starts an empty burst at `pc`.
    pub fn begin(&mut self, pc: u64, cpu: u64) {
        self.begin_ns = sys::now_ns();
        self.begin_cpu_ns = cpu;
        self.start = pc;
        self.last_target = pc;
        (self.instructions, self.branches) = (0, 0);
        self.byte_count = FRAME_HEADER + BurstHead::LENGTH;
        (self.unknown, self.is_isolated) = (false, false);
        (self.value_count, self.divisor_count) = (0, 0);
        self.system_call = 0;
    }

    /// Records a taken branch.
    pub fn branch(&mut self, from: u64, to: u64) {
        let mut e = Encoder::resume(&mut self.bytes, self.byte_count);
        e.delta(self.last_target, from);
        e.delta(from, to);
        self.byte_count = e.length();
        self.last_target = to;
        self.branches += 1;
    }

    /// Records the length of the memory operation whose routine the last branch entered.
    pub fn length(&mut self, length: u64) {
        self.value(0, length);
    }

    /// Records what the instruction at an address divides by. Divisions before the first branch have no weight.
    pub fn divisor(&mut self, at: u64, divisor: u64) {
        if self.branches > 0 && self.divisor_count < MAX_DIVISORS {
            self.divisor_count += 1;
            self.value(at, divisor);
        }
    }

    fn value(&mut self, at: u64, value: u64) {
        if let Some(slot) = self.values.get_mut(self.value_count) {
            let branch = self.branches - 1;
            *slot = RawValue { branch, at, value };
            self.value_count += 1;
        }
    }

    /// Appends the values to the branches.
    fn append_values(&mut self) {
        let mut e = Encoder::resume(&mut self.bytes, self.byte_count);
        let mut last = 0;
        for &RawValue { branch, at, value } in self.values.get(..self.value_count).unwrap_or_default() {
            e.delta(last, branch.into());
            e.delta(0, at);
            e.delta(0, value);
            last = branch.into();
        }
        self.byte_count = e.length();
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
            Ticker::reset(&raw mut (*this).ticker);
            Stepper::reset(&raw mut (*this).stepper);
            BurstTiming::reset(&raw mut (*this).timing);
        }
    }

    /// Starts over in a new thread or process.
    pub fn begin(&mut self, ordinal: u32) {
        self.ticker.begin(ordinal);
        self.stepper.begin();
        self.ordinal = ordinal;
    }

    /// Reserves an engine for the thread, if it needs one for the first time. `cpu` is the thread's CPU time at the
    /// tick; returns it increased by the cost of the reservation.
    pub fn reserve_engine(&mut self, cpu: u64) -> u64 {
        if !engines::reserve(self.ordinal) {
            return cpu;
        }
        let now = sys::thread_cpu_ns();
        self.ticker.spend_on_start(now.saturating_sub(cpu));
        now
    }

    /// Ends a tick without a burst. `cpu` is the thread's CPU time when it came.
    pub fn decline(&mut self, cpu: u64) {
        counters::DECLINED.fetch_add(1, Relaxed);
        self.ticker
            .spend(sys::thread_cpu_ns().saturating_sub(cpu) + settings::get().signal_ns);
        self.ticker.arm_next();
    }

    /// Stores the burst, and arms the next tick. `cpu` is the thread's present CPU time; `ours` is the sampler's part
    /// of it since the burst began.
    pub fn finish(&mut self, engine: Engine, reason: EndReason, end: u64, cpu: u64, ours: u64) {
        let record = &mut self.record;
        let is_begun = shard_writer::is_begun();
        shard_writer::ready(record.unknown);
        let opening = if is_begun {
            0
        } else {
            sys::thread_cpu_ns().saturating_sub(cpu)
        };
        let mut counters = counters::snapshot();
        counters.own_ns += ours;
        let head = BurstHead {
            engine: engine as u8,
            end_reason: reason as u8,
            is_isolated: record.is_isolated,
            thread: sys::thread_id() as u32,
            time_ns: record.begin_ns,
            start: record.start,
            end,
            instructions: record.instructions,
            branches: record.branches,
            thread_cpu_ns: self.ticker.sampled_cpu_ns(cpu),
            counters,
            system_call: record.system_call,
        };
        record.append_values();
        let mut e = Encoder::resume(&mut record.bytes, record.byte_count);
        e.patch(FRAME_HEADER, &head.to_bytes());
        shard_writer::append(e.finish(FrameKind::Burst));
        let now = sys::thread_cpu_ns();
        let cost = ours + now.saturating_sub(cpu + opening) + settings::get().signal_ns;
        self.ticker.spend_on_start(opening);
        self.ticker.spend_on_burst(cost, u64::from(record.instructions), reason);
        self.ticker.arm_next();
    }
}
