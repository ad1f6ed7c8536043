//! Printing to standard output.

use anyhow::{Context, Result};
use std::io::{self, Write};

/// Prints to standard output. A closed pipe is no error.
pub fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot print"),
        _ => Ok(()),
    }
}
