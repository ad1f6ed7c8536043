//! Loops that run long on the average, but whose visits are mostly short.

use crate::support::*;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A build that uses the profile of a run with this argument, and its decisions.
fn guided(dir: &Path, annotated: &Path, argument: &str) -> (PathBuf, String) {
    let [profile, decisions, binary] =
        ["pleach", "decisions", "guided"].map(|end| dir.join(format!("{argument}.{end}")));
    let mut record = Command::new(pleach());
    record
        .args(["record", "--quiet", "--overhead", "20%", "-o"])
        .arg(&profile);
    stdout(record.arg("--").arg(annotated).arg(argument));
    let list = format!("-pleach-decisions={}", decisions.display());
    let mut words = flags(&["use", profile.to_str().expect("UTF-8")]);
    words.extend(["-Xclang", "-mllvm", "-Xclang", &list].map(String::from));
    compile(&binary, &words, &[program("mostly_short.c")]);
    let text = std::fs::read_to_string(decisions).unwrap_or_default();
    (binary, text)
}

#[test]
fn a_loop_is_peeled_by_how_many_of_its_visits_are_short() {
    let dir = scratch();
    let annotated = dir.path().join("annotated");
    compile(&annotated, &flags(&["annotate"]), &[program("mostly_short.c")]);
    let is_peeled = |decisions: &str| decisions.contains("\tpeeling\tsum_row\t");
    let (mixed, decisions) = guided(dir.path(), &annotated, "mixed");
    assert!(is_peeled(&decisions), "{decisions}");
    let (long, decisions) = guided(dir.path(), &annotated, "long");
    assert!(!is_peeled(&decisions), "{decisions}");
    for argument in ["mixed", "long"] {
        let expected = stdout(Command::new(&annotated).arg(argument));
        for guided in [&mixed, &long] {
            assert_eq!(stdout(Command::new(guided).arg(argument)), expected);
        }
    }
}
