//! Recipes: the parts of a workload, from its `workload.toml`.

use crate::sources::Sources;
use crate::suite::Suite;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The purpose of an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputKind {
    /// Profiles are collected on this one; never measured.
    Train,
    /// Times are measured on this one: one to two CPU-seconds.
    Ref,
    /// The kind of `ref`, small enough for a simulator.
    Count,
    /// The kind of `ref`, for tests: a fraction of a second.
    Short,
    /// Unlike both `train` and `ref`, to see how a profile generalises.
    Other,
}

impl InputKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Train, Self::Ref, Self::Count, Self::Short, Self::Other];

    /// The name in recipes and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Ref => "ref",
            Self::Count => "count",
            Self::Short => "short",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for InputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for InputKind {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .with_context(|| format!("no input is called '{name}' (there are train, ref, count, short, other)"))
    }
}

/// Arguments of a run, and the expected checksum.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Arguments; `{dir}` is the workload's own folder, `{input:NAME}` a file of `inputs.toml`.
    pub args: Vec<String>,
    /// The checksum that the driver prints.
    pub checksum: String,
}

/// A real program with its inputs.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Short name, also the folder's.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// The programs of older suites that it stands for.
    pub like: String,
    /// Licence of the program's own sources.
    pub licence: String,
    /// The driver's files, in the workload's folder.
    pub driver: Vec<String>,
    /// Include directories in the workload's folder.
    #[serde(default)]
    pub include: Vec<String>,
    /// Macro definitions.
    #[serde(default)]
    pub defines: Vec<String>,
    /// Libraries to link with.
    #[serde(default)]
    pub libs: Vec<String>,
    /// The program's sources, where the driver's files are not all.
    #[serde(default)]
    pub sources: Vec<Sources>,
    /// Inputs by kind.
    pub inputs: BTreeMap<InputKind, Input>,
    /// Tests that the program brings.
    #[serde(default)]
    pub suites: Vec<Suite>,
    /// Why there are none.
    pub no_suite: Option<String>,
    /// The workload's folder.
    #[serde(skip)]
    pub dir: PathBuf,
}

impl Workload {
    /// Reads the recipe in a workload's folder and checks that it is complete.
    pub fn load(dir: &Path) -> Result<Self> {
        let path = dir.join("workload.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut workload: Self = toml::from_str(&text).with_context(|| format!("in {}", path.display()))?;
        workload.dir = dir.to_path_buf();
        workload.validate().with_context(|| format!("in {}", path.display()))?;
        Ok(workload)
    }

    fn validate(&self) -> Result<()> {
        ensure!(
            self.dir.file_name().is_some_and(|folder| folder == self.name.as_str()),
            "the name '{}' is not the folder's",
            self.name
        );
        ensure!(!self.driver.is_empty() || !self.sources.is_empty(), "no sources");
        for kind in InputKind::ALL {
            self.input(kind)?;
        }
        let train = self.input(InputKind::Train)?;
        for kind in [InputKind::Ref, InputKind::Count, InputKind::Short, InputKind::Other] {
            ensure!(
                self.input(kind)?.args != train.args,
                "the input '{kind}' is the training input"
            );
        }
        ensure!(
            self.suites.is_empty() == self.no_suite.is_some(),
            "either [[suites]] or no_suite, which says why there are none"
        );
        for suite in &self.suites {
            suite.validate()?;
        }
        for file in &self.driver {
            ensure!(self.dir.join(file).is_file(), "there is no {file}");
        }
        Ok(())
    }

    /// The input of a kind.
    pub fn input(&self, kind: InputKind) -> Result<&Input> {
        self.inputs
            .get(&kind)
            .with_context(|| format!("{} has no input '{kind}'", self.name))
    }
}

/// Reads all recipes below `workloads`, by name.
pub fn load_all(workloads: &Path) -> Result<Vec<Workload>> {
    let entries = fs::read_dir(workloads).with_context(|| format!("cannot list {}", workloads.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let dir = entry?.path();
        if dir.join("workload.toml").is_file() {
            found.push(Workload::load(&dir)?);
        }
    }
    if found.is_empty() {
        bail!("no workload.toml below {}", workloads.display());
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}
