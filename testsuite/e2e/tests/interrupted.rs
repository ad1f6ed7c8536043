//! The user interrupts a recording of many short runs: what was recorded is kept. Or before the first run: it ends.

#![allow(unsafe_code, reason = "system calls")]

use crate::support::*;
use pleach_facilities::DEADLINE;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn an_interrupt_ends_repeated_runs_and_keeps_what_was_recorded() {
    let dir = scratch();
    let (source, binary) = (dir.path().join("short.c"), dir.path().join("short"));
    let text = "#include <stdio.h>\nint main(int n, char **v) {\n\
                  for (unsigned i = 0; i < 1000000; i++) n = n & 1 ? n * 3 + 1 : n / 2 + i;\n\
                  puts(\"ran\"); return n == 12345; }\n";
    std::fs::write(&source, text).expect("written");
    let flags = stdout(Command::new(pleach()).args(["flags", "annotate"]));
    let mut compile = Command::new("clang-22");
    compile.arg("-O2").args(flags.split_whitespace()).arg(&source).arg("-o");
    stdout(compile.arg(&binary));
    // At different moments of a run, and between runs.
    for moment in 0..8 {
        let profile = dir.path().join(format!("{moment}.pleach"));
        let mut record = Command::new(pleach())
            .args(["record", "--overhead", "20%", "--repeat", "1000000", "-o"])
            .arg(&profile)
            .arg("--")
            .arg(&binary)
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(record.stdout.take().expect("a pipe")).lines();
        assert!(lines.next().is_some(), "no run");
        std::thread::sleep(Duration::from_micros(700 * moment));
        // SAFETY: plain integers, and a process group of our own.
        unsafe { libc::kill(-(record.id() as i32), libc::SIGINT) };
        let begin = Instant::now();
        let reader = std::thread::spawn(move || lines.count());
        let status = loop {
            if let Some(status) = record.try_wait().expect("it ends") {
                break status;
            }
            if begin.elapsed() > DEADLINE {
                // SAFETY: as above.
                unsafe { libc::kill(-(record.id() as i32), libc::SIGKILL) };
                panic!("the interrupt did not end it");
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(status.code(), Some(128 + libc::SIGINT), "moment {moment}: {status:?}");
        reader.join().expect("read");
        stdout(Command::new(pleach()).arg("show").arg(&profile));
    }
}

#[test]
fn a_signal_while_the_recording_is_prepared_ends_it() {
    let dir = scratch();
    let temporary = dir.path().join("temporary");
    std::fs::create_dir(&temporary).expect("a folder");
    // From before the handlers are installed to after the command runs.
    for moment in 0..14 {
        let signal = [libc::SIGTERM, libc::SIGINT][moment % 2];
        let mut record = Command::new(pleach())
            .args(["record", "--quiet", "-o"])
            .arg(dir.path().join("long.pleach"))
            .args(["--", "sleep", "600"])
            .env("TMPDIR", &temporary)
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("it starts");
        std::thread::sleep(Duration::from_millis(30 * moment as u64));
        let group = -(record.id() as i32);
        let whom = if signal == libc::SIGINT { group } else { -group };
        // SAFETY: plain integers, and a process group of our own.
        unsafe { libc::kill(whom, signal) };
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = record.try_wait().expect("it ends") {
                break status;
            }
            if begin.elapsed() > DEADLINE {
                // SAFETY: as above.
                unsafe { libc::kill(group, libc::SIGKILL) };
                panic!("moment {moment}: signal {signal} did not end it");
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let told = status.code() == Some(128 + signal) || status.signal() == Some(signal);
        assert!(told, "moment {moment}, signal {signal}: {status:?}");
        let left = std::fs::read_dir(&temporary).expect("a folder").count();
        assert_eq!(left, 0, "moment {moment}, signal {signal}: temporary folders");
    }
}

/// The limit ends neither the recorder nor the program, which would not reach it alone.
#[test]
fn a_limit_on_the_size_of_files_is_survived() {
    let dir = scratch();
    let binary = dir.path().join("windows");
    compile(&binary, &flags(&["annotate"]), &[program("windows.c")]);
    let plain = stdout(&mut Command::new(&binary));
    for kilobytes in ["1", "8", "16"] {
        let script = format!("ulimit -f {kilobytes}; exec \"$0\" record --overhead 20% -o \"$1\" -- \"$2\"");
        let mut record = Command::new("bash");
        record.args(["-c", &script]).arg(pleach());
        let done = output(record.arg(dir.path().join("out.pleach")).arg(&binary));
        let text = String::from_utf8_lossy(&done.stderr);
        // Where even the recorder's files do not fit, the program is not run.
        let is_refused = done.status.code() == Some(1) && text.contains("File too large");
        let has_run = String::from_utf8_lossy(&done.stdout) == plain && done.status.code().is_some();
        assert!(is_refused || has_run, "{kilobytes}: {}, {text}", done.status);
        assert!(has_run || kilobytes == "1", "{kilobytes}: {text}");
    }
}
