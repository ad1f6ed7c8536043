//! Input files of several commands: sampled profiles or exact counts.

use anyhow::{Context, Result, bail};
use pleach_analysis::exact_profile;
use pleach_annotate::binary::Binary;
use pleach_annotate::manifest::{self, Entry};
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_ball_larus::counts::file::CountFile;
use pleach_ball_larus::counts::merge::merge as merge_counts;
use pleach_collector::vector::VectorSet;
use pleach_profile::Profile;
use pleach_profile::file::ProfileFile;
use pleach_profile::merge::{MergeReport, merge};
use pleach_report::exclude::exclude;
use pleach_report::flows::Flows;
use pleach_report::names::Names;
use std::path::{Path, PathBuf};

/// The profile that `pleach record` writes, and that others read, if none is named.
pub const DEFAULT_PROFILE: &str = "default.pleach";

/// The files that a user names, else the default profile.
pub fn or_default(files: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if !files.is_empty() {
        return Ok(files.to_vec());
    }
    if !Path::new(DEFAULT_PROFILE).exists() {
        bail!(
            "no profile is named, and there is no {DEFAULT_PROFILE} in this directory: name one, or record one with `pleach record`"
        );
    }
    Ok(vec![DEFAULT_PROFILE.into()])
}

/// Functions that are left out of a profile.
#[derive(clap::Args)]
pub struct ExcludeArgs {
    /// Leave out this function, for instance of a thread that spins; may be repeated. Shares refer to the rest.
    #[arg(long, value_name = "NAME")]
    exclude_function: Vec<String>,
}

impl ExcludeArgs {
    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.exclude_function.is_empty()
    }

    /// Leaves them out, and says how much that is.
    pub fn apply(&self, profile: &mut Profile, names: &Names) -> Result<()> {
        let excluded = exclude(profile, &self.exclude_function)?;
        let text = excluded.to_text(names);
        if !text.is_empty() {
            eprintln!("pleach: {text}");
        }
        Ok(())
    }
}

/// The sum of several files of the same kind.
#[expect(clippy::large_enum_variant, reason = "only one exists at a time")]
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
    flows(file, &read(std::slice::from_ref(file))?)
}

/// What a file has for a comparison.
pub fn flows(file: &Path, input: &Input) -> Result<Flows> {
    match input {
        Input::Sampled(profile) => Ok(Flows::of_profile(profile)),
        Input::Exact(exact) => Flows::of_exact(exact).with_context(|| file.display().to_string()),
    }
}

/// Reads sampled profiles, or exact counts as profiles, and merges them.
pub fn sampled(files: &[PathBuf]) -> Result<Profile> {
    let mut profiles = Vec::new();
    for path in files {
        profiles.push((read_profile(path)?, 1.0));
    }
    if profiles.len() == 1 {
        return Ok(profiles.swap_remove(0).0);
    }
    let merged = merge(profiles)?;
    note_changed(&merged.report);
    Ok(merged.profile)
}

/// The raw vectors that a profile kept.
pub fn kept_vectors(path: &Path) -> Result<VectorSet> {
    let file = ProfileFile::open(path)?;
    match file.vectors()? {
        Some(bytes) => VectorSet::from_bytes(bytes).with_context(|| format!("{}: raw vectors", path.display())),
        None => bail!(
            "{} holds no raw vectors: record or import again with --keep-vectors",
            path.display()
        ),
    }
}

/// Reads a profile. A file of exact counts becomes one.
fn read_profile(path: &PathBuf) -> Result<Profile> {
    // An unreadable file is reported when it is opened.
    if !CountFile::is_count_file(path).unwrap_or(false) {
        return Ok(ProfileFile::open(path)?.read_all()?);
    }
    let exact = exact(std::slice::from_ref(path))?;
    exact_profile::profile_of(&exact).with_context(|| path.display().to_string())
}

/// Prints how functions that changed between the recordings were treated.
pub fn note_changed(report: &MergeReport) {
    if report.changed > 0 {
        eprintln!(
            "pleach: note: {} different control flow in some of these profiles: they have counts for each version",
            match report.changed {
                1 => "1 function has".to_owned(),
                changed => format!("{changed} functions have"),
            }
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
