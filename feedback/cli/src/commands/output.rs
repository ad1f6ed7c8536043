//! Where results go: standard output or a file.

use anyhow::{Context, Result};
use std::io::{self, Write};
use std::path::Path;

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
