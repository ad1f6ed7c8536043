//! `pleach source`: counts and coverage beside the source.

pub mod places;

use super::inputs::sampled;
use super::output::print;
use anyhow::{Result, bail};
pub use places::Places;
use pleach_report::lines::LEGEND;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show source files with the estimated count and the coverage of each line.
///
/// The program must have been built with -g. A block's count is shown at the line on which it begins.
///
///   pleach source app.pleach --binary ./app                    all files of which something was executed
///   pleach source app.pleach main --binary ./app               one function
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The profile.
    #[arg(value_name = "FILE")]
    profile: PathBuf,
    /// Show this function only: its linkage name.
    function: Option<String>,
    /// The annotated program, or one of its libraries (default: those that are in the profile's recorded commands).
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Also look for sources in this directory, by file name; may be repeated.
    #[arg(long, value_name = "FOLDER")]
    source_dir: Vec<PathBuf>,
}

/// Lines shown before and after a function's.
const AROUND: u32 = 3;

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let profile = sampled(std::slice::from_ref(&args.profile))?;
    let mut binaries = args.binary.clone();
    if binaries.is_empty() {
        let programs = profile.provenance.commands.iter();
        let programs = programs
            .filter_map(|command| command.split(' ').next())
            .map(PathBuf::from);
        binaries.extend(programs.filter(|path| path.is_file()));
        binaries.sort();
        binaries.dedup();
    }
    if binaries.is_empty() {
        bail!(
            "{}: says not which file was recorded: name the annotated program with --binary",
            args.profile.display()
        );
    }
    let places = Places::read(&binaries)?;
    let wanted = |name: &str| args.function.as_deref().is_none_or(|function| function == name);
    if !profile.functions.iter().any(|function| wanted(&function.name)) {
        bail!(
            "the profile has no function {}: `pleach coverage` lists those that were executed",
            args.function.as_deref().unwrap_or_default()
        );
    }
    let lines = places.lines(&profile, wanted)?;
    let mut out = String::from(LEGEND);
    for (path, file) in &lines.files {
        let is_executed = file.lines.values().any(|line| line.count > 0);
        if args.function.is_none() && !is_executed {
            continue;
        }
        let (found, text) = read(path, &args.source_dir);
        let _ = writeln!(out, "\n{}:", found.display());
        if text.is_none() {
            out += "  (not there: --source-dir says where it is)\n";
        }
        out += &file.view(text.as_deref(), args.function.as_ref().map(|_| AROUND));
    }
    print(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// The source file at its compiled path, or with the same name in another directory.
fn read(path: &Path, folders: &[PathBuf]) -> (PathBuf, Option<String>) {
    let elsewhere = folders.iter().filter_map(|folder| Some(folder.join(path.file_name()?)));
    let candidates = std::iter::once(path.to_owned()).chain(elsewhere);
    let mut texts: BTreeMap<usize, (PathBuf, String)> = BTreeMap::new();
    for (order, candidate) in candidates.enumerate() {
        if let Ok(bytes) = std::fs::read(&candidate) {
            texts.insert(order, (candidate, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    match texts.pop_first() {
        Some((_, (path, text))) => (path, Some(text)),
        None => (path.to_owned(), None),
    }
}
