//! Instrumented builds: activations that end early lose no counts.

use crate::support::counted::*;
use crate::support::*;
use std::path::Path;

const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];

/// Runs a program that ends in a certain way; it must do what the plain one does.
fn same_end(plain: &Path, counted: &Path, how: &str, what: &str) -> Run {
    let expected = run_counted(plain, &[how]);
    let ran = run_counted(counted, &[how]);
    let seen = |run: &Run| (run.code(), run.stdout.clone(), run.stderr.clone(), run.marks.clone());
    assert_eq!(seen(&ran), seen(&expected), "{what}");
    ran
}

/// Programs that end in certain ways, with how often `deep` and `main` end in a call.
fn same_ends(source: &str, deep: &str, ways: &[(&str, u64, u64)]) {
    Cases::run(|cases| {
        let dir = scratch();
        let plain = plain(dir.path(), &[source], &[]);
        for build in builds(&LEVELS) {
            let paths = build.program(dir.path(), &[source]);
            let edges = build.what(&["--edges"]).program(dir.path(), &[source]);
            for &(how, deeps, mains) in ways {
                let what = format!("{how}: {build:?}");
                let by_paths = cases.case("paths", || {
                    let ran = same_end(&plain, &paths, how, &what);
                    let (by_paths, rows) = check_paths(&paths, &ran, &what);
                    assert_eq!(ends_in_calls(&rows, deep), deeps, "{what}");
                    assert_eq!(ends_in_calls(&rows, "main"), mains, "{what}");
                    by_paths
                });
                cases.case("edges", || {
                    let ran = same_end(&plain, &edges, how, &what);
                    let by_edges = check(&edges, &ran, &what);
                    if let Some(by_paths) = by_paths {
                        assert_eq!(by_edges, by_paths, "{what}");
                    }
                });
            }
        }
    });
}

#[test]
fn what_ends_the_process_keeps_all_counts() {
    let ways = [
        "exit",
        "abort",
        "_exit",
        "_Exit",
        "quick_exit",
        "assert",
        "pthread_exit",
    ]
    .map(|how| (how, 10, 1));
    let others = [("return", 0, 0), ("main_exit", 0, 0), ("threads", 20 * 7, 0)];
    same_ends("count_ends.c", "deep", &[&ways[..], &others].concat());
}

#[test]
fn what_jumps_keeps_all_counts() {
    let ways = [
        ("jump", 0, 0),
        ("jump_exit", 5, 1),
        ("signal", 0, 0),
        ("altstack", 0, 0),
    ];
    same_ends("count_ends.c", "deep", &ways);
}

#[test]
fn other_stacks_and_second_returns_keep_all_counts() {
    same_ends("count_ends.c", "deep", &[("vfork", 0, 0), ("coroutines", 0, 0)]);
}

#[test]
fn what_throws_keeps_all_counts() {
    let ways = [
        ("none", 0),
        ("noexcept", 1),
        ("uncaught", 1),
        ("handler", 1),
        ("aborts", 1),
        ("exit_in_catch", 0),
    ];
    same_ends("count_throw.cpp", "none", &ways.map(|(how, main)| (how, 0, main)));
}

#[test]
fn what_returns_twice_unknown_to_us_is_left_alone() {
    let dir = scratch();
    let plain = plain(dir.path(), &["count_ends.c"], &[]);
    Cases::run(|cases| {
        for build in builds(&LEVELS) {
            for what in [&[][..], &["--edges"], &["--iterations", "2"]] {
                let build = build.what(what);
                let what = format!("{build:?}");
                let program = dir.path().join("program");
                let mut command = clang();
                command
                    .arg(build.level)
                    .args(["-pthread", "-Wno-unused"])
                    .args(build.flags());
                command.arg(crate::support::program("count_ends.c")).arg(marks_object());
                let out = output(command.arg("-o").arg(&program));
                let stderr = String::from_utf8_lossy(&out.stderr);
                assert!(out.status.success(), "{stderr}");
                cases.case(&what, || {
                    assert!(stderr.contains("'get_context' is not counted: "), "{what}: {stderr}");
                    for how in ["getcontext", "builtin"] {
                        let ran = same_end(&plain, &program, how, &what);
                        assert!(
                            flows(&ran.files).values().all(|f| f.function != "get_context"),
                            "{what}"
                        );
                    }
                });
            }
        }
    });
}

#[test]
fn other_builds_keep_counts_of_what_ends_too() {
    let dir = scratch();
    Cases::run(|cases| {
        for (level, extra) in [
            ("-O3", &[][..]),
            ("-Os", &["-fomit-frame-pointer"]),
            ("-O1", &["-fsanitize=address"]),
            ("-O0", &["-fsanitize=address"]),
            ("-O2", &["-flto", "-fuse-ld=lld"]),
            ("-O2", &["-fstack-protector-all", "-fstack-clash-protection"]),
            ("-O2", &["-static"]),
            ("-O2", &["-fexceptions", "-fasynchronous-unwind-tables"]),
        ] {
            let mut plain_flags = vec![level];
            plain_flags.extend(extra);
            for (source, ways) in [
                (
                    "count_ends.c",
                    &[
                        "exit",
                        "abort",
                        "quick_exit",
                        "jump",
                        "threads",
                        "pthread_exit",
                        "altstack",
                    ][..],
                ),
                ("count_throw.cpp", &["noexcept", "uncaught", "exit_in_catch"]),
            ] {
                let plain = plain(dir.path(), &[source], &plain_flags);
                for what in [&[][..], &["--edges"], &["--iterations", "2"]] {
                    let build = Build::new("early", level).extra(extra).what(what);
                    let program = build.program(dir.path(), &[source]);
                    for how in ways {
                        let what = format!("{how}: {build:?}");
                        cases.case(&what, || {
                            let ran = same_end(&plain, &program, how, &what);
                            check(&program, &ran, &what);
                        });
                    }
                }
            }
        }
    });
}
