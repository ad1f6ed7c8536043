//! Recipes of programs' own test suites: the `[[suites]]` of a `workload.toml`.

use crate::sources::Sources;
use anyhow::{Result, ensure};
use serde::Deserialize;

/// A program's own tests: test programs, linked with what the workload is made of, and how each is run.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Short name.
    pub name: String,
    /// A package of `workloads/Cargo.toml`.
    pub package: String,
    /// The folder inside it that all files of the suite are in.
    pub folder: String,
    /// Macro definitions in place of the workload's.
    pub defines: Option<Vec<String>>,
    /// More include directories, relative to the folder.
    #[serde(default)]
    pub include: Vec<String>,
    /// Sources of the library that the workload does not need.
    #[serde(default)]
    pub library: Vec<Sources>,
    /// Lines of output that contain one of these texts are not compared: they vary between runs, as times do.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// The text before the number of checks that succeeded, where programs print one. Otherwise each case is a check.
    pub succeeded: Option<String>,
    /// The texts before numbers that must be 0.
    #[serde(default)]
    pub failed: Vec<String>,
    /// Number of checks that succeed without pleach.
    pub checks: u64,
    /// Programs to build.
    pub programs: Vec<Program>,
    /// Runs of the programs. If empty, each program runs once without arguments.
    #[serde(default)]
    pub cases: Vec<Case>,
}

/// A test program.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its own sources.
    pub files: Vec<String>,
}

/// A run, or one for each of several files. Paths are relative to the suite's folder; in all texts `{file}` is the path
/// of the case's file, and `{name}` its name.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The command, run in an empty folder but for the programs (`./NAME`) and what is copied.
    pub run: Vec<String>,
    /// Patterns of files, each of which makes a case.
    #[serde(default)]
    pub each: Vec<String>,
    /// Files and folders that are copied to where the case is run, without the folders that they are in.
    #[serde(default)]
    pub copy: Vec<String>,
    /// The folder to run in, of those that were copied.
    pub dir: Option<String>,
    /// The file for standard input.
    pub stdin: Option<String>,
    /// The expected standard output.
    pub expected: Option<String>,
}

impl Suite {
    /// Checks everything that does not need the package.
    ///
    /// # Errors
    /// No programs, no checks, or a case that runs a program that is not built.
    pub fn validate(&self) -> Result<()> {
        ensure!(!self.programs.is_empty(), "the suite '{}' has no programs", self.name);
        ensure!(self.checks > 0, "the suite '{}' checks nothing", self.name);
        for case in &self.cases {
            let command = case.run.first().map(String::as_str).unwrap_or_default();
            let program = command.strip_prefix("./");
            let known = program.is_none_or(|name| self.programs.iter().any(|program| program.name == name));
            ensure!(
                known && !command.is_empty(),
                "the suite '{}' runs '{command}', which is none of its programs",
                self.name
            );
        }
        Ok(())
    }
}
