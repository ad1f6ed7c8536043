//! Recorded files are found where they are now.

use crate::support::{compile, failure, flags, pleach, program, scratch, stdout};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The functions of a new analysis of raw vectors, or the message of one that fails.
fn analysed(profile: &Path, options: &[&str], home: &Path) -> Result<usize, String> {
    let output = profile.with_file_name("again.pleach");
    let mut command = Command::new(pleach());
    command
        .env("HOME", home)
        .env_remove("XDG_CACHE_HOME")
        .env_remove("DEBUGINFOD_CACHE_PATH");
    command
        .arg("analyse")
        .arg("--quiet")
        .arg(profile)
        .args(options)
        .arg("-o")
        .arg(&output);
    match command.output().expect("pleach runs").status.success() {
        false => Err(failure(&mut command).1),
        true => {
            let shown = stdout(Command::new(pleach()).args(["show", "--json"]).arg(&output));
            let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
            Ok(shown["functions"].as_array().expect("functions").len())
        }
    }
}

#[test]
fn below_another_root_and_by_build_id() {
    let dir = scratch();
    let file = |name: &str| dir.path().join(name);
    let (binary, profile, home) = (file("app"), file("app.pleach"), file("home"));
    compile(
        &binary,
        &[flags(&["annotate"]), vec!["-Wl,--build-id".into()]].concat(),
        &[program("indirect.c")],
    );
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--keep-vectors", "--overhead", "20%", "-o"]);
    stdout(record.arg(&profile).arg("--").arg(&binary));
    let all = analysed(&profile, &[], &home).expect("the program is there");

    // As from a container: the same path below another root.
    let root = file("root");
    let inside = root.join(binary.strip_prefix("/").expect("an absolute path"));
    fs::create_dir_all(inside.parent().expect("a folder")).expect("folders");
    fs::rename(&binary, &inside).expect("renamed");
    let gone = analysed(&profile, &[], &home).expect_err("the program is gone");
    assert!(gone.contains("--binary"), "{gone}");
    assert_eq!(
        analysed(&profile, &["--symfs", &root.display().to_string()], &home),
        Ok(all)
    );

    // Named, beside a library that was not recorded.
    let named = [
        "--binary",
        &pleach().display().to_string(),
        "--binary",
        &inside.display().to_string(),
    ];
    assert_eq!(analysed(&profile, &named, &home), Ok(all));
    let unreadable = analysed(&profile, &["--binary", "/none"], &home).expect_err("not there");
    assert!(unreadable.contains("/none"), "{unreadable}");

    // In debuginfod's cache.
    let notes = stdout(Command::new("llvm-readelf-22").arg("--notes").arg(&inside));
    let build_id = notes
        .split("Build ID: ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    let build_id = build_id.expect("a build-id");
    let cached = home.join(".cache/debuginfod_client").join(build_id);
    fs::create_dir_all(&cached).expect("folders");
    fs::copy(&inside, cached.join("executable")).expect("copied");
    assert_eq!(analysed(&profile, &[], &home), Ok(all));
}
