//! Profiles in the words of the source: paths as lines and calls, and counts that mean something.

use crate::support::*;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A profile of a program that was built with debug information.
fn record(dir: &Path, source: &str) -> (PathBuf, PathBuf) {
    let (binary, profile) = (dir.join("annotated"), dir.join("app.pleach"));
    let flags = [flags(&["annotate"]), vec!["-g".to_owned()]].concat();
    compile(&binary, &flags, &[program(source)]);
    let mut record = Command::new(pleach());
    record
        .args(["record", "--quiet", "--overhead", "100%", "-o"])
        .arg(&profile);
    stdout(record.arg("--").arg(&binary));
    (binary, profile)
}

fn pleach_on(profile: &Path, args: &[&str]) -> String {
    stdout(Command::new(pleach()).args(args).arg(profile))
}

#[test]
fn paths_are_shown_as_lines_and_calls() {
    let dir = scratch();
    let (binary, profile) = record(dir.path(), "called.c");
    // The recorded program is found by itself.
    let paths = pleach_on(&profile, &["paths", "--function", "choose"]);
    assert!(paths.contains("▸called.c:16 → 17 → 23 → work() ■"), "{paths}");
    let report = pleach_on(&profile, &["report"]);
    assert!(report.contains("called.c:"), "{report}");
    let blocks = pleach_on(&profile, &["paths", "--blocks", "--function", "choose"]);
    assert!(blocks.contains("▸0→") && !blocks.contains("called.c"), "{blocks}");
    let called = pleach_on(&profile, &["paths", "--called", "--function", "work"]);
    assert!(called.contains("called.c:16 → 17 → 23 → work()"), "{called}");
    let windows = pleach_on(&profile, &["paths", "--windows", "2", "--function", "main"]);
    assert!(windows.contains("called.c:29"), "{windows}");
    // The profile itself has the lines; only names of files and imported functions are the binary's.
    std::fs::remove_file(&binary).expect("removed");
    let paths = pleach_on(&profile, &["paths", "--function", "choose"]);
    assert!(paths.contains("▸line 16 → 17 → 23 → work() ■"), "{paths}");
}

#[test]
fn samples_are_shares_and_exact_counts_are_executions() {
    let dir = scratch();
    let (_, profile) = record(dir.path(), "called.c");
    for command in ["paths", "report", "show"] {
        let text = pleach_on(&profile, &[command]);
        assert!(!text.contains("  count  ") && !text.contains("per sample"), "{text}");
    }
    let [exact, counts, imported] = ["exact", "app.plcnt", "exact.pleach"].map(|name| dir.path().join(name));
    let flags = [flags(&["instrument"]), vec!["-g".to_owned()]].concat();
    compile(&exact, &flags, &[program("called.c")]);
    stdout(Command::new(&exact).arg("12345").env("PLEACH_COUNTS", &counts));
    stdout(
        Command::new(pleach())
            .arg("import")
            .arg(&counts)
            .arg("-o")
            .arg(&imported),
    );
    // `choose` is called once for each iteration. A file of exact counts needs no import.
    for file in [&imported, &counts] {
        for command in ["paths", "report", "show"] {
            let text = pleach_on(file, &[command]);
            assert!(text.contains(" 12 345 "), "{command}: {text}");
        }
    }
}
