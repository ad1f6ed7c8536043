//! How code that training did not execute is compiled.

use crate::support::*;
use std::path::Path;

const SOURCE: &str = "clamp.c";

/// The IR of the function with a loop that training executes and one that it does not.
fn built(profile: &Path) -> String {
    let mut clang = clang();
    clang.args(["-O2", "-S", "-emit-llvm", "-o-"]).args(with(profile, &[]));
    let ir = stdout(clang.arg(program(SOURCE)));
    text(&ir, "clamp").to_owned()
}

#[test]
fn a_loop_that_was_not_executed_is_vectorised_as_without_a_profile() {
    let dir = scratch();
    let ir = built(&recorded(SOURCE, dir.path()));
    assert!(ir.contains(" x i16>"), "the executed loop:\n{ir}");
    assert!(ir.contains(" x i8>"), "the other loop:\n{ir}");
}

#[test]
fn exact_counts_optimise_what_was_not_executed_for_size() {
    let dir = scratch();
    let ir = built(&counted_profile(dir.path(), &[SOURCE], &[]));
    assert!(ir.contains(" x i16>"), "the executed loop:\n{ir}");
    assert!(!ir.contains(" x i8>"), "the other loop:\n{ir}");
}
