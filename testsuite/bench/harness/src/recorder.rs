//! Running a workload's binary under `pleach record`: the one place that knows how a recording is started.

use crate::build::Binary;
use crate::pleach_command::Pleach;
use crate::run::{Invocation, run_with};
use anyhow::{Context, Result};
use pleach_collector::vector::VectorSet;
use pleach_profile::file::ProfileFile;
use std::path::Path;

/// The words before a recorded command.
pub(crate) fn recorder(pleach: &Pleach, options: &[String], profile: &Path) -> Vec<String> {
    let mut words = vec![pleach.command.display().to_string(), "record".to_owned()];
    words.extend_from_slice(options);
    words.extend(["-o".to_owned(), profile.display().to_string(), "--".to_owned()]);
    words
}

/// Records a binary on an input into `profile`, with more options of `pleach record`.
///
/// # Errors
/// The program or the recorder fails, or the program prints another checksum than without being recorded.
pub fn record_profile(
    binary: &Binary,
    invocation: &Invocation,
    pleach: &Pleach,
    options: &[String],
    profile: &Path,
) -> Result<()> {
    run_with(binary, invocation, &recorder(pleach, options, profile), &[])?.expect_checksum(binary, invocation)?;
    Ok(())
}

/// Records `repeat` runs of a binary, and returns the raw vectors. `rate`: a budget, as `1%`, or a period, as `4ms` or
/// `4ms,fixed`.
///
/// # Errors
/// As [`record_profile`], and where the recorder kept no vectors.
pub fn record_vectors(
    binary: &Binary,
    invocation: &Invocation,
    pleach: &Pleach,
    rate: &str,
    repeat: u32,
) -> Result<VectorSet> {
    let folder = tempfile::tempdir()?;
    let profile = folder.path().join("recorded.pleach");
    let options = [
        "--quiet".to_owned(),
        "--keep-vectors".to_owned(),
        if rate.contains('s') {
            format!("--period={rate}")
        } else {
            format!("--overhead={rate}")
        },
        format!("--repeat={repeat}"),
    ];
    record_profile(binary, invocation, pleach, &options, &profile)?;
    let profile = ProfileFile::open(&profile)?;
    let vectors = profile.vectors()?.context("pleach record kept no vectors")?;
    Ok(VectorSet::from_bytes(vectors)?)
}
