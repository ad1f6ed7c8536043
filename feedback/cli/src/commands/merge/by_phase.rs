//! `pleach merge --by phase`: a profile of each phase of the recorded programs.

use crate::commands::binaries::RecordedFiles;
use crate::commands::inputs::kept_vectors;
use crate::commands::output::plural;
use anyhow::{Context, Result, bail};
use pleach_analysis::phases::profiles_of_phases;
use pleach_analysis::program::Program;
use pleach_collector::vector::{in_turn, join};
use pleach_phases::{Interval, Timeline};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Detects the phases of all recordings together, and writes their profiles to a new folder.
pub fn merge_by_phase(
    profiles: &[PathBuf],
    interval: Interval,
    files: &RecordedFiles,
    folder: &Path,
) -> Result<ExitCode> {
    let sets = profiles.iter().map(|path| kept_vectors(path));
    let mut sets = sets.collect::<Result<Vec<_>>>()?;
    in_turn(&mut sets);
    let vectors = join(sets).context("cannot merge the recordings")?;
    let timeline = Timeline::new(&vectors, interval).context("cannot detect phases")?;
    let program = Program::read(&vectors.modules, &files.finder()?);
    for problem in &program.problems {
        eprintln!("pleach: warning: {problem}");
    }
    let phases = profiles_of_phases(&program, vectors, &timeline)?;
    make_empty(folder)?;
    for (phase, profile) in phases {
        let output = folder.join(format!("phase-{}.pleach", phase.0));
        pleach_store::write_profile(&output, &profile)?;
        let of = &profile.provenance;
        eprintln!(
            "pleach: wrote {}: {:.2} s of CPU time, {}",
            output.display(),
            of.program_cpu_seconds,
            plural(of.bursts, "burst")
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes a folder, or takes an empty one: phases of an earlier merge among these would mislead.
fn make_empty(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    if entries.next().is_some() {
        bail!("{} is not empty: name a new folder with -o", folder.display());
    }
    Ok(())
}
