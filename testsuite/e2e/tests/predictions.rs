//! Mispredicted branches: how they are found, and their if-conversion.

use crate::support::*;
use pleach_analysis::prediction::predict;
use pleach_analysis::program::Program;
use pleach_analysis::time_bias::Weights;
use pleach_annotate::find::Finder;
use pleach_collector::vector::{BranchFacts, EventId, HardwareSample, Prediction, VectorSet};
use pleach_profile::file::ProfileFile;
use pleach_profile::{BranchPrediction, Profile};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Annotates, records and returns (annotated binary, profile with its vectors).
fn record(dir: &Path) -> (PathBuf, PathBuf) {
    record_program(dir, "predictions.c")
}

fn record_program(dir: &Path, source: &str) -> (PathBuf, PathBuf) {
    let (binary, profile) = (dir.join("annotated"), dir.join("app.pleach"));
    compile(&binary, &flags(&["annotate"]), &[program(source)]);
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--keep-vectors", "--overhead", "30%", "-o"]);
    stdout(record.arg(&profile).arg("--").arg(&binary));
    (binary, profile)
}

fn read(profile: &Path) -> Profile {
    ProfileFile::open(profile)
        .and_then(|file| file.read_all())
        .expect("a profile")
}

/// The branch of a function that goes both ways often.
fn branch(profile: &Profile, function: &str) -> BranchPrediction {
    let function = profile.functions.iter().find(|f| f.name == function).expect("known");
    let often = |p: &&BranchPrediction| p.mispredicted > p.watched / 100.0;
    *function
        .predictions
        .iter()
        .find(often)
        .unwrap_or(&function.predictions[0])
}

fn rate(of: &BranchPrediction) -> f64 {
    of.mispredicted / of.watched
}

#[test]
fn chance_is_told_from_turns() {
    let dir = scratch();
    let (_, profile) = record(dir.path());
    let profile = read(&profile);
    let [chance, turns, calls] = ["by_chance", "by_turns", "between_calls"].map(|name| branch(&profile, name));
    assert!(
        chance.low / chance.watched > 0.4 && rate(&chance) < 0.6,
        "{chance:?} of {profile:#?}"
    );
    assert!(rate(&turns) < 0.05, "{turns:?}");
    assert!(rate(&calls) < 0.05, "{calls:?}");
}

/// One way of the branch has a probe in the annotated machine code, the rarer one.
#[test]
fn what_is_seen_in_one_direction_says_nothing_of_the_other() {
    let dir = scratch();
    let (_, profile) = record_program(dir.path(), "gaps.c");
    let profile = read(&profile);
    let prediction = branch(&profile, "is_third");
    assert!(rate(&prediction) < 0.3, "{prediction:?}");
}

#[test]
fn processors_know_better() {
    let dir = scratch();
    let (_, profile) = record(dir.path());
    let file = ProfileFile::open(&profile).expect("a profile");
    let bytes = file.vectors().expect("readable").expect("kept");
    let mut vectors = VectorSet::from_bytes(bytes).expect("vectors");
    let program = Program::read(&vectors.modules, &Finder::default());
    let id = |name| {
        let profile = read(&profile);
        let function = profile.functions.into_iter().find(|f| f.name == name);
        function.map(|f| (f.id, f.cfg_hash)).expect("known")
    };
    let [chance, turns] = ["by_chance", "by_turns"].map(id);
    let mut told = |prediction| {
        for burst in &mut vectors.bursts {
            let facts = BranchFacts { prediction, cycles: 0 };
            burst.hardware = Some(Box::new(HardwareSample {
                event: EventId(0),
                ip: burst.branches[0].from,
                facts: burst.branches.iter().map(|_| facts).collect(),
            }));
        }
        let all = predict(&program, &vectors, &Weights::equal());
        [chance, turns].map(|id| all[&id].iter().map(rate).fold(0.0, f64::max))
    };
    let model = told(Prediction::Unknown);
    assert!(model[0] > 0.4 && model[1] < 0.05, "{model:?}");
    // Only taken branches are told of; what the others do, the model says.
    let always = told(Prediction::Predicted);
    assert!((0.15..0.35).contains(&always[0]), "{always:?}");
    let never = told(Prediction::Mispredicted);
    assert!(never[1] > 0.4, "{never:?}");
}

#[test]
fn selects_replace_what_is_mispredicted_and_nothing_else() {
    let dir = scratch();
    let (annotated, profile) = record(dir.path());
    let flags = flags(&["use", profile.to_str().expect("UTF-8")]);
    let ir = |more: &[&str]| {
        let mut clang = clang();
        clang
            .args(["-O2", "-S", "-emit-llvm", "-o", "-"])
            .args(&flags)
            .args(more);
        stdout(clang.arg(program("predictions.c")))
    };
    let selects = |ir: &str, function: &str| {
        let head = format!("@{function}(");
        let functions = ir
            .split("\ndefine ")
            .find(|f| f.lines().next().is_some_and(|l| l.contains(&head)));
        functions.expect("defined").matches(" select ").count()
    };
    let all = ir(&[]);
    assert!(selects(&all, "by_chance") > 0, "{all}");
    assert_eq!(
        [selects(&all, "by_turns"), selects(&all, "between_calls")],
        [0, 0],
        "{all}"
    );
    let without = ir(&["-Xclang", "-mllvm", "-Xclang", "-pleach-if-conversion=0"]);
    assert_eq!(selects(&without, "by_chance"), 0, "{without}");

    let used = dir.path().join("used");
    compile(&used, &flags, &[program("predictions.c")]);
    for rounds in ["0", "1", "1000"] {
        let of = |binary| stdout(Command::new(binary).arg(rounds));
        assert_eq!(of(&used), of(&annotated));
    }
}

/// The branch has no block in the annotated machine code, but a jump that code generation made of its selects.
#[test]
fn selects_that_are_mispredicted_stay_selects() {
    let dir = scratch();
    let (_, profile) = record_program(dir.path(), "searches.c");
    let read = read(&profile);
    // The loop's own branch is seldom mispredicted.
    let [chance, turns] = ["by_chance", "in_turn"].map(|name| {
        let function = read.functions.iter().find(|f| f.name == name).expect("known");
        let worst = function.predictions.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)));
        *worst.expect("predicted")
    });
    assert!(chance.low / chance.watched > 0.35, "{chance:?}");
    assert!(rate(&turns) < 0.15, "{turns:?}");
    let built = |flags: &[String]| {
        let mut clang = clang();
        clang.args(["-O2", "-S", "-o", "-"]).args(flags);
        stdout(clang.arg(program("searches.c")))
    };
    let selects = |assembly: &str, function: &str| {
        let start = assembly.find(&format!("\n{function}:")).expect("defined");
        let end = assembly[start..].find(".cfi_endproc").expect("ends");
        assembly[start..][..end].matches("\tcmov").count()
    };
    let used = built(&flags(&["use", profile.to_str().expect("UTF-8")]));
    assert!(selects(&used, "by_chance") >= 2, "{used}");
    for function in ["by_chance", "in_turn"] {
        assert_eq!(selects(&built(&[]), function), 0);
    }
    assert_eq!(selects(&used, "in_turn"), 0, "{used}");
}
