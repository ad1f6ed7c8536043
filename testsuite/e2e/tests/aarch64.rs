//! AArch64: programs are cross-compiled, and run by QEMU.

use crate::random::with_profile;
use crate::support::counted::*;
use crate::support::*;
use pleach_facilities::{has_program, skip};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Branches in a branch stack: BRBE has up to 64.
const DEPTH: usize = 64;

/// Whether cross-compiler and emulator are there; reports a skip where not.
fn can_cross_compile() -> bool {
    let libraries = Path::new("/usr/aarch64-linux-gnu/lib/libstdc++.so.6").exists();
    if !libraries {
        skip("libraries for AArch64 are not installed (g++-aarch64-linux-gnu)");
    }
    libraries && has_program("qemu-aarch64")
}

/// Programs, and what each is called with.
const COUNTED: [(&str, &[&str]); 4] = [
    ("count_flow.c", &[""]),
    (
        "count_ends.c",
        &[
            "exit",
            "abort",
            "jump",
            "jump_exit",
            "altstack",
            "threads",
            "vfork",
            "coroutines",
        ],
    ),
    ("count_throw.cpp", &["none", "uncaught", "handler"]),
    ("count_tasks.c", &["raises", "threads", "sequence"]),
];

#[test]
fn counts_are_exact() {
    if !can_cross_compile() {
        return;
    }
    let dir = scratch();
    Cases::run(|cases| {
        for (source, ways) in COUNTED {
            let plain = plain(dir.path(), &[source], &[AARCH64]);
            for build in [Build::new("late", "-O0"), Build::new("early", "-O2")] {
                let build = build.extra(&[AARCH64]);
                let binary = build.program(dir.path(), &[source]);
                for way in ways {
                    let what = format!("{way}: {build:?}");
                    cases.case(&what, || {
                        let (expected, ran) = (run_counted(&plain, &[way]), run_counted(&binary, &[way]));
                        let seen = |run: &Run| (run.code(), run.stdout.clone(), run.stderr.clone(), run.marks.clone());
                        assert_eq!(seen(&ran), seen(&expected), "{what}");
                        check_paths(&binary, &ran, &what);
                    });
                }
            }
        }
    });
}

#[test]
fn programs_compute_the_same_with_any_profile() {
    if !can_cross_compile() {
        return;
    }
    let dir = scratch();
    Cases::run(|cases| {
        for source in ["shapes.c", "count_flow.c", "count_throw.cpp", "exceptions.cpp"] {
            let plain = plain(dir.path(), &[source], &[AARCH64]);
            let expected = run_with(&plain, &[], |_| {});
            for (level, anchor, seed) in [("-O2", "early", 1), ("-O3", "late", 2)] {
                let what = format!("{source} {level} {anchor} {seed}");
                cases.case(&what, || {
                    let mut flags = with_profile(level, anchor, seed);
                    flags.push(AARCH64.to_owned());
                    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
                    let guided = compiled(dir.path().join("guided"), &[source], &flags);
                    let ran = run_with(&guided, &[], |_| {});
                    let seen = |run: &Run| (run.code(), run.stdout.clone(), run.marks.clone());
                    assert_eq!(seen(&ran), seen(&expected), "{what}");
                });
            }
        }
    });
}

/// Addresses of the instructions that a program executes, in order.
fn executed(program: &Path, log: &Path) -> Vec<u64> {
    let marks = log.with_extension("marks");
    fs::write(&marks, vec![0; 4096]).expect("writable");
    let mut command = Command::new("qemu-aarch64");
    command.args([
        "-L",
        "/usr/aarch64-linux-gnu",
        "-singlestep",
        "-d",
        "nochain,exec",
        "-D",
    ]);
    stdout(command.arg(log).arg(program).env("COUNT_MARKS", marks));
    // `Trace 0: HOST [FLAGS/PC/…] SYMBOL`
    let text = String::from_utf8_lossy(&fs::read(log).expect("a log")).into_owned();
    text.lines()
        .filter_map(|line| u64::from_str_radix(line.split('[').nth(1)?.split('/').nth(1)?, 16).ok())
        .collect()
}

/// What `perf script -F ip,brstack` prints of branch records that miss nothing.
fn branch_stacks(executed: &[u64]) -> String {
    let taken: Vec<(u64, u64)> = executed
        .windows(2)
        .filter(|pair| pair[1] != pair[0] + 4)
        .map(|pair| (pair[0], pair[1]))
        .collect();
    let mut text = String::new();
    for stack in taken.chunks(DEPTH) {
        write!(text, "{:x}", stack.last().expect("not empty").1).expect("written");
        for (from, to) in stack.iter().rev() {
            write!(text, " {from:#x}/{to:#x}/P/-/-/1").expect("written");
        }
        text.push('\n');
    }
    text
}

#[test]
fn branch_records_become_profiles() {
    if !can_cross_compile() {
        return;
    }
    let dir = scratch();
    let path = |name: &str| dir.path().join(name);
    for anchor in ["early", "late"] {
        // Without relocation, so that addresses in memory are those in the file.
        let build = |name: &str, words: &[String]| {
            let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
            words.extend(["-O2", "-no-pie", AARCH64]);
            compiled(path(name), &["count_flow.c"], &words)
        };
        let annotated = build("annotated", &flags(&["annotate", "--anchor", anchor]));
        let counted = build("counted", &flags(&["instrument", "--anchor", anchor]));
        let import = |from: &str, to: &str| {
            let mut command = Command::new(pleach());
            command.arg("import").arg(path(from)).arg("-o").arg(path(to));
            stdout(command.arg("--binary").arg(&annotated));
        };

        fs::write(path("script"), branch_stacks(&executed(&annotated, &path("log")))).expect("writable");
        import("script", "records.pleach");
        let ran = run_counted(&counted, &[]);
        fs::copy(ran.file(), path("counts.plcnt")).expect("copied");
        import("counts.plcnt", "exact.pleach");

        let mut command = Command::new(pleach());
        command
            .args(["overlap", "--json"])
            .args([path("records.pleach"), path("exact.pleach")]);
        let overlap: Value = serde_json::from_str(&stdout(&mut command)).expect("JSON");
        // Paths are cut at the ends of stacks.
        for (of, least) in [("blocks", 0.98), ("paths", 0.8)] {
            let share = overlap[of]
                .as_f64()
                .unwrap_or_else(|| panic!("{of} is missing in {overlap}"));
            assert!(share > least, "{anchor}: overlap of {of}: {share}");
        }

        let profile = path("records.pleach");
        let profile = profile.to_str().expect("UTF-8");
        let fast = build("fast", &flags(&["use", "--anchor", anchor, profile]));
        let seen = |run: Run| (run.code(), run.stdout.clone(), run.marks.clone());
        assert_eq!(
            seen(run_counted(&fast, &[])),
            seen(run_with(&annotated, &[], |_| {})),
            "{anchor}"
        );
    }
}
