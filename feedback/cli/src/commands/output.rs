//! Where results go: standard output or a file.

use anyhow::{Context, Result};
use pleach_report::names::Names;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use terminal_size::{Width, terminal_size};

/// How names of functions are printed.
#[derive(clap::Args)]
pub struct NamesArgs {
    /// Print names of functions as linkers know them, not demangled.
    #[arg(long)]
    mangled: bool,
}

/// Columns of a terminal that a table has for other cells than names.
const OTHER_COLUMNS: usize = 64;

impl NamesArgs {
    /// On a terminal, long names are cut.
    pub fn names(&self) -> Names {
        let columns = || terminal_size().map(|(Width(columns), _)| usize::from(columns));
        Names {
            mangled: self.mangled,
            columns: io::stdout()
                .is_terminal()
                .then(columns)
                .flatten()
                .map(|all| all.saturating_sub(OTHER_COLUMNS)),
        }
    }
}

/// Prints to standard output. A closed pipe is no error.
pub fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot print"),
        _ => Ok(()),
    }
}

/// Writes to a file, or prints to standard output.
pub fn write_or_print(file: Option<&Path>, text: &str) -> Result<()> {
    match file {
        Some(path) => std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display())),
        None => print(text),
    }
}
