//! A cache of counts on disk: the same code on the same input is counted once.

use crate::build::Binary;
use crate::counts::{Counts, Simulation, Stripped, counts};
use crate::run::Invocation;
use crate::taken_branches::taken_branches;
use crate::tools::{Tool, version_line};
use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// The folder of cached counts.
#[derive(Clone, Debug)]
pub struct CountCache {
    folder: PathBuf,
}

impl CountCache {
    /// Keeps counts in a folder, which is made when it is needed.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// [`counts`], or what it returned before.
    pub fn counts(&self, binary: &Binary, invocation: &Invocation, simulation: Simulation) -> Result<Counts> {
        let what = match simulation {
            Simulation::InstructionsOnly => "instructions",
            Simulation::CachesAndBranches => "caches",
        };
        self.kept(binary, invocation, what, |binary| {
            counts(binary, invocation, simulation)
        })
    }

    /// [`taken_branches`], or what it returned before.
    pub fn taken_branches(&self, binary: &Binary, invocation: &Invocation) -> Result<u64> {
        self.kept(binary, invocation, "taken", |binary| taken_branches(binary, invocation))
    }

    fn kept<T: Serialize + DeserializeOwned>(
        &self,
        binary: &Binary,
        invocation: &Invocation,
        what: &str,
        count: impl FnOnce(&Stripped) -> Result<T>,
    ) -> Result<T> {
        let stripped = Stripped::from_binary(binary)?;
        let key = key(&stripped.binary.path, invocation)?;
        let file = self.folder.join(format!("{}-{key:016x}-{what}.json", binary.workload));
        // A file in an older format is replaced.
        let known = fs::read(&file).ok();
        if let Some(known) = known.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            return Ok(known);
        }
        let counted = count(&stripped)?;
        fs::create_dir_all(&self.folder).with_context(|| format!("cannot create {}", self.folder.display()))?;
        let mut unfinished = tempfile::NamedTempFile::new_in(&self.folder)?;
        unfinished.write_all(&serde_json::to_vec(&counted)?)?;
        unfinished
            .persist(&file)
            .with_context(|| format!("cannot write {}", file.display()))?;
        Ok(counted)
    }
}

/// The cache key: the code, the arguments with the contents of files they name, and the simulator.
fn key(binary: &Path, invocation: &Invocation) -> Result<u64> {
    let mut hasher = Xxh3::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(version_line(&Tool::Valgrind.find()?)?.as_bytes());
    add(&fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?);
    add(invocation.checksum.as_bytes());
    for argument in &invocation.args {
        if Path::new(argument).is_file() {
            add(&fs::read(argument).with_context(|| format!("cannot read {argument}"))?);
        } else {
            add(argument.as_bytes());
        }
    }
    Ok(hasher.digest())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_code_and_input_apart() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let (binary, input) = (folder.path().join("program"), folder.path().join("input"));
        let invocation = Invocation {
            args: vec![input.display().to_string(), "3".to_owned()],
            checksum: "0".to_owned(),
        };
        let other = Invocation {
            args: vec![input.display().to_string(), "4".to_owned()],
            ..invocation.clone()
        };
        fs::write(&binary, "code")?;
        fs::write(&input, "data")?;
        let first = key(&binary, &invocation)?;
        assert_eq!(first, key(&binary, &invocation)?);
        assert_ne!(first, key(&binary, &other)?);
        fs::write(&input, "other data")?;
        assert_ne!(first, key(&binary, &invocation)?);
        fs::write(&input, "data")?;
        fs::write(&binary, "other code")?;
        assert_ne!(first, key(&binary, &invocation)?);
        Ok(())
    }
}
