//! Measures the cost of a sample in the kernel: runs the same work with and without sampling.

#![allow(unsafe_code, reason = "system calls")]

use super::attr::Scope;
use super::plan::{Plan, Target};
use super::sys::Event;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The cost if it cannot be measured. Reading 32 records in an interrupt takes 2 to 5 µs on common machines.
const DEFAULT_COST_NS: f64 = 5_000.0;
/// Lower bound of the measured cost.
const MIN_COST_NS: f64 = 200.0;
/// Time of each piece of work: short, so that some pieces run without interference by other programs.
const PIECE: Duration = Duration::from_millis(1);
const PIECES: usize = 15;
/// Samples aimed at in a piece.
const TARGET_SAMPLES: u64 = 50;
/// Minimum of samples for a measurement.
const MIN_SAMPLES: u64 = 20;

/// CPU time of the kernel for a sample of this plan, in nanoseconds.
pub fn sample_cost(plan: &Plan) -> f64 {
    measured(plan).unwrap_or(DEFAULT_COST_NS)
}

/// A taken branch in each round.
fn work(rounds: u64) -> Duration {
    let start = Instant::now();
    let mut word = 1u64;
    for round in 0..rounds {
        word = black_box(word.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round);
    }
    black_box(word);
    start.elapsed()
}

fn measured(plan: &Plan) -> Option<f64> {
    let mut rounds = 50_000;
    while work(rounds) < PIECE {
        rounds *= 2;
    }
    let target = here(plan)?;
    // Counts events first, to derive the period for the number of samples.
    let counter = Event::open(&plan.sampling(&target, u64::MAX >> 1, Scope::This).to_bytes(), 0, -1).ok()?;
    counter.run(true).ok()?;
    work(rounds);
    counter.run(false).ok()?;
    let events = counter.count().ok()?;
    let period = (events / TARGET_SAMPLES).max(plan.event.least_period());
    let sampler = Event::open(&plan.sampling(&target, period, Scope::This).to_bytes(), 0, -1).ok()?;
    let (mut without, mut with, mut before) = (Duration::MAX, (Duration::MAX, 0), 0);
    for _ in 0..PIECES {
        without = without.min(work(rounds));
        sampler.run(true).ok()?;
        let time = work(rounds);
        sampler.run(false).ok()?;
        // Clock events also count while samples are taken, so the count determines the number of samples.
        let events = sampler.count().ok()?;
        with = with.min((time, (events - before) / period));
        before = events;
    }
    let (with, samples) = with;
    if samples < MIN_SAMPLES {
        return None;
    }
    let extra = with.checked_sub(without)?.as_nanos() as f64;
    Some((extra / samples as f64).max(MIN_COST_NS))
}

/// The target of the plan for the current processor.
fn here(plan: &Plan) -> Option<Target> {
    // SAFETY: no arguments.
    let cpu = unsafe { libc::sched_getcpu() };
    let same = plan
        .targets
        .iter()
        .find(|target| i64::from(target.cpu) == i64::from(cpu));
    same.or(plan.targets.first()).copied()
}
