//! Running a built workload on one of its inputs, with the result checked.

use crate::build::Binary;
use crate::process::{Usage, run_measured};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;

/// A program's arguments and the expected result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invocation {
    /// Arguments with all placeholders filled in.
    pub args: Vec<String>,
    /// The checksum that the driver must print.
    pub checksum: String,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub errors: String,
    /// The checksum that the driver printed.
    pub checksum: String,
    /// Whether it is the committed one.
    pub checksum_ok: bool,
    /// Used resources.
    pub usage: Usage,
}

impl RunResult {
    /// Fails where the checksum is not the committed one: figures of a program with wrong results are worthless.
    pub fn expect_checksum(self, binary: &Binary, invocation: &Invocation) -> Result<Self> {
        ensure!(
            self.checksum_ok,
            "{} ({}) printed the checksum {}, not {}",
            binary.workload,
            binary.label,
            self.checksum,
            invocation.checksum
        );
        Ok(self)
    }
}

/// Runs a binary; fails where it fails, not where its checksum differs.
pub fn run(binary: &Binary, invocation: &Invocation) -> Result<RunResult> {
    run_with(binary, invocation, &[], &[])
}

/// Runs a binary under a wrapper (`valgrind …`, `pleach record … --`) with more environment variables.
pub fn run_with(
    binary: &Binary,
    invocation: &Invocation,
    wrapper: &[String],
    environment: &[(&str, &Path)],
) -> Result<RunResult> {
    let mut command = match wrapper.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).arg(&binary.path);
            command
        }
        None => Command::new(&binary.path),
    };
    // Temporary folders remove files that a variant writes to its working directory, and unused counts of
    // instrumented builds.
    let (scratch, counts) = (tempfile::tempdir()?, tempfile::tempdir()?);
    command
        .args(&invocation.args)
        .current_dir(scratch.path())
        .env("LC_ALL", "C")
        .env("PLEACH_COUNTS", counts.path().join("%p.plcnt"))
        .env("LLVM_PROFILE_FILE", counts.path().join("%p.profraw"))
        .envs(environment.iter().copied());

    let what = format!("{} ({})", binary.workload, binary.label);
    let finished = run_measured(&mut command)?.expect_success(&what)?;
    let checksum = printed_checksum(&finished.stdout).unwrap_or_default().to_owned();
    Ok(RunResult {
        checksum_ok: !checksum.is_empty() && checksum == invocation.checksum,
        checksum,
        output: finished.stdout,
        errors: finished.stderr,
        usage: finished.usage,
    })
}

fn printed_checksum(output: &str) -> Option<&str> {
    output.lines().last()?.strip_prefix("checksum ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_line_is_the_checksum() {
        assert_eq!(printed_checksum("checksum 1\nchecksum 2\n"), Some("2"));
        assert_eq!(printed_checksum("checksum 1\nmore\n"), None);
        assert_eq!(printed_checksum(""), None);
    }
}
