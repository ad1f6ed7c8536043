//! Profiles in the words of the source: paths as lines and calls, and counts that mean something.

use crate::support::*;
use pleach_profile::file::ProfileFile;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A profile of a program that was built with debug information.
fn record(dir: &Path, source: &str) -> (PathBuf, PathBuf) {
    let (binary, profile) = (dir.join("annotated"), dir.join("app.pleach"));
    let flags = [flags(&["annotate"]), vec!["-g".to_owned()]].concat();
    compile(&binary, &flags, &[program(source)]);
    let mut record = Command::new(pleach());
    record
        .args(["record", "--quiet", "--overhead", "100%", "-o"])
        .arg(&profile);
    stdout(record.arg("--").arg(&binary));
    (binary, profile)
}

/// Exact counts of a program that was built with debug information.
fn count(dir: &Path, source: &str) -> (PathBuf, PathBuf) {
    let (binary, counts) = (dir.join("exact"), dir.join("app.plcnt"));
    let flags = [flags(&["instrument"]), vec!["-g".to_owned()]].concat();
    compile(&binary, &flags, &[program(source)]);
    stdout(Command::new(&binary).arg("12345").env("PLEACH_COUNTS", &counts));
    (binary, counts)
}

/// Records a program that a test has built, whatever its exit status.
fn record_built(program: &Path, profile: &Path) {
    let mut record = Command::new(pleach());
    record
        .args(["record", "--quiet", "--overhead", "50%", "-o"])
        .arg(profile);
    output(record.arg("--").arg(program));
}

fn pleach_on(profile: &Path, args: &[&str]) -> String {
    stdout(Command::new(pleach()).args(args).arg(profile))
}

#[test]
fn paths_are_shown_as_lines_and_calls() {
    let dir = scratch();
    let (binary, profile) = record(dir.path(), "called.c");
    // The recorded program is found by itself.
    let paths = pleach_on(&profile, &["paths", "--function", "choose"]);
    assert!(paths.contains("▸called.c:16 → 17 → 23 → work() ■"), "{paths}");
    let report = pleach_on(&profile, &["report"]);
    assert!(report.contains("called.c:"), "{report}");
    let blocks = pleach_on(&profile, &["paths", "--blocks", "--function", "choose"]);
    assert!(blocks.contains("▸0→") && !blocks.contains("called.c"), "{blocks}");
    let called = pleach_on(&profile, &["paths", "--across-calls", "--function", "work"]);
    assert!(called.contains("called.c:16 → 17 → 23 → work()"), "{called}");
    let windows = pleach_on(&profile, &["paths", "--iterations=2", "--function", "main"]);
    assert!(windows.contains("called.c:29"), "{windows}");
    // The profile itself has the lines; only names of files and imported functions are the binary's.
    std::fs::remove_file(&binary).expect("removed");
    let paths = pleach_on(&profile, &["paths", "--function", "choose"]);
    assert!(paths.contains("▸line 16 → 17 → 23 → work() ■"), "{paths}");
}

/// At -g1 clang leaves linkage names out, which LLVM identifies calls by.
#[test]
fn lines_only_are_enough_for_calls() {
    for debug in ["-g1", "-g"] {
        let dir = scratch();
        let (binary, profile) = (dir.path().join("annotated"), dir.path().join("app.pleach"));
        let mut build = clangxx();
        build.args(["-O2", debug]).args(flags(&["annotate"]));
        stdout(build.arg(program("line_tables.cpp")).arg("-o").arg(&binary));
        record_built(&binary, &profile);
        let shown = pleach_on(&profile, &["show"]);
        let number = |what: &str| {
            let line = shown.lines().find_map(|line| line.trim().strip_prefix(what));
            line.unwrap_or_else(|| panic!("{what} in {shown}")).trim().to_owned()
        };
        assert_eq!(number("indirect calls with targets"), "1", "{debug}");
        assert_eq!(number("memory operations"), "1", "{debug}");
    }
}

#[test]
fn differences_are_shown_as_lines() {
    // Exact counts: which paths of two recordings differ beyond their intervals is a matter of chance.
    let [before, after] = [scratch(), scratch()];
    let (first_binary, first) = count(before.path(), "line_tables.c");
    let (second_binary, second) = count(after.path(), "called.c");
    let diff = |args: &[&str]| {
        let mut diff = Command::new(pleach());
        diff.arg("diff").args([&first, &second]).args(args);
        stdout(
            diff.arg("--binary")
                .arg(&first_binary)
                .arg("--binary")
                .arg(&second_binary),
        )
    };
    let lines = diff(&[]);
    assert!(
        lines.contains("line_tables.h:4") && lines.contains("called.c:"),
        "{lines}"
    );
    let blocks = diff(&["--blocks"]);
    assert!(blocks.contains("▸0→") && !blocks.contains("called.c"), "{blocks}");
}

#[test]
fn coverage_of_another_program_is_an_error() {
    let dir = scratch();
    let (_, profile) = record(dir.path(), "line_tables.c");
    let other = dir.path().join("other");
    // Without a function of a name and shape that both have.
    compile(&other, &flags(&["annotate"]), &[program("shapes.c")]);
    let mut coverage = Command::new(pleach());
    let (_, error) = failure(coverage.arg("coverage").arg(&profile).arg("--binary").arg(&other));
    assert!(error.contains("other: no function of the profile"), "{error}");
}

/// At -g1 clang leaves out which file declares a function.
#[test]
fn lines_only_are_enough_for_functions_of_headers() {
    for debug in ["-g1", "-g"] {
        let dir = scratch();
        let (binary, profile) = (dir.path().join("annotated"), dir.path().join("app.pleach"));
        let flags = [flags(&["annotate"]), vec![debug.to_owned()]].concat();
        compile(&binary, &flags, &[program("line_tables.c")]);
        record_built(&binary, &profile);
        for (function, file) in [("within", "line_tables.h:4"), ("main", "line_tables.c:")] {
            let paths = pleach_on(&profile, &["paths", "--function", function]);
            assert!(paths.contains(file), "{debug}: {paths}");
        }
    }
}

#[test]
fn samples_are_shares_and_exact_counts_are_executions() {
    let dir = scratch();
    let (_, profile) = record(dir.path(), "called.c");
    for command in ["paths", "report", "show"] {
        let text = pleach_on(&profile, &[command]);
        assert!(!text.contains("  count  ") && !text.contains("per sample"), "{text}");
    }
    let (_, counts) = count(dir.path(), "called.c");
    let imported = dir.path().join("exact.pleach");
    stdout(
        Command::new(pleach())
            .arg("import")
            .arg(&counts)
            .arg("-o")
            .arg(&imported),
    );
    // `choose` is called once for each iteration. A file of exact counts needs no import.
    for file in [&imported, &counts] {
        for command in ["report", "show"] {
            let text = pleach_on(file, &[command]);
            assert!(text.contains(" 12 345 "), "{command}: {text}");
        }
    }
}

/// The same as JSON: files, functions and lines.
fn for_scripts(json: &str) {
    let json: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(json["pleach"]["command"], "source");
    let files = json["files"].as_array().expect("files");
    let mix = files
        .iter()
        .find(|file| file["path"].as_str().is_some_and(|path| path.ends_with("/mix.c")));
    let mix = mix.expect("the library's source");
    let share = |of: &Value| of["frequency"]["share"].as_f64().expect("a share");
    let function = |name: &str| {
        mix["functions"]
            .as_array()
            .and_then(|all| all.iter().find(|f| f["function"] == name))
    };
    assert!(function("mix").is_some_and(|f| f["first_line"] == 2 && f["covered"] == "proved" && share(f) > 0.1));
    assert!(function("never").is_some_and(|f| share(f) == 0.0));
    let lines = mix["lines"].as_array().expect("lines");
    assert!(
        lines.iter().any(|line| line["line"] == 2 && share(line) > 0.1),
        "{lines:?}"
    );
}

/// A shared library and a program that calls it, in files of their own.
const LIBRARY: &str = "\
__attribute__((noinline)) unsigned mix(unsigned x) {
  return x & 64 ? x * 3 : x ^ 5;
}

unsigned never(unsigned x) {
  return x + 1;
}
";
const PROGRAM: &str = "\
#include <stdlib.h>
unsigned mix(unsigned);
int main(int argc, char **argv) {
  unsigned sum = argc > 9 ? atoi(argv[1]) : 0;
  for (unsigned i = 0; i < 100000000; ++i)
    sum += mix(sum + i);
  return sum == 7;
}
";

#[test]
fn executed_functions_are_shown_with_their_source() {
    let dir = scratch();
    let [library, program, profile] = ["libmix.so", "app", "app.pleach"].map(|name| dir.path().join(name));
    let [mix, main] = [("mix.c", LIBRARY), ("main.c", PROGRAM)].map(|(name, text)| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    });
    let flags = [flags(&["annotate"]), vec!["-g".to_owned(), "-O1".to_owned()]].concat();
    stdout(
        clang()
            .args(&flags)
            .args(["-fPIC", "-shared"])
            .arg(&mix)
            .arg("-o")
            .arg(&library),
    );
    stdout(clang().args(&flags).arg(&main).arg(&library).arg("-o").arg(&program));
    let mut record = Command::new(pleach());
    record
        .args(["record", "--quiet", "--overhead", "50%", "-o"])
        .arg(&profile);
    record.arg("--").arg(&program).env("LD_LIBRARY_PATH", dir.path());
    output(&mut record);
    // The library is found, too; `never` and stdlib.h, which main.c inlines a function of, are left out.
    let source = pleach_on(&profile, &["source"]);
    assert!(
        source.contains("/main.c:\n") && source.contains("/mix.c:\n"),
        "{source}"
    );
    assert!(source.contains("x * 3") && !source.contains("x + 1"), "{source}");
    assert!(!source.contains("stdlib.h:") && source.lines().count() < 25, "{source}");
    assert!(pleach_on(&profile, &["source", "--all"]).contains("x + 1"));
    let one = stdout(Command::new(pleach()).arg("source").arg(&profile).arg("mix"));
    assert!(one.contains("x * 3") && !one.contains("main.c"), "{one}");
    let one = stdout(Command::new(pleach()).arg("source").arg(&profile).arg("main"));
    assert!(one.contains("main.c:\n") && !one.contains("stdlib.h:"), "{one}");
    for_scripts(&pleach_on(&profile, &["source", "--json"]));
    // A library that was built again is told.
    std::fs::write(&mix, LIBRARY.replace("x * 3", "x * 7")).expect("written");
    stdout(
        clang()
            .args(&flags)
            .args(["-fPIC", "-shared", "-Wl,--build-id"])
            .arg(&mix)
            .arg("-o")
            .arg(&library),
    );
    let out = output(Command::new(pleach()).arg("source").arg(&profile));
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(
        stderr.contains("left out:") && stderr.contains("libmix.so: changed since it was recorded"),
        "{stderr}"
    );
}

#[test]
fn line_tables_alone_suffice() {
    let dir = scratch();
    let main = dir.path().join("lines.c");
    std::fs::write(&main, LIBRARY.replace("unsigned never", PROGRAM_OF_LIBRARY)).expect("written");
    let [program, profile] = ["app", "app.pleach"].map(|name| dir.path().join(name));
    let flags = [
        flags(&["annotate"]),
        vec!["-gline-tables-only".to_owned(), "-O1".to_owned()],
    ]
    .concat();
    stdout(clang().args(&flags).arg(&main).arg("-o").arg(&program));
    record_built(&program, &profile);
    let source = pleach_on(&profile, &["source"]);
    assert!(source.contains("/lines.c:\n") && source.contains("% +"), "{source}");
}

/// What calls [`LIBRARY`]'s function, in the same file.
const PROGRAM_OF_LIBRARY: &str = "\
int main(void) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 20000000; ++i) sum += mix(sum + i);
  return sum == 7;
}
unsigned never";

/// A header with a function that is inlined before any graph is taken.
const HEADER: &str = "\
static inline __attribute__((always_inline)) unsigned mix(unsigned x) {
  return x & 64 ? x * 3
                : x ^ 5;
}
";
const INLINER: &str = "\
#include \"inlined.h\"
static unsigned step(unsigned s) {
  for (unsigned i = 0; i < 10; ++i) { if (s & 1) s = mix(s); else s += 3; }
  return s;
}
int main(void) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 5000000; ++i)
    sum += step(sum + i) ^ mix(i);
  return sum == 7;
}
";

#[test]
fn parts_of_lines_and_inlined_lines_are_shown() {
    let dir = scratch();
    std::fs::write(dir.path().join("inlined.h"), HEADER).expect("written");
    let main = dir.path().join("inlined.c");
    std::fs::write(&main, INLINER).expect("written");
    for anchor in ["early", "late"] {
        let [program, profile] = [anchor.to_owned(), format!("{anchor}.pleach")].map(|name| dir.path().join(name));
        let flags = flags(&["annotate", "--anchor", anchor]);
        stdout(
            clang()
                .args(&flags)
                .args(["-g", "-O2"])
                .arg(&main)
                .arg("-o")
                .arg(&program),
        );
        record_built(&program, &profile);
        let source = pleach_on(&profile, &["source"]);
        // The two ways of `if` have counts of their own, below the columns at which they begin.
        let lines: Vec<&str> = source.lines().collect();
        let inner = lines.iter().position(|line| line.contains("s = mix(s);"));
        let inner = inner.unwrap_or_else(|| panic!("{anchor}: {source}"));
        let [way, other] = ["mix(s)", "s += 3"].map(|text| lines[inner].find(text).expect("text"));
        let marks = lines[inner + 1].match_indices('^').map(|(at, _)| at);
        let marks: Vec<usize> = marks.collect();
        assert!(
            marks.iter().any(|at| at.abs_diff(way) <= 4) && marks.iter().any(|at| at.abs_diff(other) <= 4),
            "{anchor}: {source}"
        );
        // Code of the header is only in inlined copies, at the late anchor without graphs of its own.
        assert!(source.contains("/inlined.h:\n"), "{anchor}: {source}");
        let of_header = lines.iter().find(|line| line.contains("x & 64 ?")).expect("header");
        assert!(of_header.contains("% +"), "{anchor}: {source}");
        let mut coverage = Command::new(pleach());
        coverage.arg("coverage").arg(&profile).arg("--binary").arg(&program);
        let lcov = stdout(coverage.arg("--lcov"));
        assert!(
            lcov.contains("inlined.h\nFN:") && lcov.contains("FNDA:"),
            "{anchor}: {lcov}"
        );
    }
}

#[test]
fn threads_that_spin_can_be_left_out() {
    let dir = scratch();
    let binary = dir.path().join("annotated");
    let flags = [flags(&["annotate"]), vec!["-pthread".to_owned()]].concat();
    compile(&binary, &flags, &[program("spinning.c")]);
    let sampled = |options: &[&str]| -> Vec<String> {
        let profile = dir.path().join("app.pleach");
        let mut record = Command::new(pleach());
        record
            .args(["record", "--quiet", "--overhead", "20%"])
            .args(options)
            .arg("-o")
            .arg(&profile);
        stdout(record.arg("--").arg(&binary));
        let file = ProfileFile::open(&profile).expect("a profile");
        let functions = file.functions().map(|function| function.expect("undamaged"));
        let mut names: Vec<String> = functions.filter(|f| f.samples > 0).map(|f| f.name).collect();
        names.retain(|name| name == "spin" || name == "work");
        names.sort();
        names
    };
    assert_eq!(sampled(&[]), ["spin", "work"], "both run");
    assert_eq!(sampled(&["--exclude-thread", "spinner"]), ["work"]);
    assert_eq!(sampled(&["--thread", "spinner"]), ["spin"]);
}
