//! `pleach collect`: a profile of what programs have written that were started without a recorder.

use super::binaries::RecordedFiles;
use super::profile_output::ensure_replaceable;
use super::recorded::{NOTHING_SAMPLED, Subject, Target};
use anyhow::Result;
use pleach_collector::detached::Collection;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a profile of a recording that `pleach record --env` began.
///
/// It has what was sampled so far, in any number of processes and restarts of them. Programs that run are not disturbed
/// and go on being sampled: collect again for more. To end the recording, start the programs without its environment
/// and delete the directory.
///
///   pleach record --env /var/tmp/web > web.env     for systemd: EnvironmentFile=/…/web.env
///   docker run --env-file web.env -v /var/tmp/web:/var/tmp/web -v /opt/pleach:/opt/pleach:ro …
///   pleach collect /var/tmp/web -o web.pleach
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The directory of the recording.
    folder: PathBuf,
    /// The profile to write.
    #[arg(short, long, default_value = "default.pleach", value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    files: RecordedFiles,
    /// Take what the profile has out of the recording: the next profile begins where this one ends, and the space is
    /// free again. A profile that is there is renamed FILE.old. For services that run for weeks: rotate before --max-dir-size is
    /// reached, and merge the profiles.
    #[arg(long)]
    rotate: bool,
    /// Write measurements of the recording to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    /// Keep the raw vectors in the profile.
    #[arg(long)]
    keep_vectors: bool,
    /// Print only errors.
    #[arg(short, long)]
    quiet: bool,
}

/// Makes the profile.
pub fn run(args: &Args) -> Result<ExitCode> {
    ensure_replaceable(&args.output)?;
    let collection = Collection::open(&args.folder, args.rotate)?;
    let target = Target {
        output: &args.output,
        stats: args.stats.as_deref(),
        finder: args.files.finder()?,
        keep_vectors: args.keep_vectors,
        correct_time_bias: false,
        events: &[],
        needs_samples: true,
        quiet: args.quiet,
        // Without --rotate, the new profile has all that the old one has.
        keeps_old: args.rotate,
        subject: Subject::Folder,
        budget: 0.0,
    };
    Ok(if target.write(&collection.recording)? {
        if args.rotate {
            collection.take()?;
        }
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOTHING_SAMPLED)
    })
}
