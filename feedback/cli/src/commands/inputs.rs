//! Input files of several commands: sampled profiles or exact counts.

use anyhow::{Context, Result, bail};
use pleach_annotate::binary::Binary;
use pleach_annotate::manifest::{self, Entry};
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_ball_larus::counts::file::CountFile;
use pleach_ball_larus::counts::merge::merge as merge_counts;
use pleach_profile::Profile;
use pleach_profile::file::ProfileFile;
use pleach_profile::merge::{MergeReport, merge};
use pleach_report::flows::Flows;
use std::path::{Path, PathBuf};

/// The sum of several files of the same kind.
pub enum Input {
    /// Sampled profiles (.pleach).
    Sampled(Profile),
    /// Exact counts (.plcnt).
    Exact(ExactProfile),
}

/// Reads files of the same kind and merges them. Prints problems that affect only a part.
pub fn read(files: &[PathBuf]) -> Result<Input> {
    // An unreadable file is reported when it is read below.
    let (counts, others): (Vec<_>, Vec<_>) = files
        .iter()
        .partition(|path| CountFile::is_count_file(path).unwrap_or(false));
    match (counts.first(), others.first()) {
        (Some(counts), Some(profile)) => bail!(
            "{} holds exact counts, {} does not: name either files of exact counts (.plcnt) or sampled profiles (.pleach)",
            counts.display(),
            profile.display()
        ),
        (Some(_), None) => Ok(Input::Exact(exact(files)?)),
        _ => Ok(Input::Sampled(sampled(files)?)),
    }
}

/// Reads one file of either kind, for a comparison.
pub fn read_flows(file: &PathBuf) -> Result<Flows> {
    match read(std::slice::from_ref(file))? {
        Input::Sampled(profile) => Ok(Flows::of_profile(&profile)),
        Input::Exact(exact) => Flows::of_exact(&exact).with_context(|| file.display().to_string()),
    }
}

/// Reads sampled profiles and merges them.
pub fn sampled(files: &[PathBuf]) -> Result<Profile> {
    let mut profiles = Vec::new();
    for path in files {
        profiles.push((ProfileFile::open(path)?.read_all()?, 1.0));
    }
    if profiles.len() == 1 {
        return Ok(profiles.swap_remove(0).0);
    }
    let merged = merge(profiles)?;
    warn_of_dropped(&merged.report);
    Ok(merged.profile)
}

/// The programs of a profile's recorded commands that are there.
pub fn recorded_programs(profile: &Profile) -> Vec<PathBuf> {
    let programs = profile.provenance.commands.iter();
    let programs = programs
        .filter_map(|command| command.split(' ').next())
        .map(PathBuf::from);
    let mut programs: Vec<PathBuf> = programs.filter(|path| path.is_file()).collect();
    programs.sort();
    programs.dedup();
    programs
}

/// Prints warnings on graphs that merging left out.
pub fn warn_of_dropped(report: &MergeReport) {
    for dropped in &report.dropped {
        eprintln!(
            "pleach: warning: {} has different control flow in these profiles: the {} samples of graph {} are left out",
            dropped.name, dropped.samples, dropped.cfg_hash
        );
    }
}

fn exact(files: &[PathBuf]) -> Result<ExactProfile> {
    let counts: Result<Vec<_>, _> = files.iter().map(CountFile::open).collect();
    let counts = merge_counts(counts?);
    let exact = ExactProfile::from_counts(&counts);
    for problem in &counts.problems {
        eprintln!("pleach: warning: {problem}");
    }
    for problem in &exact.problems {
        eprintln!("pleach: warning: {problem}");
    }
    Ok(exact)
}

/// The manifests of programs and libraries.
pub fn manifests(binaries: &[PathBuf]) -> Result<Vec<Entry>> {
    let manifests: Result<Vec<_>> = binaries.iter().map(|path| manifest_of(path)).collect();
    Ok(manifests?.concat())
}

fn manifest_of(path: &Path) -> Result<Vec<Entry>> {
    let binary = Binary::open(path)?;
    if !binary.is_annotated() {
        bail!(
            "{}: has no manifest, so that counts cannot be compared with it: name what $(pleach flags instrument) or \
             $(pleach flags annotate) built, before it was stripped",
            path.display()
        );
    }
    let (entries, errors) = manifest::decode(&binary.manifest);
    for error in errors {
        eprintln!("pleach: warning: {}: {error}", path.display());
    }
    Ok(entries)
}
