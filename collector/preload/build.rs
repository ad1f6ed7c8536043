//! Links the sampler into few segments, because the kernel copies each with each `fork`; and links the unwinder of the
//! compiler's runtime library into it.
//!
//! The standard library refers to the unwinder, and nothing in the sampler unwinds. As a shared library, it would cost
//! every process of a recording more to load than the sampler itself. Where there is no archive of it, it stays shared.

#[path = "../stub/link_options.rs"]
mod link_options;

use std::path::Path;
use std::process::Command;

const OPTIONS: [&str; 3] = ["-Wl,-z,norelro", "-Wl,-z,noseparate-code", "-Wl,--no-rosegment"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../stub/link_options.rs");
    println!("cargo::rerun-if-env-changed=CC");
    link_options::add(&OPTIONS);
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let Ok(output) = Command::new(compiler).arg("-print-file-name=libgcc_eh.a").output() else {
        return;
    };
    let archive = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let archive = Path::new(&archive);
    if let Some(folder) = archive.parent().filter(|_| archive.is_absolute()) {
        // In front of the shared one, which is then not needed.
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}
