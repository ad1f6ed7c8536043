//! Messages and profiles of recordings with no burst, or few.

use crate::support::*;
use pleach_profile::file::ProfileFile;
use pleach_store::write_profile;
use std::path::Path;
use std::process::Command;

fn record(dir: &Path, source: &str) -> Command {
    let (file, binary) = (dir.join("short.c"), dir.join("short"));
    std::fs::write(&file, source).expect("the folder is writable");
    compile(&binary, &flags(&["annotate"]), &[file]);
    let mut record = Command::new(pleach());
    record
        .args(["record", "--overhead", "1%", "-o"])
        .arg(dir.join("short.pleach"));
    record.arg("--").arg(binary);
    record
}

#[test]
fn a_recording_without_a_burst_fails_and_says_why() {
    let dir = scratch();
    let (code, text) = failure(&mut record(dir.path(), "int main(void) { return 0; }"));
    assert_eq!(code, 4, "{text}");
    assert!(
        text.contains("nothing was sampled") && text.contains("--repeat 20"),
        "{text}"
    );
    assert!(!text.contains("annotated:"), "{text}");
    // The command's own failure comes first.
    let (code, text) = failure(&mut record(dir.path(), "int main(void) { return 3; }"));
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("nothing was sampled"), "{text}");
}

#[test]
fn few_bursts_set_weights_only() {
    let dir = scratch();
    let profile = recorded("selects.c", dir.path());
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
        stdout(clang.arg(program("selects.c")))
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
    compile(&binary, &Vec::<String>::new(), &[program("selects.c")]);
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
