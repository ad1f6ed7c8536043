//! `pleach coverage diff`: what one profile executes and another does not.

use crate::commands::inputs::sampled;
use crate::commands::output::{NamesArgs, write_report};
use crate::commands::source::Places;
use anyhow::{Context, Result};
use pleach_report::coverage_diff::{CoverageDiff, CoverageDiffOptions};
use pleach_report::envelope::enveloped;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print what each of two profiles executes and the other does not.
///
/// What the other one proved not to have executed is listed apart from what it does not know. Functions are compared if
/// both profiles have the same control-flow graph of them, so the profiles may be of different builds.
///
///   pleach coverage diff tests.pleach prod.pleach                   what does production execute that the tests do not?
///   pleach coverage diff tests.pleach prod.pleach --binary ./app    with source lines (built with -g)
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// A sampled profile.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The sampled profile to compare it with.
    #[arg(value_name = "B")]
    b: PathBuf,
    /// The annotated program of either profile, or one of its libraries, for source lines; may be repeated.
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Number of functions in each list, most executed first; 0 lists all (default: 20; with --json: all).
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Count blocks that are only predicted as executed. Otherwise, they are unknown.
    #[arg(long)]
    predicted: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    names: NamesArgs,
}

/// Compares and prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let files = [&args.a, &args.b];
    let [a, b] = files.map(|path| sampled(std::slice::from_ref(path)));
    let (a, b) = (a?, b?);
    for (path, profile) in files.into_iter().zip([&a, &b]) {
        if profile.functions.iter().all(|function| function.coverage.is_empty()) {
            eprintln!(
                "pleach: note: {} has no coverage: all of its blocks are unknown",
                path.display()
            );
        }
    }
    let default = if args.json { 0 } else { 20 };
    let options = CoverageDiffOptions {
        predicted: args.predicted,
        top: Some(args.top.unwrap_or(default)).filter(|&top| top != 0),
    };
    let places = Places::read(&args.binary)?;
    let graphs = |id, hash| places.graph(id, hash);
    let names = files.map(|path| path.display().to_string());
    let diff = CoverageDiff::new(&a, &b, options, &graphs, &|cfg| places.file_of(cfg));
    let diff = diff.with_context(|| format!("cannot compare {} with {}", names[0], names[1]))?;
    let text = match args.json {
        true => enveloped("coverage diff", "diff", &diff.to_json()?),
        false => diff.to_text([&names[0], &names[1]], &args.names.names()),
    };
    write_report(args.output.as_deref(), &text, args.json)?;
    Ok(ExitCode::SUCCESS)
}
