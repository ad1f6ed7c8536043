//! Instrumented builds: counts are exact, whatever the control flow and however a program is built.

mod support;

use support::counted::*;
use support::*;

#[test]
fn every_block_is_counted() {
    let dir = scratch();
    let expected = run(&plain(dir.path(), &["count_flow.c"], &[]));
    for build in builds(&["-O0", "-O1", "-O2", "-Os"]) {
        let what = format!("{build:?}");
        let binary = build.program(dir.path(), &["count_flow.c"]);
        let ran = run_counted(&binary, &[]);
        assert_eq!((ran.code(), ran.stdout.as_str(), ran.stderr.as_str()), (0, expected.as_str(), ""), "{what}");
        let (by_paths, _) = check_paths(&binary, &ran, &what);

        let build = build.what(&["--edges"]);
        let binary = build.program(dir.path(), &["count_flow.c"]);
        let ran = run_counted(&binary, &[]);
        assert_eq!(ran.stdout, expected, "{what}");
        let by_edges = check(&binary, &ran, &format!("{build:?}"));
        assert_eq!(by_paths, by_edges, "{what}");
    }
}
