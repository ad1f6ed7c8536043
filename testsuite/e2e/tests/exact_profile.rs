//! Exact counts as a profile: `pleach import` of an instrumented program's counts.

use crate::support::*;
use pleach_profile::file::ProfileFile;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = "superblocks.c";

fn import(counts: &Path, profile: &Path) -> Command {
    let mut command = Command::new(pleach());
    command.arg("import").arg(counts).arg("-o").arg(profile);
    command
}

#[test]
fn exact_counts_guide_the_compiler() {
    let dir = scratch();
    let [exact, optimised, counts, profile] =
        ["exact", "optimised", "app.plcnt", "app.pleach"].map(|name| dir.path().join(name));
    compile(&exact, &flags(&["instrument", "--anchor", "early"]), &[program(SOURCE)]);
    let counted = stdout(Command::new(&exact).env("PLEACH_COUNTS", &counts));
    stdout(&mut import(&counts, &profile));

    let read = ProfileFile::open(&profile)
        .expect("a profile")
        .read_all()
        .expect("readable");
    let main = read
        .functions
        .iter()
        .find(|f| f.name == "main")
        .expect("main is counted");
    assert_eq!(main.blocks[0], 1, "main is called once");
    assert!(read.functions.iter().any(|f| f.paths.len() > 1), "paths are there");

    let words = flags(&["use", profile.to_str().expect("UTF-8"), "--summary"]);
    let mut clang = clang();
    let built = output(
        clang
            .arg("-O2")
            .args(words)
            .arg(program(SOURCE))
            .arg("-o")
            .arg(&optimised),
    );
    let stderr = String::from_utf8_lossy(&built.stderr).into_owned();
    assert!(built.status.success(), "{stderr}");
    assert!(stderr.contains(" 0 not matched, 0 not in the profile"), "{stderr}");
    assert_eq!(stdout(&mut Command::new(&optimised)), counted);
}

#[test]
fn a_damaged_file_of_counts_is_named() {
    let dir = scratch();
    let [exact, counts, profile] = ["exact", "app.plcnt", "app.pleach"].map(|name| dir.path().join(name));
    compile(&exact, &flags(&["instrument", "--anchor", "early"]), &[program(SOURCE)]);
    stdout(Command::new(&exact).env("PLEACH_COUNTS", &counts));
    // The magic and nothing behind it.
    let bytes = std::fs::read(&counts).expect("counts");
    std::fs::write(&counts, &bytes[..8]).expect("written");
    let (status, stderr) = failure(&mut import(&counts, &profile));
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("app.plcnt"), "{stderr}");
    assert!(!profile.exists(), "no profile is left behind");
}

/// A maximum that is replaced rarely: its branch is predictable by its counts.
const MAXIMUM: &str = "
#include <stdio.h>
__attribute__((noinline)) static int largest(const int *values, int count) {
  int most = 0;
  for (int i = 0; i < count; i++)
    if (values[i] > most)
      most = values[i];
  return most;
}
int main(void) {
  static int values[4096];
  for (int i = 0; i < 4096; i++)
    values[i] = (i * 7919) % 4099;
  values[2] = 5000;
  int sum = 0;
  for (int i = 0; i < 100; i++)
    sum += largest(values + i % 2, 4000);
  printf(\"%d\\n\", sum);
}
";

#[test]
fn a_maximum_that_is_replaced_rarely_is_vectorised() {
    let dir = scratch();
    let [source, exact, counts, profile] =
        ["maximum.c", "exact", "app.plcnt", "app.pleach"].map(|name| dir.path().join(name));
    std::fs::write(&source, MAXIMUM).expect("the folder is writable");
    compile(&exact, &flags(&["instrument"]), std::slice::from_ref(&source));
    stdout(Command::new(&exact).env("PLEACH_COUNTS", &counts));
    stdout(&mut import(&counts, &profile));
    let ir = |words: Vec<String>| {
        let mut clang = clang();
        clang.args(["-O2", "-S", "-emit-llvm", "-o", "-"]);
        stdout(clang.args(words).arg(&source))
    };
    let is_vectorised = |ir: String| text(&ir, "largest").contains("@llvm.smax.v4i32");
    assert!(is_vectorised(ir(Vec::new())));
    assert!(is_vectorised(ir(with(&profile, &[]))));
}
