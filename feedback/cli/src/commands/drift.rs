//! `pleach drift`: whether an old profile still fits.

use super::inputs::sampled;
use super::output::{NamesArgs, print_json, print_report};
use anyhow::Result;
use pleach_report::drift::Drift;
use std::path::PathBuf;
use std::process::ExitCode;

/// Say whether an old profile still fits what the program does now.
///
/// Prints the share of the new profile's executions about which the old profile misleads the compiler: code that it
/// regards as cold or does not contain, and branches whose more frequent direction changed. If the program changed
/// since, the old counts are those that `use` would salvage. A profile fits if this share is at most 1 %, the share
/// that LLVM never regards as hot, or if the new recording is too short to exclude that. Each file is a sampled profile
/// (.pleach) or exact counts (.plcnt).
///
///   pleach record --overhead 1% -o today.pleach -- ./app ...
///   pleach drift release.pleach today.pleach || echo "record again"
///
/// Exit status: 0 if it fits, 1 on errors, 3 if it does not fit.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The profile in use.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// A profile of what the program does now, of the same build or a later one.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Number of functions to list, largest share first; 0 lists all (default: 10; with --json: all).
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    names: NamesArgs,
}

/// Exit status of a profile that does not fit.
const DOES_NOT_FIT: u8 = 3;

/// Compares and prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let [old, new] = [&args.old, &args.new].map(|path| sampled(std::slice::from_ref(path)));
    let default = if args.json { 0 } else { 10 };
    let top = Some(args.top.unwrap_or(default)).filter(|&top| top != 0);
    let drift = Drift::new(&old?, &new?, top)?;
    match args.json {
        true => print_json("drift", "drift", &drift.to_json()?)?,
        false => print_report(&drift.to_text(&args.names.names()))?,
    }
    Ok(match drift.fits {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(DOES_NOT_FIT),
    })
}
