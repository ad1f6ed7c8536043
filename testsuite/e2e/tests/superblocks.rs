//! Superblocks: formed where paths make a step predictable, and the same program behaviour.

use crate::support::*;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "superblocks.c";
const TAILS: &str = "tails.c";
const ALIKE: &str = "alike.c";

fn recorded(dir: &Path, more: &[&str]) -> PathBuf {
    let (binary, profile) = (dir.join("annotated"), dir.join("app.pleach"));
    let words = [flags(&["annotate"]), more.iter().map(|&m| m.to_owned()).collect()].concat();
    compile(&binary, &words, &[program(SOURCE)]);
    let mut record = Command::new(pleach());
    // Enough bursts for superblocks.
    record.args(["record", "--quiet", "--overhead", "300%", "--repeat", "10", "-o"]);
    stdout(record.arg(&profile).arg("--").arg(&binary).arg("60000"));
    profile
}

/// The flags of `use`, with options of the plugin; every function that is changed is checked.
fn with(profile: &Path, anchor: &str, options: &[&str]) -> Vec<String> {
    let mut all = flags(&["use", profile.to_str().expect("UTF-8"), "--summary", "--anchor", anchor]);
    for option in [&["-pleach-verify"], options].concat() {
        all.extend(["-Xclang", "-mllvm", "-Xclang", option].map(str::to_owned));
    }
    all
}

/// The messages of clang.
fn compile_stderr(out: &Path, words: &[String]) -> String {
    let mut clang = clang();
    let output = output(clang.arg("-O2").args(words).arg(program(SOURCE)).arg("-o").arg(out));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{clang:?}\n{stderr}");
    stderr
}

fn formed(stderr: &str) -> u32 {
    let (before, _) = stderr
        .split_once(" superblocks in ")
        .unwrap_or_else(|| panic!("{stderr}"));
    before.rsplit(' ').next().expect("a word").parse().expect("a number")
}

#[test]
fn a_branch_that_follows_another_is_copied_for_it() {
    let dir = scratch();
    let profile = recorded(dir.path(), &[]);
    let binary = dir.path().join("app");
    let mut words = with(&profile, "early", &[]);
    words.push("-Rpass=pleach".into());
    let text = compile_stderr(&binary, &words);
    assert!(formed(&text) > 0, "{text}");
    assert!(text.contains(" formed: "), "{text}");
    let plain = dir.path().join("plain");
    compile(&plain, &[] as &[&str], &[program(SOURCE)]);
    assert_eq!(run(&binary), run(&plain));
    let without = compile_stderr(&binary, &with(&profile, "early", &["-pleach-superblocks=0"]));
    assert!(!without.contains(" superblocks in "), "{without}");
    assert_eq!(run(&binary), run(&plain));
}

#[test]
fn nothing_of_markers_is_left() {
    let dir = scratch();
    let profile = recorded(dir.path(), &[]);
    let mut command = clang();
    command.args(["-O2", "-S", "-emit-llvm", "-o", "-"]);
    let ir = stdout(command.args(with(&profile, "early", &[])).arg(program(SOURCE)));
    for left in ["#dbg_label", "pleach.marked", "pleach-duplicated"] {
        assert!(!ir.contains(left), "{left} in\n{ir}");
    }
}

#[test]
fn markers_change_no_code() {
    let dir = scratch();
    for source in [ALIKE, SOURCE] {
        let profile = crate::support::recorded(source, dir.path());
        // No superblock has such a gain.
        let [without, with] = ["-pleach-superblocks=0", "-pleach-superblock-min-gain=1e9"].map(|option| {
            let mut command = clang();
            command.args(["-O2", "-S", "-emit-llvm", "-o", "-"]);
            let ir = stdout(
                command
                    .args(crate::support::with(&profile, &[option]))
                    .arg(program(source)),
            );
            assert!(ir.contains("!pleach.paths"), "{source}: no path was recorded");
            without_metadata(&ir)
        });
        assert_eq!(with, without, "{source}");
    }
}

/// The instructions of a module, without what is attached to them.
fn without_metadata(ir: &str) -> Vec<String> {
    let is_code = |line: &&str| !line.starts_with(['!', ';']) && !line.starts_with("attributes");
    let code = |line: &str| {
        line.split(" !")
            .next()
            .map(|code| code.trim_end_matches(',').to_owned())
    };
    ir.lines().filter(is_code).filter_map(code).collect()
}

#[test]
fn aggressive_superblocks_compute_the_same_everywhere() {
    let dir = scratch();
    let binary = dir.path().join("app");
    let plain = dir.path().join("plain");
    for anchor in ["early", "late"] {
        for source in [SOURCE, "loops.c", "shapes.c"] {
            compile(&plain, &["-O0"], &[program(source)]);
            for level in ["-O1", "-O2", "-O3", "-Os"] {
                for stage in ["0", "1", "2"] {
                    let stage = format!("-pleach-superblock-stage={stage}");
                    let options = [
                        "-pleach-random=7",
                        "-pleach-superblocks-aggressive",
                        "-pleach-verify",
                        &stage,
                    ];
                    let mut words = flags(&["annotate", "--anchor", anchor]);
                    for option in options {
                        words.extend(["-Xclang", "-mllvm", "-Xclang", option].map(str::to_owned));
                    }
                    words.push(level.into());
                    compile(&binary, &words, &[program(source)]);
                    assert_eq!(run(&binary), run(&plain), "{source} {level} {anchor} {stage}");
                }
            }
        }
    }
}

#[test]
fn link_time_optimisation_takes_them_too() {
    let dir = scratch();
    let profile = recorded(dir.path(), &["-flto", "-fuse-ld=lld"]);
    let (binary, plain) = (dir.path().join("app"), dir.path().join("plain"));
    compile(&plain, &["-O0"], &[program(SOURCE)]);
    for lto in ["-flto", "-flto=thin"] {
        let mut words = with(&profile, "early", &[]);
        words.extend([lto, "-fuse-ld=lld"].map(str::to_owned));
        let text = compile_stderr(&binary, &words);
        assert!(formed(&text) > 0, "{text}");
        assert_eq!(run(&binary), run(&plain), "{lto}");
    }
}

#[test]
fn calls_that_return_at_once_stay_jumps() {
    let dir = scratch();
    let (annotated, profile) = (dir.path().join("annotated"), dir.path().join("app.pleach"));
    compile(&annotated, &flags(&["annotate"]), &[program(TAILS)]);
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--overhead", "300%", "--repeat", "10", "-o"]);
    stdout(record.arg(&profile).arg("--").arg(&annotated).arg("60000"));
    let emit = |how: &[&str]| {
        let mut command = clang();
        command.args(["-O2", "-S", "-o", "-"]).args(how);
        stdout(
            command
                .args(with(&profile, "early", &["-pleach-superblocks-aggressive"]))
                .arg(program(TAILS)),
        )
    };
    let ir = emit(&["-emit-llvm"]);
    let lines: Vec<&str> = ir.lines().collect();
    let calls = |callee: &str| lines.windows(2).filter(|l| l[0].contains(callee)).collect::<Vec<_>>();
    let callees = ["tail call i32 @odd(", "tail call i32 @even("];
    for callee in callees {
        let found = calls(callee);
        let returns = |l: &&[&str]| l[1].trim_start().starts_with("ret ");
        assert!(
            found.iter().any(returns),
            "{callee} is not followed by a return in\n{ir}"
        );
    }
    let assembly = emit(&[]);
    for callee in ["odd", "even"] {
        let jump = assembly
            .lines()
            .filter(|l| l.contains("TAILCALL") && l.contains(callee))
            .count();
        assert_eq!(jump, 1, "{callee} in\n{assembly}");
    }
}
