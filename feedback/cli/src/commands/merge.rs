//! `pleach merge`: add profiles up.

use anyhow::{Result, bail};
use pleach_feedback::merge::merge;
use pleach_feedback::profile::file::{self, ProfileFile};
use std::path::PathBuf;
use std::process::ExitCode;

/// Add profiles up, of several runs or several programs that share code.
#[derive(clap::Args)]
pub struct Args {
    /// The profiles.
    profiles: Vec<PathBuf>,
    /// A profile whose counts are multiplied by a weight.
    #[arg(short, long, value_name = "WEIGHT,FILE", value_parser = weighted)]
    weighted_input: Vec<(f64, PathBuf)>,
    /// The profile to write.
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
    let inputs = args
        .profiles
        .iter()
        .map(|p| (1.0, p))
        .chain(args.weighted_input.iter().map(|(w, p)| (*w, p)));
    let mut profiles = Vec::new();
    for (weight, path) in inputs {
        profiles.push((ProfileFile::open(path)?.read_all()?, weight));
    }
    if profiles.is_empty() {
        bail!("nothing to merge: name at least one profile");
    }
    let merged = merge(profiles)?;
    file::write(&args.output, &merged.profile)?;
    for dropped in &merged.report.dropped {
        eprintln!(
            "pleach: warning: {} has different control flow in these profiles: the {} samples of graph {} are left out",
            dropped.name, dropped.samples, dropped.cfg_hash
        );
    }
    if !merged.vectors.is_empty() {
        eprintln!("pleach: note: raw vectors are not merged; they stay in the profiles they came in");
    }
    Ok(ExitCode::SUCCESS)
}
