//! Raw vectors that profiles keep are analysed again, one recording or several.

use crate::support::{compile, failure, flags, pleach, program, scratch, stdout};
use pleach_profile::file::ProfileFile;
use std::path::Path;
use std::process::Command;

fn record(binary: &Path, profile: &Path, keep: bool) {
    let mut command = Command::new(pleach());
    command
        .args(["record", "--quiet", "--overhead", "20%", "-o"])
        .arg(profile);
    command.args(keep.then_some("--keep-vectors"));
    stdout(command.arg("--").arg(binary));
}

fn made(verb: &str, options: &[&str], inputs: &[&Path], output: &Path) -> Vec<u8> {
    let mut command = Command::new(pleach());
    stdout(command.arg(verb).args(options).args(inputs).arg("-o").arg(output));
    std::fs::read(output).expect("a profile")
}

#[test]
fn kept_vectors_give_the_same_profile_again() {
    let dir = scratch();
    let file = |name: &str| dir.path().join(name);
    let binary = file("binary");
    compile(&binary, &flags(&["annotate"]), &[program("indirect.c")]);
    let (first, second, merged) = (file("first.pleach"), file("second.pleach"), file("merged.pleach"));
    record(&binary, &first, true);
    record(&binary, &second, true);

    let again = made("analyse", &[], &[&first], &file("again.pleach"));
    assert!(again == std::fs::read(&first).expect("a profile"), "one recording");
    let without = made("analyse", &["--without-vectors"], &[&first], &file("without.pleach"));
    assert!(without.len() < again.len());

    // What merging keeps is what analysing both reads.
    made("merge", &[], &[&first, &second], &merged);
    let of_merged = made("analyse", &["--quiet"], &[&merged], &file("of-merged.pleach"));
    let of_both = made("analyse", &["--quiet"], &[&first, &second], &file("of-both.pleach"));
    assert!(of_merged == of_both, "two recordings");
    let reversed = made("analyse", &["--quiet"], &[&second, &first], &file("reversed.pleach"));
    assert!(reversed == of_both, "in another order");
    let bursts = |profile: &Path| {
        let shown = stdout(Command::new(pleach()).args(["show", "--json"]).arg(profile));
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        shown["provenance"]["bursts"]
            .as_u64()
            .unwrap_or_else(|| panic!("{shown:#}"))
    };
    assert_eq!(bursts(&file("of-both.pleach")), bursts(&first) + bursts(&second));

    // Without the program there is nothing that vectors could be mapped to.
    std::fs::rename(&binary, file("elsewhere")).expect("renamed");
    let mut command = Command::new(pleach());
    command.arg("analyse").arg(&first).arg("-o").arg(file("gone.pleach"));
    let (status, message) = failure(&mut command);
    assert_eq!(status, 1);
    assert!(message.contains("--binary"), "{message}");
    assert!(!file("gone.pleach").exists());
    let named = ["--quiet", "--binary", &file("elsewhere").display().to_string()];
    made("analyse", &named, &[&first], &file("named.pleach"));
    let functions = |profile: &Path| {
        let read = ProfileFile::open(profile).and_then(|profile| profile.read_all());
        read.expect("a profile").functions
    };
    assert!(functions(&file("named.pleach")) == functions(&first), "with --binary");
}

#[test]
fn a_profile_without_vectors_is_refused() {
    let dir = scratch();
    let (binary, profile) = (dir.path().join("binary"), dir.path().join("plain.pleach"));
    compile(&binary, &flags(&["annotate"]), &[program("indirect.c")]);
    record(&binary, &profile, false);
    let mut command = Command::new(pleach());
    command
        .arg("analyse")
        .arg(&profile)
        .arg("-o")
        .arg(dir.path().join("out.pleach"));
    let (status, message) = failure(&mut command);
    assert_eq!(status, 1);
    assert!(message.contains("plain.pleach holds no raw vectors"), "{message}");
}
