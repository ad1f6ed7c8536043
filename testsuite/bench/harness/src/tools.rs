//! External tools, found by name, with the package to install where one is missing.

use anyhow::{Context, Result, bail};
use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Major version of the LLVM tools that everything is measured with.
pub const LLVM_VERSION: u32 = 22;

/// A program that the bench calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tool {
    /// The C compiler.
    Clang,
    /// The C++ compiler.
    ClangCxx,
    /// The linker, which clang finds itself; looked up for a clear message only.
    Lld,
    /// Merges instrumentation profiles.
    ProfData,
    /// Makes clang's sample profiles from branch records.
    ProfGen,
    /// Optimises the layout of a linked program.
    Bolt,
    /// Makes BOLT's profiles from branch records.
    PerfToBolt,
    /// Reads branch records for `perf2bolt`.
    Perf,
    /// Strips debug information.
    Objcopy,
    /// Runs cachegrind and callgrind.
    Valgrind,
}

impl Tool {
    /// The executable's name.
    pub fn program(self) -> String {
        match self {
            Self::Clang => format!("clang-{LLVM_VERSION}"),
            Self::ClangCxx => format!("clang++-{LLVM_VERSION}"),
            Self::Lld => format!("ld.lld-{LLVM_VERSION}"),
            Self::ProfData => format!("llvm-profdata-{LLVM_VERSION}"),
            Self::ProfGen => format!("llvm-profgen-{LLVM_VERSION}"),
            Self::Bolt => format!("llvm-bolt-{LLVM_VERSION}"),
            Self::PerfToBolt => format!("perf2bolt-{LLVM_VERSION}"),
            Self::Perf => "perf".to_owned(),
            Self::Objcopy => format!("llvm-objcopy-{LLVM_VERSION}"),
            Self::Valgrind => "valgrind".to_owned(),
        }
    }

    /// Debian's package that has it.
    pub fn package(self) -> String {
        match self {
            Self::Clang | Self::ClangCxx => format!("clang-{LLVM_VERSION}"),
            Self::Lld => format!("lld-{LLVM_VERSION}"),
            Self::ProfData | Self::ProfGen | Self::Objcopy => format!("llvm-{LLVM_VERSION}"),
            Self::Bolt | Self::PerfToBolt => format!("bolt-{LLVM_VERSION}"),
            Self::Perf => "linux-perf".to_owned(),
            Self::Valgrind => "valgrind".to_owned(),
        }
    }

    /// The path of the executable.
    pub fn find(self) -> Result<PathBuf> {
        let program = self.program();
        match find_in_path(&program) {
            Some(path) => Ok(path),
            None => bail!(
                "{program} is not in PATH; on Debian: apt-get install {}",
                self.package()
            ),
        }
    }
}

/// The path of a program in `PATH`.
pub fn find_in_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// The first line that a program prints when asked for its version; part of what a build is keyed by.
pub fn version_line(program: &std::path::Path) -> Result<String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
