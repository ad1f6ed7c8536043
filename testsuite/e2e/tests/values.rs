//! Values of operands: lengths of memory operations, and divisors.

use crate::profile::{function, ir, record, show, use_flags};
use crate::support::*;
use serde_json::Value;
use std::process::Command;

/// The body of a function of LLVM IR.
fn body<'i>(ir: &'i str, name: &str) -> &'i str {
    let start = format!("@{name}(");
    let mut bodies = ir.split("define ");
    bodies
        .find(|body| body.lines().next().is_some_and(|line| line.contains(&start)))
        .expect("the function")
}

#[test]
fn frequent_lengths_of_memory_operations_get_code_of_their_own() {
    let dir = scratch();
    let (binary, profile) = record(dir.path(), &["lengths.c"]);
    // Real execution, one instruction after the other.
    let stepped = dir.path().join("stepped.pleach");
    stdout(
        Command::new(pleach())
            .args(["record", "--engine", "step", "--overhead", "1000%", "-o"])
            .arg(&stepped)
            .arg("--")
            .arg(&binary),
    );
    for profile in [&profile, &stepped] {
        let shown = show(profile);
        let lengths = |name: &str| {
            let operations = function(&shown, name)["memory_operations"].as_array().expect("a list");
            let lengths = operations
                .iter()
                .flat_map(|operation| operation["lengths"].as_array().expect("a list"));
            let pair = |length: &Value| {
                let share = length["probability"].as_f64().expect("a share");
                (length["length"].as_u64().expect("a length"), share)
            };
            lengths.map(pair).collect::<Vec<_>>()
        };
        for (name, frequent) in [("copy", 8), ("clear", 16), ("compare", 4)] {
            let (length, share) = lengths(name)[0];
            // The truth is 15/16.
            assert!(
                length == frequent && (0.85..0.99).contains(&share),
                "{name}: {:?}",
                lengths(name)
            );
        }
        assert!(lengths("various").len() == 16 && lengths("various")[0].1 < 0.1);
    }

    let ir = ir(&profile, "lengths.c");
    let of = |name: &str| body(&ir, name);
    assert!(
        of("copy").contains("store i64") && of("copy").contains("llvm.memcpy"),
        "{ir}"
    );
    assert!(
        of("clear").contains("i64 16, i1 false") && of("clear").contains("llvm.memset"),
        "{ir}"
    );
    assert!(
        of("compare").contains("i64 noundef 4)") && of("compare").contains("i64 noundef %"),
        "{ir}"
    );
    assert!(of("equal").contains("i64 4)") && of("equal").contains("@bcmp("), "{ir}");
    assert!(!of("various").contains("switch"), "{ir}");

    let optimised = dir.path().join("optimised");
    compile(&optimised, &use_flags(&profile), &[program("lengths.c")]);
    assert_eq!(run(&binary), run(&optimised));
}

#[test]
fn frequent_divisors_get_code_of_their_own() {
    let dir = scratch();
    let (binary, profile) = record(dir.path(), &["divisors.c"]);
    let shown = show(&profile);
    let divisors = |name: &str| {
        let divisions = function(&shown, name)["divisions"].as_array().expect("a list");
        let divisors = divisions
            .iter()
            .flat_map(|division| division["divisors"].as_array().expect("a list"));
        let pair = |divisor: &Value| {
            let share = divisor["probability"].as_f64().expect("a share");
            (divisor["divisor"].as_u64().expect("a divisor").cast_signed(), share)
        };
        divisors.map(pair).collect::<Vec<_>>()
    };
    for (name, frequent) in [("slot", 99_991), ("both", -60), ("after_call", 64)] {
        let all = divisors(name);
        let share = all.iter().find(|(divisor, _)| *divisor == frequent).map(|pair| pair.1);
        // The truth is 15/16; `slot` divides as often by 97.
        let expected = if name == "slot" { 0.40..0.55 } else { 0.85..0.99 };
        assert!(share.is_some_and(|share| expected.contains(&share)), "{name}: {all:?}");
    }
    assert!(divisors("various").len() >= 8 && divisors("various")[0].1 < 0.2);

    let ir = ir(&profile, "divisors.c");
    let of = |name: &str| body(&ir, name);
    assert!(
        of("both").contains("sdiv i64 %0, -60") && of("both").contains("srem i64 %0, -60"),
        "{ir}"
    );
    assert!(of("after_call").contains("udiv i32 %5, 64"), "{ir}");
    for name in ["slot", "two", "various"] {
        assert!(!of(name).contains("br i1"), "{ir}");
    }

    let optimised = dir.path().join("optimised");
    compile(&optimised, &use_flags(&profile), &[program("divisors.c")]);
    assert_eq!(run(&binary), run(&optimised));
}

/// Functions with code for each length may be too large to be inlined.
#[test]
fn lengths_get_code_of_their_own_after_inlining() {
    let dir = scratch();
    let profile = counted_profile(dir.path(), &["lengths.c"], &[]);
    let mut passes = clang();
    passes.args(["-O2", "-Xclang", "-fdebug-pass-manager", "-c", "-o", "/dev/null"]);
    let out = output(passes.args(use_flags(&profile)).arg(program("lengths.c")));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    let runs = |pass: &str| {
        text.lines()
            .enumerate()
            .filter(move |(_, line)| line.contains(pass))
            .map(|(at, _)| at)
            .collect::<Vec<_>>()
    };
    let (inlined, specialised) = (
        runs("Running pass: InlinerPass"),
        runs("Running pass: PleachSpecialiseLengthsPass"),
    );
    assert!(!inlined.is_empty() && inlined.last() < specialised.first(), "{text}");
}
