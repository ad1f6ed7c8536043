//! Links the stub into few pages: two segments in place of four, and nothing of the standard library. Each segment, and
//! each page that a process touches, costs every process of a recording some microseconds.
//!
//! Not every linker knows every option, so each is tried first.

use std::path::Path;
use std::process::Command;

const OPTIONS: [&str; 5] = [
    // Nothing here unwinds. The standard library's personality function, which its frame descriptions name, would link
    // all that a panic needs.
    "-Wl,--defsym=rust_eh_personality=0",
    "-Wl,-z,norelro",
    "-Wl,-z,noseparate-code",
    "-Wl,--no-rosegment",
    // The writable segment begins on a page, and so fits in one.
    "-Wl,-z,separate-loadable-segments",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // No start files of the compiler: they have constructors, destructors and imports of their own.
    println!("cargo::rustc-cdylib-link-arg=-nostartfiles");
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    let mut chosen = Vec::new();
    for option in OPTIONS {
        chosen.push(option);
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
