//! Run-ahead on programs that are hostile to whoever shares a process with them. What `run_ahead` covers already is not
//! repeated here: signals by timer, masks, SIGTRAP, descriptors, filters by one thread, many threads at a time.

#![allow(unsafe_code, reason = "system calls")]

use crate::common::{built, check, compare, compare_fixture, fixture, sampler};
use pleach_collector::vector::VectorSet;
use pleach_facilities::{DEADLINE, has_program, output_within, skip, spawn_within};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const OFTEN: f64 = 0.5;

/// Records as often as ticks can come, and as by default; expects bursts of the first.
fn compare_both(name: &str, arguments: &[&str]) {
    let run = compare_fixture(OFTEN, name, arguments);
    assert!(run.stats.bursts > 0, "{name} {arguments:?}: {:?}", run.stats);
    compare_fixture(0.01, name, arguments);
}

#[test]
fn faults_that_the_program_recovers_from() {
    for how in ["jump", "nodefer", "threads"] {
        compare_both("hostile/faults", &[how]);
    }
}

#[test]
fn faults_that_the_program_repairs() {
    for how in ["collect", "skip"] {
        compare_both("hostile/faults", &[how]);
    }
}

#[test]
fn handlers_with_little_stack() {
    compare_both("hostile/faults", &["small"]);
}

#[test]
fn threads_with_little_stack() {
    compare_both("hostile/stacks", &[]);
}

#[test]
fn confinement_of_every_kind() {
    for how in ["strict", "errno", "trap", "all", "one"] {
        compare_both("hostile/confined", &[how]);
    }
}

#[test]
fn code_that_changes() {
    compare_both("hostile/code", &[]);
}

#[test]
fn workers_that_give_up_their_rights() {
    // SAFETY: the call has no arguments.
    if unsafe { libc::geteuid() } != 0 {
        return skip("only root can become another user");
    }
    for how in ["setuid", "setreuid", "setresuid", "seteuid"] {
        let run = compare_fixture(OFTEN, "hostile/users", &[how]);
        // The parent has a tenth of the work.
        assert!(run.stats.processes >= 2, "{how}: {:?}", run.stats);
        assert!(run.stats.bursts > 20, "{how}: {:?}", run.stats);
    }
}

#[test]
fn tasks_in_a_hurry() {
    for how in ["vfork", "exec", "interrupted"] {
        compare_both("hostile/tasks", &[how]);
    }
}

#[test]
fn ten_thousand_threads() {
    let run = compare_fixture(OFTEN, "hostile/tasks", &["threads"]);
    assert_eq!(
        run.stats.threads + run.stats.unsampled_threads,
        10_001,
        "{:?}",
        run.stats
    );
    assert!(run.stats.bursts > 0, "{:?}", run.stats);
}

#[test]
fn a_static_child_runs_unsampled() {
    let directory = tempfile::tempdir().unwrap();
    let fixed = fixture(directory.path(), "compute", &["-static"]);
    let run = compare_fixture(OFTEN, "hostile/tasks", &["static", fixed.to_str().unwrap()]);
    assert!(run.stats.bursts > 0, "{:?}", run.stats);
}

#[test]
fn a_child_with_another_c_library_runs_unsampled() {
    if !has_program("musl-gcc") {
        return skip("musl-gcc is not installed");
    }
    let directory = tempfile::tempdir().unwrap();
    let other = directory.path().join("other");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compute.c");
    let mut compiler = Command::new("musl-gcc");
    compiler.arg("-O1").arg(source).arg("-o").arg(&other);
    let compiled = output_within(&mut compiler, Stdio::null(), DEADLINE).unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    let run = compare_fixture(OFTEN, "hostile/tasks", &["static", other.to_str().unwrap()]);
    assert!(run.stats.bursts > 0, "{:?}", run.stats);
}

#[test]
fn resources_that_the_program_gives_up() {
    for how in ["memory", "stack", "files", "signals", "size"] {
        compare_both("hostile/limits", &[how]);
    }
}

/// A recorder of a program that works until it is killed; what the program printed first is its process.
fn killed(after: Duration, signal: i32) -> (tempfile::TempDir, VectorSet) {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "hostile/endless", &[]);
    let output = directory.path().join("vectors");
    let mut recorder = Command::new(built().join("examples/record"));
    recorder.arg(sampler()).arg(OFTEN.to_string()).arg(program);
    recorder
        .env("OUTPUT", &output)
        .env("STATS", directory.path().join("stats"));
    let (mut recorder, _watchdog) = spawn_within(recorder.stdout(Stdio::piped()), DEADLINE).unwrap();
    let mut line = String::new();
    BufReader::new(recorder.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    std::thread::sleep(after);
    // SAFETY: plain integers, and a process that the recorder has not reaped.
    unsafe { libc::kill(line.trim().parse().unwrap(), signal) };
    let status = recorder.wait().unwrap();
    assert_eq!(status.code(), Some(128 + signal));
    let set = VectorSet::read_from(&output).unwrap();
    (directory, set)
}

#[test]
fn killed_at_any_moment() {
    for round in 0..12u64 {
        let signal = if round % 3 == 0 { libc::SIGABRT } else { libc::SIGKILL };
        let after = Duration::from_millis(20 + round * 37 % 211);
        let begin = Instant::now();
        let (_directory, set) = killed(after, signal);
        assert!(!set.processes.is_empty(), "{after:?}");
        // On a loaded machine the first bursts may come late.
        let had_time = after > Duration::from_millis(150) && begin.elapsed() < after * 3;
        assert!(!had_time || !set.bursts.is_empty(), "{after:?}");
        check(&set);
    }
}

#[test]
fn a_full_file_system_costs_bursts_only() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("small");
    std::fs::create_dir(&place).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"])
        .arg(&place)
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        return skip("a tmpfs cannot be mounted");
    }
    let program = fixture(directory.path(), "compute", &[]);
    let command = [program.as_os_str(), OsStr::new("3")];
    let run =
        std::panic::catch_unwind(|| compare(20.0, &command, &[("TMPDIR", place.to_str().unwrap()), ("BURST", "500")]));
    assert!(Command::new("umount").arg(&place).status().unwrap().success());
    let run = run.unwrap_or_else(|failure| std::panic::resume_unwind(failure));
    assert!(run.stats.lost > 0 && run.stats.bursts > 0, "{:?}", run.stats);
}

#[test]
fn no_room_for_recordings_is_an_error() {
    let mut recorder = Command::new(built().join("examples/record"));
    recorder
        .arg(sampler())
        .args(["0.01", "true"])
        .env("TMPDIR", "/proc/nowhere");
    let output = output_within(&mut recorder, Stdio::null(), DEADLINE).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("cannot make a temporary directory") && error.contains("/proc/nowhere"),
        "{error}"
    );
    assert!(!Path::new("/proc/nowhere").exists());
}
