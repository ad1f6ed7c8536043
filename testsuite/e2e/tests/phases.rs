//! Phases of a program whose phases are known.

use crate::support::*;
use pleach_collector::vector::VectorSet;
use pleach_profile::Profile;
use pleach_profile::file::ProfileFile;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Phase and milliseconds of CPU time, in turn. Phase 0 comes back; phases 2 and 3 are one loop.
const PHASES: [&str; 10] = ["0", "400", "1", "500", "2", "400", "3", "400", "0", "400"];

/// A recording of [`PHASES`], when its phases began, and what the recorder said.
fn record(dir: &Path, options: &[&str]) -> (PathBuf, Vec<u64>, String) {
    record_phases(dir, options, &PHASES)
}

fn record_phases(dir: &Path, options: &[&str], phases: &[&str]) -> (PathBuf, Vec<u64>, String) {
    let (binary, profile) = (dir.join("phased"), dir.join("app.pleach"));
    let flags = [flags(&["annotate"]), vec!["-g".to_owned()]].concat();
    compile(&binary, &flags, &[program("phases.c")]);
    let mut command = Command::new(pleach());
    command
        .args(["record", "--period", "1ms"])
        .args(options)
        .arg("-o")
        .arg(&profile);
    let output = output(command.arg("--").arg(&binary).args(phases));
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{told}");
    let began = String::from_utf8(output.stdout).expect("text");
    (
        profile,
        began.lines().map(|line| line.parse().expect("a time")).collect(),
        told,
    )
}

fn vectors(profile: &Path) -> VectorSet {
    let file = ProfileFile::open(profile).expect("a profile");
    VectorSet::from_bytes(file.vectors().expect("readable").expect("kept")).expect("vectors")
}

fn phases(profile: &Path, options: &[&str]) -> Value {
    let text = stdout(
        Command::new(pleach())
            .args(["phases", "--json"])
            .args(options)
            .arg(profile),
    );
    serde_json::from_str(&text).expect("JSON")
}

/// The phases of the spans in order of time, as `record --phases` told them.
fn told(lines: &str) -> Vec<u64> {
    let spans = lines.lines().filter_map(|line| line.split_once(" s: phase "));
    let number = |rest: &str| rest.split([' ', ':']).next().and_then(|number| number.parse().ok());
    spans.filter_map(|(_, rest)| number(rest)).collect()
}

#[test]
fn known_phases_are_found_where_they_are() {
    let dir = scratch();
    let (profile, began, lines) = record(dir.path(), &["--keep-vectors", "--phases", "--interval", "60"]);
    let report = phases(&profile, &["--interval", "60"]);
    let spans = report["spans"].as_array().expect("spans");
    let order: Vec<u64> = spans.iter().filter_map(|span| span["phase"].as_u64()).collect();
    assert_eq!(order, [1, 2, 3, 4, 1], "{report:#}");
    // The recorder saw the same while the program ran.
    assert_eq!(told(&lines), order, "{lines}");

    // A change is where the program says it is, but for a few bursts.
    let mut times: Vec<u64> = vectors(&profile).bursts.iter().map(|burst| burst.time_ns).collect();
    times.sort_unstable();
    for (span, truth) in spans.iter().zip(&began).skip(1) {
        let start = times[0] + (span["start_seconds"].as_f64().expect("seconds") * 1e9) as u64;
        let between = |time: &&u64| (start.min(*truth)..start.max(*truth)).contains(*time);
        let apart = times.iter().filter(between).count();
        assert!(apart <= 12, "{apart} bursts apart: {span:#}");
    }
    let shares = report["phases"].as_array().expect("phases").iter();
    let sum: f64 = shares.filter_map(|phase| phase["share"].as_f64()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");

    let text = stdout(
        Command::new(pleach())
            .args(["phases", "--interval", "60"])
            .arg(&profile),
    );
    for shown in ["other code: ", "; seen before as phase ", "phases.c:", "sort", "◆"] {
        assert!(text.contains(shown), "no {shown}: {text}");
    }
    let blocks = stdout(Command::new(pleach()).args(["phases", "--blocks"]).arg(&profile));
    assert!(!blocks.contains("phases.c:"), "{blocks}");
}

/// A quarter of an interval, which intervals of bursts alone cannot tell from the phase around it.
#[test]
fn first_executions_reveal_a_phase_that_is_too_short_for_an_interval() {
    let dir = scratch();
    let made = ["0", "700", "1", "60", "0", "700"];
    let (profile, began, _) = record_phases(dir.path(), &["--keep-vectors"], &made);
    let report = phases(&profile, &["--interval", "200"]);
    let spans = report["spans"].as_array().expect("spans");
    let order: Vec<u64> = spans.iter().filter_map(|span| span["phase"].as_u64()).collect();
    assert_eq!(order, [1, 2, 1], "{report:#}");
    let first: Vec<&str> = report["phases"][1]["first_executed"]
        .as_array()
        .expect("functions")
        .iter()
        .filter_map(|row| row["function"].as_str())
        .collect();
    assert_eq!(first.first(), Some(&"sort"), "{report:#}");
    // When it began is known better than bursts tell.
    let times = vectors(&profile).bursts;
    let start = times.iter().map(|burst| burst.time_ns).min().expect("bursts");
    let told = start + (spans[1]["start_seconds"].as_f64().expect("seconds") * 1e9) as u64;
    let apart = told.abs_diff(began[1]);
    let between = times
        .iter()
        .filter(|burst| (told.min(began[1])..told.max(began[1])).contains(&burst.time_ns));
    assert!(apart < 20_000_000 && between.count() <= 1, "{apart} ns");
    let text = stdout(
        Command::new(pleach())
            .args(["phases", "--interval", "200"])
            .arg(&profile),
    );
    assert!(text.contains("first executed: sort ("), "{text}");
}

fn opened(profile: &Path) -> Profile {
    let file = ProfileFile::open(profile).expect("a profile");
    file.read_all().expect("readable")
}

/// The sampled block entries of a function.
fn samples(profile: &Path, function: &str) -> f64 {
    let profile = opened(profile);
    let found = profile.functions.iter().find(|f| f.name == function);
    found.expect("the function").samples as f64
}

#[test]
fn phases_have_the_weights_that_are_asked_for() {
    let dir = scratch();
    let (profile, _, _) = record(dir.path(), &["--keep-vectors", "--quiet"]);
    let report = phases(&profile, &["--interval", "60"]);
    let bursts: Vec<f64> = report["phases"]
        .as_array()
        .expect("phases")
        .iter()
        .filter_map(|p| p["bursts"].as_f64())
        .collect();
    let made = |weight: &str| {
        let output = dir.path().join(weight);
        let mut command = Command::new(pleach());
        command
            .args(["analyse", "--quiet", "--interval", "60", "--phases", weight, "-o"])
            .arg(&output);
        stdout(command.arg(&profile));
        output
    };
    // Phase 1 is of `search`, phase 2 of `sort`, and their bursts show little else.
    let ratio = |file: &Path| samples(file, "search") / samples(file, "sort");
    let (recorded, equal, time) = (ratio(&profile), ratio(&made("equal")), ratio(&made("time")));
    let expected = recorded * bursts[1] / bursts[0];
    assert!((equal / expected - 1.0).abs() < 0.02, "{recorded} {equal} {expected}");
    // One recording has the same number of bursts for each second of CPU time.
    assert!((time / recorded - 1.0).abs() < 0.001, "{recorded} {time}");
}

/// Two recordings of the same phases in another order: each phase is one profile, with the function that makes it.
#[test]
fn phases_have_profiles_of_their_own() {
    let dir = scratch();
    let [first, second] = [["0", "400", "1", "400"], ["1", "300", "0", "300"]].map(|made| {
        let (profile, _, _) = record_phases(dir.path(), &["--keep-vectors", "--quiet"], &made);
        let moved = dir.path().join(format!("first-{}.pleach", made[0]));
        std::fs::rename(&profile, &moved).expect("moved");
        moved
    });
    let folder = dir.path().join("phases");
    let by_phase = |files: &[&Path]| {
        let mut command = Command::new(pleach());
        command.args(["merge", "--by", "phase", "--interval", "60", "-o"]);
        command.arg(&folder).args(files);
        command
    };
    let merged = output(&mut by_phase(&[&first, &second]));
    let told = String::from_utf8_lossy(&merged.stderr);
    assert!(merged.status.success(), "{told}");
    let files: Vec<PathBuf> = (1..=3).map(|at| folder.join(format!("phase-{at}.pleach"))).collect();
    assert!(files[0].exists() && files[1].exists() && !files[2].exists(), "{told}");
    let mixed = samples(&first, "search") / samples(&first, "sort");
    let [of_search, of_sort] = [0, 1].map(|at| {
        let profile = opened(&files[at]);
        let samples = |name| {
            profile
                .functions
                .iter()
                .find(|f| f.name == name)
                .map_or(0, |f| f.samples)
        };
        (samples("search") as f64 + 1.0) / (samples("sort") as f64 + 1.0)
    });
    assert!(
        of_search > 20.0 * mixed && of_sort < mixed / 20.0,
        "{of_search} {of_sort} {mixed}"
    );
    // Both recordings are in both. The program measures its phases with the sampler's time, which depends on the
    // machine; what is left to the program has to be divided among them as the phases are.
    let seconds = |file: &Path| opened(file).provenance.program_cpu_seconds;
    let recorded = seconds(&first) + seconds(&second);
    let of_phases = [&files[0], &files[1]].map(|file| seconds(file));
    assert!(
        (of_phases.iter().sum::<f64>() / recorded - 1.0).abs() < 0.01,
        "{of_phases:?} {recorded}: {told}"
    );
    for seconds in of_phases {
        assert!(
            (seconds / recorded - 0.5).abs() < 0.08,
            "{of_phases:?} {recorded}: {told}"
        );
    }
    // A second merge does not mix with the first.
    let (status, message) = failure(&mut by_phase(&[&first]));
    assert!(status == 1 && message.contains("is not empty"), "{message}");
}

#[test]
fn what_has_no_phases_says_why() {
    let dir = scratch();
    let (profile, _, _) = record(dir.path(), &["--quiet"]);
    let (status, message) = failure(Command::new(pleach()).arg("phases").arg(&profile));
    assert_eq!(status, 1);
    assert!(message.contains("--keep-vectors"), "{message}");
    let (status, message) = failure(
        Command::new(pleach())
            .args(["phases", "--interval", "10"])
            .arg(&profile),
    );
    assert_eq!(status, 2);
    assert!(message.contains("from 50 on"), "{message}");
    let (profile, _, _) = record(dir.path(), &["--quiet", "--keep-vectors", "--max-size", "16k"]);
    let (status, message) = failure(Command::new(pleach()).arg("phases").arg(&profile));
    assert_eq!(status, 1);
    assert!(
        message.contains("app.pleach") && message.contains("--max-size"),
        "{message}"
    );
}

#[test]
fn programs_without_annotations_have_phases_without_paths() {
    let dir = scratch();
    let (binary, profile) = (dir.path().join("plain"), dir.path().join("plain.pleach"));
    compile(&binary, &[] as &[&str], &[program("phases.c")]);
    let mut command = Command::new(pleach());
    command
        .args(["record", "--quiet", "--keep-vectors", "--period", "1ms", "-o"])
        .arg(&profile);
    stdout(command.arg("--").arg(&binary).args(["0", "300", "1", "300"]));
    let output = output(
        Command::new(pleach())
            .args(["phases", "--interval", "60"])
            .arg(&profile),
    );
    let (text, notes) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success() && notes.contains("without paths"), "{notes}");
    assert!(text.contains("2 phases in 2 spans"), "{text}");
}
