//! `pleach merge`: merges profiles, or files of exact counts.

use super::inputs::warn_of_dropped;
use super::progress::Progress;
use anyhow::{Result, bail};
use pleach_ball_larus::counts;
use pleach_ball_larus::counts::file::CountFile;
use pleach_collector::vector::{VectorSet, join};
use pleach_profile::file::ProfileFile;
use pleach_profile::merge::merge;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Merge profiles of several runs, or of several programs that share code, into one.
///
/// Raw vectors are kept if all profiles have them and none has a weight. Also merges files of exact counts (.plcnt),
/// which instrumented programs write.
///
///   pleach merge monday.pleach tuesday.pleach -o week.pleach
///   pleach merge -w 3,prod.pleach tests.pleach -o both.pleach      counts of prod.pleach three times
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The profiles, or files of exact counts.
    profiles: Vec<PathBuf>,
    /// A profile and the weight that its counts are multiplied by; may be repeated.
    #[arg(short, long, value_name = "WEIGHT,FILE", value_parser = weighted)]
    weighted_input: Vec<(f64, PathBuf)>,
    /// The profile, or file of exact counts, to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
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
    if let Some(counts) = exact_counts(args)? {
        return merge_counts(counts, &args.output);
    }
    let inputs = args
        .profiles
        .iter()
        .map(|p| (1.0, p))
        .chain(args.weighted_input.iter().map(|(w, p)| (*w, p)));
    let inputs: Vec<_> = inputs.collect();
    let progress = Progress::counted("merging", "profiles", false);
    let mut profiles = Vec::new();
    for (done, (weight, path)) in inputs.iter().enumerate() {
        progress.at(done as u64, inputs.len() as u64);
        profiles.push((ProfileFile::open(path)?.read_all()?, *weight));
    }
    progress.at(inputs.len() as u64, inputs.len() as u64);
    if profiles.is_empty() {
        bail!("nothing to merge: name at least one profile");
    }
    let is_complete = args.weighted_input.is_empty() && profiles.iter().all(|(profile, _)| profile.vectors.is_some());
    let mut merged = merge(profiles)?;
    drop(progress);
    match joined(&merged.vectors, is_complete) {
        Ok(vectors) => merged.profile.vectors = vectors,
        Err(reason) => eprintln!("pleach: note: raw vectors stay in the profiles they came in: {reason:#}"),
    }
    pleach_store::write_profile(&args.output, &merged.profile)?;
    warn_of_dropped(&merged.report);
    Ok(ExitCode::SUCCESS)
}

/// The raw vectors of all profiles. `is_complete`: all of them have vectors, and none has a weight.
fn joined(files: &[Vec<u8>], is_complete: bool) -> Result<Option<Vec<u8>>> {
    if files.is_empty() {
        return Ok(None);
    }
    if !is_complete {
        bail!("not all profiles have them, or they have weights");
    }
    let sets: Result<Vec<_>, _> = files.iter().map(|bytes| VectorSet::from_bytes(bytes)).collect();
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
