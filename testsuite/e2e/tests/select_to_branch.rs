//! Select-to-branch on loop-carried chains, and the same program behaviour.

use crate::support::*;

const SOURCE: &str = "select_to_branch.c";

/// Selects of a function, in LLVM IR.
fn selects(ir: &str, function: &str) -> usize {
    text(ir, function).matches(" = select i1 ").count()
}

#[test]
fn a_search_branches_where_a_comparison_has_a_long_latency() {
    let dir = scratch();
    let profile = recorded(SOURCE, dir.path());
    let ir = |words: Vec<String>| {
        let mut clang = clang();
        clang.args(["-O2", "-S", "-emit-llvm", "-o", "-"]);
        stdout(clang.args(words).arg(program(SOURCE)))
    };
    let (branches, without) = (
        ir(with(&profile, &[])),
        ir(with(&profile, &["-pleach-select-to-branch=0"])),
    );
    assert!(selects(&without, "at_least") > 0, "{}", text(&without, "at_least"));
    assert_eq!(selects(&branches, "at_least"), 0, "{}", text(&branches, "at_least"));
    for kept in ["position", "longest"] {
        let before = selects(&without, kept);
        assert!(before > 0, "{}", text(&without, kept));
        assert_eq!(selects(&branches, kept), before, "{}", text(&branches, kept));
    }
    // Without a profile, nothing is changed.
    let plain = ir(flags(&["annotate"]));
    assert!(selects(&plain, "at_least") > 0, "{}", text(&plain, "at_least"));
}

#[test]
fn the_program_computes_the_same() {
    let options = [
        &[][..],
        &["-pleach-superblocks-aggressive"],
        &["-pleach-if-conversion-aggressive"],
    ];
    computes_the_same(SOURCE, &options, &["0", "1", "1000", "100003"]);
}
