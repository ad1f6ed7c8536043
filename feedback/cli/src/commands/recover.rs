//! `pleach recover`: what recorders that were killed have left.

use super::recorded::{Subject, Target};
use anyhow::{Context, Result, bail};
use pleach_annotate::find::Finder;
use pleach_collector::detached;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make profiles of recordings whose `pleach record` was killed, and delete their temporary files.
///
/// They are found in the directory of temporary files (TMPDIR, else /tmp). Each becomes `recovered-1.pleach` and so on
/// in the current directory, the oldest first. Blocks that no breakpoint and no sample shows are unknown, not "never
/// executed".
///
///   pleach recover
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The directory to write profiles to.
    #[arg(short, long, default_value = ".", value_name = "DIR")]
    output: PathBuf,
    /// Only list the recordings.
    #[arg(long)]
    list: bool,
    /// Delete the recordings without making profiles.
    #[arg(long, conflicts_with = "list")]
    discard: bool,
}

/// Makes the profiles.
pub fn run(args: &Args) -> Result<ExitCode> {
    let found = detached::left_over(&std::env::temp_dir());
    if found.is_empty() {
        eprintln!("pleach: nothing to recover in {}", std::env::temp_dir().display());
    }
    let mut code = ExitCode::SUCCESS;
    for folder in &found {
        if args.list {
            println!("{}", folder.display());
        } else if let Err(error) = recover(args, folder) {
            // The others can be recovered nevertheless.
            eprintln!("pleach: error: {}", crate::explain(&error));
            code = ExitCode::FAILURE;
        }
    }
    if !args.list {
        let temporary = std::env::temp_dir();
        detached::delete_remains(&temporary)
            .with_context(|| format!("cannot delete what killed recorders left in {}", temporary.display()))?;
    }
    Ok(code)
}

fn recover(args: &Args, folder: &Path) -> Result<()> {
    if !args.discard {
        let recording = detached::recover(folder)?;
        if recording.stats.bursts > 0 || !recording.vectors.coverage.is_empty() {
            let target = Target {
                output: &unused(&args.output)?,
                stats: None,
                finder: Finder::default(),
                keep_vectors: false,
                correct_time_bias: false,
                events: &[],
                needs_samples: false,
                quiet: false,
                keeps_old: false,
                subject: Subject::Folder,
                budget: 0.0,
            };
            target.write(&recording)?;
        } else {
            eprintln!("pleach: {}: nothing was sampled", folder.display());
        }
    }
    detached::delete(folder).with_context(|| format!("cannot delete {}", folder.display()))
}

/// The first name that no file has.
fn unused(folder: &Path) -> Result<PathBuf> {
    let mut names = (1..10_000).map(|number| folder.join(format!("recovered-{number}.pleach")));
    match names.find(|path| !path.exists()) {
        Some(path) => Ok(path),
        None => bail!("{}: delete what was recovered before", folder.display()),
    }
}
