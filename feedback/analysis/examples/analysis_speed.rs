//! Analyses the raw vectors that profiles keep (`pleach record --keep-vectors`) once more.
//!
//!     analysis_speed PROFILE… [--write DIRECTORY] [--branches N]
//!
//! Prints taken branches for each second of CPU time, and the growth of the resident set. `--branches` repeats a
//! recording's bursts until they have that many branches. `--write` writes each analysed profile's bytes, so that two
//! versions can be compared.

use anyhow::{Context, Result, bail};
use pleach_analysis::analyse::analyse;
use pleach_analysis::program::Program;
use pleach_analysis::time_bias::Weights;
use pleach_annotate::find::Finder;
use pleach_collector::vector::VectorSet;
use pleach_profile::file::ProfileFile;
use std::path::{Path, PathBuf};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (mut profiles, mut write, mut branches) = (Vec::new(), None, 0);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--write" => write = Some(PathBuf::from(arguments.next().context("--write needs a directory")?)),
            "--branches" => branches = arguments.next().context("--branches needs a number")?.parse()?,
            _ => profiles.push(PathBuf::from(argument)),
        }
    }
    if profiles.is_empty() {
        bail!("usage: analysis_speed PROFILE… [--write DIRECTORY] [--branches N]");
    }
    for path in &profiles {
        analyse_again(path, write.as_deref(), branches)?;
    }
    Ok(())
}

fn analyse_again(path: &Path, write: Option<&Path>, branches: u64) -> Result<()> {
    let file = ProfileFile::open(path)?;
    let bytes = file
        .vectors()?
        .with_context(|| format!("{} holds no raw vectors", path.display()))?;
    let mut vectors = VectorSet::from_bytes(bytes)?;
    repeat_bursts(&mut vectors, branches);
    let program = Program::read(&vectors.modules, &Finder::default());
    for problem in &program.problems {
        eprintln!("{}: {problem}", path.display());
    }
    let memory = resident_kib("VmRSS:")?;
    let start = cpu_seconds()?;
    let analysis = analyse(&program, &vectors, &Weights::equal())?;
    let seconds = cpu_seconds()? - start;
    println!(
        "{}: {} branches, {seconds:.2} s, {:.0} branches/s, {} KiB more at the peak",
        path.display(),
        analysis.report.branches,
        analysis.report.branches as f64 / seconds.max(0.01),
        resident_kib("VmHWM:")?.saturating_sub(memory),
    );
    if let Some(directory) = write {
        let name = path.file_name().context("a profile has a name")?;
        pleach_store::write_profile(&directory.join(name), &analysis.profile)?;
    }
    Ok(())
}

/// Repeats bursts, so that they have so many branches or more.
fn repeat_bursts(vectors: &mut VectorSet, branches: u64) {
    let all: u64 = vectors.bursts.iter().map(|burst| burst.branches.len() as u64).sum();
    let recorded = vectors.bursts.len();
    for _ in 1..branches.div_ceil(all.max(1)) {
        vectors.bursts.extend_from_within(..recorded);
    }
}

/// CPU time of this process so far.
fn cpu_seconds() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: u64 = text.split_whitespace().next().context("no CPU time")?.parse()?;
    Ok(nanoseconds as f64 / 1e9)
}

/// A line of `/proc/self/status`.
fn resident_kib(key: &str) -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .context("no such line")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
