//! `pleach coverage`: which blocks a recorded program executed.

use super::inputs::sampled;
use super::output::print;
use super::source::{Places, places};
use anyhow::Result;
use pleach_report::coverage::CoverageReport;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print which blocks of which functions a recorded program executed.
///
/// "Executed" blocks are proved: a recorded branch passed the block, or every path through an executed block does.
/// "Predicted" blocks were passed by shadow execution only; other threads, signals or the program's end may have led
/// the program elsewhere. A block in neither set may still have run, because sampling misses executions. Profiles of
/// more runs, or longer ones, prove more blocks.
///
///   pleach coverage app.pleach                                 totals and functions pleach coverage app.pleach
///   --binary ./app                  by IR instructions, too pleach coverage app.pleach --binary ./app --lcov
///   by source line, for genhtml and editors (built with -g)
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Sampled profiles (.pleach); several are merged.
    #[arg(required = true, value_name = "FILE")]
    profiles: Vec<PathBuf>,
    /// Number of functions to list, by descending number of executed blocks; 0 lists all (default: 20).
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// The annotated program, or one of its libraries, for the instructions and source lines of blocks; may be
    /// repeated.
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long, conflicts_with = "lcov")]
    json: bool,
    /// Print an LCOV trace file.
    #[arg(long, requires = "binary")]
    lcov: bool,
    /// With --lcov: count lines that are only predicted as executed.
    #[arg(long, requires = "lcov")]
    predicted: bool,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let profile = sampled(&args.profiles)?;
    let places = Places::read(&args.binary)?;
    let text = if args.lcov {
        places.lines(&profile, |_| true)?.to_lcov(args.predicted)
    } else {
        let report = CoverageReport::new(&profile, &|id, hash| places.graph(id, hash));
        match args.json {
            true => report.to_json()?,
            false => report.to_text(Some(args.top.unwrap_or(20)).filter(|&top| top != 0)),
        }
    };
    match &args.output {
        Some(path) => places::write(path, &text)?,
        None => print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}
