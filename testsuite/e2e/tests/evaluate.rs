//! `pleach evaluate` on a program small enough to sample nearly everything that it does.

use crate::support::*;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// One program, built twice.
struct Builds {
    dir: tempfile::TempDir,
    annotated: PathBuf,
    exact: PathBuf,
    input: PathBuf,
}

fn build(source: &str, anchor: &str) -> Builds {
    let dir = scratch();
    let built = |name: &str, what: &str| {
        let path = dir.path().join(name);
        compile(&path, &flags(&[what, "--anchor", anchor]), &[program(source)]);
        path
    };
    let (annotated, exact) = (built("annotated", "annotate"), built("exact", "instrument"));
    let input = dir.path().join("input");
    let bytes: Vec<u8> = (0..3000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    std::fs::write(&input, bytes).expect("writable");
    Builds {
        dir,
        annotated,
        exact,
        input,
    }
}

impl Builds {
    /// Short recordings at a high budget.
    fn command(&self, runs: &str, options: &[&str], args: &[&str]) -> Command {
        let mut command = Command::new(pleach());
        command.args(["evaluate", "--cpu-seconds", "0.3", "--overhead", "100%", "--runs", runs]);
        command
            .arg("--annotated")
            .arg(&self.annotated)
            .arg("--exact")
            .arg(&self.exact);
        command.args(options).arg("--").args(args).current_dir(self.dir.path());
        command
    }

    fn evaluated(&self, runs: &str, options: &[&str], args: &[&str]) -> Output {
        let mut command = self.command(runs, options, args);
        let out = output_reading(&mut command, File::open(&self.input).expect("readable"));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        out
    }
}

fn median(figures: &Value, key: &str) -> f64 {
    figures[key]["median"]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} is missing in {figures}"))
}

fn json(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).expect("JSON")
}

#[test]
fn nearly_everything_sampled_is_nearly_exact() {
    for anchor in ["early", "late"] {
        let builds = build("evaluate_stdin.c", anchor);
        let out = builds.evaluated("2", &["--json"], &[]);
        let figures = json(&out);
        for (key, figure) in figures.as_object().expect("an object") {
            let n = if key == "overlap_ceiling" { 1 } else { 2 };
            assert_eq!(figure["n"], n, "{key}");
            let [min, median, max] = ["min", "median", "max"].map(|which| figure[which].as_f64().expect("a number"));
            assert!(min <= median && median <= max, "{key}: {figure}");
        }
        assert!(median(&figures, "wall_accuracy") > 0.95, "{anchor}: {figures}");
        assert!(median(&figures, "wall_accuracy_regions") > 0.95, "{anchor}: {figures}");
        assert!(median(&figures, "overlap_ceiling") > 0.9, "{anchor}: {figures}");
        assert!(median(&figures, "decode_yield") > 0.95, "{anchor}: {figures}");
        assert!(median(&figures, "executed_paths") >= 4.0, "{anchor}: {figures}");
        assert_eq!(median(&figures, "excluded_exact"), 0.0, "{anchor}: {figures}");
        // The program's behaviour depends on its input: both builds read the same.
        assert!(median(&figures, "overlap") > 0.7, "{anchor}: {figures}");
        // Wanted are 0.3; a machine that others use is not even.
        assert!(median(&figures, "program_cpu_seconds") > 0.1, "{anchor}: {figures}");
        assert_eq!(String::from_utf8_lossy(&out.stderr), "", "{anchor}");
        let shares = [
            "wall_accuracy",
            "overlap",
            "overlap_ceiling",
            "calibration",
            "decode_yield",
        ];
        assert!(
            shares.iter().all(|key| median(&figures, key) <= 1.0 + 1e-9),
            "{figures}"
        );
    }
}

#[test]
fn people_get_a_table() {
    let builds = build("evaluate_stdin.c", "late");
    let out = builds.evaluated("1", &[], &[]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.starts_with("late anchor, "), "{text}");
    assert!(text.contains("Wall accuracy") && text.contains("overhead"), "{text}");
    // One recording has no other to be compared with.
    assert!(!text.contains("ceiling"), "{text}");
}

#[test]
fn programs_that_do_not_repeat_themselves_are_named() {
    let builds = build("evaluate_stdin.c", "late");
    let stderr_of = |args: &[&str]| {
        let out = builds.evaluated("1", &[], args);
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    assert!(stderr_of(&["2000", "differ"]).contains("printed different things"));
    let failed = stderr_of(&["2000", "fail"]);
    assert!(
        failed.contains("the instrumented program failed (exit status: 3)"),
        "{failed}"
    );
    assert!(!failed.contains("printed different things"), "{failed}");
    assert_eq!(stderr_of(&["2000"]), "");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let late = build("evaluate_stdin.c", "late");
    let early = build("evaluate_stdin.c", "early");
    let other = build("loops.c", "late");
    let plain = late.dir.path().join("plain");
    compile(&plain, &[] as &[&str], &[program("evaluate_stdin.c")]);
    let error = |annotated: &Path, exact: &Path| {
        let mut command = Command::new(pleach());
        command.args(["evaluate", "--runs", "1", "--cpu-seconds", "0", "--annotated"]);
        let (code, text) = failure(command.arg(annotated).arg("--exact").arg(exact));
        assert_eq!(code, 1, "{text}");
        text
    };
    assert!(error(&plain, &late.exact).contains("not annotated"));
    assert!(error(&late.annotated, &plain).contains("not instrumented"));
    assert!(error(&late.exact, &late.annotated).contains("swapped"));
    assert!(error(&late.annotated, &late.annotated).contains("annotated, not instrumented"));
    assert!(error(&early.annotated, &late.exact).contains("same --anchor"));
    assert!(error(&late.annotated, &other.exact).contains("same sources"));
    assert!(error(&late.annotated, Path::new("nowhere")).contains("nowhere"));
}
