//! `pleach coverage` and `pleach coverage diff` as commands.

mod support;

use pleach_annotate::manifest::{self, Anchor};
use pleach_profile::{Covered, FunctionProfile, Profile};
use std::fs;
use std::path::Path;
use support::{binary, cfg, error, folder, pleach, stderr, stdout};

use Covered::{NotExecuted, Proved, Unknown};

/// A profile of functions with two blocks in a row.
fn profile(of: &[(&str, [Covered; 2])]) -> Profile {
    let function = |&(name, coverage): &(&str, [Covered; 2])| FunctionProfile {
        id: cfg(name).id,
        cfg_hash: cfg(name).hash(),
        name: name.into(),
        samples: 1,
        blocks: coverage.map(|state| u64::from(state == Proved)).to_vec(),
        edges: vec![0],
        coverage: coverage.to_vec(),
        ..FunctionProfile::default()
    };
    let mut profile = Profile {
        scale: 1.0,
        functions: of.iter().map(function).collect(),
        ..Profile::default()
    };
    profile.functions.sort_by_key(|function| function.id);
    profile
}

/// Tests that never call `g`, and a production run that does.
fn tests_and_production(folder: &Path) {
    let tests = profile(&[("f", [Proved; 2]), ("g", [NotExecuted; 2])]);
    let production = profile(&[("f", [Proved, Unknown]), ("g", [Proved; 2])]);
    pleach_store::write_profile(&folder.join("tests.pleach"), &tests).unwrap();
    pleach_store::write_profile(&folder.join("prod.pleach"), &production).unwrap();
}

fn json(args: &[&str], folder: &Path) -> serde_json::Value {
    let output = pleach(args, folder);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn states_are_printed() {
    let dir = folder("states");
    tests_and_production(&dir);
    let text = stdout(&pleach(&["coverage", "tests.pleach", "--top", "1"], &dir));
    assert!(
        text.contains("1 of 2 functions executed, 0 more only predicted, 1 proved not executed"),
        "{text}"
    );
    assert!(text.ends_with("and 1 more: --top 0 lists them all\n"), "{text}");
    let of_tests = json(&["coverage", "tests.pleach", "--json"], &dir);
    assert_eq!(of_tests["not_executed"][0]["coverage"][1], "not-executed");
    // A block is not executed only if it was not in all profiles.
    let both = json(&["coverage", "tests.pleach", "prod.pleach", "--json"], &dir);
    assert_eq!(
        [&both["functions_not_executed"], &both["functions_proved"]],
        [&0.into(), &2.into()] as [&serde_json::Value; 2]
    );
    // Of one function.
    let one = json(&["coverage", "tests.pleach", "--function", "g", "--json"], &dir);
    assert_eq!(
        (&one["functions_all"], &one["blocks"]["not-executed"]),
        (&1.into(), &2.into())
    );
    let unknown = error(&["coverage", "tests.pleach", "--function", "h"], &dir);
    assert!(unknown.contains("the profile has no function h"), "{unknown}");
    // Lines need a program with symbols and debug information.
    binary(&dir.join("app"), &manifest::encode(&cfg("f"), Anchor::Early));
    for form in ["--text", "--lcov"] {
        let lines = error(&["coverage", "tests.pleach", "--binary", "app", form], &dir);
        assert!(lines.contains("app: no symbols"), "{lines}");
        let usage = pleach(&["coverage", "tests.pleach", form], &dir);
        assert!(
            usage.status.code() == Some(2) && stderr(&usage).contains("--binary"),
            "{usage:?}"
        );
    }
    for args in [
        ["--text", "--lcov"],
        ["--text", "--json"],
        ["--known", "--text"],
        ["--predicted", "--json"],
    ] {
        let args = [&["coverage", "tests.pleach", "--binary", "app"], &args[..]].concat();
        assert_eq!(pleach(&args, &dir).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn coverage_is_compared() {
    let dir = folder("compared");
    tests_and_production(&dir);
    let text = stdout(&pleach(&["coverage", "diff", "tests.pleach", "prod.pleach"], &dir));
    for expected in [
        "executed in B, proved not executed in A: 2 blocks of 1 function\n",
        "executed in A, unknown in B: 1 block of 1 function\n",
        "2 functions compared",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let args = ["coverage", "diff", "tests.pleach", "prod.pleach", "--json"];
    let diff = json(&args, &dir);
    assert_eq!(diff["only_b"]["not_executed"]["functions"][0]["function"], "g");
    let output = pleach(&[&args[..], &["-o", "out.json"]].concat(), &dir);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(
        fs::read_to_string(dir.join("out.json")).unwrap(),
        stdout(&pleach(&args, &dir))
    );
    // What cannot be compared is named.
    let late = Profile {
        anchor: Anchor::Late,
        ..Profile::default()
    };
    pleach_store::write_profile(&dir.join("late.pleach"), &late).unwrap();
    let anchors = error(&["coverage", "diff", "tests.pleach", "late.pleach"], &dir);
    assert!(
        anchors.contains("cannot compare tests.pleach with late.pleach: the first is of the early anchor"),
        "{anchors}"
    );
    let missing = error(&["coverage", "diff", "tests.pleach", "none.pleach"], &dir);
    assert!(missing.contains("none.pleach"), "{missing}");
    let mut blank = profile(&[("f", [Unknown; 2])]);
    blank.functions[0].coverage.clear();
    pleach_store::write_profile(&dir.join("blank.pleach"), &blank).unwrap();
    let output = pleach(&["coverage", "diff", "tests.pleach", "blank.pleach"], &dir);
    assert!(
        output.status.success() && stderr(&output).contains("blank.pleach has no coverage"),
        "{output:?}"
    );
}

#[test]
fn a_profile_may_be_called_diff() {
    let dir = folder("called-diff");
    tests_and_production(&dir);
    fs::rename(dir.join("tests.pleach"), dir.join("diff")).unwrap();
    let text = stdout(&pleach(&["coverage", "./diff", "prod.pleach"], &dir));
    assert!(text.contains("2 of 2 functions executed"), "{text}");
    let usage = pleach(&["coverage", "diff", "prod.pleach"], &dir);
    assert_eq!(usage.status.code(), Some(2), "{usage:?}");
}
