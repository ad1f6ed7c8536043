//! Evaluation: runs an instrumented program once and the annotated one several times under the recorder, and compares
//! the estimates with the exact counts.
//!
//! The phases, one a file: [`binaries`] checks before anything runs whether the two can be compared; [`exact`] runs the
//! instrumented program; [`runs`] records the annotated one; [`estimate`] makes a path profile of a recording;
//! [`figures`] compares.

pub mod binaries;
pub mod estimate;
pub mod exact;
pub mod figures;
pub mod runs;

use crate::accuracy::Spread;
use crate::accuracy::truth::TruthError;
use crate::analyse::AnalysisError;
use crate::program::Program;
use estimate::Estimator;
use figures::{Comparison, Figures};
use pleach_annotate::binary::BinaryError;
use pleach_annotate::find::Finder;
use pleach_annotate::map::MapError;
use pleach_ball_larus::counts::error::CountError;
use pleach_collector::record::{RecordError, RecordOptions};
use pleach_profile::Anchor;
use runs::RecordedRun;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

/// Two builds of one program, and what to run them on.
#[derive(Clone, Debug)]
pub struct Job {
    /// Built with `pleach flags annotate`.
    pub annotated: PathBuf,
    /// Built of the same sources with `pleach flags instrument`, at the same anchor.
    pub exact: PathBuf,
    /// The arguments of both.
    pub args: Vec<OsString>,
    /// The file that both read as standard input; nothing if `None`.
    pub input: Option<PathBuf>,
}

/// Options of an evaluation.
#[derive(Clone, Debug)]
pub struct EvaluateOptions {
    /// How to record; its repetitions and redirections are ignored.
    pub record: RecordOptions,
    /// Number of recordings, each of which is compared by itself.
    pub runs: u32,
    /// Minimum length of a recording in CPU-seconds: shorter commands are repeated within it.
    pub cpu_seconds: f64,
}

impl EvaluateOptions {
    /// The reference: five recordings of 10 CPU-seconds.
    pub fn new(record: RecordOptions) -> Self {
        Self {
            record,
            runs: 5,
            cpu_seconds: 10.0,
        }
    }
}

/// The result of an evaluation.
#[derive(Clone, PartialEq, Debug)]
pub struct Evaluation {
    /// How estimates were made.
    pub estimator: Estimator,
    /// Where the graphs were taken.
    pub anchor: Anchor,
    /// Number of runs of the command in one recording.
    pub repeat: u32,
    /// Figures over all recordings, by the keys of [`figures::FIGURES`]. Undefined figures are omitted.
    pub figures: BTreeMap<&'static str, Spread>,
    /// Reasons for doubt in the figures, a line each.
    pub warnings: Vec<String>,
}

/// What is being done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The instrumented program runs.
    Exact,
    /// The annotated program runs once, to measure its time.
    Trial,
    /// A recording is made.
    Run {
        /// Which one, from 1.
        run: u32,
        /// Number of recordings.
        of: u32,
        /// Number of runs of the command in it.
        repeat: u32,
    },
    /// The recording is analysed.
    Analysis,
}

/// Why an evaluation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluateError {
    /// A file cannot be used at all.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// The annotated file cannot be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The file to be annotated is instrumented: it has graphs, but no probes.
    #[error(
        "{}: instrumented, not annotated: build it with $(pleach flags annotate) (or are --annotated and --exact \
         swapped?)",
        .0.display()
    )]
    Instrumented(PathBuf),
    /// The file to be instrumented is not.
    #[error("{}: {what}: build it with $(pleach flags instrument)", path.display())]
    NotInstrumented {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// The files were built at different anchors.
    #[error(
        "{} has its graphs from the {} anchor, {} from the {} one: build both with the same --anchor",
        job.annotated.display(),
        annotated.name(),
        job.exact.display(),
        counted.name()
    )]
    Anchors {
        /// The files.
        job: Box<Job>,
        /// Anchor of the annotated one.
        annotated: Anchor,
        /// Anchor of the instrumented one.
        counted: Anchor,
    },
    /// The files have nothing in common.
    #[error(
        "{} and {} have no function with the same control flow in common: build both from the same sources, with the \
         same -O level",
        .0.annotated.display(),
        .0.exact.display()
    )]
    NothingCommon(Box<Job>),
    /// The instrumented program wrote nothing.
    #[error(
        "{} ran ({status}) and wrote no counts: does it clear its environment, or end before its first function?",
        path.display()
    )]
    NoCounts {
        /// The file.
        path: PathBuf,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// What it wrote cannot be read.
    #[error(transparent)]
    Counts(#[from] CountError),
    /// What it wrote says nothing about paths.
    #[error("{}: {what}", path.display())]
    Truth {
        /// The file.
        path: PathBuf,
        /// Why.
        what: TruthError,
    },
    /// The annotated program was not sampled.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// What was sampled is not annotated.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// A recording has no bursts.
    #[error("{}: nothing was sampled in {seconds:.2} CPU-seconds: raise --overhead, or --cpu-seconds", path.display())]
    NothingSampled {
        /// The annotated file.
        path: PathBuf,
        /// CPU-seconds of the program.
        seconds: f64,
    },
    /// Files or processes failed.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: String,
        /// How it failed.
        #[source]
        error: std::io::Error,
    },
}

fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> EvaluateError {
    let what = what.into();
    move |error| EvaluateError::Io { what, error }
}

/// Runs, records, and evaluates each estimator on the same recordings. `progress` gets each stage when it begins.
///
/// # Errors
/// The files cannot be compared, or a run, a recording or its analysis fails.
pub fn evaluate(
    job: &Job,
    options: &EvaluateOptions,
    estimators: &[Estimator],
    progress: &mut dyn FnMut(Stage),
) -> Result<Vec<Evaluation>, EvaluateError> {
    binaries::check(job)?;
    let folder = runs::folder()?;
    progress(Stage::Exact);
    let counted = exact::count(job, folder.path())?;
    progress(Stage::Trial);
    let recorder = runs::Recorder::new(job, options, folder.path())?;
    let mut warnings: BTreeSet<String> = counted.warnings().into_iter().collect();
    let mut comparison: Option<Comparison> = None;
    let mut each = vec![Vec::new(); estimators.len()];
    let of = options.runs.max(1);
    for run in 1..=of {
        let repeat = recorder.repeat;
        progress(Stage::Run { run, of, repeat });
        let RecordedRun { recording, output } = recorder.record()?;
        warnings.extend(counted.differences(recording.status, output));
        if recording.stats.vectors == 0 {
            return Err(EvaluateError::NothingSampled {
                path: job.annotated.clone(),
                seconds: recording.stats.program_cpu_seconds,
            });
        }
        progress(Stage::Analysis);
        let program = Program::read(&recording.vectors.modules, &Finder::default());
        warnings.extend(program.problems.iter().map(ToString::to_string));
        let comparison = comparison.get_or_insert_with(|| Comparison::new(counted.truth.clone(), &program));
        let mut common = figures::recording(&program, &recording);
        common.extend(figures::coverage(&program, &recording, &counted.executed));
        for (estimator, each) in estimators.iter().zip(&mut each) {
            let mut figures = comparison.estimate(estimator.estimate(&program, &recording.vectors)?);
            figures.values.extend(&common);
            warnings.extend(comparison.warnings(&figures));
            each.push(figures);
        }
    }
    let evaluation = |(&estimator, each): (&Estimator, &Vec<Figures>)| Evaluation {
        estimator,
        anchor: counted.truth.anchor,
        repeat: recorder.repeat,
        figures: figures::spreads(each),
        warnings: warnings.iter().cloned().collect(),
    };
    Ok(estimators.iter().zip(&each).map(evaluation).collect())
}
