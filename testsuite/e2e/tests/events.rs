//! Paths that lead to events, of a program in which they are known.

use crate::support::*;
use pleach_collector::vector::{EventId, HardwareSample, VectorSet};
use pleach_profile::Profile;
use pleach_profile::file::ProfileFile;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, annotated.
fn build(dir: &Path) -> PathBuf {
    let binary = dir.join("events");
    let flags = [flags(&["annotate"]), vec!["-g".to_owned()]].concat();
    compile(&binary, &flags, &[program("events.c")]);
    binary
}

/// Records a part of the program: its letter and its rounds.
fn record(binary: &Path, part: &[&str], events: &[&str], options: &[&str]) -> PathBuf {
    record_at("20%", binary, part, events, options)
}

fn record_at(overhead: &str, binary: &Path, part: &[&str], events: &[&str], options: &[&str]) -> PathBuf {
    let profile = binary.with_file_name(format!("{}{}.pleach", part[0], events.len()));
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--overhead", overhead]).args(options);
    for event in events {
        record.args(["--event", event]);
    }
    stdout(record.arg("-o").arg(&profile).arg("--").arg(binary).args(part));
    profile
}

/// An event of a profile as JSON.
fn event(profile: &Path, name: &str) -> Value {
    let mut paths = Command::new(pleach());
    let text = stdout(paths.args(["paths", "--json", &format!("--event={name}")]).arg(profile));
    let value: Value = serde_json::from_str(&text).expect("JSON");
    value["events"][0].clone()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// The line of the source that contains a text.
fn line(text: &str) -> u64 {
    let source = std::fs::read_to_string(program("events.c")).expect("readable");
    let at = source.lines().position(|line| line.contains(text));
    at.unwrap_or_else(|| panic!("no line has {text}")) as u64 + 1
}

/// Whether the interval of a share holds the truth. Intervals of 90 % miss it once in ten times; the test fails for
/// errors of twice their width.
fn assert_holds(share: &Value, truth: f64) {
    let (low, middle, high) = (number(share, "low"), number(share, "share"), number(share, "high"));
    let range = middle - 2.0 * (middle - low)..=middle + 2.0 * (high - middle);
    assert!(range.contains(&truth), "{truth} is not in {range:?} of {share}");
}

/// Whether a step of a path is in a function.
fn passes(path: &Value, function: &str) -> bool {
    list(path, "steps").iter().any(|step| step["function"] == function)
}

fn in_function<'v>(event: &'v Value, function: &str) -> &'v Value {
    let mut places = list(event, "places").iter();
    let found = places.find(|place| place["block"]["function"] == function);
    found.unwrap_or_else(|| panic!("no place in {function}: {event}"))
}

#[test]
fn callers_have_their_shares_of_calls() {
    let dir = scratch();
    let binary = build(dir.path());
    let profile = record(&binary, &["c", "10000000"], &["call:target"], &["--keep-vectors"]);
    let calls = event(&profile, "call:target");
    let often = in_function(&calls, "often");
    assert_holds(often, 0.75);
    assert_holds(in_function(&calls, "seldom"), 0.25);
    let best = &list(often, "paths")[0];
    assert!(passes(best, "main") && passes(best, "calls"), "{best}");

    // The same from the vectors that the profile kept, and for a function that is known under another name.
    let again = dir.path().join("again.pleach");
    let mut analyse = Command::new(pleach());
    analyse
        .args(["analyse", "--quiet", "--event", "call:target", "-o"])
        .arg(&again);
    stdout(analyse.arg(&profile));
    assert_eq!(event(&again, "call:target"), calls);

    // Adding a profile to itself doubles the events, not the shares.
    let merged = dir.path().join("merged.pleach");
    let mut merge = Command::new(pleach());
    stdout(merge.arg("merge").args([&profile, &again]).arg("-o").arg(&merged));
    let sum = event(&merged, "call:target");
    assert!((number(&sum, "events") - 2.0 * number(&calls, "events")).abs() < 0.01);
    assert_eq!(number(in_function(&sum, "often"), "share"), number(often, "share"));

    // For people.
    let mut paths = Command::new(pleach());
    let text = stdout(paths.args(["paths", "--event"]).arg(&profile));
    for part in [
        "call:target: ",
        "often() events.c:",
        "└ main() events.c:",
        " ▸ calls() events.c:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() < 160), "{text}");

    branch_records(dir.path(), &profile);
}

/// Branch records end at their event: a recording of the processor's events, made of bursts.
fn branch_records(dir: &Path, profile: &Path) {
    let bytes = ProfileFile::open(profile)
        .expect("a profile")
        .vectors()
        .expect("intact")
        .expect("kept")
        .to_vec();
    let mut set = VectorSet::from_bytes(&bytes).expect("vectors");
    set.events = vec!["cache-misses:u".to_owned()];
    set.bursts.retain(|burst| burst.branches.len() > 32);
    for burst in &mut set.bursts {
        burst.branches.drain(..burst.branches.len() - 32);
        (burst.start, burst.end) = (None, None);
        burst.values.clear();
        let ip = burst.branches[31].to;
        burst.hardware = Some(Box::new(HardwareSample {
            event: EventId(0),
            ip,
            facts: Box::default(),
        }));
    }
    let [kept, analysed] = ["records.pleach", "misses.pleach"].map(|name| dir.join(name));
    let only_vectors = Profile {
        vectors: Some(set.to_bytes()),
        ..Profile::default()
    };
    pleach_store::write_profile(&kept, &only_vectors).expect("written");
    let mut analyse = Command::new(pleach());
    stdout(analyse.args(["analyse", "--quiet", "-o"]).arg(&analysed).arg(&kept));
    let misses = event(&analysed, "cache-misses");
    assert_eq!(misses["source"], "branch-records");
    assert_eq!(number(&misses, "events"), set.bursts.len() as f64);
    assert!(
        list(&misses, "places")
            .iter()
            .any(|place| !list(place, "paths").is_empty())
    );
}

#[test]
fn calls_that_no_burst_sees_are_counted_by_breakpoints() {
    let dir = scratch();
    let binary = build(dir.path());
    let name = "call:seen_by_no_burst";
    // A burst sees it by chance, the rarer the fewer there are.
    let profile = record_at("3%", &binary, &["c", "30000000"], &[name], &[]);
    let calls = event(&profile, name);
    assert_eq!(calls["source"], "breakpoints");
    // One of its two calls was made, once.
    let [place] = list(&calls, "places") else {
        panic!("{calls}")
    };
    assert_eq!(place["block"]["line"], line("sink = 1;"));
    assert_eq!((number(&calls, "events"), number(place, "share")), (1.0, 1.0));
    let text = stdout(Command::new(pleach()).args(["paths", "--event"]).arg(&profile));
    let head = "at least 1 event in blocks that no burst passed, counted by breakpoints";
    assert!(text.contains(head) && text.contains("begin() events.c:"), "{text}");
}

#[test]
fn paths_have_their_shares_of_system_calls() {
    let dir = scratch();
    let binary = build(dir.path());
    // Paths that differ tenfold in work: most of all bursts end at a call after the long one.
    let profile = record(&binary, &["s", "500000"], &["syscall:getppid", "syscalls"], &[]);
    let calls = event(&profile, "syscall:getppid");
    let place = in_function(&calls, "system_calls");
    let long = line("    long_way();");
    let paths = list(place, "paths").iter();
    let is_long = |path: &&Value| list(path, "steps").iter().any(|step| step["line"] == long);
    let long: Vec<_> = paths.filter(is_long).collect();
    assert_eq!(long.len(), 1, "{place}");
    assert_holds(long[0], 0.2);
    let all = event(&profile, "syscalls");
    assert_eq!(in_function(&all, "system_calls")["what"], "getppid");
}

#[test]
fn page_faults_are_where_fresh_pages_are_touched() {
    let dir = scratch();
    let binary = build(dir.path());
    let part = ["f", "2000000"];
    // In pairs, so that both kinds meet the same load of the machine.
    let read = |path: &Path| ProfileFile::open(path).and_then(|p| p.read_all()).expect("a profile");
    let mut pairs = Vec::new();
    let recorded = [(); 3].map(|()| {
        let plain = record(&binary, &part, &[], &[]);
        let profile = record(&binary, &part, &["page-faults"], &[]);
        pairs.push((read(&profile), read(&plain)));
        event(&profile, "page-faults")
    });
    // One of four random rounds touches a page. The kernel's events are on in random slices of time only, so the number
    // is an estimate: the mean of three is better.
    let estimates = recorded
        .each_ref()
        .map(|faults| number(faults, "events") * number(in_function(faults, "faults"), "share"));
    let mean = estimates.iter().sum::<f64>() / 3.0;
    assert!((350_000.0..700_000.0).contains(&mean), "{estimates:?}");
    let [.., faults] = &recorded;
    let place = in_function(faults, "faults");
    assert_eq!(place["block"]["line"], line("the only fault"));
    assert!(number(place, "share") > 0.97 && number(faults, "unmatched") < 0.03);
    let paths = list(place, "paths");
    assert!(passes(&paths[0], "main"), "{}", paths[0]);
    let fill = list(faults, "places")
        .iter()
        .find(|place| place["block"]["function"] == "fill");
    assert!(
        fill.is_none_or(|place| number(place, "share") < 0.01),
        "reused memory does not fault"
    );

    // Samples of faults leave the bursts as they are, and with them what the compiler gets.
    let bursts: u64 = pairs.iter().map(|(with, _)| with.provenance.bursts).sum();
    let usual: u64 = pairs.iter().map(|(_, without)| without.provenance.bursts).sum();
    assert!(
        bursts as f64 > usual as f64 * 0.5,
        "{bursts} bursts, {usual} without events"
    );
    let [.., (with, without)] = pairs.as_slice() else {
        unreachable!("three pairs");
    };
    assert!(overlap(with, without) > 0.93, "{}", overlap(with, without));
}

/// The overlap of the shares of all blocks.
fn overlap(a: &Profile, b: &Profile) -> f64 {
    let total = |profile: &Profile| profile.functions.iter().flat_map(|f| &f.blocks).sum::<u64>() as f64;
    let (all_a, all_b) = (total(a), total(b));
    let pairs = a.functions.iter().zip(&b.functions);
    pairs
        .flat_map(|(f, g)| f.blocks.iter().zip(&g.blocks))
        .map(|(x, y)| (*x as f64 / all_a).min(*y as f64 / all_b))
        .sum()
}

/// `often` and `seldom` end in a jump to `free`, which returns to `main`: neither leads to the other's calls.
#[test]
fn what_ends_in_a_jump_to_unknown_code_calls_nobody() {
    let dir = scratch();
    let [binary, profile] = ["tail", "tail.pleach"].map(|name| dir.path().join(name));
    let flags = [flags(&["annotate"]), vec!["-O2".into(), "-g".into()]].concat();
    compile(&binary, &flags, &[program("events_tail.c")]);
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--overhead", "20%", "--event", "allocations", "-o"]);
    stdout(record.arg(&profile).arg("--").arg(&binary));
    let allocations = event(&profile, "allocations");
    let paths = list(in_function(&allocations, "make"), "paths");
    assert!(paths.iter().any(|path| passes(path, "often")), "{allocations}");
    for path in paths {
        assert!(!(passes(path, "often") && passes(path, "seldom")), "{path}");
    }
}

#[test]
fn what_cannot_be_recorded_is_told_before_the_run_where_that_is_known() {
    let dir = scratch();
    let binary = build(dir.path());
    let refused = |options: &[&str]| {
        let mut record = Command::new(pleach());
        let (code, text) = failure(record.arg("record").args(options).arg("--").arg(&binary));
        assert_eq!(code, 1, "{text}");
        text
    };
    assert!(refused(&["--event", "page-fault"]).contains("did you mean page-faults?"));
    assert!(refused(&["--event", "syscall:wrte"]).contains("did you mean write?"));
    assert!(refused(&["--event", "page-faults", "--engine", "step"]).contains("leave out `--engine step`"));
    assert!(refused(&["--event", "page-faults", "--event", "cycles"]).contains("record twice"));

    // Which functions there are is known when the files are loaded.
    let profile = dir.path().join("none.pleach");
    let mut record = Command::new(pleach());
    record
        .args(["record", "--overhead", "20%", "--event", "call:targe", "-o"])
        .arg(&profile);
    let output = output(record.arg("--").arg(&binary).args(["c", "300000"]));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("did you mean") && text.contains("target"),
        "{text}"
    );
    let (_, text) = failure(Command::new(pleach()).args(["paths", "--event"]).arg(&profile));
    assert!(text.contains("the profile has no events: none occurred"), "{text}");
}

/// Forks, waits and ends as it would: context switches interrupt no system call.
#[test]
fn programs_behave_as_without_events() {
    let dir = scratch();
    let profile = dir.path().join("shell.pleach");
    let script = "for i in 1 2 3; do sleep 0.01; (exit $i); echo $?; done; exit 7";
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--part", "-o"]).arg(&profile);
    for event in [
        "context-switches",
        "page-faults:1",
        "cpu-migrations",
        "minor-faults",
        "major-faults",
    ] {
        record.args(["--event", event]);
    }
    let output = output(record.args(["--", "/bin/sh", "-c", script]));
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n2\n3\n");
}
