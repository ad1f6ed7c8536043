//! `pleach record`: run a command, sample it, write a profile.

use crate::install;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use pleach_collector::record::{RecordError, RecordOptions, Recording, record};
use pleach_collector::vector::{Engine, VectorSet};
use pleach_collector::verify::Verified;
use pleach_feedback::analyse::{Analysis, AnalysisError, analyse, without_functions};
use pleach_feedback::profile::{Profile, file as profile_file};
use pleach_feedback::program::Program;
use pleach_feedback::time_bias::{Model, Weights};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

/// Run a command and record its branch vectors as a profile.
///
/// The command's output and exit status pass through. The profile is good for `pleach flags use` at once. A binary that
/// is not annotated can be recorded too: its raw vectors are kept, but no compiler can use them.
#[derive(clap::Args)]
pub struct Args {
    /// How branch vectors are obtained.
    #[arg(long, value_enum, default_value_t = EngineArg::Auto)]
    engine: EngineArg,
    /// CPU time to spend on sampling, as a share of the program's: 1%, 0.5%, 300%.
    #[arg(long, default_value = "1%", value_parser = percentage)]
    overhead: f64,
    /// Check shadow execution: compare each burst with what the program does then, one instruction at a time. Slow; for
    /// finding faults of pleach.
    #[arg(long, conflicts_with = "engine")]
    verify: bool,
    /// Sample only so long, from the command's start: 30s. The command runs on to its end.
    #[arg(long, value_parser = duration)]
    duration: Option<Duration>,
    /// Mean CPU time between bursts, instead of a budget: 500us, 4ms.
    #[arg(long, value_parser = duration)]
    period: Option<Duration>,
    /// Taken branches in a burst where the budget allows no more.
    #[arg(long, hide = true)]
    burst: Option<u32>,
    /// Run the command this many times, into one profile.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Seed of the random periods, for repeatable tests.
    #[arg(long, hide = true)]
    seed: Option<u64>,
    /// Write measurements of the recording as JSON.
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    /// Weight branches against the preference of timer ticks for slow code. Helps programs that make many system calls.
    #[arg(long)]
    correct_time_bias: bool,
    /// Keep the raw vectors in the profile.
    #[arg(long)]
    keep_vectors: bool,
    /// Read this file instead of the recorded binary of the same build-id or name.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Say nothing but errors.
    #[arg(short, long)]
    quiet: bool,
    /// The profile to write.
    #[arg(short, long, default_value = "default.pleach", value_name = "FILE")]
    output: PathBuf,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineArg {
    /// The best one that this machine offers.
    Auto,
    /// Shadow execution: the program's next instructions run ahead on a copy of its state. Some 30 ns per instruction.
    RunAhead,
    /// Single-stepping of the program in bursts: exact, costs microseconds per instruction.
    Step,
}

impl EngineArg {
    fn engine(self) -> Engine {
        match self {
            Self::Auto | Self::RunAhead => Engine::RunAhead,
            Self::Step => Engine::Step,
        }
    }
}

fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value / 100.0),
        _ => Err("expected a percentage above 0, like 1% or 250%".into()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let units = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let parsed = units.iter().find_map(|(unit, factor)| {
        let value: f64 = text.strip_suffix(unit)?.parse().ok()?;
        (value > 0.0 && value.is_finite()).then(|| Duration::from_secs_f64(value * factor))
    });
    parsed.ok_or_else(|| "expected a time like 500us, 4ms or 1s".into())
}

/// Records.
pub fn run(args: &Args) -> Result<ExitCode> {
    ensure_writable(args)?;
    let options = RecordOptions {
        engine: args.engine.engine(),
        overhead: args.overhead,
        verify: args.verify,
        duration: args.duration,
        period: args.period,
        burst: args.burst,
        repeat: args.repeat,
        seed: args.seed,
        ..RecordOptions::new(install::library(install::SAMPLER)?)
    };
    let recording = match record(&args.command, &options) {
        Ok(recording) => recording,
        Err(error) => return Ok(refused(&error)),
    };
    let written = finish(args, &recording);
    if let Err(error) = written {
        // The command's own failure must not hide ours, nor ours its: both are reported, its status is returned.
        eprintln!("pleach: error: {}", crate::explain(&error));
        if recording.status.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(exit_code(recording.status))
}

/// A command that was not run, or not sampled: the status is a shell's for commands that cannot be run.
fn refused(error: &RecordError) -> ExitCode {
    eprintln!("pleach: error: {error}");
    ExitCode::from(error.exit_code())
}

/// Finds out before the run, not after it, that the profile cannot be written.
fn ensure_writable(args: &Args) -> Result<()> {
    let dir = match args.output.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    if args.output.is_dir() {
        bail!("cannot write {}: it is a folder", args.output.display());
    }
    profile_file::probe_writable(dir).with_context(|| format!("cannot write {}", args.output.display()))
}

fn finish(args: &Args, recording: &Recording) -> Result<()> {
    if let Some(path) = &args.stats {
        let text = serde_json::to_string_pretty(&recording.stats)?;
        std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(verified) = &recording.stats.verified {
        report(verified);
    }
    let weights = if args.correct_time_bias {
        Weights::of(&recording.vectors, &Model::default())
    } else {
        Weights::equal()
    };
    let profile = analysed(
        &recording.vectors,
        &weights,
        args.binary.as_deref(),
        args.keep_vectors,
        args.quiet,
    )?;
    profile_file::write(&args.output, &profile)?;
    if !args.quiet {
        let stats = &recording.stats;
        eprintln!(
            "pleach: {} taken branches in {} bursts, {:.2} s of CPU time at {:.2} % overhead; wrote {}",
            stats.taken_branches,
            stats.bursts,
            stats.program_cpu_seconds,
            stats.overhead * 100.0,
            args.output.display()
        );
    }
    Ok(())
}

/// Says how shadow execution compared.
fn report(verified: &Verified) {
    eprintln!("pleach: {} instructions compared", verified.instructions);
    for (class, count) in &verified.disagreements {
        eprintln!("pleach: {class}: {count}");
    }
    for bug in &verified.bugs {
        eprintln!("pleach: bug: {bug}");
    }
}

/// The profile; for a program without annotations, one that holds raw vectors only.
pub(super) fn analysed(
    vectors: &VectorSet,
    weights: &Weights,
    binary: Option<&Path>,
    keep_vectors: bool,
    quiet: bool,
) -> Result<Profile> {
    let program = Program::read(&vectors.modules, binary);
    if !quiet {
        for problem in &program.problems {
            eprintln!("pleach: warning: {problem}");
        }
    }
    match analyse(&program, vectors, weights) {
        Ok(Analysis { mut profile, report }) => {
            profile.vectors = keep_vectors.then(|| vectors.to_bytes());
            if !quiet && report.inconsistent * 100 > report.stretches {
                eprintln!(
                    "pleach: warning: {} of {} sampled stretches do not fit the binary: was it changed while it ran?",
                    report.inconsistent, report.stretches
                );
            }
            Ok(profile)
        }
        Err(error @ AnalysisError::NotAnnotated) => {
            eprintln!(
                "pleach: warning: {error}. The raw vectors are kept, but `pleach flags use` cannot take the result"
            );
            Ok(Profile {
                vectors: Some(vectors.to_bytes()),
                ..without_functions(vectors)
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// The command's exit status, as a shell would report it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(code as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_and_periods_are_read() {
        assert_eq!(percentage("1%"), Ok(0.01));
        assert_eq!(percentage("300"), Ok(3.0));
        assert!(percentage("0%").is_err());
        assert!(percentage("x").is_err());
        assert_eq!(duration("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(duration("4ms"), Ok(Duration::from_millis(4)));
        assert!(duration("4").is_err());
    }
}
