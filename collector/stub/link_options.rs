//! Options of the linker. Not every linker knows every option, so each is tried first.

use std::path::Path;
use std::process::Command;

/// Links the library with those of the options that the linker takes together.
pub fn add(options: &[&'static str]) {
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    let mut chosen = Vec::new();
    for option in options {
        chosen.push(*option);
        if links(Path::new(&folder), &chosen) {
            println!("cargo::rustc-cdylib-link-arg={option}");
        } else {
            chosen.pop();
        }
    }
}

/// Whether the linker that the compiler uses takes the options.
fn links(folder: &Path, options: &[&str]) -> bool {
    let source = folder.join("empty.rs");
    if std::fs::write(&source, "").is_err() {
        return false;
    }
    let mut compiler = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compiler.args(["--crate-type", "cdylib", "--crate-name", "empty", "--out-dir"]);
    compiler.arg(folder).arg(&source);
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    compiler.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    for name in ["TARGET", "RUSTC_LINKER"] {
        if let Ok(value) = std::env::var(name) {
            match name {
                "TARGET" => compiler.args(["--target", &value]),
                _ => compiler.arg(format!("-Clinker={value}")),
            };
        }
    }
    compiler.args(options.iter().map(|option| format!("-Clink-arg={option}")));
    compiler.output().is_ok_and(|output| output.status.success())
}
