//! Each transformation alone: `opt` runs one pass on the IR of a case, and the result is what the case expects.
//!
//! A case is one file of `cases/`: comment lines that say what it shows, a line `; opt: …` with the flags, the IR, and
//! behind the line `; expected:` the output, as comments. LLVM's verifier runs after each pass. `BLESS=1 cargo test -p
//! pleach-e2e opt_cases` writes the expectations.

use crate::support::built;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FLAGS: &str = "; opt: ";
const EXPECTED: &str = "; expected:";

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let files = fs::read_dir(&folder).expect("the folder of cases");
    let mut cases: Vec<PathBuf> = files.map(|file| file.expect("a case").path()).collect();
    cases.retain(|path| path.extension().is_some_and(|extension| extension == "ll"));
    cases.sort();
    cases
}

/// The output of `opt` for a case: remarks and errors first, then the IR without paths of files.
fn transformed(case: &Path, flags: &str) -> String {
    let mut opt = Command::new("opt-22");
    opt.arg("-load-pass-plugin")
        .arg(built().join("libpleach_pass.so"))
        .args(["-S", "-verify-each", "-o", "-"])
        .args(flags.split_whitespace())
        .arg(case.file_name().expect("a file"))
        // Names of files get into debug information.
        .current_dir(case.parent().expect("a folder"));
    let output = opt.output().expect("opt-22 runs");
    let ir = String::from_utf8(output.stdout).expect("UTF-8");
    let mut text = String::from_utf8(output.stderr).expect("UTF-8");
    let ir = ir.lines().filter(|line| {
        !line.starts_with("; ModuleID") && !line.starts_with("source_filename") && !line.starts_with("target ")
    });
    ir.for_each(|line| {
        let _ = writeln!(text, "{line}");
    });
    text
}

/// The text as comment lines.
fn commented(text: &str) -> String {
    let lines = text.trim().lines();
    lines.fold(format!("{EXPECTED}\n"), |mut out, line| {
        let _ = writeln!(out, "{}", format!("; {line}").trim_end());
        out
    })
}

#[test]
fn every_pass_does_alone_what_its_cases_expect() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = String::new();
    let cases = cases();
    assert!(cases.len() >= 10, "cases are missing");
    for case in cases {
        let text = fs::read_to_string(&case).expect("a readable case");
        let flags = text.lines().find_map(|line| line.strip_prefix(FLAGS));
        let flags = flags.unwrap_or_else(|| panic!("{}: no line '{FLAGS}…'", case.display()));
        let (input, expected) = text.split_once(EXPECTED).unwrap_or((&text, ""));
        let now = commented(&transformed(&case, flags));
        if bless {
            fs::write(&case, format!("{}\n\n{now}", input.trim_end())).expect("a writable case");
        } else if now.trim() != format!("{EXPECTED}{expected}").trim() {
            let _ = writeln!(wrong, "{}:\n{now}", case.display());
        }
    }
    assert!(wrong.is_empty(), "BLESS=1 accepts what is new:\n{wrong}");
}
