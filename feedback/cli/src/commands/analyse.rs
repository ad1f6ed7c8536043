//! `pleach analyse`: a profile of raw vectors that were kept.

use super::inputs::kept_vectors;
use super::recorded::analysed;
use anyhow::{Context, Result, bail};
use pleach_analysis::time_bias::{Model, Weights};
use pleach_collector::vector::join;
use pleach_decide::support::verdict;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a profile of the raw vectors that other profiles kept.
///
/// The vectors are analysed as when they were recorded: whole bursts, and what breakpoints showed. Vectors of several
/// profiles are analysed together. The binaries must still be there, or be named by --binary.
///
///   pleach record --keep-vectors -o kept.pleach -- ./app
///   pleach analyse kept.pleach -o again.pleach --correct-time-bias
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Profiles that were recorded with --keep-vectors.
    #[arg(required = true)]
    profiles: Vec<PathBuf>,
    /// The profile to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Read this file instead of the recorded binary of the same build-id or name.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Weight branches by their time, where the recording measured it (`pleach record --correct-time-bias`).
    #[arg(long)]
    correct_time_bias: bool,
    /// Do not keep the raw vectors.
    #[arg(long)]
    without_vectors: bool,
    /// Print only errors.
    #[arg(short, long)]
    quiet: bool,
}

/// Analyses.
pub fn run(args: &Args) -> Result<ExitCode> {
    let sets = args.profiles.iter().map(|path| kept_vectors(path));
    let vectors = join(sets.collect::<Result<Vec<_>>>()?).context("cannot analyse the recordings together")?;
    let weights = if args.correct_time_bias {
        Weights::from_vectors(&vectors, &Model::default())
    } else {
        Weights::equal()
    };
    let profile = analysed(
        &vectors,
        &weights,
        args.binary.as_deref(),
        !args.without_vectors,
        args.quiet,
    )?;
    if profile.functions.is_empty() {
        bail!("none of the recorded files is annotated, or they are gone: name the program with --binary");
    }
    pleach_store::write_profile(&args.output, &profile)?;
    if !args.quiet {
        eprintln!("pleach: wrote {}", args.output.display());
        eprintln!("pleach: {}", verdict(&profile.provenance, profile.functions.len()));
    }
    Ok(ExitCode::SUCCESS)
}
