//! Finds the libraries that are installed beside the `pleach` executable.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;

/// File name of the LLVM plugin.
pub const PLUGIN: &str = "libpleach_pass.so";
/// File name of the sampler.
pub const SAMPLER: &str = "libpleach_preload.so";
/// File name of the library that is preloaded, beside the sampler, which it loads.
pub const STUB: &str = "libpleach_stub.so";

/// A library of pleach's: beside the executable (also in a build's output folder), or in a library folder of the same
/// prefix.
pub fn library(name: &str) -> Result<PathBuf> {
    let executable = std::env::current_exe()
        .and_then(|path| path.canonicalize())
        .context("cannot tell where the pleach executable is")?;
    let Some(dir) = executable.parent() else {
        bail!("{} has no parent directory", executable.display())
    };
    let candidates = [
        dir.join(name),
        dir.join("../lib/pleach").join(name),
        dir.join("../lib/x86_64-linux-gnu/pleach").join(name),
        dir.join("../lib64/pleach").join(name),
        dir.join("../lib").join(name),
    ];
    for candidate in &candidates {
        if candidate.is_file() {
            return candidate
                .canonicalize()
                .with_context(|| format!("cannot resolve {}", candidate.display()));
        }
    }
    bail!(
        "{name} not found beside {}, nor in a library directory of its prefix: `cargo install` does not install it; run `cargo \
         xtask install` in pleach's sources, or copy it there from `target/release`",
        executable.display()
    )
}
