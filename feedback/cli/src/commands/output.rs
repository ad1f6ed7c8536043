//! What is printed.

use anyhow::{Context, Result};
use std::io::{self, Write};

/// To standard output. That nobody reads to the end is no error.
pub fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot print"),
        _ => Ok(()),
    }
}
