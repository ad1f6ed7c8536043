//! `pleach merge`: merges profiles, or files of exact counts.

mod by_phase;

use super::binaries::RecordedFiles;
use super::inputs::note_changed;
use super::phases::interval;
use super::profile_output::write_profile;
use super::progress::Progress;
use anyhow::{Result, bail};
use pleach_ball_larus::counts;
use pleach_ball_larus::counts::file::CountFile;
use pleach_collector::vector::{VectorSet, join};
use pleach_phases::Interval;
use pleach_profile::file::ProfileFile;
use pleach_profile::merge::Merged;
use pleach_profile::merge::files::merge_files;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Merge profiles of several runs, or of several programs that share code, into one.
///
/// The result does not depend on the order or grouping of merges, except for the order of raw vectors. Raw vectors are
/// kept if all profiles have them and no --weighted-input is given. A function that changed between the recordings
/// keeps counts for each version. Also merges files of exact counts (.plcnt), which instrumented programs write.
///
/// With --by phase, the output is a new folder with a profile for each phase of the programs (`pleach phases`):
/// phase-1.pleach, phase-2.pleach, … in the order in which they were met first. All need raw vectors, and the recorded
/// files must be there. A phase of several recordings is one phase. Recordings that overlap in time are put one after
/// the other. What breakpoints showed is of no phase, and is left out, as raw vectors are.
///
///   pleach merge monday.pleach tuesday.pleach -o week.pleach
///   pleach merge -w 3,prod.pleach tests.pleach -o both.pleach      counts of prod.pleach three times
///   pleach merge --by phase monday.pleach tuesday.pleach -o phases
///   pleach merge -w 3,phases/phase-2.pleach phases/phase-1.pleach -o both.pleach
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The profiles, or files of exact counts.
    profiles: Vec<PathBuf>,
    /// A profile and the weight that its counts are multiplied by; may be repeated.
    #[arg(short, long, value_name = "WEIGHT,FILE", value_parser = weighted)]
    weighted_input: Vec<(f64, PathBuf)>,
    /// The profile, or file of exact counts, to write. A profile that is there is renamed FILE.old. With --by, the
    /// folder.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write a profile for each phase.
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "weighted_input")]
    by: Option<By>,
    /// With --by phase: length of the compared intervals in bursts, or auto (see `pleach phases --help`).
    #[arg(long, default_value = "auto", value_parser = interval, value_name = "N|auto", requires = "by")]
    interval: Interval,
    #[command(flatten)]
    files: RecordedFiles,
}

/// What has a profile of its own.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Each phase of the recorded programs
    Phase,
}

fn weighted(text: &str) -> Result<(f64, PathBuf), String> {
    let parsed = text
        .split_once(',')
        .and_then(|(weight, file)| Some((weight.parse::<f64>().ok()?, file)));
    match parsed {
        Some((weight, file)) if weight > 0.0 && weight.is_finite() => Ok((weight, file.into())),
        _ => Err("expected WEIGHT,FILE with a weight above 0".into()),
    }
}

/// Merges.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.profiles.is_empty() && args.weighted_input.is_empty() {
        bail!("nothing to merge: name at least one profile");
    }
    if let Some(By::Phase) = args.by {
        return by_phase::merge_by_phase(&args.profiles, args.interval, &args.files, &args.output);
    }
    if !args.files.binary.is_empty() || args.files.root.symfs.is_some() {
        bail!("--binary and --symfs have an effect with --by phase only: leave them out");
    }
    if let Some(counts) = exact_counts(args)? {
        return merge_counts(counts, &args.output);
    }
    let unweighted = args.profiles.iter().map(|path| (path.clone(), 1.0));
    let weighted = args.weighted_input.iter().map(|(weight, path)| (path.clone(), *weight));
    let inputs: Vec<(PathBuf, f64)> = unweighted.chain(weighted).collect();
    let progress = Progress::counted("merging", "profiles", false);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut merged = merge_files(&inputs, threads, &|done| progress.at(done, inputs.len() as u64))?;
    drop(progress);
    add_vectors(&mut merged);
    write_profile(&args.output, &merged.profile)?;
    note_changed(&merged.report);
    Ok(ExitCode::SUCCESS)
}

/// Adds the raw vectors of all profiles, or says why they are left out.
pub(super) fn add_vectors(merged: &mut Merged) {
    match joined(merged) {
        Ok(vectors) => merged.profile.vectors = vectors,
        Err(reason) => eprintln!("pleach: note: raw vectors are left out: {reason:#}"),
    }
}

/// The raw vectors of all profiles.
fn joined(merged: &Merged) -> Result<Option<Vec<u8>>> {
    if merged.report.with_vectors == 0 {
        return Ok(None);
    }
    if merged.vectors.len() != merged.report.profiles {
        bail!("not all profiles have raw vectors, or --weighted-input was given");
    }
    let sets: Result<Vec<_>, _> = merged
        .vectors
        .iter()
        .map(|bytes| VectorSet::from_bytes(bytes))
        .collect();
    Ok(Some(join(sets?)?.to_bytes()))
}

/// The files to merge, if they hold exact counts.
fn exact_counts(args: &Args) -> Result<Option<&[PathBuf]>> {
    let weighted = args.weighted_input.iter().map(|(_, path)| path);
    // An unreadable file is reported when it is read below.
    let (counts, others): (Vec<_>, Vec<_>) = (args.profiles.iter())
        .chain(weighted)
        .partition(|path| CountFile::is_count_file(path).unwrap_or(false));
    let Some(first) = counts.first() else { return Ok(None) };
    if let Some(profile) = others.into_iter().find(|path| ProfileFile::open(path).is_ok()) {
        bail!(
            "{} holds exact counts, {} is a sampled profile: they cannot be added up; merge files of one kind",
            first.display(),
            profile.display()
        );
    }
    if let Some((weight, path)) = args.weighted_input.first() {
        bail!(
            "{}: exact counts have no weight, so that {weight} cannot be applied: merge without --weighted-input",
            path.display()
        );
    }
    Ok(Some(&args.profiles))
}

fn merge_counts(files: &[PathBuf], output: &Path) -> Result<ExitCode> {
    let inputs: Result<Vec<_>, _> = files.iter().map(CountFile::open).collect();
    let merged = counts::merge::merge(inputs?);
    pleach_store::write_counts(output, &merged)?;
    for problem in &merged.problems {
        eprintln!("pleach: warning: {problem}");
    }
    Ok(ExitCode::SUCCESS)
}
