//! `pleach source`: counts and coverage beside the source.

mod block_places;
mod code;
mod listing;
mod places;

use super::binaries::{Root, named_or_recorded};
use super::inputs::{DEFAULT_PROFILE, ExcludeArgs, or_default, sampled};
use super::output::{print, print_report};
use anyhow::{Result, bail};
pub use listing::Listing;
pub use places::Places;
use pleach_report::envelope::enveloped;
use pleach_report::estimated::NoSuchFunction;
use pleach_report::listing::Style;
use pleach_report::names::{Names, meant};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show executed functions with their source: how often each line was executed, and what is known of its coverage.
///
/// The program must have been built with -g. How often a block was executed is shown at the line on which it begins: of
/// sampled code as a share of all block executions, of exact counts as a number. Executed functions are shown, without
/// those of the system's and the compiler's headers.
///
///   pleach source app.pleach                     the executed functions of all recorded files
///   pleach source app.pleach main                one function
///   pleach source main                           the same, of default.pleach
///   pleach source app.pleach --all               whole files
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The profile, or exact counts (.plcnt) (default: default.pleach).
    #[arg(value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Show this function only: its name, linkage name or identifier.
    function: Option<String>,
    /// The annotated program, or one of its libraries (default: those that were recorded).
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    #[command(flatten)]
    root: Root,
    /// Also look for sources in this directory, by file name; may be repeated.
    #[arg(long, value_name = "DIR")]
    source_dir: Vec<PathBuf>,
    /// Show whole files, functions that were not executed included.
    #[arg(long)]
    all: bool,
    /// Show headers of the system and the compiler, too.
    #[arg(long)]
    system: bool,
    #[command(flatten)]
    exclude: ExcludeArgs,
    /// Print JSON, for scripts: the same files, with all lines on which a block begins.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// A single word that is no file is a function of the default profile.
    fn profile_and_function(&self) -> (Option<PathBuf>, Option<String>) {
        match (&self.profile, &self.function) {
            (Some(word), None) if !word.exists() && Path::new(DEFAULT_PROFILE).exists() => {
                (None, word.to_str().map(str::to_owned))
            }
            (profile, function) => (profile.clone(), function.clone()),
        }
    }
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let (path, function) = args.profile_and_function();
    let files = or_default(path.as_slice())?;
    let mut profile = sampled(&files)?;
    args.exclude.apply(&mut profile, &Names::default())?;
    let binaries = named_or_recorded(&args.binary, &args.root, &profile);
    if binaries.is_empty() {
        bail!(
            "{}: no annotated file that was recorded is found: name the annotated program with --binary",
            files[0].display()
        );
    }
    let functions = match &function {
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
        all: args.all,
        system: args.system,
    };
    let places = Places::read(&binaries)?;
    match args.json {
        true => print(&enveloped("source", "files", &listing.to_json(&profile, &places)?))?,
        false => print_report(&listing.to_text(&profile, &places)?)?,
    }
    Ok(ExitCode::SUCCESS)
}
