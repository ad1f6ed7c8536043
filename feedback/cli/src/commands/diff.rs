//! `pleach diff`: significant differences between two profiles.

use super::inputs::read_flows;
use super::output::{NamesArgs, print_json, print_report};
use anyhow::{Result, bail};
use pleach_report::diff::Diff;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print paths and functions whose share of the executions changed by a statistically significant amount.
///
/// Shares are compared, so recordings may differ in length. A change is listed if the two 90 % intervals are disjoint;
/// in two recordings of the same program and input, this happens for about 2 of 100 paths. Each file is a sampled
/// profile (.pleach) or exact counts (.plcnt).
///
///   pleach diff before.pleach after.pleach            what does the new version, or the new input, execute more of?
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// A sampled profile or exact counts.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The sampled profile or exact counts to compare it with.
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Number of functions and of paths to list, largest change first; 0 lists all (default: 20; with --json: all).
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
    let (before, after) = (read_flows(&args.before)?, read_flows(&args.after)?);
    for (path, flows) in [(&args.before, &before), (&args.after, &after)] {
        if flows.path_flow() == 0.0 {
            bail!(
                "{}: has no paths to compare; `pleach overlap` compares blocks too",
                path.display()
            );
        }
    }
    let default = if args.json { 0 } else { 20 };
    let top = Some(args.top.unwrap_or(default)).filter(|&top| top != 0);
    let diff = Diff::new(&before, &after, top)?;
    match args.json {
        true => print_json("diff", "diff", &diff.to_json()?)?,
        false => print_report(&diff.to_text(&args.names.names()))?,
    }
    Ok(ExitCode::SUCCESS)
}
