//! `pleach summary`: what `flags use` did in a build.

use super::output::{NamesArgs, print_json, print_report};
use super::progress::Progress;
use anyhow::{Context, Result, bail};
use pleach_report::summary::{BuildSummary, Remark, SummaryOptions, read_record};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show what the second build did with the profile: totals, and each function.
///
/// Reads the optimisation records that clang writes beside object files with -fsave-optimization-record.
///
///   clang -O2 -fsave-optimization-record $(pleach flags use app.pleach) …
///   pleach summary build/                       totals and functions
///   pleach summary build/ -f Parser::next       all remarks on one function
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Optimisation records, and directories that are searched for *.opt.yaml.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Show all remarks on this function: its name or linkage name.
    #[arg(short, long, value_name = "NAME")]
    function: Option<String>,
    /// Number of functions to list, those with most done first; 0 lists all (default: 20; with --json: all).
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    names: NamesArgs,
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let default = if args.json { 0 } else { 20 };
    let options = SummaryOptions {
        top: Some(args.top.unwrap_or(default)).filter(|&top| top != 0),
        function: args.function.clone(),
    };
    let summary = BuildSummary::new(&read_records(&args.paths)?).chosen(&options)?;
    match args.json {
        true => print_json("summary", "build", &summary.to_json()?)?,
        false => print_report(&summary.to_text(&args.names.names()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads records, each of one compilation.
pub fn read_records(paths: &[PathBuf]) -> Result<Vec<Vec<Remark>>> {
    let files = record_files(paths)?;
    let size = |path: &PathBuf| path.metadata().map(|m| m.len()).unwrap_or(0);
    let (all, mut done) = (files.iter().map(size).sum(), 0);
    let progress = Progress::new("reading", false);
    let mut records = Vec::new();
    for path in &files {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut consumed = |bytes: usize| {
            done += bytes as u64;
            progress.at(done, all);
        };
        let remarks = read_record(BufReader::new(file), &mut consumed);
        records.push(remarks.with_context(|| path.display().to_string())?);
    }
    drop(progress);
    if records.iter().flatten().all(|remark| remark.pass != "pleach") {
        bail!(
            "{}: no remarks of pleach: build with -fsave-optimization-record $(pleach flags use PROFILE)",
            paths
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    Ok(records)
}

/// The records that paths name, in the order of their names.
fn record_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let before = files.len();
        if path.is_dir() {
            search(path, &mut files).with_context(|| format!("cannot read {}", path.display()))?;
        } else {
            files.push(path.clone());
        }
        if files.len() == before {
            bail!(
                "no *.opt.yaml in the directory {}: build with -fsave-optimization-record",
                path.display()
            );
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

fn search(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // Links are not followed: they may lead back.
        if entry.file_type()?.is_dir() {
            search(&entry.path(), files)?;
        } else if entry.file_name().to_string_lossy().ends_with(".opt.yaml") {
            files.push(entry.path());
        }
    }
    Ok(())
}
