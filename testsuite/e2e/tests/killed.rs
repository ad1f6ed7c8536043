//! SIGKILL at any moment leaves an output as it was, or complete; what was recorded is recovered.
//!
//! `PLEACH_KILLS` is the number of moments for each command [10].

use crate::support::{clang, compile, flags, pleach, program, run, scratch, stdout};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn kills() -> u32 {
    let number = std::env::var("PLEACH_KILLS").ok();
    number.map_or(10, |text| text.parse().expect("PLEACH_KILLS is a number"))
}

/// Runs a command to its end, and then kills it at moments that are spread over the time that it took. `holds` is called
/// after each.
fn killed(command: &dyn Fn() -> Command, holds: &dyn Fn()) {
    let start = || {
        let mut command = command();
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        silent.spawn().expect("it starts")
    };
    let begin = Instant::now();
    assert!(start().wait().expect("ended").success(), "without a kill");
    let whole = begin.elapsed();
    holds();
    for kill in 0..kills() {
        let mut child = start();
        std::thread::sleep(whole * (2 * kill + 1) / (2 * kills()));
        // It may have ended already.
        let _ = child.kill();
        child.wait().expect("ended");
        holds();
    }
}

fn pleach_with(words: &[&str], paths: &[&Path]) -> Command {
    let mut command = Command::new(pleach());
    command.args(words).args(paths);
    command
}

fn is_profile(path: &Path) {
    stdout(&mut pleach_with(&["show"], &[path]));
}

#[test]
fn commands_that_write() {
    let dir = scratch();
    let file = |name: &str| dir.path().join(name);
    let (binary, counted) = (file("annotated"), file("counted"));
    compile(&binary, &flags(&["annotate"]), &[program("windows.c")]);
    compile(&counted, &flags(&["instrument"]), &[program("windows.c")]);
    let [a, b] = ["a.pleach", "b.pleach"].map(file);
    for profile in [&a, &b] {
        let mut record = pleach_with(
            &["record", "--quiet", "--keep-vectors", "--overhead", "20%", "-o"],
            &[profile],
        );
        stdout(record.arg("--").arg(&binary));
    }
    let counts = file("app.plcnt");
    stdout(Command::new(&counted).arg("1000").env("PLEACH_COUNTS", &counts));

    let out = file("out.pleach");
    let writers: [(&[&str], &[&Path]); 3] = [
        (&["merge"], &[&a, &b]),
        (&["analyse", "--quiet"], &[&a]),
        (&["import", "--quiet"], &[&counts]),
    ];
    for (words, inputs) in writers {
        let command = || {
            let mut command = pleach_with(words, inputs);
            command.arg("-o").arg(&out);
            command
        };
        killed(&command, &|| is_profile(&out));
    }
    // Other tools' formats have other readers: they are as they were, or new, which is the same here.
    for format in ["perf.data", "pprof", "firefox"] {
        let out = file(format);
        let command = || {
            let mut command = pleach_with(&["export", "--quiet", "--format", format], &[&a]);
            command.arg("-o").arg(&out);
            command
        };
        stdout(&mut command());
        let whole = fs::read(&out).expect("written");
        killed(&command, &|| {
            assert!(fs::read(&out).expect("there") == whole, "{format}")
        });
    }
}

#[test]
fn recordings_are_kept_or_recovered() {
    let dir = scratch();
    let file = |name: &str| dir.path().join(name);
    let (binary, out, temporary) = (file("annotated"), file("out.pleach"), file("tmp"));
    compile(&binary, &flags(&["annotate"]), &[program("windows.c")]);
    fs::create_dir(&temporary).expect("made");
    let command = || {
        let mut command = pleach_with(&["record", "--quiet", "--overhead", "20%", "-o"], &[&out]);
        command.env("TMPDIR", &temporary).arg("--").arg(&binary);
        command
    };
    killed(&command, &|| {
        is_profile(&out);
        // The program goes on without its recorder; its samples are read when it has ended.
        let patience = Instant::now() + Duration::from_secs(30);
        let mut left = true;
        while left && Instant::now() < patience {
            let mut recover = pleach_with(&["recover", "-o"], &[dir.path()]);
            recover.env("TMPDIR", &temporary);
            recover.stdout(Stdio::null()).stderr(Stdio::null());
            recover.status().expect("it runs");
            left = fs::read_dir(&temporary).expect("a folder").next().is_some();
            if left {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        assert!(!left, "temporary files are left");
        let entries = fs::read_dir(dir.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path());
        for recovered in entries.filter(|path| path.display().to_string().contains("recovered")) {
            is_profile(&recovered);
            fs::remove_file(recovered).expect("removed");
        }
    });
}

#[test]
fn both_compiler_stages() {
    let dir = scratch();
    let file = |name: &str| dir.path().join(name);
    let (binary, profile, object) = (file("annotated"), file("a.pleach"), file("windows.o"));
    compile(&binary, &flags(&["annotate"]), &[program("windows.c")]);
    stdout(
        pleach_with(&["record", "--quiet", "--overhead", "20%", "-o"], &[&profile])
            .arg("--")
            .arg(&binary),
    );
    let before = fs::read(&profile).expect("a profile");
    let expected = run(&binary);
    let stages = [flags(&["annotate"]), flags(&["use", &profile.display().to_string()])];
    for stage in stages {
        let command = || {
            let mut command = clang();
            command
                .args(["-O2", "-c"])
                .args(&stage)
                .arg(program("windows.c"))
                .arg("-o")
                .arg(&object);
            command
        };
        killed(&command, &|| {
            // clang replaces its output when it is complete: what is there links and runs.
            let linked = file("linked");
            stdout(clang().arg(&object).arg("-o").arg(&linked));
            assert_eq!(run(&linked), expected);
            assert!(
                fs::read(&profile).expect("there") == before,
                "a compiler writes no profile"
            );
        });
    }
}

#[test]
fn samples_are_taken_once() {
    let dir = scratch();
    let file = |name: &str| dir.path().join(name);
    let (binary, recorded, folder, out) = (file("annotated"), file("recorded"), file("folder"), file("out.pleach"));
    compile(&binary, &flags(&["annotate"]), &[program("windows.c")]);
    let environment =
        stdout(pleach_with(&["record", "--overhead", "20%", "--env"], &[&recorded]).current_dir(dir.path()));
    let mut sampled = Command::new(&binary);
    sampled.envs(environment.lines().filter_map(|line| line.split_once('=')));
    stdout(&mut sampled);
    let bursts = || {
        let shown = stdout(&mut pleach_with(&["show", "--json"], &[&out]));
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        shown["provenance"]["bursts"].as_u64().expect("bursts")
    };
    stdout(&mut pleach_with(&["collect", "--quiet", "-o"], &[&out, &recorded]));
    let all = bursts();
    assert!(all > 0);
    fs::remove_file(&out).expect("removed");
    let rotate = || pleach_with(&["collect", "--quiet", "--rotate", "-o"], &[&out, &folder]);
    let command = || {
        let _ = fs::remove_dir_all(&folder);
        stdout(Command::new("cp").arg("-r").args([&recorded, &folder]));
        rotate()
    };
    killed(&command, &|| {
        // Once more, to its end: nothing is left if all had been taken.
        let status = rotate()
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("it runs");
        assert!(matches!(status.code(), Some(0 | 4)), "{status}");
        assert_eq!(bursts(), all);
        let status = rotate()
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("it runs");
        assert_eq!(status.code(), Some(4), "all was taken");
        fs::remove_file(&out).expect("removed");
    });
}
