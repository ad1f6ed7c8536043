//! Settings that the recorder passes in the environment.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pleach_collector::vector::Engine;

/// Taken branches of a stepped burst, unless the budget allows longer ones.
const STEPPED_BURST: u64 = 64;
/// Taken branches of a shadow burst, unless the budget only allows shorter ones, or allows even longer ones.
const SHADOW_BURST: u64 = 1000;
/// Shortest shadow burst, in taken branches.
pub const MIN_BURST: u64 = 64;
/// Longest burst, in taken branches.
pub const MAX_BURST: u64 = 4096;

static OVERHEAD: AtomicU64 = AtomicU64::new(0);
static PERIOD: AtomicU64 = AtomicU64::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);
static BURST: AtomicU64 = AtomicU64::new(0);
static STEP_NS: AtomicU64 = AtomicU64::new(5_000);
static SIGNAL_NS: AtomicU64 = AtomicU64::new(2_000);
static TRAP_NS: AtomicU64 = AtomicU64::new(0);
static TRAP_SIGNAL_NS: AtomicU64 = AtomicU64::new(0);
static LOAD_NS: AtomicU64 = AtomicU64::new(0);
static FILTERS: AtomicU64 = AtomicU64::new(0);
static TIMER_ONLY: AtomicU64 = AtomicU64::new(0);
static VERIFY: AtomicU64 = AtomicU64::new(0);
static DEADLINE: AtomicU64 = AtomicU64::new(u64::MAX);
static ENGINE: AtomicU64 = AtomicU64::new(Engine::Step as u64);

/// Reads `key=value,key=value`; unknown keys are skipped, so that old and new versions mix.
pub fn parse(settings: &str) {
    for pair in settings.split(',') {
        let Some((key, value)) = pair.split_once('=') else {
            continue;
        };
        let number = || value.parse::<u64>().unwrap_or(0);
        match key {
            "overhead" => OVERHEAD.store(value.parse::<f64>().unwrap_or(0.01).to_bits(), Relaxed),
            "period_ns" => PERIOD.store(number(), Relaxed),
            "seed" => SEED.store(number().max(1), Relaxed),
            "burst" => BURST.store(number().clamp(1, MAX_BURST), Relaxed),
            "step_ns" => STEP_NS.store(number().clamp(100, 1_000_000), Relaxed),
            "signal_ns" => SIGNAL_NS.store(number().clamp(100, 1_000_000), Relaxed),
            "trap_ns" => TRAP_NS.store(number().min(1_000_000), Relaxed),
            "trap_signal_ns" => TRAP_SIGNAL_NS.store(number().min(1_000_000), Relaxed),
            "load_ns" => LOAD_NS.store(number().min(10_000_000), Relaxed),
            "filters" => FILTERS.store(number(), Relaxed),
            "engine" if value == Engine::RunAhead.name() => ENGINE.store(Engine::RunAhead as u64, Relaxed),
            "verify" => VERIFY.store(number(), Relaxed),
            "deadline_ns" => DEADLINE.store(number(), Relaxed),
            "tick" => TIMER_ONLY.store(u64::from(value == "timer"), Relaxed),
            _ => {}
        }
    }
}

/// Budget, as a fraction of the program's CPU time.
pub fn overhead() -> f64 {
    let value = f64::from_bits(OVERHEAD.load(Relaxed));
    if value > 0.0 { value } else { 0.01 }
}

/// Fixed mean period in nanoseconds, instead of the budget.
pub fn period_ns() -> Option<u64> {
    Some(PERIOD.load(Relaxed)).filter(|p| *p > 0)
}

/// Fixed seed.
pub fn seed() -> Option<u64> {
    Some(SEED.load(Relaxed)).filter(|s| *s > 0)
}

/// Taken branches of a burst.
pub fn burst() -> u64 {
    match (BURST.load(Relaxed), engine()) {
        (0, Engine::RunAhead) => SHADOW_BURST,
        (0, _) => STEPPED_BURST,
        (burst, _) => burst,
    }
}

/// First guess of what a step costs, in nanoseconds.
pub fn step_ns() -> u64 {
    STEP_NS.load(Relaxed)
}

/// CPU time that the delivery of a signal takes beyond what its handler sees, in nanoseconds.
pub fn signal_ns() -> u64 {
    SIGNAL_NS.load(Relaxed)
}

/// Cost of passing a breakpoint, in nanoseconds of CPU time; 0: bursts are not timed.
pub fn trap_ns() -> u64 {
    TRAP_NS.load(Relaxed)
}

/// Cost of its signal beyond that, the handler included, in nanoseconds.
pub fn trap_signal_ns() -> u64 {
    TRAP_SIGNAL_NS.load(Relaxed)
}

/// CPU time that the dynamic loader took for this library, in nanoseconds.
pub fn load_ns() -> u64 {
    LOAD_NS.load(Relaxed)
}

/// Seccomp filters that were in force in the recorder.
pub fn seccomp_filters() -> u64 {
    FILTERS.load(Relaxed)
}

/// Whether to tick by CPU timers even where perf events work.
pub fn timer_only() -> bool {
    TIMER_ONLY.load(Relaxed) != 0
}

/// The engine that produces bursts.
pub fn engine() -> Engine {
    match ENGINE.load(Relaxed) {
        engine if engine == Engine::RunAhead as u64 => Engine::RunAhead,
        _ => Engine::Step,
    }
}

/// Falls back to the trap flag.
pub fn use_step() {
    ENGINE.store(Engine::Step as u64, Relaxed);
}

/// `CLOCK_MONOTONIC` in nanoseconds when sampling ends.
pub fn deadline_ns() -> u64 {
    DEADLINE.load(Relaxed)
}

/// Whether shadow bursts are compared with what the program does then.
pub fn verifies() -> bool {
    VERIFY.load(Relaxed) != 0
}
