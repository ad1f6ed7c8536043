//! `record --pid`, and static programs: sampling from outside.

#![allow(unsafe_code, reason = "system calls")]

use crate::detached::program_of_seconds;
use crate::support::*;
use pleach_facilities::DEADLINE;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Bursts of a profile, which the compiler takes.
fn bursts(profile: &Path) -> u64 {
    stdout(Command::new(pleach()).args(["flags", "use"]).arg(profile));
    let mut show = Command::new(pleach());
    let text = stdout(show.args(["show", "--json"]).arg(profile));
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    json["provenance"]["bursts"]
        .as_u64()
        .unwrap_or_else(|| panic!("{text}"))
}

fn record(options: &[&str], profile: &Path) -> Command {
    let mut record = Command::new(pleach());
    record
        .args(["record", "--overhead", "20%", "-o"])
        .arg(profile)
        .args(options);
    record
}

/// Waits for the end of a recorder.
fn ended(mut recorder: Child) -> String {
    let begin = Instant::now();
    while recorder.try_wait().expect("it ends").is_none() {
        assert!(begin.elapsed() < DEADLINE, "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = recorder.wait_with_output().expect("read");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn static_programs_are_recorded_by_default() {
    let dir = scratch();
    let program = program_of_seconds(dir.path(), &["-static"]);
    let profile = dir.path().join("s.pleach");
    let mut record = record(&["--"], &profile);
    let recorded = output(record.arg(&program).arg("0.5"));
    assert!(bursts(&profile) > 10);
    let said = String::from_utf8_lossy(&recorded.stderr);
    assert!(said.contains("note: the program is linked statically"), "{said}");
    // Options that need the preloaded sampler are refused, not ignored.
    let mut record = self::record(&["--coverage", "only", "--"], &profile);
    let (status, message) = failure(record.arg(&program).arg("0.1"));
    assert!(
        status == 126 && message.contains("statically linked"),
        "{status}: {message}"
    );
}

#[test]
fn a_process_that_runs_is_recorded_until_the_time_is_over_or_the_user_interrupts() {
    let dir = scratch();
    let mut program = Command::new(program_of_seconds(dir.path(), &[]))
        .arg("100")
        .spawn()
        .expect("it starts");
    let profile = dir.path().join("p.pleach");
    let pid = program.id().to_string();
    let recorder = record(&["--pid", &pid, "--duration", "500ms"], &profile)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    ended(recorder);
    assert!(bursts(&profile) > 10);

    let second = dir.path().join("q.pleach");
    let recorder = record(&["-p", &pid], &second)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    std::thread::sleep(Duration::from_millis(600));
    // SAFETY: plain numbers.
    unsafe { libc::kill(recorder.id() as i32, libc::SIGINT) };
    ended(recorder);
    assert!(bursts(&second) > 5);

    assert!(program.try_wait().expect("it runs").is_none(), "the program ended");
    program.kill().expect("it runs");
    program.wait().expect("it ended");
    for engine in ["lbr", "auto", "ptrace"] {
        let (status, message) = failure(&mut record(&["--pid", &pid, "--engine", engine], &second));
        let reason = match engine {
            // On processors with branch records, the reason is the missing process.
            "lbr" => ["no branch records", "there is no process"],
            _ => ["there is no process"; 2],
        };
        assert!(
            status == 1 && reason.iter().any(|reason| message.contains(reason)),
            "{status}: {message}"
        );
    }
    let (_, message) = failure(&mut record(&["--pid", &pid, "--coverage", "only"], &second));
    assert!(message.contains("cannot be used with `--pid`"), "{message}");
    let (_, message) = failure(&mut record(&["--pid", &pid, "--engine", "run-ahead"], &second));
    assert!(message.contains("`--engine lbr` or `--engine ptrace`"), "{message}");
}
