//! Runs a command with the sampler preloaded, or with branch records of the processor ([`crate::lbr`]).

use crate::calibrate::{self, Costs};
use crate::gather::Gathering;
use crate::launch::{self, LaunchError};
use crate::lbr::{self, Refusal};
use crate::redirect::Redirect;
use crate::shard;
use crate::signals::Forwarding;
use crate::stats::Stats;
use crate::vector::{Engine, VectorSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// How to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// What produces the vectors: [`Engine::RunAhead`], [`Engine::Step`] or [`Engine::Lbr`].
    pub engine: Engine,
    /// The event at which [`Engine::Lbr`] samples; the best one if `None`.
    pub event: Option<String>,
    /// CPU time that the sampler may take, as a fraction of the program's: 0.01 is 1 %, 30 is 3000 %.
    pub overhead: f64,
    /// Compare shadow execution with what the program does then, instruction by instruction; that is slow.
    pub verify: bool,
    /// How long to sample each run, from its start; to its end if `None`. The command runs on afterwards.
    pub duration: Option<Duration>,
    /// A fixed mean CPU time between bursts, instead of the budget.
    pub period: Option<Duration>,
    /// Taken branches of a burst where the budget allows no more; the sampler's default if `None`.
    pub burst: Option<u32>,
    /// The sampler's library.
    pub preload: PathBuf,
    /// Makes the sequence of periods repeatable.
    pub seed: Option<u64>,
    /// How often to run the command, all into one set.
    pub repeat: u32,
    /// Tick by CPU timers even where perf events work.
    pub timer_only: bool,
    /// Measure for a share of bursts how long the program takes for a branch there ([`crate::vector::Clock`]), where the kernel grants
    /// breakpoints and ticks come from events.
    pub clocks: bool,
    /// Bytes that the vectors may take in a file. Where they would take more, what there is is compressed to a sample of it,
    /// [`VectorSet::compressed`]; memory and temporary files are bounded, too.
    pub max_size: Option<u64>,
    /// The command's standard streams.
    pub redirect: Redirect,
}

impl RecordOptions {
    /// One run at 1 %.
    pub fn new(preload: impl Into<PathBuf>) -> Self {
        Self {
            engine: Engine::RunAhead,
            event: None,
            overhead: 0.01,
            verify: false,
            duration: None,
            period: None,
            burst: None,
            preload: preload.into(),
            seed: None,
            repeat: 1,
            timer_only: false,
            clocks: false,
            max_size: None,
            redirect: Redirect::default(),
        }
    }

    fn settings(&self, run: u32, costs: Costs) -> String {
        let Costs {
            step_ns,
            signal_ns,
            tick_ns,
            trap,
            load_ns,
        } = costs;
        // What a burst costs beside the handler's own time.
        let signal_ns = tick_ns.filter(|_| !self.timer_only).unwrap_or(signal_ns);
        let engine = self.engine.name();
        let mut settings = format!(
            "engine={engine},overhead={},filters={}",
            self.overhead,
            seccomp_filters()
        );
        settings += &format!(",step_ns={step_ns},signal_ns={signal_ns},load_ns={load_ns}");
        if let Some(trap) = trap.filter(|_| self.clocks) {
            settings += &format!(",trap_ns={},trap_signal_ns={}", trap.trap_ns, trap.signal_ns);
        }
        if self.verify {
            settings += ",verify=1";
        }
        if let Some(duration) = self.duration {
            settings += &format!(
                ",deadline_ns={}",
                monotonic_ns().saturating_add(duration.as_nanos() as u64)
            );
        }
        if let Some(period) = self.period {
            settings += &format!(",period_ns={}", period.as_nanos());
        }
        if let Some(burst) = self.burst {
            settings += &format!(",burst={burst}");
        }
        if let Some(seed) = self.seed {
            settings += &format!(",seed={}", seed.wrapping_add(u64::from(run) << 32).max(1));
        }
        if self.timer_only {
            settings += ",tick=timer";
        }
        settings
    }
}

/// What a recording yields.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Of the first run that failed, else of the last.
    pub status: ExitStatus,
    /// The vectors of all runs.
    pub vectors: VectorSet,
    /// Their figures.
    pub stats: Stats,
    /// What is worth knowing besides, a line each.
    pub remarks: Vec<String>,
    /// The file system of temporary files cannot free parts of them: with a limit on the size they took more than it allows.
    pub unreclaimed: bool,
}

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The command is unfit.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The engine cannot be used here.
    #[error("the engine {} cannot record a command", .0.name())]
    Engine(Engine),
    /// The kernel grants no branch records.
    #[error("no branch records: {0}")]
    Refused(#[from] Refusal),
    /// The budget is none.
    #[error("the overhead has to be a number above 0, not {0}")]
    Overhead(f64),
    /// The sampler is missing.
    #[error("the sampler {0} is not there")]
    NoSampler(PathBuf),
    /// Directories, files or processes failed.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: String,
        /// How it failed.
        #[source]
        error: std::io::Error,
    },
    /// The program ran, but the sampler in it did not.
    #[error("{command} ran ({status}) but was not sampled: the dynamic loader did not load {preload}")]
    NotSampled {
        /// The command.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The sampler.
        preload: PathBuf,
    },
}

impl RecordError {
    /// The status to end with: that of shells where the command could not be run, 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Launch(error) => error.exit_code(),
            _ => 1,
        }
    }
}

pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> RecordError {
    let what = what.into();
    move |error| RecordError::Io { what, error }
}

/// Runs a command, its standard streams inherited where [`RecordOptions::redirect`] has no others, and returns what was sampled of it and its descendants.
///
/// While it runs, SIGINT and SIGQUIT are left to the command, and SIGTERM and SIGHUP are passed on to it. Descendants
/// that are still running when it ends contribute what they have stored by then.
pub fn record(command: &[OsString], options: &RecordOptions) -> Result<Recording, RecordError> {
    let Some((name, arguments)) = command.split_first() else {
        return Err(LaunchError::NotFound("(nothing)".to_owned()).into());
    };
    if options.overhead.is_nan() || options.overhead <= 0.0 {
        return Err(RecordError::Overhead(options.overhead));
    }
    match options.engine {
        Engine::Lbr => return lbr::run::record(command, options),
        Engine::Step | Engine::RunAhead => {}
        Engine::Perf => return Err(RecordError::Engine(options.engine)),
    }
    let program = launch::examine(name)?;
    let preload = options
        .preload
        .canonicalize()
        .map_err(|_| RecordError::NoSampler(options.preload.clone()))?;

    let clocks = options.clocks && options.engine == Engine::RunAhead && !options.verify;
    let costs = calibrate::costs(&preload, clocks);
    let mut gathering = Gathering::new(options.max_size, options.seed.unwrap_or_else(monotonic_ns));
    let mut status = None;
    for run in 0..options.repeat.max(1) {
        let directory = tempfile::Builder::new()
            .prefix("pleach-")
            .tempdir()
            .map_err(io("cannot make a temporary directory"))?;
        let mut child = Command::new(&program);
        child.args(arguments);
        let redirected = options.redirect.apply(&mut child);
        redirected.map_err(io("cannot redirect the command"))?;
        {
            use std::os::unix::process::CommandExt;
            child.arg0(name);
        }
        child.env("LD_PRELOAD", preload_list(&preload, directory.path())?);
        child.env(shard::DIRECTORY_VARIABLE, directory.path());
        child.env(shard::SETTINGS_VARIABLE, options.settings(run, costs));
        let (ended, shards) = gathering
            .run(directory.path(), || run_forwarding(&mut child))
            .map_err(io("cannot read what was sampled"))?;
        let ended = ended.map_err(io(format!("cannot run {}", program.display())))?;
        if shards == 0 {
            let command = program.display().to_string();
            return Err(RecordError::NotSampled {
                command,
                status: ended,
                preload,
            });
        }
        if status.is_none_or(|before: ExitStatus| before.success()) {
            status = Some(ended);
        }
    }
    let (vectors, found, unreclaimed) = gathering.finish();
    let stats = Stats::of(&vectors, options.engine, found);
    let status = status.unwrap_or_default();
    Ok(Recording {
        status,
        vectors,
        stats,
        remarks: Vec::new(),
        unreclaimed,
    })
}

fn run_forwarding(command: &mut Command) -> std::io::Result<ExitStatus> {
    let mut forwarding = Forwarding::begin();
    let mut child = command.spawn()?;
    forwarding.to(child.id());
    child.wait()
}

/// The loader splits its list at spaces and colons: a path that has some goes by another name.
fn preload_list(preload: &Path, directory: &Path) -> Result<OsString, RecordError> {
    let mut list = preload.as_os_str().to_owned();
    if list.as_bytes().iter().any(|b| b" :".contains(b)) {
        let link = directory.join("sampler.so");
        std::os::unix::fs::symlink(preload, &link).map_err(io("cannot link to the sampler"))?;
        list = link.into_os_string();
    }
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        list.push(OsStr::new(":"));
        list.push(others);
    }
    Ok(list)
}

/// Nanoseconds of the clock that all bursts use.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives here.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Seccomp filters in force here; a program with more has confined itself.
fn seccomp_filters() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let count = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    count.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
