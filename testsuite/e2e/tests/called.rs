//! Call-crossing paths: a function's paths by its caller's path, recorded across calls that were not inlined.

use crate::support::*;
use pleach_ball_larus::Path;
use pleach_profile::file::ProfileFile;
use pleach_profile::{Caller, FunctionProfile};
use std::collections::BTreeMap;
use std::process::Command;

/// The functions of a recording of a program.
fn recorded_functions(source: &str) -> Vec<FunctionProfile> {
    let dir = scratch();
    let [annotated, profile] = ["annotated", "app.pleach"].map(|name| dir.path().join(name));
    compile(&annotated, &flags(&["annotate"]), &[program(source)]);
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--overhead", "50%", "-o"]);
    stdout(record.arg(&profile).arg("--").arg(&annotated));
    let file = ProfileFile::open(&profile).expect("a profile");
    file.functions().map(|f| f.expect("undamaged")).collect()
}

#[test]
fn a_callees_path_depends_on_its_callers() {
    let functions = recorded_functions("called.c");
    let named = |name: &str| functions.iter().find(|f| f.name == name).expect("recorded");
    let (work, choose) = (named("work"), named("choose"));
    let mut ways: BTreeMap<&Caller, Vec<(&Path, f64)>> = BTreeMap::new();
    for called in work.called.iter().filter(|c| c.caller.id == choose.id) {
        ways.entry(&called.caller)
            .or_default()
            .push((&called.path, called.count));
    }
    // From either side of the caller's branch one path follows, nearly always, and not the same.
    let mut sides: Vec<(f64, &Path)> = Vec::new();
    for paths in ways.values() {
        let all: f64 = paths.iter().map(|p| p.1).sum();
        let &(path, most) = paths.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("some path");
        assert!(most > 0.95 * all, "{ways:?}");
        sides.push((all, path));
    }
    sides.sort_by(|a, b| b.0.total_cmp(&a.0));
    let [(one, a), (other, b), ..] = sides[..] else {
        panic!("both sides were taken: {ways:?}");
    };
    assert!(a != b && other > one / 2.0, "{ways:?}");
    // As often as the function was called, but for what bursts cut off.
    let calls = work.blocks[0] as f64;
    assert!(
        (0.8..1.2).contains(&((one + other) / calls)),
        "{one} and {other} of {calls}"
    );
}

#[test]
fn the_caller_is_the_function_of_the_call() {
    let functions = recorded_functions("call_after_inlined.c");
    let named = |name: &str| functions.iter().find(|f| f.name == name).expect("recorded");
    let (work, choose, fold) = (named("work"), named("choose"), named("fold"));
    let by = |caller: &FunctionProfile| -> f64 {
        let paths = work.called.iter().filter(|c| c.caller.id == caller.id);
        paths.map(|c| c.count).sum()
    };
    let calls = work.blocks[0] as f64;
    assert_eq!(by(fold), 0.0, "the inlined function ended before the call");
    assert!((0.8..1.2).contains(&(by(choose) / calls)), "{} of {calls}", by(choose));
}
