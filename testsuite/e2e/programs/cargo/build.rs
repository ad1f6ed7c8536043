//! Runs rustc by itself, as build scripts do that ask for its abilities.

use std::process::Command;

fn main() {
    let probe = "#![feature(never_type)] pub fn f(x: !) -> ! { x }";
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap());
    std::fs::write(out.join("probe.rs"), probe).unwrap();
    let mut command = match std::env::var_os("RUSTC_WRAPPER") {
        Some(wrapper) => {
            let mut command = Command::new(wrapper);
            command.arg(std::env::var_os("RUSTC").unwrap());
            command
        }
        None => Command::new(std::env::var_os("RUSTC").unwrap()),
    };
    let target = std::env::var("TARGET").unwrap();
    command.args(["--crate-type=lib", "--emit=metadata", "--target", &target]);
    command.arg("--out-dir").arg(&out).arg(out.join("probe.rs"));
    let is_nightly = command.output().unwrap().status.success();
    println!("cargo::rustc-env=IS_NIGHTLY={is_nightly}");
}
