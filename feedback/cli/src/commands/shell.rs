//! `pleach completions`, and the manual pages that are installed.

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print a shell's completions of pleach's commands and options.
///
///   pleach completions bash > ~/.local/share/bash-completion/completions/pleach
///   pleach completions fish > ~/.config/fish/completions/pleach.fish
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

/// Write manual pages, one for each command, into a directory.
#[derive(clap::Args)]
pub struct Manual {
    /// The directory, which exists.
    folder: PathBuf,
}

/// Prints completions.
pub fn completions(args: &Completions, mut command: Command) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "pleach", &mut text);
    super::output::print(&String::from_utf8(text)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes manual pages.
pub fn manual(args: &Manual, command: Command) -> Result<ExitCode> {
    clap_mangen::generate_to(command, &args.folder)
        .with_context(|| format!("cannot write manual pages to {}", args.folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
