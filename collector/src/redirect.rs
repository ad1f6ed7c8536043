//! Redirection of a recorded command's standard streams.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// Files in place of standard streams; a stream without a file is inherited. The files are opened for each run, so
/// every run reads its input from the beginning.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Redirect {
    /// Standard input.
    pub input: Option<PathBuf>,
    /// Standard output; the file is overwritten.
    pub output: Option<PathBuf>,
    /// Standard error; the file is overwritten.
    pub errors: Option<PathBuf>,
}

impl Redirect {
    /// Opens the files for one run.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub fn apply(&self, command: &mut Command) -> io::Result<()> {
        let named = |path: &PathBuf, opened: io::Result<File>| {
            opened.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
        };
        if let Some(path) = &self.input {
            command.stdin(named(path, File::open(path))?);
        }
        if let Some(path) = &self.output {
            command.stdout(named(path, File::create(path))?);
        }
        if let Some(path) = &self.errors {
            command.stderr(named(path, File::create(path))?);
        }
        Ok(())
    }
}
