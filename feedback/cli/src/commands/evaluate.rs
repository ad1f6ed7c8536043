//! `pleach evaluate`: the accuracy of sampled paths against exact counts.

use super::output::print;
use super::progress::Progress;
use super::sampling::{self, EngineArg, Wants, percentage};
use anyhow::{Context, Result, bail};
use pleach_analysis::evaluate::estimate::Estimator;
use pleach_analysis::evaluate::{EvaluateError, EvaluateOptions, Job, Stage, evaluate};
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

/// Measure the accuracy of sampled paths against exact counts.
///
/// Takes two builds of one program from the same sources, with the same -O level and --anchor: one with $(pleach flags
/// annotate), the other with $(pleach flags instrument). The instrumented program runs once. The annotated program is
/// recorded --runs times, each time for --cpu-seconds of CPU time. Each figure is printed with its median, minimum and
/// maximum. The outputs of the programs are compared and not shown.
///
///   pleach evaluate --annotated ./app-annotated --exact ./app-counted -- input.txt
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The program, built with $(pleach flags annotate).
    #[arg(long, value_name = "BIN")]
    annotated: PathBuf,
    /// The program, built with $(pleach flags instrument).
    #[arg(long, value_name = "BIN")]
    exact: PathBuf,
    /// Engine that samples branch vectors.
    #[arg(long, value_enum, default_value_t = EngineArg::Auto)]
    engine: EngineArg,
    /// CPU time to spend on sampling, as a percentage of the program's: 1%, 0.5%, 300%.
    #[arg(long, default_value = "1%", value_parser = percentage)]
    overhead: f64,
    /// Correct the time bias, as `pleach record` does with this option.
    #[arg(long)]
    correct_time_bias: bool,
    /// Number of recordings.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// CPU time of the program in each recording, in seconds: a shorter command is repeated. 0 runs it once.
    #[arg(long, default_value_t = 10.0, value_parser = seconds, value_name = "SECONDS")]
    cpu_seconds: f64,
    /// File that the program reads as standard input in each run; - for this command's standard input. A file that is
    /// redirected to this command's standard input is used without this option.
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Print JSON: each figure with its median, min, max and n; shares as fractions.
    #[arg(long)]
    json: bool,
    /// Print only errors and the figures.
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
    let from_outside = args.engine == EngineArg::Ptrace;
    if from_outside && args.correct_time_bias {
        bail!("--correct-time-bias needs the preloaded sampler and cannot be used with `--engine ptrace`");
    }
    let record = RecordOptions {
        engine,
        from_outside,
        overhead: args.overhead,
        times_bursts: args.correct_time_bias,
        ..RecordOptions::new(sampling::sampler(engine)?)
    };
    let options = EvaluateOptions {
        runs: args.runs,
        cpu_seconds: args.cpu_seconds,
        ..EvaluateOptions::new(record)
    };
    // Kept until the end, because the programs read it.
    let input = input(args)?;
    let job = Job {
        annotated: args.annotated.clone(),
        exact: args.exact.clone(),
        args: args.args.clone(),
        input: input.as_ref().map(|file| file.path().to_owned()),
    };
    let shown = !args.quiet && io::stderr().is_terminal();
    let progress = Progress::counted("recording", "recordings", args.quiet);
    let evaluated = evaluate(&job, &options, &[Estimator::default()], &mut |stage| match stage {
        Stage::Run { run, of, .. } => progress.at(u64::from(run) - 1, of.into()),
        _ if shown => eprintln!("pleach: {}", say(stage)),
        _ => {}
    });
    drop(progress);
    let evaluations = match evaluated {
        Ok(evaluations) => evaluations,
        Err(EvaluateError::Record(error)) => return Ok(refused(&error)),
        Err(error) => return Err(error.into()),
    };
    for evaluation in &evaluations {
        for warning in evaluation.warnings.iter().filter(|_| !args.quiet) {
            eprintln!("pleach: warning: {warning}");
        }
        match args.json {
            true => print(&evaluation_json(evaluation)?)?,
            false => print(&evaluation_text(evaluation))?,
        }
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
        Stage::Trial => "running the annotated program, to measure its time".to_owned(),
        Stage::Run { run, of, repeat: 1 } => format!("recording {run} of {of}"),
        Stage::Run { run, of, repeat } => format!("recording {run} of {of}: {repeat} times the command"),
        Stage::Analysis => "analysing".to_owned(),
    }
}

/// Standard input as a file. It is not opened again, which could wait forever for a pipe's writer.
fn own_input() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// A copy of the programs' input: each run reads it from the beginning, and a pipe can be read only once.
fn input(args: &Args) -> Result<Option<NamedTempFile>> {
    let own = Path::new("/dev/stdin");
    let wanted = match args.stdin.as_deref() {
        Some(path) if path == Path::new("-") => own,
        Some(path) => path,
        None => match own_input().and_then(|file| file.metadata()) {
            Ok(found) if found.is_file() => own,
            // A pipe may never end.
            Ok(found) if found.file_type().is_fifo() && !args.quiet => {
                eprintln!("pleach: note: the program gets no standard input; --stdin - passes the pipe on to it");
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
