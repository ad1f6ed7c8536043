//! If-conversion of unpredictable branches around memory accesses, and the same program behaviour.

use crate::support::*;
use std::fs;
use std::process::Command;

const SOURCE: &str = "if_conversion.c";
const DONE_WITHOUT: [&str; 10] = [
    "adds", "follows", "either", "differs", "flag", "wide", "real", "narrow", "within", "both",
];
/// Its arms cost about as much on predictable input as they gain, so that the recording decides.
const ON_THE_EDGE: &str = "deep";
const KEPT: [&str; 3] = ["keeps_volatile", "keeps_atomic", "keeps_division"];
/// Where processors move no such values by a condition.
#[cfg(target_arch = "x86_64")]
const KEPT_WHERE_UNMOVED: &[&str] = &["keeps_real", "keeps_lanes"];
#[cfg(not(target_arch = "x86_64"))]
const KEPT_WHERE_UNMOVED: &[&str] = &[];

/// Its conditional branches in LLVM IR.
fn branches(ir: &str, function: &str) -> usize {
    text(ir, function).matches("br i1 ").count()
}

#[test]
fn both_arms_are_executed_where_that_is_legal() {
    let dir = scratch();
    let profile = recorded(SOURCE, dir.path());
    let ir = |more: &[&str]| {
        let mut clang = clang();
        clang.args(["-O2", "-S", "-emit-llvm", "-o", "-"]);
        stdout(clang.args(with(&profile, more)).arg(program(SOURCE)))
    };
    let (all, without) = (ir(&[]), ir(&["-pleach-if-conversion=0"]));
    for function in DONE_WITHOUT {
        assert_eq!(branches(&all, function), 0, "{function}: {}", text(&all, function));
        assert!(branches(&without, function) > 0, "{}", text(&without, function));
    }
    assert_eq!(branches(&all, "joins"), 1, "{}", text(&all, "joins"));
    assert_eq!(branches(&without, "joins"), 2, "{}", text(&without, "joins"));
    let aggressive = ir(&["-pleach-if-conversion-aggressive"]);
    assert_eq!(
        branches(&aggressive, ON_THE_EDGE),
        0,
        "{}",
        text(&aggressive, ON_THE_EDGE)
    );
    for function in KEPT.iter().chain(KEPT_WHERE_UNMOVED) {
        assert!(branches(&all, function) > 0, "{}", text(&all, function));
    }
    // A pointer in a register cannot be selected. The stored value can, where simplification leaves one store for
    // both arms.
    let late = ir(&["-pleach-small-callees-first=0"]);
    assert!(branches(&late, "keeps_error") > 0, "{}", text(&late, "keeps_error"));
    let error = text(&all, "keeps_error");
    let chooses = |line: &str| line.contains(" select ") || line.contains(" phi ");
    let register = |line: &str| line.contains("ptr %1,") || line.ends_with("ptr %1");
    assert!(!error.lines().any(|line| chooses(line) && register(line)), "{error}");
    // For another recording, annotated code has the branches that it had.
    let again = ir(&["-pleach-annotate"]);
    for function in DONE_WITHOUT {
        assert!(branches(&again, function) > 0, "{}", text(&again, function));
    }
}

/// Conditional jumps of a function, in assembly.
#[cfg(target_arch = "x86_64")]
fn jumps(assembly: &str, function: &str) -> usize {
    let start = format!("\n{function}:");
    let body = &assembly[assembly.find(&start).expect("no such function") + start.len()..];
    let body = &body[..body.find(".cfi_endproc").expect("it has no end")];
    let is_jump = |line: &&str| line.starts_with("\tj") && !line.starts_with("\tjmp");
    body.lines().filter(is_jump).count()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn selects_are_no_branches_in_the_end() {
    let dir = scratch();
    let profile = recorded(SOURCE, dir.path());
    let assembly = |more: &[&str]| {
        let mut clang = clang();
        clang.args(["-O2", "-S", "-o", "-"]).args(more);
        stdout(clang.args(with(&profile, &[])).arg(program(SOURCE)))
    };
    let baseline = assembly(&[]);
    for function in DONE_WITHOUT {
        assert_eq!(jumps(&baseline, function), 0, "{function}");
    }
    // Code generation does not split it again.
    assert_eq!(jumps(&baseline, "joins"), 1);
    // No instruction of this processor selects such a value, but one selects the address that is stored to.
    for function in KEPT_WHERE_UNMOVED {
        assert_eq!(jumps(&baseline, function), 1, "{function}");
    }
    assert_eq!(jumps(&baseline, "real_either"), 0);
    let masks = assembly(&["-mavx512f"]);
    for function in ["keeps_real", "real_either"] {
        assert_eq!(jumps(&masks, function), 0, "{function}");
    }
    assert_eq!(jumps(&masks, "keeps_lanes"), 1);
}

#[test]
fn the_program_computes_the_same() {
    let options = [
        &[][..],
        &["-pleach-superblocks=0"],
        &["-pleach-superblocks-aggressive"],
        &["-pleach-if-conversion-aggressive"],
    ];
    computes_the_same(SOURCE, &options, &["0", "1", "2", "1000", "100003"]);
}

#[test]
fn sanitizers_see_every_access() {
    let dir = scratch();
    let profile = recorded(SOURCE, dir.path());
    for sanitizer in ["address", "undefined", "type"] {
        let checked = dir.path().join(sanitizer);
        let flag = format!("-fsanitize={sanitizer}");
        let words = [with(&profile, &[]), vec![flag, "-fno-sanitize-recover=all".into()]].concat();
        compile(&checked, &words, &[program(SOURCE)]);
        let out = output(Command::new(&checked).arg("1000"));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
}

/// C11, 5.1.2.4: a compiler adds no access to memory that another thread may write.
#[test]
fn no_race_is_added() {
    const OWNERS: &str = "owners.c";
    let dir = scratch();
    let profile = recorded(OWNERS, dir.path());
    let ir = |flags: &[String]| {
        let mut clang = clang();
        clang.args(["-O2", "-S", "-emit-llvm", "-o", "-"]).args(flags);
        stdout(clang.arg(program(OWNERS)))
    };
    // Functions that are compiled for the sanitizer have no such branches replaced: it gets the finished code.
    let races = |name: &str, ir: &str| {
        let [finished, binary] = ["ll", "out"].map(|kind| dir.path().join(name).with_extension(kind));
        let checked = |line: &str| match line.starts_with("attributes #") {
            true => line.replacen('{', "{ sanitize_thread", 1),
            false => line.to_owned(),
        };
        let lines: Vec<_> = ir.lines().map(checked).collect();
        fs::write(&finished, lines.join("\n")).expect("a file");
        compile(&binary, &["-O0", "-w", "-fsanitize=thread", "-pthread"], &[finished]);
        let out = output(Command::new(&binary).arg("20000"));
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.success(), said.is_empty(), "{said}");
        said
    };
    let guided = ir(&with(&profile, &[]));
    for function in ["adds", "reads", "either", "differs"] {
        assert_eq!(branches(&guided, function), 0, "{}", text(&guided, function));
    }
    assert_eq!(races("guided", &guided), "");
    // It would see one.
    let added = races("added", &ir(&["-DEVERY_CELL".to_owned()]));
    assert!(added.contains("WARNING: ThreadSanitizer: data race"), "{added}");
}

/// Code generation would make branches of weighted selects, and test joined conditions twice.
#[test]
fn joined_conditions_are_left_to_instruction_selection() {
    let is_weighted = |option: &str| {
        let mut clang = clang();
        clang.args(["-O2", "-S", "-emit-llvm", "-o", "-"]);
        clang.arg(format!("-fpass-plugin={}", built().join("libpleach_pass.so").display()));
        for option in ["-pleach-random=4", option] {
            clang.args(["-Xclang", "-mllvm", "-Xclang", option]);
        }
        let ir = stdout(clang.arg(program("conditions.ll")));
        let select = ir.lines().find(|line| line.contains("select i1 %a, i1 %b, i1 false"));
        select.expect("a select").contains("!prof")
    };
    assert!(is_weighted("-pleach-unweight-logical-selects=0"));
    assert!(!is_weighted("-pleach-unweight-logical-selects=1"));
}
