//! Instrumented builds: activations that end early lose no counts.

mod support;

use std::path::Path;
use support::counted::*;
use support::*;

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
    let ways = ["exit", "abort", "_exit", "_Exit", "quick_exit", "assert", "pthread_exit"].map(|how| (how, 10, 1));
    let others = [("return", 0, 0), ("main_exit", 0, 0), ("threads", 20 * 7, 0)];
    same_ends("count_ends.c", "deep", &[&ways[..], &others].concat());
}

#[test]
fn what_jumps_keeps_all_counts() {
    let ways = [("jump", 0, 0), ("jump_exit", 5, 1), ("signal", 0, 0), ("altstack", 0, 0)];
    same_ends("count_ends.c", "deep", &ways);
}

#[test]
fn other_stacks_and_second_returns_keep_all_counts() {
    same_ends("count_ends.c", "deep", &[("vfork", 0, 0), ("coroutines", 0, 0)]);
}

#[test]
fn what_throws_keeps_all_counts() {
    let ways = [("none", 0), ("noexcept", 1), ("uncaught", 1), ("handler", 1), ("aborts", 1), ("exit_in_catch", 0)];
    same_ends("count_throw.cpp", "none", &ways.map(|(how, main)| (how, 0, main)));
}
