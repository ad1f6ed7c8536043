//! `pleach export --format parquet`: tables of one or several profiles.

use super::super::output::plural;
use super::super::progress::Progress;
use super::Args;
use anyhow::{Context, Result, bail};
use pleach_fleet::folder::{Exported, Folder, Partition};
use pleach_profile::file::ProfileFile;
use std::path::Path;
use std::process::ExitCode;

/// Exports. A run is named after its profile's content, so that the same profile is there once.
pub(super) fn export(args: &Args) -> Result<ExitCode> {
    if args.output == Path::new("-") {
        bail!("tables are a directory of files: name the directory with --output");
    }
    if args.output.exists() && !args.output.is_dir() {
        bail!("cannot write {}: not a directory", args.output.display());
    }
    let folder = Folder::new(&args.output);
    let profiles = || std::iter::once(&args.profile).chain(&args.more);
    let of = profiles().count();
    let progress = Progress::counted("exporting", "profiles", args.quiet);
    let mut all = Exported::default();
    for (done, path) in profiles().enumerate() {
        progress.at(done as u64, of as u64);
        let file = ProfileFile::open(path)?;
        let profile = file.read_all()?;
        let written = path.metadata().and_then(|metadata| metadata.modified());
        let written = written.with_context(|| format!("cannot read {}", path.display()))?;
        let mut partition = Partition::of_profile(&profile, written);
        if let Some(day) = &args.day {
            partition.day.clone_from(day);
        }
        let exported = folder.export(&profile, &file.digest().to_string(), &partition)?;
        all.rows += exported.rows;
        all.bytes += exported.bytes;
    }
    drop(progress);
    if !args.quiet {
        eprintln!(
            "pleach: {} of {} in {} kB; wrote {}",
            plural(all.rows, "row"),
            plural(of, "profile"),
            all.bytes.div_ceil(1000),
            args.output.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}
