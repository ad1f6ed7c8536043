//! Messages and profiles of recordings with no burst, or few.

use crate::support::*;
use pleach_profile::file::ProfileFile;
use pleach_store::write_profile;
use std::path::Path;
use std::process::Command;

fn record(dir: &Path, source: &str) -> Command {
    record_at("1%", dir, source)
}

fn record_at(overhead: &str, dir: &Path, source: &str) -> Command {
    let (file, binary) = (dir.join("short.c"), dir.join("short"));
    std::fs::write(&file, source).expect("the folder is writable");
    compile(&binary, &flags(&["annotate"]), &[file]);
    let mut record = Command::new(pleach());
    record
        .args(["record", "--overhead", overhead, "-o"])
        .arg(dir.join("short.pleach"));
    record.arg("--").arg(binary);
    record
}

#[test]
fn a_recording_without_a_burst_fails_and_says_why() {
    let dir = scratch();
    // At 1 % a recording of a millisecond now and then has a burst.
    let record = |source| record_at("0.01%", dir.path(), source);
    let (code, text) = failure(&mut record("int main(void) { return 0; }"));
    assert_eq!(code, 4, "{text}");
    assert!(
        text.contains("nothing was sampled") && text.contains("--repeat 20"),
        "{text}"
    );
    assert!(!text.contains("annotated:"), "{text}");
    // The command's own failure comes first.
    let (code, text) = failure(&mut record("int main(void) { return 3; }"));
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("nothing was sampled"), "{text}");
}

#[test]
fn a_short_program_that_is_not_annotated_is_told_apart() {
    let dir = scratch();
    let (file, binary) = (dir.path().join("short.c"), dir.path().join("short"));
    std::fs::write(&file, "int main(void) { return 0; }").expect("the folder is writable");
    compile(&binary, &[] as &[&str], &[file]);
    let mut record = Command::new(pleach());
    record.args(["record", "--overhead", "0.01%", "-o"]);
    record.arg(dir.path().join("short.pleach")).arg("--").arg(binary);
    let (code, text) = failure(&mut record);
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("none of its files is annotated"), "{text}");
}

/// Confines itself at once, by a filter that allows everything, and runs for three tenths of a second.
const CONFINED: &str = "
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <time.h>
int main(void) {
  struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog filter = {1, allow};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
    return 9;
  volatile unsigned sum = 0;
  while (clock() < CLOCKS_PER_SEC * 3 / 10)
    for (int i = 0; i < 100000; i++)
      sum += i;
  return 0;
}
";

#[test]
fn a_program_that_confines_itself_is_named() {
    let dir = scratch();
    let mut record = record(dir.path(), CONFINED);
    let (code, text) = failure(record.env("TMPDIR", dir.path()));
    assert_eq!(code, 4, "{text}");
    let (_, after) = text.split_once("nothing was sampled: the command took ").expect("why");
    let (seconds, why) = after
        .split_once(" s of CPU time, but short (process ")
        .expect("CPU time");
    assert!(seconds.parse::<f64>().expect("a number") > 0.2, "{text}");
    assert!(why.contains("confined itself by a seccomp filter"), "{text}");
}

#[test]
fn a_recording_without_a_burst_replaces_no_profile() {
    let dir = scratch();
    let fails = |output: Option<&Path>| {
        let mut record = Command::new(pleach());
        // At 1 % even `true` now and then has a burst.
        let options = ["record", "--coverage", "off", "--overhead", "0.01%"];
        record.current_dir(dir.path()).args(options);
        if let Some(output) = output {
            record.arg("-o").arg(output);
        }
        let (code, text) = failure(record.args(["--", "true"]));
        assert_eq!(code, 4, "{text}");
        text
    };
    let [default, named] = ["default.pleach", "named.pleach"].map(|name| dir.path().join(name));
    assert!(fails(None).contains("wrote nothing"));
    assert!(!default.exists());
    assert!(fails(Some(&named)).contains("wrote"));
    assert!(named.exists(), "it was asked for");
    for output in [None, Some(named.as_path())] {
        let path = output.unwrap_or(&default);
        let good = pleach_profile::Profile {
            provenance: pleach_profile::Provenance {
                bursts: 7,
                ..Default::default()
            },
            ..Default::default()
        };
        write_profile(path, &good).expect("written");
        let before = std::fs::read(path).expect("there");
        assert!(fails(output).contains("stays as it was"));
        assert_eq!(std::fs::read(path).expect("there"), before);
        assert!(!path.with_extension("pleach.old").exists());
    }
}

#[test]
fn breakpoints_alone_do_not_replace_samples() {
    let dir = scratch();
    let (binary, profile) = (dir.path().join("annotated"), dir.path().join("kept.pleach"));
    compile(&binary, &flags(&["annotate"]), &[program("small_callees.c")]);
    let record = |overhead: &str, rounds: &str| {
        let mut record = Command::new(pleach());
        record.args(["record", "--overhead", overhead, "-o"]).arg(&profile);
        output(record.arg("--").arg(&binary).arg(rounds))
    };
    // A millisecond where bursts are seconds apart.
    let hits_only = || record("0.001%", "100000");
    // Without a profile, what breakpoints showed is worth having.
    assert_eq!(hits_only().status.code(), Some(4));
    assert!(profile.exists());
    // It says nothing about other runs: the program may have ended at once.
    let assembly = |flags: &[String]| {
        let mut clang = clang();
        clang.args(["-O2", "-S", "-o", "-"]).args(flags);
        stdout(clang.arg(program("small_callees.c")))
    };
    assert!(
        assembly(&with(&profile, &[])) == assembly(&[]),
        "a profile without a burst has an effect"
    );
    assert_eq!(record("1000%", "2000000").status.code(), Some(0));
    let before = std::fs::read(&profile).expect("there");
    let out = hits_only();
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(4), "{text}");
    assert!(text.contains("stays as it was"), "{text}");
    assert_eq!(std::fs::read(&profile).expect("there"), before);
}

#[test]
fn few_bursts_set_weights_only() {
    let dir = scratch();
    let profile = recorded("if_conversion.c", dir.path());
    let mut read = ProfileFile::open(&profile)
        .and_then(|file| file.read_all())
        .expect("a profile");
    let with_bursts = |bursts: u64, read: &mut pleach_profile::Profile| {
        read.provenance.bursts = bursts;
        write_profile(&profile, read).expect("written");
        let mut clang = clang();
        clang
            .args(["-O2", "-S", "-emit-llvm", "-o", "-"])
            .args(with(&profile, &[]));
        stdout(clang.arg(program("if_conversion.c")))
    };
    let branches = |ir: &str| text(ir, "adds").matches("br i1 ").count();
    let (few, many) = (with_bursts(9, &mut read), with_bursts(400, &mut read));
    assert!(branches(&few) > 0 && branches(&many) == 0);
    assert!(few.contains("!prof"));
}

#[test]
fn a_command_is_repeated_until_there_is_enough() {
    let dir = scratch();
    // Some milliseconds.
    let source =
        "int main(int argc, char **argv) { volatile unsigned x = 0; while (x < 3000000) x += argc; return 0; }";
    let once = record(dir.path(), source);
    let mut auto = Command::new(once.get_program());
    auto.args(["record", "--repeat", "auto", "--overhead", "100%"]);
    let out = output(auto.args(once.get_args().skip(3)));
    assert!(out.status.success(), "{out:?}");
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    let runs = text.lines().find(|line| line.contains(" runs, ")).expect(&text);
    assert!(runs.contains("would differ in"), "{text}");
    assert!(text.contains("superblocks, cold splitting"), "{text}");
    let file = ProfileFile::open(dir.path().join("short.pleach")).expect("a profile");
    assert!(file.read_all().expect("a profile").provenance.bursts >= 300);
}

#[test]
fn a_profile_of_a_program_without_annotations_is_refused() {
    let dir = scratch();
    let (binary, profile) = (dir.path().join("plain"), dir.path().join("plain.pleach"));
    compile(&binary, &Vec::<String>::new(), &[program("if_conversion.c")]);
    let mut record = Command::new(pleach());
    record.args(["record", "--overhead", "20%", "-o"]).arg(&profile);
    let output = record.arg("--").arg(&binary).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("is annotated") && !text.contains("support"), "{text}");
    let (code, text) = failure(Command::new(pleach()).args(["flags", "use"]).arg(&profile));
    assert!(
        code == 1 && text.contains("compile the program with $(pleach flags annotate)"),
        "{text}"
    );
}
