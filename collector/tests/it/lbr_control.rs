//! The controller on programs that are simulated: it finds the period that the budget allows, and keeps the budget.

use pleach_collector::engines::lbr::control::{Controller, Goal, Seen};
use proptest::prelude::*;
use std::time::Duration;

/// A program and a machine.
#[derive(Clone, Copy, Debug)]
struct World {
    /// Events in a nanosecond of CPU time.
    rate: f64,
    /// CPU time of a sample in the kernel, in nanoseconds.
    sample_ns: f64,
    /// What the reader takes for a look, and for each sample.
    look_ns: f64,
    read_ns: f64,
    /// CPU time of the program in a nanosecond.
    threads: f64,
    /// Part of it in threads that keep the first period.
    stubborn: f64,
    start_ns: f64,
}

struct Ran {
    overhead: f64,
    samples_per_second: f64,
    /// Highest overhead, start included, at any look after the first second of CPU time.
    worst: f64,
    closed: bool,
}

fn run(world: World, goal: Goal, first_period: u64, seconds: f64) -> Ran {
    let mut controller = Controller::new(goal, world.sample_ns, first_period, 1_000, 1);
    let (mut program, mut reader, mut samples, mut events) = (0.0, world.start_ns, 0.0, 0.0);
    let (mut period, mut open, mut next) = (first_period as f64, true, Duration::from_millis(5));
    let (mut worst, mut closed) = (0.0f64, false);
    while program < seconds * 1e9 {
        let ran = next.as_nanos() as f64 * world.threads;
        program += ran;
        if open {
            for (part, period) in [(world.stubborn, first_period as f64), (1.0 - world.stubborn, period)] {
                let new = ran * part * world.rate / period;
                samples += new;
                events += new * period;
                reader += new * world.read_ns;
            }
        }
        reader += world.look_ns;
        let seen = Seen {
            cpu_ns: (program + samples * world.sample_ns) as u64,
            reader_ns: reader as u64,
            reading_ns: (samples * world.read_ns) as u64,
            samples: samples as u64,
            events: events as u64,
        };
        let spent = controller.spent_ns(&seen) / controller.program_ns(&seen);
        if program > 1e9 {
            worst = worst.max(spent);
        }
        let decision = controller.look(seen);
        period = decision.period.map_or(period, |period| period as f64);
        closed |= !decision.open;
        (open, next) = (decision.open, decision.next);
    }
    Ran {
        overhead: (samples * world.sample_ns + reader) / program,
        samples_per_second: samples / program * 1e9,
        worst,
        closed,
    }
}

const USUAL: World = World {
    rate: 0.3,
    sample_ns: 4_000.0,
    look_ns: 40_000.0,
    read_ns: 1_000.0,
    threads: 1.0,
    stubborn: 0.0,
    start_ns: 2e6,
};

#[test]
fn the_budget_is_used_and_kept() {
    for overhead in [0.002, 0.01, 0.1, 0.5] {
        // Ten times too often, about right, ten and a thousand times too seldom.
        for first in [3_000, 100_000, 1_000_000, 100_000_000] {
            let ran = run(USUAL, Goal::Overhead(overhead), first, 20.0);
            let used = ran.overhead / overhead;
            assert!((0.75..1.05).contains(&used), "{used} of {overhead} from period {first}");
        }
    }
    let ran = run(USUAL, Goal::Overhead(0.01), 100_000, 20.0);
    assert!(
        !ran.closed,
        "the period alone holds the budget where all threads follow it"
    );
    assert!(ran.worst < 0.0125, "{}", ran.worst);
}

/// Threads that keep too short a period: they are held back, all together.
#[test]
fn the_gate_holds_what_the_period_cannot() {
    let world = World {
        stubborn: 1.0,
        threads: 8.0,
        ..USUAL
    };
    let ran = run(world, Goal::Overhead(0.01), 5_000, 40.0);
    assert!(ran.closed);
    assert!((0.006..0.0115).contains(&ran.overhead), "{}", ran.overhead);
}

#[test]
fn a_distance_is_kept_whatever_it_costs() {
    let ran = run(USUAL, Goal::Period(Duration::from_micros(500)), 1_000_000, 10.0);
    assert!(
        (1_700.0..2_300.0).contains(&ran.samples_per_second),
        "{}",
        ran.samples_per_second
    );
}

/// A program that sleeps is looked at less and less often.
#[test]
fn sleep_is_left_alone() {
    let mut controller = Controller::new(Goal::Overhead(0.01), 4_000.0, 100_000, 1_000, 1);
    let seen = Seen {
        cpu_ns: 1_000_000,
        ..Seen::default()
    };
    controller.look(seen);
    let waits: Vec<_> = (1..12)
        .map(|look| {
            controller
                .look(Seen {
                    reader_ns: look * 30_000,
                    ..seen
                })
                .next
        })
        .collect();
    assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]));
    assert_eq!(waits.last(), Some(&Duration::from_secs(1)));
}

#[test]
fn periods_are_random_and_seeds_repeat_them() {
    let periods = |seed| -> Vec<u64> {
        let mut controller = Controller::new(Goal::Overhead(0.01), 4_000.0, 100_000, 1_000, seed);
        let look = |number: u64| {
            let samples = number * 20;
            controller.look(Seen {
                cpu_ns: number * 10_000_000 + samples * 4_000,
                reader_ns: number * 10_000,
                reading_ns: number * 1_000,
                samples,
                events: samples * 150_000,
            })
        };
        (1..50).map(look).filter_map(|decision| decision.period).collect()
    };
    let (first, again, other) = (periods(1), periods(1), periods(2));
    assert!(first.len() > 40 && first == again && first != other);
    assert!(first.iter().all(|period| period % 2 == 1));
    let distinct: std::collections::HashSet<_> = first.iter().collect();
    assert!(distinct.len() > 40);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Over all kinds of programs: never much more than the budget and what starting took.
    #[test]
    fn no_program_breaks_the_budget(
        rate in -3.0f64..1.0,
        sample_ns in 500.0f64..20_000.0,
        look_ns in 5_000.0f64..100_000.0,
        threads in 0.5f64..16.0,
        stubborn in prop_oneof![Just(0.0), Just(1.0), 0.0f64..1.0],
        overhead in -2.5f64..0.0,
        first in 4.0f64..8.0,
    ) {
        let world = World { rate: 10f64.powf(rate), sample_ns, look_ns, threads, stubborn, ..USUAL };
        let (overhead, first) = (10f64.powf(overhead), 10f64.powf(first));
        // The first look comes 5 ms after the start; a period that is hopeless until then is no controller's fault.
        let first = first.max(world.rate / overhead * sample_ns / 10.0) as u64;
        let ran = run(world, Goal::Overhead(overhead), first, 30.0);
        prop_assert!(ran.overhead < overhead * 1.25 + 2e6 / 30e9, "{} of {overhead}", ran.overhead);
    }
}
