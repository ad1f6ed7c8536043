//! `pleach paths`, `report`, `overlap` and `diff` as commands, on sampled profiles.

mod support;

use pleach_annotate::id::BlockIndex;
use pleach_annotate::manifest::{self, Anchor};
use pleach_ball_larus::{End, Start};
use pleach_profile::{EstimatedPath, FunctionProfile, Profile};
use pleach_store::write_counts;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{binary, cfg, counts, error, folder, pleach, stderr, stdout};

/// A profile of functions with two blocks in a row, each executed so often.
fn sampled(of: &[(&str, f64)]) -> Profile {
    let function = |&(name, count): &(&str, f64)| FunctionProfile {
        id: cfg(name).id,
        cfg_hash: cfg(name).hash(),
        name: name.into(),
        samples: count as u64,
        blocks: vec![count as u64; 2],
        edges: vec![count as u64],
        paths: vec![EstimatedPath {
            path: pleach_ball_larus::Path {
                start: Start::Entry,
                blocks: vec![BlockIndex(0), BlockIndex(1)],
                end: End::Exit,
            },
            count,
            low: count - 3.0,
            high: count + 4.0,
            effective: count,
        }],
        ..FunctionProfile::default()
    };
    Profile {
        scale: 1.0,
        functions: of.iter().map(function).collect(),
        ..Profile::default()
    }
}

fn json(args: &[&str], folder: &Path) -> serde_json::Value {
    let output = pleach(args, folder);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn estimated_paths_are_printed_and_added_up() {
    let dir = folder("estimated");
    pleach_store::write_profile(&dir.join("a.pleach"), &sampled(&[("f", 50.0), ("g", 30.0)])).unwrap();
    pleach_store::write_profile(&dir.join("b.pleach"), &sampled(&[("f", 70.0)])).unwrap();
    let paths = json(&["paths", "a.pleach", "b.pleach", "--json"], &dir);
    let of = |row: usize, key: &str| paths[row][key].clone();
    assert_eq!((of(0, "function"), of(0, "count")), ("f".into(), 120.0.into()));
    let low = of(0, "low").as_f64().unwrap();
    assert!((low - (120.0 - 18f64.sqrt())).abs() < 1e-4, "{low}");
    assert_eq!((of(1, "count"), of(1, "high")), (30.0.into(), 34.0.into()));
    let text = stdout(&pleach(&["paths", "a.pleach", "--top", "1"], &dir));
    assert!(
        text.contains("62.50 %   58.75–67.50 %") && text.contains("1 other path"),
        "{text}"
    );
    assert!(
        text.contains("hot paths (at least 0.125 % of all executions): 2, together 100.00 %"),
        "{text}"
    );
    // Against the program's own graphs.
    let entries = ["f", "g"].map(|name| manifest::encode(&cfg(name), Anchor::Early));
    binary(&dir.join("same"), &entries.concat());
    binary(&dir.join("other"), &entries[0]);
    json(&["paths", "a.pleach", "--binary", "same", "--json"], &dir);
    let output = pleach(&["paths", "a.pleach", "--binary", "other", "--json"], &dir);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("function g are from another build"),
        "{output:?}"
    );
    // What has none says so.
    pleach_store::write_profile(&dir.join("none.pleach"), &Profile::default()).unwrap();
    let output = pleach(&["paths", "none.pleach", "--json"], &dir);
    assert!(output.status.success() && stdout(&output) == "[\n]\n");
    assert!(stderr(&output).contains("has no paths"), "{output:?}");
}

#[test]
fn profiles_are_reported_and_compared() {
    let dir = folder("compared");
    write_counts(&dir.join("a.plcnt"), &counts(&[("f", 5), ("g", 3)])).unwrap();
    pleach_store::write_profile(&dir.join("a.pleach"), &sampled(&[("f", 500.0), ("g", 300.0)])).unwrap();
    pleach_store::write_profile(&dir.join("b.pleach"), &sampled(&[("f", 300.0), ("g", 500.0)])).unwrap();
    let report = json(&["report", "a.pleach", "--json"], &dir);
    assert_eq!(
        (
            &report["functions"][0]["function"],
            &report["functions"][0]["block_share"]
        ),
        (&"f".into(), &0.625.into())
    );
    let some = stdout(&pleach(&["report", "a.pleach", "--percent-limit", "50"], &dir));
    assert!(
        some.contains("62.50 %") && some.contains("1 other function") && !some.contains(" g "),
        "{some}"
    );
    let accuracy = json(&["overlap", "a.pleach", "a.plcnt", "--json"], &dir);
    assert_eq!((&accuracy["paths"], &accuracy["blocks"]), (&1.0.into(), &1.0.into()));
    let text = stdout(&pleach(&["overlap", "b.pleach", "a.plcnt"], &dir));
    assert!(
        text.starts_with("overlap of paths:  75.00 % (2 and 2 paths, 2 of them the same)\n"),
        "{text}"
    );
    let diff = json(&["diff", "a.pleach", "b.pleach", "--json"], &dir);
    let changes = diff["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["change"].as_f64().unwrap());
    let mut changes: Vec<_> = changes.collect();
    changes.sort_by(f64::total_cmp);
    assert_eq!(changes, [-0.25, 0.25]);
    let text = stdout(&pleach(&["diff", "a.pleach", "a.plcnt"], &dir));
    assert!(text.starts_with("0 of 2 functions and 0 of 2 paths"), "{text}");
    let late = Profile {
        anchor: Anchor::Late,
        ..sampled(&[("f", 5.0)])
    };
    pleach_store::write_profile(&dir.join("late.pleach"), &late).unwrap();
    assert!(error(&["diff", "a.pleach", "late.pleach"], &dir).contains("compare profiles of one anchor only"));
    pleach_store::write_profile(&dir.join("none.pleach"), &Profile::default()).unwrap();
    assert!(error(&["diff", "a.pleach", "none.pleach"], &dir).contains("none.pleach: has no paths"));
    let output = pleach(&["overlap", "a.pleach", "none.pleach"], &dir);
    assert!(
        output.status.success() && stderr(&output).contains("none.pleach has no paths"),
        "{output:?}"
    );
    for command in ["report", "overlap", "diff", "paths"] {
        let help = stdout(&pleach(&[command, "--help"], &dir));
        assert!(
            help.contains(&format!("  pleach {command} ")) && help.contains("--json"),
            "{help}"
        );
    }
}

#[test]
fn nobody_needs_to_read_to_the_end() {
    let dir = folder("unread");
    pleach_store::write_profile(&dir.join("a.pleach"), &sampled(&[("f", 50.0)])).unwrap();
    for args in [
        "show a.pleach",
        "show a.pleach --json",
        "paths a.pleach",
        "flags annotate",
        "doctor --json",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
        command.args(args.split(' ')).current_dir(&dir);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(!stderr(&output).contains("panicked"), "{args}: {}", stderr(&output));
        assert_ne!(output.status.code(), Some(101), "{args}");
    }
}
