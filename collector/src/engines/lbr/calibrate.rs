//! Measures what the kernel takes for a sample: the same work with and without sampling.

use super::attr::Scope;
use super::plan::{Plan, Target};
use super::sys::Event;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Where it cannot be measured. Reading 32 records in an interrupt takes 2 to 5 µs on the machines that have them.
const USUAL_NS: f64 = 5_000.0;
const LEAST_NS: f64 = 200.0;
/// Time for each piece of work: short, so that other programs leave some alone.
const PIECE: Duration = Duration::from_millis(1);
const PIECES: usize = 15;
/// Samples wanted in a piece.
const SAMPLES: u64 = 50;
/// Fewer say nothing.
const ENOUGH: u64 = 20;

/// CPU time in nanoseconds that the kernel takes for a sample of this plan.
pub fn sample_cost(plan: &Plan) -> f64 {
    measured(plan).unwrap_or(USUAL_NS)
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
    // Counts first, to know which period gives as many samples as are wanted.
    let counter = Event::open(&plan.sampling(&target, u64::MAX >> 1, Scope::This).to_bytes(), 0, -1).ok()?;
    counter.run(true).ok()?;
    work(rounds);
    counter.run(false).ok()?;
    let events = counter.count().ok()?;
    let period = (events / SAMPLES).max(plan.event.least_period());
    let sampler = Event::open(&plan.sampling(&target, period, Scope::This).to_bytes(), 0, -1).ok()?;
    let (mut without, mut with, mut before) = (Duration::MAX, (Duration::MAX, 0), 0);
    for _ in 0..PIECES {
        without = without.min(work(rounds));
        sampler.run(true).ok()?;
        let time = work(rounds);
        sampler.run(false).ok()?;
        // Clocks go on while samples are taken: what was counted now says how many there were.
        let events = sampler.count().ok()?;
        with = with.min((time, (events - before) / period));
        before = events;
    }
    let (with, samples) = with;
    if samples < ENOUGH {
        return None;
    }
    let extra = with.checked_sub(without)?.as_nanos() as f64;
    Some((extra / samples as f64).max(LEAST_NS))
}

/// The target of a processor that this thread may run on.
fn here(plan: &Plan) -> Option<Target> {
    // SAFETY: no arguments.
    let cpu = unsafe { libc::sched_getcpu() };
    let same = plan
        .targets
        .iter()
        .find(|target| i64::from(target.cpu) == i64::from(cpu));
    same.or(plan.targets.first()).copied()
}
