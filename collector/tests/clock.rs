//! Clocked bursts: what is measured at bursts is what the program measures itself, and it is paid from the budget.

mod common;

use common::{fixture, record};
use pleach_collector::vector::{Burst, Clock};

/// Taken branches at most for which a burst's phase is told by its pace.
const MANY: f32 = 1e4;

fn clocks<'a>(bursts: impl Iterator<Item = &'a Burst>) -> Vec<Clock> {
    bursts.filter_map(|burst| burst.clock).collect()
}

/// Of nanoseconds for a branch.
fn median(clocks: &[Clock]) -> f64 {
    let mut times: Vec<f64> = clocks
        .iter()
        .map(|clock| f64::from(clock.nanoseconds / clock.branches))
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
    if run.stats.clocked == 0 && run.stats.clock_dropped == 0 {
        return println!("skipped: the kernel grants no breakpoints, or no events");
    }
    println!("{:?}", run.stats);
    let output = String::from_utf8(run.output.stdout).unwrap();
    let said: Vec<f64> = output
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    let [slow, fast] = said[..] else { panic!("{output}") };
    // The chain takes its time for memory, whatever else runs on the machine: the phases are at least ten times apart.
    let border = (slow * fast).sqrt() as f32;
    let all = clocks(run.vectors.bursts.iter());
    assert!(
        all.len() > 100 && all.len() as u64 <= run.stats.clocked,
        "{}",
        all.len()
    );
    assert!(all.iter().all(|clock| clock.branches > 200.0 && clock.branches < MANY));
    let (slow_clocks, fast_clocks): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|clock| clock.nanoseconds / clock.branches > border);
    println!(
        "slow: {slow:.1} ns, {:.1} at {} bursts; fast: {fast:.2} ns, {:.2} at {} bursts",
        median(&slow_clocks),
        slow_clocks.len(),
        median(&fast_clocks),
        fast_clocks.len(),
    );
    assert!(slow_clocks.len() > 20 && fast_clocks.len() > 20);
    let ratio = median(&slow_clocks) / slow;
    assert!((1.0 / 1.5..1.5).contains(&ratio), "slow: {ratio}");
    let ratio = median(&fast_clocks) / fast;
    assert!((1.0 / 1.5..1.5).contains(&ratio), "fast: {ratio}");
    // Few are interrupted by a tick.
    assert!(run.stats.clock_dropped < run.stats.clocked / 4, "{:?}", run.stats);
}

#[test]
fn clocks_are_within_the_budget() {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "clocks", &[]);
    let command = [program.as_os_str(), "4".as_ref()];
    let run = record(0.01, &command, &[]);
    assert!(run.stats.overhead < 0.011, "{:?}", run.stats);
    let without = record(0.01, &command, &[("CLOCKS", "off")]);
    assert_eq!((without.stats.clocked, without.stats.clock_dropped), (0, 0));
    assert!(clocks(without.vectors.bursts.iter()).is_empty());
    assert!(without.stats.bursts > 20, "{:?}", without.stats);
}
