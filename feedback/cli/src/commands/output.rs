//! Where results go: standard output or a file.

use super::terminal;
use anyhow::{Context, Result};
use pleach_report::decorate::{BAR_ROOM, decorated};
use pleach_report::envelope::enveloped;
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

/// Tables of narrower terminals have no bars, which leaves room for names.
const LEAST_WITH_BARS: usize = 110;

/// Columns of the terminal on standard output, if it is one.
fn terminal_columns() -> Option<usize> {
    let size = io::stdout().is_terminal().then(terminal_size).flatten();
    size.map(|(Width(columns), _)| usize::from(columns))
}

fn has_bars() -> bool {
    terminal::has_colours() && terminal_columns().is_none_or(|columns| columns >= LEAST_WITH_BARS)
}

impl NamesArgs {
    /// On a terminal, tables fit it.
    pub fn names(&self) -> Names {
        let bars = if has_bars() { BAR_ROOM } else { 0 };
        Names {
            mangled: self.mangled,
            terminal_columns: terminal_columns().map(|all| all.saturating_sub(bars)),
        }
    }
}

/// `1 burst`, `2 bursts`, `2 branches`.
pub fn plural(number: impl std::fmt::Display, what: &str) -> String {
    let number = number.to_string();
    let ending = match (number.as_str(), what.ends_with("ch") || what.ends_with("ss")) {
        ("1", _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {what}{ending}")
}

/// Prints a report for people: with colours and through a pager, if it goes to a terminal.
pub fn print_report(text: &str) -> Result<()> {
    let with_colours;
    let text = match terminal::has_colours() {
        true => {
            with_colours = decorated(text, has_bars());
            &with_colours
        }
        false => text,
    };
    if terminal::page(text) { Ok(()) } else { print(text) }
}

/// Prints a report's JSON in its envelope; an array as `key`.
pub fn print_json(command: &str, key: &str, json: &str) -> Result<()> {
    print(&enveloped(command, key, json))
}

/// Prints to standard output. A closed pipe is no error.
pub fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot print"),
        _ => Ok(()),
    }
}

/// Writes to a file, or prints to standard output: what people read as a report.
pub fn write_report(file: Option<&Path>, text: &str, is_for_programs: bool) -> Result<()> {
    match file {
        None if !is_for_programs => print_report(text),
        _ => write_or_print(file, text),
    }
}

/// Writes to a file, or prints to standard output.
pub fn write_or_print(file: Option<&Path>, text: &str) -> Result<()> {
    match file {
        Some(path) => std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display())),
        None => print(text),
    }
}
