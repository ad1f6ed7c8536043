//! Profiles of a fleet: merging tables with DuckDB and with Spark gives what `pleach merge` gives, to the last bit; and
//! `pleach drift` says whether an old profile still fits.

use crate::support::*;
use pleach_facilities::skip;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Python with the engines: that of testsuite/setup, else the system's. Skips the test where it lacks a module.
fn python_with(module: &str) -> Option<PathBuf> {
    let of_setup = || {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
        Some(cache.join("pleach-test/python/bin/python3")).filter(|python| python.is_file())
    };
    let python = std::env::var_os("PLEACH_TEST_PYTHON").map(PathBuf::from);
    let python = python.or_else(of_setup).unwrap_or_else(|| "python3".into());
    let check = Command::new(&python).arg("-c").arg(format!("import {module}")).output();
    if check.is_ok_and(|check| check.status.success()) {
        return Some(python);
    }
    skip(&format!("Python has no {module}: testsuite/setup installs it"));
    None
}

/// Profiles of several programs, one of them a sum already.
fn profiles(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for source in ["exported.c", "lengths.c", "windows.c"] {
        let binary = dir.join(source).with_extension("annotated");
        compile(&binary, &flags(&["annotate"]), &[program(source)]);
        for run in 0..2 {
            let profile = dir.join(format!("{source}.{run}.pleach"));
            let mut record = Command::new(pleach());
            record
                .args(["record", "--quiet", "--overhead", "20%", "-o"])
                .arg(&profile);
            // Without breakpoints, a profile knows nothing of what it does not show.
            record.args(["--coverage", if run == 0 { "on" } else { "off" }]);
            stdout(record.arg("--").arg(&binary));
            all.push(profile);
        }
    }
    let [first, second] = [all.remove(0), all.remove(0)];
    let sum = dir.join("sum.pleach");
    stdout(
        Command::new(pleach())
            .arg("merge")
            .args([&first, &second])
            .arg("-o")
            .arg(&sum),
    );
    all.push(sum);
    all
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn imported(from: &Path, to: &Path) -> Vec<u8> {
    stdout(
        Command::new(pleach())
            .args(["import", "--quiet"])
            .arg(from)
            .arg("-o")
            .arg(to),
    );
    read(to)
}

/// Tables of several profiles, and the profile that `pleach merge` makes of these.
fn tables(dir: &Path) -> (PathBuf, Vec<u8>) {
    let (profiles, tables, merged) = (profiles(dir), dir.join("tables"), dir.join("merged.pleach"));
    let mut export = Command::new(pleach());
    export
        .arg("export")
        .args(&profiles)
        .args(["--quiet", "--format", "parquet", "-o"]);
    stdout(export.arg(&tables));
    stdout(
        Command::new(pleach())
            .arg("merge")
            .args(&profiles)
            .arg("-o")
            .arg(&merged),
    );
    (tables, read(&merged))
}

fn merged_by(engine: &str, python: &Path) {
    let dir = scratch();
    let (tables, expected) = tables(dir.path());
    let merged = dir.path().join("by-engine");
    let script = program("../../../feedback/fleet/merge.py");
    stdout(Command::new(python).arg(script).arg(engine).args([&tables, &merged]));
    let profile = imported(&merged, &dir.path().join("by-engine.pleach"));
    assert!(profile == expected, "{engine} merges otherwise than pleach");
}

#[test]
fn tables_are_read_back_and_merged() {
    let dir = scratch();
    let (tables, expected) = tables(dir.path());
    assert!(imported(&tables, &dir.path().join("all.pleach")) == expected);
    let one = dir.path().join("lengths.c.0.pleach");
    let alone = dir.path().join("alone");
    let mut export = Command::new(pleach());
    export
        .arg("export")
        .arg(&one)
        .args(["--quiet", "--format", "parquet", "--day", "2026-11-26", "-o"]);
    stdout(export.arg(&alone));
    assert!(imported(&alone, &dir.path().join("alone.pleach")) == read(&one));
    let (status, message) = failure(Command::new(pleach()).arg("import").arg(dir.path()));
    assert_eq!(status, 1);
    assert!(message.contains("not a directory of pleach tables"), "{message}");
}

#[test]
fn duckdb_merges_to_the_same_bits() {
    if let Some(python) = python_with("duckdb") {
        merged_by("duckdb", &python);
    }
}

#[test]
#[ignore = "starts Spark: cargo test --release -p pleach-e2e -- --ignored"]
fn spark_merges_to_the_same_bits() {
    if let Some(python) = python_with("pyspark") {
        merged_by("spark", &python);
    }
}

#[test]
fn a_profile_of_another_load_does_not_fit() {
    let dir = scratch();
    let profiles = profiles(dir.path());
    let drift = |old: &Path, new: &Path| {
        let mut command = Command::new(pleach());
        let run = output(command.arg("drift").args([old, new]).arg("--json"));
        let json: Value = serde_json::from_slice(&run.stdout).expect("JSON");
        (run.status.code(), json)
    };
    let (status, same) = drift(&profiles[0], &profiles[1]);
    assert_eq!((status, same["fits"].as_bool()), (Some(0), Some(true)), "{same}");
    let (status, other) = drift(&profiles[0], &profiles[2]);
    assert_eq!((status, other["fits"].as_bool()), (Some(3), Some(false)), "{other}");
    let verdict = other["verdict"].as_str().expect("a sentence");
    assert!(verdict.starts_with("record again: "), "{verdict}");
}
