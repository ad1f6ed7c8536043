//! `pleach overlap`: how much two profiles agree.

use super::inputs::read_flows;
use super::output::{NamesArgs, print_json, print_report};
use anyhow::Result;
use pleach_report::compare::Overlap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print how much two profiles agree, in total and by function.
///
/// The overlap is the sum, over all paths, of the smaller of a path's two shares: 100 % for equal distributions, 0 % if
/// the profiles have no path in common. The overlap of blocks is printed beside it. Each file is a sampled profile
/// (.pleach) or exact counts (.plcnt); the overlap with exact counts is the accuracy of a profile.
///
///   pleach overlap yesterday.pleach today.pleach      does the load still look the same?
///   pleach overlap app.pleach default-123.plcnt       how accurate is the profile?
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// A sampled profile or exact counts.
    #[arg(value_name = "A")]
    first: PathBuf,
    /// The sampled profile or exact counts to compare it with.
    #[arg(value_name = "B")]
    second: PathBuf,
    /// Number of functions to list, largest difference first; 0 lists all (default: 10; with --json: all).
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    names: NamesArgs,
}

/// Compares and prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let (first, second) = (read_flows(&args.first)?, read_flows(&args.second)?);
    let default = if args.json { 0 } else { 10 };
    let top = Some(args.top.unwrap_or(default)).filter(|&top| top != 0);
    let overlap = Overlap::new(&first, &second, top)?;
    for (path, flows) in [(&args.first, &first), (&args.second, &second)] {
        if flows.path_flow() == 0.0 {
            eprintln!(
                "pleach: note: {} has no paths: only blocks are compared",
                path.display()
            );
        } else if flows.only_edges > 0 {
            eprintln!(
                "pleach: note: {}: {} functions have edge counts only: their paths are not compared",
                path.display(),
                flows.only_edges
            );
        }
    }
    match args.json {
        true => print_json("overlap", "overlap", &overlap.to_json()?)?,
        false => print_report(&overlap.to_text(&args.names.names()))?,
    }
    Ok(ExitCode::SUCCESS)
}
