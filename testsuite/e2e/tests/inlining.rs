//! What is inlined, and in which order.

use crate::support::*;
use std::path::Path;

/// What the inliner says of the calls of `callee` in `caller`, in its order.
fn remarks(profile: &Path, options: &[&str], source: &str, callee: &str, caller: &str) -> Vec<String> {
    let mut command = clang();
    command.args(["-O2", "-S", "-o", "/dev/null", "-Rpass=inline", "-Rpass-missed=inline"]);
    let out = output(command.args(with(profile, options)).arg(program(source)));
    assert!(out.status.success());
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    let [done, missed] = ["", "not "].map(|not| format!("'{callee}' {not}inlined into '{caller}'"));
    let about = stderr
        .lines()
        .filter(|line| line.contains(&done) || line.contains(&missed));
    let about: Vec<String> = about.map(str::to_owned).collect();
    assert!(!about.is_empty(), "{callee} in {caller}: {stderr}");
    about
}

#[test]
fn small_callees_are_inlined_before_the_inliner_knows_the_profile() {
    let dir = scratch();
    let profile = recorded("small_callees.c", dir.path());
    // The inliner's threshold for such code, with and without its bonus for a single block; a profile raises it.
    let is_early = |remark: &String| remark.contains("threshold=75)") || remark.contains("threshold=112)");
    let first = |first: &str, callee: &str, caller: &str| {
        let option = format!("-pleach-small-callees-first={first}");
        remarks(&profile, &[&option], "small_callees.c", callee, caller)
    };
    for callee in ["fold", "larger"] {
        let late = first("0", callee, "run");
        assert!(!late.iter().any(is_early), "{late:?}");
        let early = first("1", callee, "run");
        assert!(
            early.iter().all(|r| is_early(r) && !r.contains("not inlined")),
            "{early:?}"
        );
    }
    let only = first("1", "only", "run");
    assert!(!only.iter().any(is_early), "{only:?}");
    // Where nothing was executed, what is larger than a call has to wait.
    let unsampled = first("1", "larger", "never");
    assert!(
        unsampled[0].contains("not inlined") && !is_early(&unsampled[0]),
        "{unsampled:?}"
    );
    // Marks of ours do not stay, nor what was only for a while.
    let mut command = clang();
    command.args(["-O2", "-S", "-emit-llvm", "-o", "-"]);
    let ir = stdout(command.args(with(&profile, &[])).arg(program("small_callees.c")));
    assert!(!ir.contains("pleach-hot") && !ir.contains("pleach-inline-later"));
}

/// LLVM subtracts the count of a call that it inlines from the callee's entries. What is left is not cold: another call
/// still executes it.
#[test]
fn a_callee_with_fewer_entries_than_calls_is_not_cold_after_the_first_is_inlined() {
    let dir = scratch();
    let profile = counted_profile(dir.path(), &["two_calls.c"], &[]);
    edit_profile(&profile, |read| {
        let mix = read.functions.iter_mut().find(|f| f.name == "mix").expect("counted");
        mix.blocks
            .iter_mut()
            .chain(&mut mix.edges)
            .for_each(|count| *count /= 2);
    });
    let about = remarks(&profile, &[], "two_calls.c", "mix", "run");
    let is_inlined = |remark: &&String| !remark.contains("not inlined");
    assert_eq!(about.iter().filter(is_inlined).count(), 2, "{about:#?}");
}

/// LLVM does not inline a function that calls itself. One that mostly returns without recursion gets no callee that
/// leads back to it.
#[test]
fn rare_recursion_does_not_keep_a_hot_function_from_being_inlined() {
    let dir = scratch();
    let profile = counted_profile(dir.path(), &["recursive_calls.c"], &[]);
    let about = |value: &str, callee: &str, caller: &str| {
        let option = format!("-pleach-keep-recursive-calls={value}");
        remarks(&profile, &[&option], "recursive_calls.c", callee, caller).join("\n")
    };
    let recursive = about("0", "possible", "main");
    assert!(recursive.contains("(cost=never): recursive"), "{recursive}");
    let kept = about("1", "elsewhere", "possible");
    assert!(kept.contains("noinline call site attribute"), "{kept}");
    let inlined = about("1", "possible", "main");
    assert!(inlined.contains("'possible' inlined into 'main'"), "{inlined}");
}
