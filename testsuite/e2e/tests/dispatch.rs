//! Interpreters with computed gotos: code generation leaves as many dispatches as without a profile.

use crate::support::*;
use std::process::Command;

const SOURCE: &str = "dispatch.c";

/// Jumps through a register or memory of the interpreter's function.
fn dispatches(flags: &[String]) -> usize {
    let mut clang = clang();
    clang.args(["-O2", "-S", "-o", "-"]).args(flags).arg(program(SOURCE));
    let assembly = stdout(&mut clang);
    let body = assembly.split("\nrun:").nth(1).expect("run is there");
    let body = body.split(".cfi_endproc").next().expect("it ends");
    body.lines()
        .filter(|line| line.trim_start().starts_with("jmpq\t*"))
        .count()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_profile_costs_no_dispatches() {
    let dir = scratch();
    let profile = recorded(SOURCE, dir.path());
    let plain = dispatches(&[]);
    assert!(plain > 20, "{plain}");
    let options: [&[&str]; 4] = [
        &[],
        &["-pleach-placement=0"],
        &["-pleach-superblocks=0"],
        &["-pleach-placement=0", "-pleach-superblocks=0"],
    ];
    for options in options {
        let used = dispatches(&with(&profile, options));
        assert!(used >= plain, "{options:?}: {used} of {plain}");
    }
    // The user's options take precedence.
    let merging = [
        with(&profile, &[]),
        ["-mllvm", "-tail-merge-size=3"].map(str::to_owned).to_vec(),
    ]
    .concat();
    assert!(dispatches(&merging) <= dispatches(&with(&profile, &[])));
    let used = dir.path().join("used");
    compile(&used, &with(&profile, &[]), &[program(SOURCE)]);
    assert_eq!(run(&used), stdout(&mut Command::new(dir.path().join("annotated"))));
}

/// Whether the block of `run` that jumps through a table is aligned to 32 bytes.
#[cfg(target_arch = "x86_64")]
fn is_aligned(flags: &[String]) -> bool {
    let mut clang = clang();
    clang.args(["-O2", "-S", "-o", "-"]).args(flags);
    let assembly = stdout(clang.arg(program("switch_dispatch.c")));
    let body = assembly.split("\nrun:").nth(1).expect("run is there");
    let before = body.split("jmpq\t*").next().expect("text");
    before.contains(".p2align\t5")
}

/// LLVM aligns it to 16 bytes or not at all, so that one of four dispatches or more crosses a line of 64.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_switch_in_a_loop_begins_at_a_fetch_window() {
    let dir = scratch();
    let profile = counted_profile(dir.path(), &["switch_dispatch.c"], &[]);
    assert!(is_aligned(&with(&profile, &[])));
    assert!(!is_aligned(&with(&profile, &["-pleach-align-loops=0"])));
    let own = [with(&profile, &[]), vec!["-falign-loops=8".to_owned()]].concat();
    assert!(!is_aligned(&own));
    let mut remarks = clang();
    remarks
        .args(["-O2", "-Rpass=pleach", "-c", "-o", "/dev/null"])
        .args(with(&profile, &[]));
    let out = output(remarks.arg(program("switch_dispatch.c")));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        text.contains("remark: dispatch aligned to 32 bytes [-Rpass=pleach]"),
        "{text}"
    );
    computes_the_same("switch_dispatch.c", &[&[]], &["1000"]);
}
