//! `pleach phases`: the phases of a recording.

use super::binaries::{RecordedFiles, named_or_recorded_quietly, profile_names};
use super::inputs::{DEFAULT_PROFILE, kept_vectors, sampled};
use super::output::{NamesArgs, print_json, print_report};
use anyhow::{Context, Result};
use pleach_analysis::analyse::AnalysisError;
use pleach_analysis::phases::{first_executions, profiles_of_phases};
use pleach_analysis::program::Program;
use pleach_phases::detector::MIN_INTERVAL;
use pleach_phases::{Interval, Timeline};
use pleach_report::phases::Phases;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show the phases of a program's execution, detected from its bursts.
///
/// A phase is a span of time in which the program executes the same code in the same shares. Bursts are compared in
/// intervals of a constant number; a phase ends where an interval differs from it by more than chance explains (at most
/// one false change in 10⁹ intervals), and by at least a tenth of the time. A phase that comes back is recognised. Where
/// breakpoints show that code was executed for the first time, a change is looked for, too: so phases are found that are
/// too short to fill an interval.
///
/// It prints a timeline, and for each phase: its share of the CPU time, the functions whose code was first executed in it,
/// its hottest paths, and the paths that set it apart from the other phases. CPU times are estimated from numbers of
/// bursts. The recording must have its raw vectors. A program that is not annotated has phases without paths.
///
///   pleach record --keep-vectors -o app.pleach -- ./app
///   pleach phases app.pleach
///   pleach phases app.pleach --interval 1000       smaller differences, fewer phases
///   pleach analyse app.pleach -o even.pleach --phases equal     a profile in which each phase counts alike
///   pleach merge --by phase app.pleach -o phases                a profile of each phase
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// A profile that was recorded or imported with --keep-vectors.
    #[arg(default_value = DEFAULT_PROFILE, value_name = "FILE")]
    profile: PathBuf,
    /// Length of the compared intervals in bursts, 50 or more. `auto`: 100, doubled up to 1600 while phases end before
    /// they have lasted four intervals.
    #[arg(long, default_value = "auto", value_parser = interval, value_name = "N|auto")]
    interval: Interval,
    /// Number of hottest paths to list for each phase, and of further ones that set it apart.
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
    /// Print numbers of blocks, not source lines.
    #[arg(long)]
    blocks: bool,
    #[command(flatten)]
    files: RecordedFiles,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    names: NamesArgs,
}

/// Parses the value of `--interval`.
pub fn interval(text: &str) -> Result<Interval, String> {
    if text == "auto" {
        return Ok(Interval::Adaptive);
    }
    let bursts = text.parse().ok().filter(|&bursts| bursts >= MIN_INTERVAL);
    bursts.map(Interval::Fixed).ok_or_else(|| {
        format!("expected a number of bursts from {MIN_INTERVAL} on, or auto: fewer cannot prove a change")
    })
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let vectors = kept_vectors(&args.profile)?;
    let timeline = Timeline::new(&vectors, args.interval).with_context(|| args.profile.display().to_string())?;
    let program = Program::read(&vectors.modules, &args.files.finder()?);
    for problem in &program.problems {
        eprintln!("pleach: warning: {problem}");
    }
    let first = first_executions(&program, &vectors.coverage);
    let profiles = match profiles_of_phases(&program, vectors, &timeline) {
        Ok(profiles) => profiles,
        Err(error @ (AnalysisError::NotAnnotated | AnalysisError::Unusable | AnalysisError::Gone)) => {
            eprintln!("pleach: note: phases are shown without paths: {error}");
            Vec::new()
        }
        Err(error) => return Err(error.into()),
    };
    let report = Phases::new(&timeline, &profiles, &first, args.top);
    if args.json {
        print_json("phases", "phases", &report.to_json()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let sources = match args.blocks {
        true => None,
        false => {
            let profile = sampled(std::slice::from_ref(&args.profile))?;
            let binaries = named_or_recorded_quietly(&args.files.binary, &args.files.root, &profile);
            Some(profile_names(&binaries, &profile))
        }
    };
    print_report(&report.to_text(&args.names.names(), sources.as_ref()))?;
    Ok(ExitCode::SUCCESS)
}
