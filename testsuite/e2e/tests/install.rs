//! `cargo xtask`: what it installs works where it is installed.

use crate::support::*;
use std::path::Path;
use std::process::Command;

fn xtask() -> Command {
    let mut command = Command::new(built().join("xtask"));
    command.arg("--no-build");
    command
}

fn install(root: &Path) {
    let mut command = xtask();
    stdout(command.args(["install", "--prefix", "/usr", "--destdir"]).arg(root));
}

#[test]
fn an_installed_pleach_builds_and_records() {
    let root = scratch();
    install(root.path());
    // Over an earlier version.
    install(root.path());
    let usr = root.path().join("usr");
    let pleach = usr.join("bin/pleach");
    let flags = stdout(Command::new(&pleach).args(["flags", "annotate"]));
    let plugin = usr
        .join("lib/pleach/libpleach_pass.so")
        .canonicalize()
        .expect("the plugin");
    assert!(
        flags.contains(&format!("-fpass-plugin={}", plugin.display())),
        "{flags}"
    );

    let app = root.path().join("app");
    let mut compile = Command::new("clang-22");
    compile.args(["-O2", "-o"]).arg(&app).args(flags.split_whitespace());
    stdout(compile.arg(program("loops.c")));
    let profile = root.path().join("app.pleach");
    let mut record = Command::new(&pleach);
    record
        .args(["record", "--quiet", "--overhead", "50%", "-o"])
        .arg(&profile)
        .arg("--")
        .arg(&app);
    stdout(&mut record);
    assert!(profile.is_file());
}

#[test]
fn manual_pages_and_completions_name_the_commands() {
    let root = scratch();
    install(root.path());
    let share = root.path().join("usr/share");
    let read = |name: &str| std::fs::read_to_string(share.join(name)).unwrap_or_else(|_| panic!("no {name}"));
    for command in ["record", "flags-use", "cargo-record", "coverage-diff"] {
        let page = read(&format!("man/man1/pleach-{command}.1"));
        assert!(page.contains("SYNOPSIS"), "{command}: {page}");
    }
    for completions in [
        "bash-completion/completions/pleach",
        "fish/vendor_completions.d/pleach.fish",
        "zsh/site-functions/_pleach",
    ] {
        assert!(read(completions).contains("overhead"), "{completions}");
    }
    assert!(read("doc/pleach/GUIDE.md").starts_with("# The pleach guide"));
}

#[test]
fn a_debian_package_has_the_same_files() {
    let package = stdout(xtask().arg("deb"));
    let list = stdout(Command::new("dpkg-deb").arg("-c").arg(package.trim()));
    for file in [
        "usr/bin/pleach",
        "usr/lib/pleach/libpleach_pass.so",
        "usr/lib/pleach/libpleach_preload.so",
        "usr/lib/pleach/libpleach_stub.so",
        "usr/share/man/man1/pleach.1",
    ] {
        assert!(list.contains(file), "{file} in {list}");
    }
    let control = stdout(Command::new("dpkg-deb").arg("-f").arg(package.trim()));
    assert!(control.contains("Depends: libc6"), "{control}");
}

#[test]
fn what_a_lone_command_lacks_is_said() {
    let dir = scratch();
    let alone = dir.path().join("pleach");
    std::fs::copy(pleach(), &alone).expect("copied");
    let output = Command::new(&alone).args(["flags", "annotate"]).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        text.contains("libpleach_pass.so") && text.contains("cargo xtask install"),
        "{text}"
    );
}
