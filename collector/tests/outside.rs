//! Samples from outside, by `ptrace`.

#![allow(unsafe_code, reason = "system calls")]

mod common;

use common::{check, compare, fixture};
use pleach_collector::record::{RecordError, RecordOptions, attach, record};
use pleach_collector::vector::VectorSet;
use pleach_facilities::DEADLINE;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One recording at a time: its handlers of faults are the process's.
static ALONE: Mutex<()> = Mutex::new(());

const OUTSIDE: [(&str, &str); 1] = [("ENGINE", "ptrace")];

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn options() -> RecordOptions {
    RecordOptions {
        from_outside: true,
        overhead: 1.0,
        ..RecordOptions::new("")
    }
}

/// Records a fixture in a process of its own, and compares what it does.
fn compare_fixture(name: &str, flags: &[&str], arguments: &[&str]) -> common::Run {
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), name, flags);
    let mut command: Vec<OsString> = vec![program.into()];
    command.extend(arguments.iter().map(OsString::from));
    let command: Vec<&OsStr> = command.iter().map(OsString::as_os_str).collect();
    compare(1.0, &command, &OUTSIDE)
}

#[test]
fn programs_do_what_they_do_otherwise() {
    let _turn = turn();
    let more: [(&str, &[&str]); 4] = [
        ("storm", &[]),
        ("spin", &[]),
        ("hostile/code", &[]),
        ("hostile/stacks", &[]),
    ];
    for (name, arguments) in common::FIXTURES.into_iter().chain(more) {
        compare_fixture(name, &[], arguments);
    }
}

#[test]
fn static_programs_are_sampled() {
    for flags in [&["-static"][..], &["-static-pie"]] {
        let run = compare_fixture("compute", flags, &[]);
        assert!(run.stats.bursts > 5, "{:?}", run.stats);
        assert!(run.checked > 5_000, "{}", run.checked);
    }
}

#[test]
fn ends_and_new_images_at_any_moment() {
    let often = [("ENGINE", "ptrace"), ("PERIOD", "1ms"), ("BURST", "4096")];
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "exits", &[]);
    for moment in 0..40 {
        let end = (20_000 + moment * 371).to_string();
        compare(1.0, &[program.as_os_str(), "3".as_ref(), end.as_ref()], &often);
    }
    for _ in 0..4 {
        compare(1.0, &[program.as_os_str(), "exec".as_ref(), "60".as_ref()], &often);
    }
}

#[test]
fn children_that_nobody_waits_for_count_once() {
    let run = compare_fixture("zombie", &[], &[]);
    assert_eq!(run.vectors.processes.len(), 2, "{:#?}", run.vectors.processes);
    assert!(run.stats.program_cpu_seconds < 3.0, "{:?}", run.stats);
}

#[test]
fn the_command_has_no_other_signals_blocked() {
    let command = ["grep", "SigBlk", "/proc/self/status"].map(OsStr::new);
    compare(1.0, &command, &OUTSIDE);
}

/// Held by tests of programs with many threads: where hundreds of those run, a stopped thread waits until the turn of the
/// recorder comes, which counts as its time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn threads_that_wait_cost_little() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "waiting", &[]);
    // Attaching to 500 threads costs some 40 ms once, on a loaded machine 300: the program works long enough for that.
    let run = compare(0.01, &[program.as_os_str()], &OUTSIDE);
    assert!(run.stats.overhead < 0.05, "{:?}", run.stats);
}

#[test]
fn interrupted_waits_go_on() {
    let run = compare_fixture("waits", &[], &[]);
    let text = String::from_utf8_lossy(&run.output.stdout).into_owned();
    assert_eq!(text, "0 failed, 20 interrupted, 20 signals\n");
}

#[test]
fn all_threads_and_children_are_sampled() {
    // On a loaded machine a recorder outside has its turn less often.
    let run = compare_fixture("threads", &[], &["6"]);
    assert!(run.stats.bursts > 10 && run.stats.threads >= 3, "{:?}", run.stats);
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "compute", &[]);
    // The first process execs twice, and its child lives long enough to be found.
    let script = format!("{0} > /dev/null & wait; exec sh -c 'exec {0}'", program.display());
    let run = compare(1.0, &["sh".as_ref(), "-c".as_ref(), script.as_ref()], &OUTSIDE);
    let of_program = run
        .vectors
        .processes
        .iter()
        .filter(|process| process.command.ends_with("/compute") && process.program_cpu_seconds > 0.05);
    assert_eq!(of_program.count(), 2, "{:#?}", run.vectors.processes);
}

fn start(program: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::piped()).spawn().unwrap()
}

/// The rest of what a process prints, when it ends well.
fn rest(mut child: Child) -> String {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    text
}

/// Bursts in the file of a program.
fn in_program(set: &VectorSet, program: &Path) -> usize {
    let is_program = |module: u32| {
        let path = set.modules.get(module as usize).map(|module| module.path.as_path());
        path == program.canonicalize().ok().as_deref()
    };
    let of_program = set.bursts.iter().filter(|burst| {
        let mut branches = burst.branches.iter();
        branches.any(|branch| is_program(branch.from.module.0))
    });
    of_program.count()
}

#[test]
fn processes_that_run_are_recorded_and_go_on() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "compute", &["-static"]);
    let plain = rest(start(&program, &["0", "400"]));
    let children = [start(&program, &["0", "400"]), start(&program, &["0", "400"])];
    let ids: Vec<u32> = children.iter().map(Child::id).collect();
    let recording = attach(
        &ids,
        &RecordOptions {
            duration: Some(Duration::from_millis(400)),
            ..options()
        },
    )
    .unwrap();
    check(&recording.vectors);
    assert!(recording.stats.bursts > 10, "{:?}", recording.stats);
    assert_eq!(in_program(&recording.vectors, &program) as u64, recording.stats.bursts);
    assert_eq!(recording.vectors.processes.len(), 2);
    for child in children {
        assert_eq!(rest(child), plain);
    }
}

#[test]
fn a_recording_ends_with_its_process() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let program = fixture(directory.path(), "compute", &[]);
    let child = start(&program, &[]);
    let begin = Instant::now();
    let recording = attach(&[child.id()], &options());
    assert!(begin.elapsed() < DEADLINE);
    match recording {
        Ok(recording) => drop(check(&recording.vectors)),
        // It may have ended before.
        Err(error) => assert!(matches!(error, RecordError::NoProcess(_)), "{error}"),
    }
    rest(child);
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let _alone = alone();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let error = attach(&[gone.id()], &options()).unwrap_err();
    assert_eq!(error.to_string(), format!("there is no process {}", gone.id()));
    let mut child = Command::new("sleep").arg("100").spawn().unwrap();
    // SAFETY: plain numbers; the child is killed below.
    assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SEIZE, child.id(), 0, 0) }, 0);
    let error = attach(&[child.id()], &options()).unwrap_err();
    assert!(error.to_string().contains("is traced by process"), "{error}");
    child.kill().unwrap();
    child.wait().unwrap();
    let error = record(&["/nowhere".into()], &options()).unwrap_err();
    assert_eq!(error.exit_code(), 127);
}
