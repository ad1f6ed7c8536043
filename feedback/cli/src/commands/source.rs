//! `pleach source`: counts and coverage beside the source.

mod code;
mod listing;
mod places;

use super::inputs::{recorded_programs, sampled};
use super::output::print;
use anyhow::{Result, bail};
pub use listing::Listing;
pub use places::Places;
use pleach_report::estimated::NoSuchFunction;
use pleach_report::listing::Style;
use pleach_report::names::meant;
use std::path::PathBuf;
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
    /// Show this function only: its name, linkage name or identifier.
    function: Option<String>,
    /// The annotated program, or one of its libraries (default: those that are in the profile's recorded commands).
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Also look for sources in this directory, by file name; may be repeated.
    #[arg(long, value_name = "FOLDER")]
    source_dir: Vec<PathBuf>,
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let profile = sampled(std::slice::from_ref(&args.profile))?;
    let mut binaries = args.binary.clone();
    if binaries.is_empty() {
        binaries = recorded_programs(&profile);
    }
    if binaries.is_empty() {
        bail!(
            "{}: says not which file was recorded: name the annotated program with --binary",
            args.profile.display()
        );
    }
    let functions = match &args.function {
        None => Vec::new(),
        Some(name) => {
            let found = meant(profile.functions.iter(), |f| (&f.name, f.id.to_string()), name);
            let found = found.map_err(|similar| NoSuchFunction {
                name: name.clone(),
                similar,
            })?;
            found.into_iter().map(|f| f.name.clone()).collect()
        }
    };
    let listing = Listing {
        style: Style::Marks,
        functions: &functions,
        source_dirs: &args.source_dir,
    };
    print(&listing.to_text(&profile, &Places::read(&binaries)?)?)?;
    Ok(ExitCode::SUCCESS)
}
