//! `pleach export`: each format is read by the tool that it is for, and changes what that tool does.

use crate::support::*;
use pleach_facilities::has_program;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const LINES: [&str; 3] = ["-O2", "-g1", "-fdebug-info-for-profiling"];

/// The program that is exported, and a profile with raw vectors.
struct Recorded {
    dir: tempfile::TempDir,
    binary: PathBuf,
    profile: PathBuf,
}

impl Recorded {
    /// Records a build with these flags beside `annotate`'s.
    fn new(flags_of_build: &[&str], options: &[&str]) -> Self {
        Self::at_anchor("early", flags_of_build, options)
    }

    fn at_anchor(anchor: &str, flags_of_build: &[&str], options: &[&str]) -> Self {
        let dir = scratch();
        let (binary, profile) = (dir.path().join("annotated"), dir.path().join("app.pleach"));
        let own = flags_of_build.iter().map(|&flag| flag.to_owned());
        let flags: Vec<String> = flags(&["annotate", "--anchor", anchor])
            .into_iter()
            .chain(own)
            .collect();
        compile(&binary, &flags, &[program("exported.c")]);
        let mut record = Command::new(pleach());
        record.args(["record", "--quiet", "--overhead", "20%"]).args(options);
        stdout(record.arg("-o").arg(&profile).arg("--").arg(&binary));
        Self { dir, binary, profile }
    }

    fn command(&self, format: &str, output: &str) -> (Command, PathBuf) {
        let output = self.dir.path().join(output);
        let mut command = Command::new(pleach());
        command.arg("export").arg(&self.profile);
        command.args(["--format", format, "-o"]).arg(&output);
        (command, output)
    }

    fn export(&self, format: &str, output: &str, options: &[&str]) -> PathBuf {
        let (mut command, output) = self.command(format, output);
        stdout(command.args(options));
        output
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// IR that clang makes with a sample profile.
fn compiled_with(profile: &Path, dir: &Path) -> String {
    let out = dir.join("used.ll");
    let mut clang = Command::new("clang-22");
    clang.args(LINES).args(["-S", "-emit-llvm", "-Werror", "-o"]).arg(&out);
    clang.arg(format!("-fprofile-sample-use={}", profile.display()));
    stdout(clang.arg(program("exported.c")));
    read(&out)
}

/// The counts of a function that `llvm-profdata` prints, by place.
fn shown(profile: &Path, function: &str) -> String {
    let mut show = Command::new("llvm-profdata-22");
    show.args(["show", "--sample", &format!("--function={function}")]);
    stdout(show.arg(profile))
}

#[test]
fn clang_uses_the_sample_profile() {
    let recorded = Recorded::new(&LINES, &["--keep-vectors"]);
    let nested = recorded.export("llvm-sample", "nested.afdo", &[]);
    let flat = recorded.export("llvm-sample", "flat.afdo", &["--flat"]);
    // `step` is inlined at the third line of `work`; its branch is taken once in sixteen times.
    let text = shown(&nested, "work");
    assert!(text.contains("3: inlined callee: step"), "{text}");
    let of_step = shown(&flat, "step");
    let count = |offset: u32| {
        let start = format!("{offset}: ");
        let lines = of_step.lines().map(str::trim_start);
        let counts = lines.filter_map(|line| line.strip_prefix(&start)?.split(',').next()?.parse::<f64>().ok());
        counts.fold(0.0, f64::max)
    };
    let share = count(2) / count(5);
    assert!((0.04..0.09).contains(&share), "{share}: {of_step}");
    // The indirect call's targets.
    let calls = text
        .lines()
        .find(|line| line.contains("twice:") && line.contains("minus:"));
    assert!(calls.is_some(), "{text}");
    for profile in [&nested, &flat] {
        let ir = compiled_with(profile, recorded.dir.path());
        assert!(has_entry_count(&ir, "work"), "{ir}");
        // clang promotes the most frequent target of the indirect call.
        assert!(ir.contains("branch_weights") && ir.contains("SampleProfile"), "{ir}");
    }
    // Other forms of sample profiles are LLVM's to make.
    let binary = recorded.dir.path().join("binary.afdo");
    let mut merge = Command::new("llvm-profdata-22");
    merge.args(["merge", "--sample", "--extbinary", "-o"]).arg(&binary);
    stdout(merge.arg(&nested));
    assert_eq!(shown(&binary, "work"), text);
}

/// Whether a function has an entry count of its own.
fn has_entry_count(ir: &str, function: &str) -> bool {
    let head = format!("@{function}(");
    let define = ir
        .lines()
        .find(|line| line.starts_with("define") && line.contains(&head));
    define.is_some_and(|line| line.contains("!prof"))
}

#[test]
fn a_sample_profile_needs_no_vectors_but_lines() {
    let recorded = Recorded::new(&LINES, &[]);
    let flat = recorded.export("llvm-sample", "flat.afdo", &[]);
    assert!(!shown(&flat, "work").contains("inlined callee: step"));
    assert!(compiled_with(&flat, recorded.dir.path()).contains("branch_weights"));
    let (mut bolt, _) = recorded.command("bolt-fdata", "none");
    let (code, text) = failure(&mut bolt);
    assert!(code == 1 && text.contains("--keep-vectors"), "{code}: {text}");

    let late = Recorded::at_anchor("late", &LINES, &[]);
    let (mut command, _) = late.command("llvm-sample", "none");
    let (code, text) = failure(&mut command);
    assert!(code == 1 && text.contains("--anchor late"), "{code}: {text}");

    for (lines, reason) in [
        (&["-O2"][..], "no debug information"),
        (&["-O2", "-gline-tables-only"], "does not say where functions begin"),
    ] {
        let recorded = Recorded::new(lines, &["--keep-vectors"]);
        let (mut command, _) = recorded.command("llvm-sample", "none");
        let (code, text) = failure(&mut command);
        assert!(code == 1 && text.contains(reason), "{code}: {text}");
        assert!(text.contains("-g1 -fdebug-info-for-profiling"), "{text}");
    }
}

#[test]
fn bolt_uses_the_profile() {
    if !has_program("llvm-bolt-22") {
        return;
    }
    let recorded = Recorded::new(&["-O2", "-Wl,--emit-relocs"], &["--keep-vectors"]);
    let profile = recorded.export("bolt-fdata", "app.fdata", &[]);
    let bolted = recorded.dir.path().join("bolted");
    let mut bolt = Command::new("llvm-bolt-22");
    bolt.arg(&recorded.binary).arg("-o").arg(&bolted);
    bolt.arg(format!("-data={}", profile.display()));
    let log = stdout(bolt.args(["-reorder-blocks=ext-tsp", "-dyno-stats", "-v=1"]));
    // All of a function's branches are BOLT's own, or BOLT calls the profile stale.
    assert!(!log.contains("stale"), "{log}");
    assert!(log.contains("non-empty execution profile"), "{log}");
    let taken = log.lines().find(|line| line.contains(" taken branches ("));
    assert!(taken.is_some_and(|line| line.contains("(-")), "{log}");
    let run = |binary: &Path| stdout(Command::new(binary).arg("1000"));
    assert_eq!(run(&bolted), run(&recorded.binary));
    // Counts are those of perf2bolt, which reads the same vectors through perf.
    if has_program("perf") && has_program("perf2bolt-22") {
        let data = recorded.export("perf.data", "perf.data", &["--depth", "2000"]);
        let peer = recorded.dir.path().join("peer.fdata");
        let mut convert = Command::new("perf2bolt-22");
        convert.arg("-p").arg(data).arg("-o").arg(&peer).arg(&recorded.binary);
        stdout(convert.current_dir(recorded.dir.path()));
        let (own, peer) = (inside(&read(&profile)), inside(&read(&peer)));
        assert_eq!(own.keys().collect::<Vec<_>>(), peer.keys().collect::<Vec<_>>());
        for (branch, count) in &own {
            // perf2bolt does not get the ends of bursts.
            let difference = count.abs_diff(peer[branch]);
            assert!(difference <= 2 + count / 50, "{branch:?}: {count}, {}", peer[branch]);
        }
    }
}

/// The branches within `work` by their offsets, with their counts. BOLT knows local functions by several names.
fn inside(fdata: &str) -> BTreeMap<(String, String), u64> {
    let branches = fdata.lines().filter_map(|line| {
        let [_, from, start, _, to, end, _, count] = line.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        let is_inside = from.starts_with("work/") && from == to;
        is_inside.then(|| ((start.to_owned(), end.to_owned()), count.parse().expect("a number")))
    });
    branches.collect()
}

#[test]
fn viewers_show_call_stacks() {
    let recorded = Recorded::new(&["-O2", "-g1"], &["--keep-vectors"]);
    let pprof = recorded.export("pprof", "app.pb.gz", &[]);
    if has_program("go") {
        let mut top = Command::new("go");
        top.args(["tool", "pprof", "-top", "-symbolize=none"]).arg(&pprof);
        let text = stdout(top.env("HOME", recorded.dir.path()));
        assert!(text.contains("Type: instructions"), "{text}");
        // `work` calls or inlines all of the others.
        let row = |name: &str| text.lines().find(|line| line.ends_with(&format!(" {name}")));
        assert!(row("work").is_some_and(|row| row.contains("100% ")), "{text}");
        assert!(row("rarely").is_some() && row("step").is_some(), "{text}");
    }
    let firefox = recorded.export("firefox", "app.json", &[]);
    let json: Value = serde_json::from_str(&read(&firefox)).expect("JSON");
    let thread = &json["threads"][0];
    assert_eq!(thread["processName"], "annotated");
    let samples = &thread["samples"];
    let length = samples["length"].as_u64().expect("a number") as usize;
    assert!(length > 10, "{length}");
    for column in ["stack", "weight", "timeDeltas"] {
        assert_eq!(samples[column].as_array().map(Vec::len), Some(length), "{column}");
    }
    // The profiler's timeline shows CPU time.
    let times = samples["threadCPUDelta"].as_array().expect("a list");
    assert!(times.iter().any(|time| time.as_f64() > Some(0.0)));
    let names = thread["stringArray"].as_array().expect("a list");
    assert!(names.iter().any(|name| name == "rarely"), "{names:?}");
}
