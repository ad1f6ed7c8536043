//! When threads are sampled: evenly over their time, whatever their age; few of many short processes; and never so that
//! a program notices.

use crate::common::{compare_fixture, fixture, sampler};
use pleach_wire::account::{Account, FILE, SIZE};
use pleach_wire::kinds::Engine;
use pleach_wire::settings::Settings;
use pleach_wire::shard::{DIRECTORY_VARIABLE, EXTENSION, Frame, Frames, SETTINGS_VARIABLE};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// The sampler in a command, without a recorder.
fn sampled(program: &Path, directory: &Path, overhead: f64) -> Command {
    let settings = Settings {
        engine: Engine::RunAhead,
        overhead,
        ..Settings::default()
    };
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", sampler())
        .env(DIRECTORY_VARIABLE, directory)
        .env(SETTINGS_VARIABLE, settings.to_text());
    command
}

fn account(directory: &Path) -> std::path::PathBuf {
    directory.join(OsStr::from_bytes(FILE.to_bytes()))
}

/// Of each run in a directory: the program's CPU time before its bursts, and all of it, without the sampler's.
fn times(directory: &Path) -> Vec<(Vec<u64>, u64)> {
    let mut times = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension() != Some(OsStr::new(EXTENSION)) {
            continue;
        }
        let bytes = std::fs::read(path).unwrap();
        let (mut base, mut total, mut found) = (0, 0, Vec::new());
        for frame in Frames::new(&bytes) {
            match frame {
                Frame::Process(head) => base = head.base_cpu_ns,
                Frame::Burst(burst) => found.push(burst.head.thread_cpu_ns.saturating_sub(burst.head.counters.own_ns)),
                Frame::Final(cpu_ns, counters, _) => total = cpu_ns.saturating_sub(counters.own_ns + base),
                _ => {}
            }
        }
        times.push((found, total));
    }
    times
}

/// Where bursts were in the runs of a directory: the program's CPU time before them, as a share of all of it.
fn positions(directory: &Path) -> Vec<f64> {
    let shares = |(found, total): (Vec<u64>, u64)| found.into_iter().map(move |at| at as f64 / total as f64);
    times(directory).into_iter().flat_map(shares).collect()
}

/// The statistic of Kolmogorov and Smirnov against the uniform distribution in 0..1.
fn largest_deviation(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let deviation = |(i, value): (usize, &f64)| (value - i as f64 / count).max((i + 1) as f64 / count - value);
    values.iter().enumerate().map(deviation).fold(0.0, f64::max)
}

/// Bursts in runs of a number of milliseconds are spread evenly, at a significance level of 0.1 %. A deviation of .02
/// is tolerated, because the times of start and end are not known more precisely.
fn are_spread_evenly(runs: u32, ms: u32) {
    let scratch = tempfile::tempdir().unwrap();
    let program = fixture(scratch.path(), "spin", &[]);
    let directory = scratch.path().join("shards");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(account(&directory), Account::new_page()).unwrap();
    for _ in 0..runs {
        let mut command = sampled(&program, &directory, 0.3);
        assert!(command.arg(ms.to_string()).status().unwrap().success());
    }
    let positions = positions(&directory);
    let count = positions.len() as f64;
    let deviation = largest_deviation(positions);
    let limit = 1.95 / count.sqrt() + 0.02;
    println!("{runs} runs of {ms} ms: {count} bursts, deviation {deviation:.4}, limit {limit:.4}");
    assert!(count >= 50.0, "{count} bursts in {runs} runs of {ms} ms");
    assert!(
        deviation < limit,
        "{deviation} of {count} bursts in runs of {ms} ms, limit {limit}"
    );
}

/// A tick that is due sooner than the kernel can handle its interrupt may keep the kernel from all else. With so large a
/// budget, a third of the intervals would be shorter than 80 µs.
#[test]
fn no_tick_comes_too_soon() {
    let scratch = tempfile::tempdir().unwrap();
    let program = fixture(scratch.path(), "spin", &[]);
    std::fs::write(account(scratch.path()), Account::new_page()).unwrap();
    let mut command = sampled(&program, scratch.path(), 3.0);
    assert!(command.arg("700").status().unwrap().success());
    let (found, _) = times(scratch.path()).pop().unwrap();
    let soon = found
        .windows(2)
        .filter(|pair| pair[1].saturating_sub(pair[0]) < 80_000)
        .count();
    assert!(found.len() > 300, "{} bursts", found.len());
    assert!(soon * 50 < found.len(), "{soon} of {} bursts", found.len());
}

#[test]
fn bursts_are_spread_evenly_over_short_runs() {
    for (runs, ms) in [(80, 50), (40, 100), (6, 500)] {
        are_spread_evenly(runs, ms);
    }
}

#[test]
#[ignore = "takes an hour and a half: cargo test --release -p pleach-collector -- --ignored"]
fn bursts_are_spread_evenly_over_a_thousand_runs() {
    for ms in [50, 100, 500, 5000] {
        are_spread_evenly(1000, ms);
    }
}

#[test]
fn storms_of_processes_end_as_they_should() {
    // At one percent, hardly one of these processes is sampled; with so large a budget, all are.
    for overhead in [0.01, 1000.0] {
        let run = compare_fixture(overhead, "storm", &["64"]);
        assert_eq!(run.stats.lost, 0, "{:?}", run.stats);
        let (with, without) = (run.stats.processes, run.stats.unsampled_processes);
        assert!(with + without > 100, "{:?}", run.stats);
        assert!(overhead > 1.0 || without > with, "{:?}", run.stats);
    }
}

#[test]
fn a_page_that_is_wrong_does_no_harm() {
    let scratch = tempfile::tempdir().unwrap();
    let program = fixture(scratch.path(), "compute", &[]);
    let plain = Command::new(&program).output().unwrap();
    let mut wild = Account::new_page();
    wild[8..].fill(0xff);
    let mut odd = Account::new_page();
    odd[8..].fill(0x01);
    let pages: [(&str, Option<&[u8]>); 6] = [
        ("none", None),
        ("empty", Some(&[])),
        ("short", Some(&wild[..SIZE - 1])),
        ("of another layout", Some(&[0x55; SIZE])),
        ("wild", Some(&wild)),
        ("odd", Some(&odd)),
    ];
    for (what, page) in pages {
        let directory = scratch.path().join(what);
        std::fs::create_dir(&directory).unwrap();
        if let Some(page) = page {
            std::fs::write(account(&directory), page).unwrap();
        }
        let output = sampled(&program, &directory, 0.5).output().unwrap();
        assert_eq!(output.status, plain.status, "{what}");
        assert_eq!(output.stdout, plain.stdout, "{what}");
        assert_eq!(output.stderr, plain.stderr, "{what}");
    }
}
