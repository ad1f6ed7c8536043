//! `pleach analyse`: a profile of raw vectors that were kept.

use super::binaries::RecordedFiles;
use super::events::WantedEvents;
use super::inputs::kept_vectors;
use super::phases::interval;
use super::profile_output::write_profile;
use super::recorded::analysed;
use anyhow::{Context, Result, bail};
use pleach_analysis::time_bias::{Model, Weights};
use pleach_collector::vector::{VectorSet, in_turn, join};
use pleach_decide::support::support_summary;
use pleach_phases::{Interval, Timeline};
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a profile of the raw vectors that other profiles kept.
///
/// The vectors are analysed as when they were recorded: whole bursts, and what breakpoints showed. Vectors of several
/// profiles are analysed together. The binaries must still be there, or be named by --binary.
///
///   pleach record --keep-vectors -o kept.pleach -- ./app
///   pleach analyse kept.pleach -o again.pleach --correct-time-bias
///   pleach analyse kept.pleach -o paths.pleach --event call:malloc
///   pleach analyse kept.pleach -o even.pleach --phases equal      short phases count as much as long ones
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Profiles that were recorded with --keep-vectors.
    #[arg(required = true)]
    profiles: Vec<PathBuf>,
    /// The profile to write. A profile that is there is renamed FILE.old.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    files: RecordedFiles,
    /// Weight branches by their time, where the recording measured it (`pleach record --correct-time-bias`).
    #[arg(long)]
    correct_time_bias: bool,
    /// Weight the phases of the program (`pleach phases`): `equal` gives each the same weight, `time` its CPU time. `time`
    /// changes something only if recordings with different budgets are analysed together.
    #[arg(long, value_enum, value_name = "WEIGHT")]
    phases: Option<PhaseWeight>,
    /// Length of the compared intervals in bursts, or auto (see `pleach phases --help`).
    #[arg(long, default_value = "auto", value_parser = interval, value_name = "N|auto", requires = "phases")]
    interval: Interval,
    /// Also find the paths that lead to an event in the bursts: call:FUNCTION, allocations, syscalls, syscall:NAME; may be
    /// repeated. Events that the kernel sampled are kept with the vectors.
    #[arg(long, value_name = "EVENT")]
    event: Vec<String>,
    /// Do not keep the raw vectors.
    #[arg(long)]
    without_vectors: bool,
    /// Print only errors.
    #[arg(short, long)]
    quiet: bool,
}

/// How phases are weighted.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PhaseWeight {
    /// Every phase has the same weight.
    Equal,
    /// A phase's weight is its CPU time, or its number of bursts if that is unknown.
    Time,
}

impl PhaseWeight {
    /// The factor of each burst.
    fn factors(self, vectors: &VectorSet, interval: Interval) -> Result<Vec<f64>> {
        let timeline = Timeline::new(vectors, interval).context("cannot weight phases")?;
        Ok(timeline.burst_factors(|phase| match self {
            Self::Equal => 1.0,
            Self::Time => phase.cpu_seconds,
        }))
    }
}

/// The number of equally weighted bursts that are as much evidence as bursts with these factors (Kish).
fn effective(factors: &[f64]) -> u64 {
    let squares: f64 = factors.iter().map(|factor| factor * factor).sum();
    (factors.iter().sum::<f64>().powi(2) / squares) as u64
}

/// Analyses.
pub fn run(args: &Args) -> Result<ExitCode> {
    let events = WantedEvents::parse(&args.event)?;
    if !events.kernel.is_empty() || events.processor.is_some() {
        bail!(
            "--event: only calls and system calls are found in kept vectors; record others with `pleach record --event`"
        );
    }
    let sets = args.profiles.iter().map(|path| kept_vectors(path));
    let mut sets = sets.collect::<Result<Vec<_>>>()?;
    // As `merge` does, so that the order of profiles does not matter.
    sets.sort_by_cached_key(VectorSet::to_bytes);
    if args.phases.is_some() {
        in_turn(&mut sets);
    }
    let vectors = join(sets).context("cannot analyse the recordings together")?;
    let mut weights = if args.correct_time_bias {
        Weights::from_vectors(&vectors, &Model::default())
    } else {
        Weights::equal()
    };
    let factors = args
        .phases
        .map(|weight| weight.factors(&vectors, args.interval))
        .transpose()?;
    if let Some(factors) = &factors {
        weights = weights.with_factors(&vectors.bursts, factors);
    }
    let mut profile = analysed(
        &vectors,
        &weights,
        &args.files.finder()?,
        &events.in_bursts,
        !args.without_vectors,
        args.quiet,
    )?;
    if profile.functions.is_empty() {
        bail!("none of the recorded files is annotated, or they are gone: name the program with --binary");
    }
    if let Some(factors) = &factors {
        profile.provenance.bursts = profile.provenance.bursts.min(effective(factors));
    }
    write_profile(&args.output, &profile)?;
    if !args.quiet {
        eprintln!("pleach: wrote {}", args.output.display());
        eprintln!(
            "pleach: {}",
            support_summary(&profile.provenance, profile.functions.len())
        );
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::effective;

    #[test]
    fn unequal_weights_are_less_evidence() {
        assert_eq!(effective(&[1.0; 100]), 100);
        assert_eq!(effective(&[1.9, 1.9, 0.1, 0.1]), 2);
    }
}
