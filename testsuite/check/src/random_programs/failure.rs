//! A wrong build, kept to be reproduced.

use anyhow::{Context, Result};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A build that failed, or whose program computed something else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Where the program, the command and what is wrong are.
    pub folder: PathBuf,
    /// The command that compiles it, in that folder.
    pub command: String,
    /// The failure.
    pub what: String,
}

impl Failure {
    /// Writes the program, `compile.sh` and `what.txt` into a folder.
    ///
    /// # Errors
    /// Where that cannot be written.
    pub fn keep(folder: PathBuf, source: &Path, command: String, what: String) -> Result<Self> {
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(&folder)?;
            fs::copy(source, folder.join(source.file_name().unwrap_or_default()))?;
            fs::write(
                folder.join("compile.sh"),
                format!("cd \"$(dirname \"$0\")\"\n{command}\n"),
            )?;
            fs::write(folder.join("what.txt"), format!("{what}\n"))
        };
        write().with_context(|| format!("{}: cannot keep a failure there", folder.display()))?;
        Ok(Self { folder, command, what })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}\n    {}",
            self.folder.display(),
            self.what.trim_end(),
            self.command
        )
    }
}
