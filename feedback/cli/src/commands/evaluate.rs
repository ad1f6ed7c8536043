//! `pleach evaluate`: how near sampled paths come to exactly counted ones.

use super::output::print;
use super::sampling::{self, EngineArg, Wants, percentage};
use anyhow::{Context, Result, bail};
use pleach_analysis::evaluate::estimate::Estimator;
use pleach_analysis::evaluate::{EvaluateError, Job, Options, Stage, evaluate};
use pleach_collector::record::{RecordError, RecordOptions};
use pleach_report::evaluate::{evaluation_json, evaluation_text};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tempfile::NamedTempFile;

/// Compare sampled paths with exactly counted ones.
///
/// Takes two builds of one program from the same sources, with the same -O level and --anchor: one with
/// $(pleach flags annotate), one with $(pleach flags instrument). The latter runs once; then the former is recorded several
/// times, each time as often as it takes to use --cpu-seconds. Each figure is printed with its median, least and largest
/// value. What the programs print is compared and not shown.
#[derive(clap::Args)]
pub struct Args {
    /// The program, built with $(pleach flags annotate).
    #[arg(long, value_name = "BIN")]
    annotated: PathBuf,
    /// The program, built with $(pleach flags instrument).
    #[arg(long, value_name = "BIN")]
    exact: PathBuf,
    /// How branch vectors are obtained.
    #[arg(long, value_enum, default_value_t = EngineArg::Auto)]
    engine: EngineArg,
    /// CPU time to spend on sampling, as a share of the program's: 1%, 0.5%, 300%.
    #[arg(long, default_value = "1%", value_parser = percentage)]
    overhead: f64,
    /// Weight branches against the preference of timer ticks for slow code, as `pleach record` does with this option.
    #[arg(long)]
    correct_time_bias: bool,
    /// Recordings to make.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// CPU-seconds of the program in each recording: a shorter command is repeated. 0 runs it once.
    #[arg(long, default_value_t = 10.0, value_parser = seconds, value_name = "SECONDS")]
    cpu_seconds: f64,
    /// What the program reads as standard input, each time; - for what this command gets. A file that is redirected here
    /// is read without this option.
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Print JSON: each figure with its median, min, max and n; shares as fractions.
    #[arg(long)]
    json: bool,
    /// Say nothing but errors and the figures.
    #[arg(short, long)]
    quiet: bool,
    /// The program's arguments.
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 && value.is_finite() => Ok(value),
        _ => Err("expected seconds, like 10 or 0.5".into()),
    }
}

/// Evaluates.
pub fn run(args: &Args) -> Result<ExitCode> {
    let engine = args.engine.engine(Wants::default())?;
    let record = RecordOptions {
        engine,
        overhead: args.overhead,
        clocks: args.correct_time_bias,
        ..RecordOptions::new(sampling::sampler(engine)?)
    };
    let options = Options {
        runs: args.runs,
        cpu_seconds: args.cpu_seconds,
        ..Options::new(record)
    };
    // Lives until the end: the programs read it.
    let input = input(args)?;
    let job = Job {
        annotated: args.annotated.clone(),
        exact: args.exact.clone(),
        args: args.args.clone(),
        input: input.as_ref().map(|file| file.path().to_owned()),
    };
    let shown = !args.quiet && io::stderr().is_terminal();
    let evaluated = evaluate(&job, &options, &[Estimator::default()], &mut |stage| {
        if shown {
            eprintln!("pleach: {}", say(stage));
        }
    });
    let evaluations = match evaluated {
        Ok(evaluations) => evaluations,
        Err(EvaluateError::Record(error)) => return Ok(refused(&error)),
        Err(error) => return Err(error.into()),
    };
    for evaluation in &evaluations {
        for warning in evaluation.warnings.iter().filter(|_| !args.quiet) {
            eprintln!("pleach: warning: {warning}");
        }
        let text = match args.json {
            true => evaluation_json(evaluation)?,
            false => evaluation_text(evaluation),
        };
        print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn refused(error: &RecordError) -> ExitCode {
    eprintln!("pleach: error: {error}");
    ExitCode::from(error.exit_code())
}

fn say(stage: Stage) -> String {
    match stage {
        Stage::Exact => "running the instrumented program".to_owned(),
        Stage::Trial => "running the annotated program, to see how long it takes".to_owned(),
        Stage::Run { run, of, repeat: 1 } => format!("recording {run} of {of}"),
        Stage::Run { run, of, repeat } => format!("recording {run} of {of}: {repeat} times the command"),
        Stage::Analysis => "analysing".to_owned(),
    }
}

/// Standard input as a file, without opening it again: that can wait forever for a pipe's other end.
fn own_input() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// A copy of what the programs are to read: each of them reads it from the beginning, and it may not be there twice.
fn input(args: &Args) -> Result<Option<NamedTempFile>> {
    let own = Path::new("/dev/stdin");
    let wanted = match args.stdin.as_deref() {
        Some(path) if path == Path::new("-") => own,
        Some(path) => path,
        None => match own_input().and_then(|file| file.metadata()) {
            Ok(found) if found.is_file() => own,
            // Nobody can tell whether it ever ends.
            Ok(found) if found.file_type().is_fifo() && !args.quiet => {
                eprintln!(
                    "pleach: note: the program gets no standard input; --stdin - hands on what comes from the pipe"
                );
                return Ok(None);
            }
            _ => return Ok(None),
        },
    };
    if wanted == own && io::stdin().is_terminal() {
        bail!("--stdin - reads a file or a pipe, not a terminal");
    }
    let mut copy = NamedTempFile::new().context("cannot make a temporary file")?;
    let copied = if wanted == own {
        io::copy(&mut io::stdin().lock(), &mut copy)
    } else {
        File::open(wanted).and_then(|mut file| io::copy(&mut file, &mut copy))
    };
    copied.with_context(|| format!("cannot read {}", wanted.display()))?;
    Ok(Some(copy))
}
