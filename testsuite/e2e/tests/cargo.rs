//! `pleach cargo`: programs in Rust, with the compiler as it is installed.

use crate::support::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Whether the plugin can be loaded into the installed rustc. Otherwise, only the refusal can be tested.
fn fits() -> bool {
    let version = stdout(Command::new("rustc").arg("-vV"));
    let fits = version.contains("LLVM version: 22.");
    if !fits {
        eprintln!("skipped: rustc has another LLVM than the plugin:\n{version}");
    }
    fits
}

/// A package in a folder of its own.
struct Package {
    dir: tempfile::TempDir,
}

impl Package {
    fn new() -> Self {
        let dir = scratch();
        copy(&program("cargo"), dir.path());
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `pleach cargo …` in the package's folder. `VARIABLE=…` may precede the words.
    fn pleach_cargo(&self, words: &[&str]) -> Output {
        let variable = words.first().and_then(|word| word.split_once('='));
        let words = &words[usize::from(variable.is_some())..];
        let mut command = Command::new(pleach());
        command
            .current_dir(self.dir.path())
            .arg("cargo")
            .args(words)
            .env("CARGO_NET_OFFLINE", "true")
            .env("PLEACH_OPTIONS", "")
            .envs(variable);
        // Those of the cargo that runs this test.
        for variable in ["CARGO", "CARGO_TARGET_DIR", "RUSTC", "RUSTC_WRAPPER", "RUSTFLAGS"] {
            command.env_remove(variable);
        }
        command.output().expect("pleach runs")
    }

    /// The same; its messages if it succeeds.
    fn succeeds(&self, words: &[&str]) -> String {
        let output = self.pleach_cargo(words);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {text}");
        text
    }

    /// The same; its messages if it fails.
    fn fails(&self, words: &[&str]) -> String {
        let output = self.pleach_cargo(words);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{words:?}: {text}");
        text
    }

    /// The only file of this name in a folder, or in folders of it.
    fn find(&self, folder: &str, wanted: impl Fn(&str) -> bool) -> PathBuf {
        let mut found = Vec::new();
        let mut folders = vec![self.path("target/pleach").join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if wanted(&path.file_name().expect("a name").to_string_lossy()) {
                    found.push(path);
                }
            }
        }
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    /// What the built program prints.
    fn output(&self, stage: &str, count: &str) -> String {
        let program = self.find(stage, |name| name == "app");
        stdout(Command::new(program).arg(count))
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copied");
        }
    }
}

fn is_annotated(binary: &Path) -> bool {
    stdout(Command::new("llvm-readelf-22").arg("-SW").arg(binary)).contains(".pleach_cfg")
}

#[test]
fn a_package_is_annotated_recorded_and_optimised() {
    if !fits() {
        return;
    }
    let package = Package::new();
    package.succeeds(&["annotate", "build"]);
    assert!(is_annotated(&package.find("annotated", |name| name == "app")));
    let is_macro = |name: &str| name.starts_with("libderive") && name.ends_with(".so");
    assert!(!is_annotated(&package.find("annotated", is_macro)));
    assert!(!is_annotated(
        &package.find("annotated", |name| name == "build-script-build")
    ));

    let recorded = package.succeeds(&["record", "-o", "app.pleach", "run", "--quiet", "--", "20000000"]);
    assert!(recorded.contains("app.pleach"), "{recorded}");
    let used = package.succeeds(&["use", "app.pleach", "--summary", "build"]);
    assert!(used.contains("words") && used.contains("profile used for"), "{used}");
    let expected = package.output("annotated", "1000000");
    assert_eq!(package.output("optimised", "1000000"), expected);
    // With the digest of another profile; cargo only prints its help.
    package.succeeds(&["record", "-o", "other.pleach", "run", "--quiet", "--", "10000000"]);
    package.succeeds(&["use", "other.pleach", "build", "--help"]);
    assert_eq!(package.output("optimised", "1000000"), expected);
    // The build script has asked rustc for an ability of nightly compilers.
    let rustc = stdout(Command::new("rustc").arg("-V"));
    assert_eq!(
        expected.contains("nightly true"),
        rustc.contains("nightly"),
        "{expected}"
    );
}

#[test]
fn every_way_of_linking_and_unwinding_works() {
    if !fits() {
        return;
    }
    let package = Package::new();
    for config in [
        "profile.release.lto=\"thin\"",
        "profile.release.lto=\"fat\"",
        "profile.release.panic=\"abort\"",
        "profile.release.codegen-units=1",
        "profile.release.strip=\"symbols\"",
    ] {
        package.succeeds(&[
            "record",
            "-o",
            "app.pleach",
            "run",
            "--config",
            config,
            "--",
            "10000000",
        ]);
        let used = package.succeeds(&["use", "app.pleach", "--summary", "build", "--config", config]);
        assert!(used.contains("profile used for"), "{config}: {used}");
        assert_eq!(
            package.output("optimised", "100000"),
            package.output("annotated", "100000"),
            "{config}"
        );
    }
}

#[test]
fn tests_are_recorded_into_one_profile() {
    if !fits() {
        return;
    }
    let package = Package::new();
    package.succeeds(&[
        "record",
        "-o",
        "tests.pleach",
        "test",
        "--workspace",
        "--lib",
        "--test",
        "most",
    ]);
    let shown = stdout(Command::new(pleach()).arg("show").arg(package.path("tests.pleach")));
    // A function, and both programs.
    for part in ["words::Generator", "/deps/words-", "/deps/most-"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn settings_that_rename_crates_are_told() {
    if !fits() {
        return;
    }
    let package = Package::new();
    let debug = "CARGO_PROFILE_RELEASE_DEBUG=line-tables-only";
    package.succeeds(&[debug, "record", "-o", "app.pleach", "run", "--", "10000000"]);
    let warning = "CARGO_PROFILE_RELEASE_DEBUG has another value than when the program was annotated";
    let told = |words: &[&str]| package.succeeds(words).contains(warning);
    assert!(told(&["use", "app.pleach", "build"]));
    assert!(!told(&[debug, "use", "app.pleach", "build"]));
}

#[test]
fn another_profile_compiles_again_and_the_same_does_not() {
    if !fits() {
        return;
    }
    let package = Package::new();
    package.succeeds(&["record", "-o", "one.pleach", "run", "--", "10000000"]);
    let merge = |from: &str| {
        let mut merge = Command::new(pleach());
        merge
            .current_dir(package.dir.path())
            .args(["merge", "-o", "app.pleach"]);
        stdout(merge.args([from, "one.pleach"]));
    };
    let compiles = |text: &str| text.contains("Compiling words");
    merge("one.pleach");
    assert!(compiles(&package.succeeds(&["use", "app.pleach", "build"])));
    assert!(!compiles(&package.succeeds(&["use", "app.pleach", "build"])));
    merge("app.pleach");
    assert!(compiles(&package.succeeds(&["use", "app.pleach", "build"])));
    // rustc does not know the plugin's options.
    let decisions = package.path("decisions");
    let options = format!(
        "PLEACH_OPTIONS=-pleach-superblocks=0  -pleach-decisions={}",
        decisions.display()
    );
    let with_options = [&options, "use", "app.pleach", "build"];
    assert!(compiles(&package.succeeds(&with_options)) && decisions.exists());
    assert!(!compiles(&package.succeeds(&with_options)));
    for wrong in [
        "-pleach-superblock=0",
        "-pleach-superblocks=many",
        "-inline-threshold=1",
    ] {
        let failed = package.fails(&[&format!("PLEACH_OPTIONS={wrong}"), "use", "app.pleach", "build"]);
        assert!(failed.contains("PLEACH_OPTIONS") && failed.contains(wrong), "{failed}");
    }
}

#[test]
fn a_bad_profile_is_an_error() {
    if !fits() {
        return;
    }
    let package = Package::new();
    assert!(package.fails(&["use", "none.pleach", "build"]).contains("none.pleach"));
    fs::write(package.path("bad.pleach"), "not a profile").expect("written");
    assert!(package.fails(&["use", "bad.pleach", "build"]).contains("bad.pleach"));

    // Lost while cargo runs: the compiler reports it.
    package.succeeds(&["record", "-o", "app.pleach", "run", "--", "10000000"]);
    let build = package.path("build.rs");
    let text = fs::read_to_string(&build).expect("the build script");
    let lost = text.replace(
        "fn main() {",
        "fn main() { let _ = std::fs::remove_file(\"app.pleach\");",
    );
    fs::write(&build, lost).expect("written");
    let failed = package.fails(&["use", "app.pleach", "build", "-j1"]);
    assert!(
        failed.contains("app.pleach") && failed.contains("cannot open"),
        "{failed}"
    );
}

#[test]
fn a_folder_that_is_not_of_pleach_is_kept() {
    if !fits() {
        return;
    }
    let package = Package::new();
    let own = package.path("target/pleach/annotated/notes");
    fs::create_dir_all(own.parent().expect("a folder")).expect("made");
    fs::write(&own, "mine").expect("written");
    assert!(
        package
            .fails(&["annotate", "build"])
            .contains("not a directory of pleach's")
    );
    assert_eq!(fs::read_to_string(own).expect("still there"), "mine");
}

#[test]
fn a_compiler_with_another_llvm_is_refused() {
    let package = Package::new();
    let rustc = package.path("rustc");
    let script = "#!/bin/sh\necho 'rustc 1.80.0'\necho 'host: x86_64-unknown-linux-gnu'\necho 'release: 1.80.0'\necho \
                  'LLVM version: 18.1.7'\n";
    fs::write(&rustc, script).expect("written");
    fs::set_permissions(&rustc, fs::Permissions::from_mode(0o755)).expect("executable");
    let mut command = Command::new(pleach());
    command
        .current_dir(package.dir.path())
        .args(["cargo", "annotate", "build"]);
    let output = command.env("RUSTC", &rustc).output().expect("pleach runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        text.contains("rustc 1.80.0 has LLVM 18.1.7") && text.contains("LLVM 22"),
        "{text}"
    );
}
