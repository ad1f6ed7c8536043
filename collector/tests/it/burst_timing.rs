//! Timed bursts: their times agree with those that the program measures itself, and their cost is part of the budget.

use crate::common::{compare_fixture, fixture, record};
use object::{Object, ObjectSection, ObjectSymbol};
use pleach_collector::vector::{Burst, BurstTiming};
use pleach_facilities::skip;
use std::ops::Range;
use std::path::Path;

/// The range of a function in a program's file.
fn place(program: &Path, function: &str) -> Range<u64> {
    let bytes = std::fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(function)).unwrap();
    let section = file.section_by_index(symbol.section_index().unwrap()).unwrap();
    let start = symbol.address() - section.address() + section.file_range().unwrap().0;
    start..start + symbol.size()
}

fn timings<'a>(bursts: impl Iterator<Item = &'a Burst>) -> Vec<BurstTiming> {
    bursts.filter_map(|burst| burst.timing).collect()
}

/// Nanoseconds per branch.
fn median(timings: &[BurstTiming]) -> f64 {
    let mut times: Vec<f64> = timings
        .iter()
        .map(|timing| f64::from(timing.nanoseconds / timing.branches))
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
fn phases_take_what_the_program_says() {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "clocks", &[]);
    let command = [program.as_os_str(), "4".as_ref()];
    let run = record(0.1, &command, &[]);
    if run.stats.timed_bursts == 0 && run.stats.incomplete_timings == 0 {
        return skip("the kernel grants no breakpoints, or no events");
    }
    println!("{:?}", run.stats);
    let output = String::from_utf8(run.output.stdout).unwrap();
    let said: Vec<f64> = output
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    let [slow, fast] = said[..] else {
        panic!("{output:?}, {}", run.output.status)
    };
    assert!(run.stats.timed_bursts > 100, "{:?}", run.stats);
    let of = |function: &str| {
        let place = place(&program, function);
        let bursts = run.vectors.bursts.iter();
        timings(bursts.filter(|burst| burst.start.is_some_and(|start| place.contains(&start.offset))))
    };
    let (slow_clocks, fast_clocks) = (of("chase"), of("compute"));
    let mut all = slow_clocks.iter().chain(&fast_clocks);
    assert!(all.all(|timing| timing.branches > 200.0 && timing.branches < 1e4));
    println!(
        "slow: {slow:.1} ns, {:.1} at {} bursts; fast: {fast:.2} ns, {:.2} at {} bursts",
        median(&slow_clocks),
        slow_clocks.len(),
        median(&fast_clocks),
        fast_clocks.len(),
    );
    assert!(slow_clocks.len() > 20 && fast_clocks.len() > 20);
    // Coarse: traps take longer or shorter from moment to moment, by more than the fast phase takes.
    let ratio = median(&slow_clocks) / slow;
    assert!((0.3..3.0).contains(&ratio), "slow: {ratio}");
    assert!(median(&slow_clocks) > 5.0 * median(&fast_clocks));
    // Few are interrupted by a tick.
    assert!(
        run.stats.incomplete_timings < run.stats.timed_bursts / 4,
        "{:?}",
        run.stats
    );
}

#[test]
fn clocks_are_within_the_budget() {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "clocks", &[]);
    let command = [program.as_os_str(), "4".as_ref()];
    let run = record(0.01, &command, &[]);
    // A processor that others use too makes bursts longer than their model says.
    assert!(run.stats.overhead < 0.015, "{:?}", run.stats);
    let without = record(0.01, &command, &[("CLOCKS", "off")]);
    assert_eq!((without.stats.timed_bursts, without.stats.incomplete_timings), (0, 0));
    assert!(timings(without.vectors.bursts.iter()).is_empty());
    assert!(without.stats.bursts > 20, "{:?}", without.stats);
}

#[test]
fn breakpoints_disturb_nothing_and_outlive_nothing() {
    let mut timed = 0;
    for how in ["fork", "exec", "spawn", "thread", "block", "limit", "confine", "close"] {
        let run = compare_fixture(1.0, "hostile/clocked", &[how]);
        println!(
            "{how}: {} and {} dropped",
            run.stats.timed_bursts, run.stats.incomplete_timings
        );
        timed += run.stats.timed_bursts;
        assert!(run.stats.bursts > 0, "{how}: {:?}", run.stats);
    }
    println!("{timed} timed");
}
