//! Interpreters with computed gotos: code generation leaves as many dispatches as without a profile.

use crate::support::*;
use pleach_annotate::binary::Binary;
use pleach_annotate::code::{Transfer, instruction_at, is_padding};
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

/// Whether the block of `run` that jumps through a table is put in the second half of a line.
#[cfg(target_arch = "x86_64")]
fn is_placed(flags: &[String]) -> bool {
    let mut clang = clang();
    clang.args(["-O2", "-S", "-o", "-"]).args(flags);
    let assembly = stdout(clang.arg(program("switch_dispatch.c")));
    let body = assembly.split("\nrun:").nth(1).expect("run is there");
    let before = body.split("jmpq\t*").next().expect("a jump");
    before.contains(".p2align\t6") && before.contains("#APP")
}

/// LLVM aligns it to 16 bytes or not at all, so that one of four dispatches or more crosses a line of 64.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_switch_in_a_loop_lies_in_the_second_half_of_a_line() {
    let dir = scratch();
    let profile = counted_profile(dir.path(), &["switch_dispatch.c"], &[]);
    assert!(is_placed(&with(&profile, &[])));
    assert!(!is_placed(&with(&profile, &["-pleach-align-loops=0"])));
    let own = [with(&profile, &[]), vec!["-falign-loops=8".to_owned()]].concat();
    assert!(!is_placed(&own));

    // The machine code, too, and LLVM's checker agrees.
    let built = dir.path().join("built");
    let checked = ["-mllvm", "-verify-machineinstrs"].map(str::to_owned).to_vec();
    compile(
        &built,
        &[with(&profile, &[]), checked].concat(),
        &[program("switch_dispatch.c")],
    );
    let binary = Binary::open(&built).expect("a program");
    let symbol = binary
        .symbols
        .iter()
        .find(|symbol| symbol.name == "run")
        .expect("run is there");
    let mut at = symbol.address;
    let jump = loop {
        let instruction = instruction_at(&binary, at).expect("an instruction");
        if instruction.transfer == Transfer::IndirectJump {
            break instruction;
        }
        at = instruction.next();
    };
    assert!((40..64).contains(&(jump.address.0 % 64)), "{jump:?}");
    // Nothing is executed after it in the line.
    at = jump.next();
    while at.0 % 64 != 0 && at.0 < symbol.address.0 + symbol.size {
        let instruction = instruction_at(&binary, at).expect("an instruction");
        assert!(is_padding(&binary, &instruction), "{instruction:?}");
        at = instruction.next();
    }

    let mut remarks = clang();
    remarks
        .args(["-O2", "-Rpass=pleach", "-c", "-o", "/dev/null"])
        .args(with(&profile, &[]));
    let out = output(remarks.arg(program("switch_dispatch.c")));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        text.contains("remark: dispatch placed in the second half of a line [-Rpass=pleach]"),
        "{text}"
    );
    computes_the_same("switch_dispatch.c", &[&[]], &["1000"]);
}
