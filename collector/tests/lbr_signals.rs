//! Signals to the recorder while it reads events: an interrupt is the command's own affair, an order to end is passed on,
//! and what was sampled is kept. Alone in its process, because the signals are sent to that.

use pleach_collector::engines::lbr::facts::Facts;
use pleach_collector::engines::lbr::open::Opened;
use pleach_collector::engines::lbr::plan::Plan;
use pleach_collector::engines::lbr::{attr::Scope, run};
use pleach_collector::record::RecordOptions;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

#[test]
fn signals_reach_the_command_and_lose_nothing() {
    let facts = Facts::read();
    let plan = Plan::software_clock(&facts);
    if Opened::new(&plan, 0, 1_000_000, Scope::This).is_err() {
        eprintln!("perf events are refused here: nothing can be tested");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("mark");
    let busy = format!(
        "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; : > {}; while :; do :; done",
        mark.display()
    );
    let command: Vec<OsString> = ["/bin/sh", "-c", &busy].map(OsString::from).into();
    let sender = std::thread::spawn(move || {
        while !mark.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        for signal in [libc::SIGINT, libc::SIGINT, libc::SIGTERM] {
            std::thread::sleep(Duration::from_millis(30));
            // SAFETY: to this very process, which has handlers while it records.
            unsafe { libc::kill(libc::getpid(), signal) };
        }
    });
    let options = RecordOptions::new("/nowhere/sampler");
    let (recording, reports) = run::record_planned(&command, &options, &facts, &plan).unwrap();
    sender.join().unwrap();
    assert_eq!(recording.status.signal(), Some(libc::SIGTERM));
    assert!(reports[0].samples > 0 && reports[0].damage.is_none());
}
