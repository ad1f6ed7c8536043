//! `pleach coverage`: what a recorded program executed.

use super::inputs::sampled;
use super::output::print;
use super::source::{Places, places};
use anyhow::Result;
use pleach_report::coverage::CoverageReport;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print which blocks of which functions a recorded program executed.
///
/// "Executed" is proved: recorded branches passed the block, or the graph has no way around it. "Predicted" is what shadow
/// execution passed where other threads, signals or the program's end may have led elsewhere. What is in neither may have been
/// executed all the same: sampling does not see everything. More runs see more: name several profiles.
///
///   pleach coverage app.pleach                                 totals and functions
///   pleach coverage app.pleach --binary ./app                  by IR instructions, too
///   pleach coverage app.pleach --binary ./app --lcov           by source line, for genhtml and editors (built with -g)
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The profile; several are added up.
    #[arg(required = true, value_name = "FILE")]
    profiles: Vec<PathBuf>,
    /// List this many functions, those with most executed blocks first; 0 for all (default: 20).
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// The annotated program, or one of its libraries: its graphs say how many instructions each block has, and on which line it
    /// begins.
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long, conflicts_with = "lcov")]
    json: bool,
    /// Print an LCOV trace file.
    #[arg(long, requires = "binary")]
    lcov: bool,
    /// Let lines that are only predicted count as executed, with --lcov.
    #[arg(long, requires = "lcov")]
    predicted: bool,
    /// Write to a file instead.
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
