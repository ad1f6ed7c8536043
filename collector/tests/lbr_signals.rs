//! Signals to the recorder while it reads events: it leaves SIGINT to the command, passes SIGTERM on, and keeps the
//! samples. This test has its own process because it sends the signals to it.

#![allow(unsafe_code, reason = "system calls")]

use pleach_collector::engines::lbr::facts::Facts;
use pleach_collector::engines::lbr::open::Opened;
use pleach_collector::engines::lbr::plan::Plan;
use pleach_collector::engines::lbr::{attr::Scope, run};
use pleach_collector::record::RecordOptions;
use pleach_facilities::{DEADLINE, reset_signals, skip};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

#[test]
fn signals_reach_the_command_and_lose_nothing() {
    let facts = Facts::read();
    let plan = Plan::software_clock(&facts);
    if Opened::new(&plan, &[0], 1_000_000, Scope::This).is_err() {
        return skip("the kernel refuses perf events");
    }
    // The recorder passes on only signals that were not ignored when it started.
    reset_signals();
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("mark");
    // The limit of CPU time ends the command if no signal does.
    let busy = format!(
        "ulimit -t 60; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; : > {}; while :; do :; done",
        mark.display()
    );
    let command: Vec<OsString> = ["/bin/sh", "-c", &busy].map(OsString::from).into();
    let sender = std::thread::spawn(move || {
        let end = Instant::now() + DEADLINE;
        while !mark.exists() {
            assert!(Instant::now() < end, "the command did not start before the deadline");
            std::thread::sleep(Duration::from_millis(5));
        }
        for signal in [libc::SIGINT, libc::SIGINT, libc::SIGTERM] {
            std::thread::sleep(Duration::from_millis(30));
            // SAFETY: a plain system call; this process has handlers for these signals while it records.
            unsafe { libc::kill(libc::getpid(), signal) };
        }
    });
    let options = RecordOptions::new("/nowhere/sampler");
    let (recording, reports) = run::record_planned(&command, &options, &facts, &plan).unwrap();
    sender.join().unwrap();
    assert_eq!(recording.status.signal(), Some(libc::SIGTERM));
    assert!(reports[0].samples > 0 && reports[0].damage.is_none());
}
