//! Windows of consecutive paths: sampled ones against exact counts of `--iterations`.

use crate::support::*;
use pleach_analysis::iterations::{Forest, overlap};
use pleach_analysis::partial_paths::{PartialPathOptions, collect_partial_paths};
use pleach_analysis::program::Program;
use pleach_analysis::time_bias::Weights;
use pleach_annotate::find::Finder;
use pleach_ball_larus::NumberingOptions as Numbering;
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_ball_larus::counts::file::CountFile;
use pleach_ball_larus::counts::merge::merge;
use pleach_ball_larus::graph::PathGraph;
use pleach_collector::vector::VectorSet;
use pleach_profile::file::ProfileFile;
use std::process::Command;

#[test]
fn windows_of_bursts_are_those_that_are_counted() {
    const LONGEST: usize = 3;
    let dir = scratch();
    let [annotated, exact, profile, counts] =
        ["annotated", "exact", "app.pleach", "app.plcnt"].map(|name| dir.path().join(name));
    compile(
        &annotated,
        &flags(&["annotate", "--anchor", "late"]),
        &[program("windows.c")],
    );
    compile(
        &exact,
        &flags(&["instrument", "--anchor", "late", "--iterations", "3"]),
        &[program("windows.c")],
    );
    let counted = output(Command::new(&exact).arg("1000").env("PLEACH_COUNTS", &counts));
    assert!(counted.status.success());
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--keep-vectors", "--overhead", "50%", "-o"]);
    let recorded = output(record.arg(&profile).arg("--").arg(&annotated));
    assert!(
        recorded.status.success(),
        "{}",
        String::from_utf8_lossy(&recorded.stderr)
    );

    let counts = merge(vec![CountFile::open(&counts).expect("counts")]);
    let truth = ExactProfile::from_counts(&counts);
    let run = truth.functions.iter().find(|f| f.cfg.name == "run").expect("counted");
    let graph = PathGraph::new(&run.cfg, &Numbering::default());
    let truth = Forest::exact(&graph, &run.paths, LONGEST);

    let file = ProfileFile::open(&profile).expect("a profile");
    let bytes = file.vectors().expect("readable").expect("kept");
    let vectors = VectorSet::from_bytes(bytes).expect("vectors");
    let program = Program::read(&vectors.modules, &Finder::default());
    let options = PartialPathOptions {
        iterations: LONGEST,
        ..PartialPathOptions::default()
    };
    let evidence = collect_partial_paths(&program, &vectors, &Weights::equal(), &options);
    let seen = &evidence.functions[&(run.cfg.id, run.cfg.hash())].windows;
    for length in 1..=LONGEST {
        let (seen, truth) = (seen.estimated(length, |_| None), truth.seen(length));
        let common = overlap(&seen, &truth);
        assert!(common > 0.9, "windows of {length}: {common}, {seen:?} and {truth:?}");
    }
    // Which comes next follows from two iterations, hardly from one.
    let windows = seen.estimated(3, |_| None);
    let total: f64 = windows.iter().map(|window| window.count).sum();
    let best = windows.iter().map(|window| window.count).fold(0.0, f64::max);
    assert!(best > total / 10.0 && windows.len() < 20, "{windows:?}");
}
