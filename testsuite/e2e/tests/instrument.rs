//! Instrumented builds: counts are exact, whatever the control flow and however a program is built.

use crate::support::counted::*;
use crate::support::*;
use std::collections::BTreeMap;
use std::process::Command;

#[test]
fn every_block_is_counted() {
    let dir = scratch();
    let expected = run(&plain(dir.path(), &["count_flow.c"], &[]));
    for build in builds(&["-O0", "-O1", "-O2", "-Os"]) {
        let what = format!("{build:?}");
        let binary = build.program(dir.path(), &["count_flow.c"]);
        let ran = run_counted(&binary, &[]);
        assert_eq!(
            (ran.code(), ran.stdout.as_str(), ran.stderr.as_str()),
            (0, expected.as_str(), ""),
            "{what}"
        );
        let (by_paths, _) = check_paths(&binary, &ran, &what);

        let build = build.what(&["--edges"]);
        let binary = build.program(dir.path(), &["count_flow.c"]);
        let ran = run_counted(&binary, &[]);
        assert_eq!(ran.stdout, expected, "{what}");
        let by_edges = check(&binary, &ran, &format!("{build:?}"));
        assert_eq!(by_paths, by_edges, "{what}");
    }
}

/// The generator of count_many.c.
struct Rolls(u32);

impl Rolls {
    fn roll(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0
    }
}

fn sorted(mut counts: Vec<u64>) -> Vec<u64> {
    counts.sort_unstable();
    counts
}

/// The number of occurrences of each value.
fn histogram(values: impl Iterator<Item = u32>) -> Vec<u64> {
    let mut counts = BTreeMap::<u32, u64>::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    sorted(counts.into_values().collect())
}

#[test]
fn many_paths_are_told_apart() {
    const SEED: u32 = 7;
    const TIMES: usize = 20_000;
    let mut rolls = Rolls(SEED);
    let twenty: Vec<u32> = (0..TIMES).map(|_| rolls.roll() >> 12).collect();
    let sixty: Vec<(u32, u32)> = (0..TIMES).map(|_| (rolls.roll() >> 2, rolls.roll() >> 2)).collect();
    let inside: Vec<u32> = (0..TIMES).map(|_| (rolls.roll() >> 12) & ((1 << 18) - 1)).collect();
    let dir = scratch();
    let args = [SEED.to_string(), TIMES.to_string()];
    let args = [args[0].as_str(), args[1].as_str()];
    Cases::run(|cases| {
        for build in builds(&["-O0", "-O2"]) {
            let what = format!("{build:?}");
            cases.case(&what, || {
                let binary = build.program(dir.path(), &["count_many.c"]);
                let ran = run_counted(&binary, &args);
                assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""), "{what}");
                assert_eq!(ran.stdout.trim(), rolls.0.to_string(), "{what}");
                let (by_paths, rows) = check_paths(&binary, &ran, &what);
                let of = |name: &str| rows.iter().filter(|r| r.function == name).map(|r| r.count).collect();
                assert_eq!(sorted(of("twenty")), histogram(twenty.iter().copied()), "{what}");
                // Every bit's block, and nothing else, is executed as often as its bit is set.
                let sixty_blocks = &by_paths
                    .values()
                    .find(|f| f.function == "sixty")
                    .expect("counted")
                    .blocks;
                for bit in 0..30 {
                    let set =
                        |get: fn(&(u32, u32)) -> u32| sixty.iter().filter(|p| get(p) >> bit & 1 == 1).count() as u64;
                    for times in [set(|p| p.0), set(|p| p.1)] {
                        assert!(sixty_blocks.contains(&times), "{what}: bit {bit}: {times}");
                    }
                }
                let whole: u64 = sixty_blocks.iter().copied().max().expect("blocks");
                assert_eq!(whole, TIMES as u64, "{what}");
                // The first and the last iteration's path are longer; each of the others is its bits.
                let different = histogram(inside.iter().copied()).len();
                let found = rows.iter().filter(|r| r.function == "inside").count();
                assert!(found.abs_diff(different) <= 3, "{what}: {found} paths, not {different}");

                let edges = build.what(&["--edges"]);
                let binary = edges.program(dir.path(), &["count_many.c"]);
                let ran = run_counted(&binary, &args);
                assert_eq!(check(&binary, &ran, &what), by_paths, "{what}");
            });
        }
    });
}

/// Windows of paths as blocks, with how often.
fn windows_of(rows: &[PathRow], function: &str) -> BTreeMap<Vec<u32>, u64> {
    let mut windows = BTreeMap::new();
    for row in rows.iter().filter(|r| r.function == function) {
        *windows.entry(row.blocks.clone()).or_default() += row.count;
    }
    windows
}

#[test]
fn windows_are_consistent() {
    let dir = scratch();
    Cases::run(|cases| {
        for build in builds(&["-O0", "-O2"]) {
            for (source, args) in [("count_many.c", &["7", "2000"][..]), ("count_flow.c", &[])] {
                let binary = build.program(dir.path(), &[source]);
                let single = run_counted(&binary, args);
                let (by_paths, single_rows) = check_paths(&binary, &single, source);
                let executions = |rows: &[PathRow], function: &str| -> u64 {
                    rows.iter().filter(|r| r.function == function).map(|r| r.count).sum()
                };
                for k in 2..=4_usize {
                    let what = format!("{k} iterations: {source}: {build:?}");
                    cases.case(&what, || {
                        let binary = build
                            .what(&["--iterations", &k.to_string()])
                            .program(dir.path(), &[source]);
                        let ran = run_counted(&binary, args);
                        assert_eq!((ran.code(), &ran.stdout, ran.stderr.as_str()), (0, &single.stdout, ""));
                        let flows = check(&binary, &ran, &what);
                        // Each block, each edge: the same flow.
                        assert_eq!(flows, by_paths, "{what}");
                        let rows = path_rows(&ran.files);
                        assert!(rows.iter().all(|r| r.iterations.is_none_or(|i| (1..=k).contains(&i))));
                        if source == "count_many.c" {
                            let windows = windows_of(&rows, "turns");
                            // An iteration's branch is the block that tells it from the other's.
                            let turns = &flows.values().find(|f| f.function == "turns").expect("counted").blocks;
                            let branch: Vec<u32> = (0..turns.len() as u32)
                                .filter(|&b| [50, 51].contains(&turns[b as usize]))
                                .collect();
                            if !branch.is_empty() {
                                let one = branch[0];
                                for (window, count) in &windows {
                                    let seen: Vec<bool> = window
                                        .split(|b| Some(*b) == window_head(window))
                                        .map(|it| it.contains(&one))
                                        .collect();
                                    let seen = &seen[1..];
                                    assert!(
                                        seen.len() < 3 || seen[1..seen.len() - 1].windows(2).all(|w| w[0] != w[1]),
                                        "{what}: {window:?} × {count}"
                                    );
                                }
                            }
                            assert!(windows.len() <= 2 * k + 4, "{what}: {windows:?}");
                        }
                        let functions = flows.values().map(|f| f.function.as_str());
                        for function in functions.filter(|f| executions(&single_rows, f) > 0) {
                            // Self loops are paths of their own here.
                            assert!(
                                executions(&rows, function) >= executions(&single_rows, function),
                                "{what}: {function}"
                            );
                        }
                    });
                }
            }
        }
    });
}

/// The block that begins iterations: the most frequent.
fn window_head(window: &[u32]) -> Option<u32> {
    window
        .iter()
        .copied()
        .max_by_key(|b| window.iter().filter(|c| *c == b).count())
}

/// Function counts as LLVM's own instrumentation has them.
fn llvm_entries(profile: &std::path::Path) -> BTreeMap<String, u64> {
    let text = stdout(
        Command::new("llvm-profdata-22")
            .args(["show", "--all-functions", "--counts"])
            .arg(profile),
    );
    let (mut name, mut counts) = (String::new(), BTreeMap::new());
    for line in text.lines() {
        // Told to instrument entries, it counts them first.
        if let Some(counters) = line.trim().strip_prefix("Block counts: [") {
            let count = counters.split([',', ']']).next().expect("a part");
            // Local functions have their file's name before theirs.
            let plain = name.rsplit([';', ':']).next().expect("a part").to_owned();
            counts.insert(plain, count.parse().expect("a number"));
        } else if line.starts_with("  ") && !line.starts_with("    ") {
            name = line.trim().trim_end_matches(':').to_owned();
        }
    }
    counts
}

#[test]
fn entries_are_what_llvm_counts() {
    let dir = scratch();
    for (source, args) in [
        ("count_flow.c", &[][..]),
        ("count_many.c", &["3", "500"]),
        ("count_throw.cpp", &["none"]),
        ("count_tasks.c", &["sequence"]),
    ] {
        let reference = dir.path().join(format!("{source}-llvm"));
        let mut command = if source.ends_with("cpp") { clangxx() } else { clang() };
        command.args(["-w", "-pthread", "-O2", "-fprofile-generate", "-fprofile-update=atomic"]);
        command.args(["-Xclang", "-mllvm", "-Xclang", "-disable-preinline"]);
        command.args(["-Xclang", "-mllvm", "-Xclang", "-pgo-instrument-entry"]);
        stdout(
            command
                .arg(program(source))
                .arg(marks_object())
                .arg("-o")
                .arg(&reference),
        );
        let raw = dir.path().join(format!("{source}.profraw"));
        let profile = dir.path().join(format!("{source}.profdata"));
        stdout(Command::new(&reference).args(args).env("LLVM_PROFILE_FILE", &raw));
        stdout(
            Command::new("llvm-profdata-22")
                .arg("merge")
                .arg(&raw)
                .arg("-o")
                .arg(&profile),
        );
        let mut theirs = llvm_entries(&profile);
        // LLVM's runtime calls the program's, too.
        theirs.remove("getenv");
        assert!(theirs.len() >= 5, "{theirs:?}");
        for build in builds(&["-O2"]).iter().filter(|b| b.anchor == "early") {
            let binary = build.program(dir.path(), &[source]);
            let ran = run_counted(&binary, args);
            let flows = check(&binary, &ran, source);
            let mut ours: BTreeMap<String, u64> = theirs.keys().map(|name| (name.clone(), 0)).collect();
            for flow in flows.values().filter(|flow| flow.function != "getenv") {
                *ours.entry(flow.function.clone()).or_default() += flow.entries;
            }
            assert_eq!(ours, theirs, "{source}");
        }
    }
}
