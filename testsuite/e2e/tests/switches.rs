//! Switches that compare with frequent cases before their tables, and the same program behaviour.

use crate::support::*;
use std::process::Command;

const SOURCE: &str = "switches.c";

#[test]
fn what_is_not_predicted_is_compared_first() {
    let dir = scratch();
    let profile = recorded(SOURCE, dir.path());
    let ir = |words: Vec<String>| {
        let mut clang = clang();
        clang.args(["-O2", "-S", "-emit-llvm", "-o", "-"]);
        stdout(clang.args(words).arg(program(SOURCE)))
    };
    // Cases that are left in the switches of a function.
    let cases = |ir: &str, function: &str| text(ir, function).matches(", label %").count();
    let with_option = |option: &str| ir(with(&profile, &[option]));
    let (used, without) = (with_option("-pleach-summary"), with_option("-pleach-switches=0"));
    for function in ["by_chance", "scan"] {
        let (left, all) = (
            text(&used, function).matches("icmp eq i8").count(),
            text(&without, function).matches("icmp eq i8").count(),
        );
        assert!(left > all, "{function}: {}", text(&used, function));
    }
    assert!(without.contains("switch i8"), "{without}");
    assert_eq!(
        cases(&used, "in_turn"),
        cases(&without, "in_turn"),
        "{}",
        text(&used, "in_turn")
    );
    let shown = stdout(Command::new(pleach()).args(["show", "--text"]).arg(&profile));
    assert!(shown.contains("switch_predictions"), "{shown}");
}

#[test]
fn the_program_computes_the_same() {
    let options = [&[][..], &["-pleach-if-conversion-aggressive"]];
    computes_the_same(SOURCE, &options, &["0", "1", "9"]);
}
