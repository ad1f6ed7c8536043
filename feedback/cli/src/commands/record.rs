//! `pleach record`: run a command, sample it, write a profile.

use super::binaries::RecordedFiles;
use super::events::WantedEvents;
use super::output::print;
use super::phase_watch::PhaseWatch;
use super::phases::interval;
use super::profile_output::ensure_replaceable;
use super::progress;
use super::recorded::{NOTHING_SAMPLED, Subject, Target};
use super::sampling::{self, EngineArg, Period, Wants, duration, duration_or_zero, percentage, period};
use anyhow::{Context, Result, anyhow, bail};
use pleach_collector::detached::{self, Limits};
use pleach_collector::engines::lbr::Refusal;
use pleach_collector::record::{
    CoverageMode, Handlers, MAX_BURST, RecordError, RecordOptions, Repeat, StoppingRule, attach, is_static, record,
};
use pleach_collector::threads::{ThreadFilter, ThreadFilterError};
use pleach_collector::vector::Engine;
use pleach_decide::support::MIN_BURSTS_FOR_SPLITTING;
use pleach_phases::Interval;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

/// Run a command and record its branch vectors as a profile.
///
/// The command's output and exit status are passed through. `pleach flags use` takes the profile as it is. A binary
/// that is not annotated can be recorded, too: its raw vectors are kept for `pleach export`, but the compiler cannot
/// use them. A profile that is there is renamed FILE.old; anything else that is there is not replaced. If nothing was
/// sampled, an existing profile with samples stays.
///
///   pleach record -- ./app input.txt                            writes default.pleach
///   pleach record --repeat 20 -o app.pleach -- ./app x.txt      runs a short command 20 times
///   pleach record --overhead 5% -o app.pleach -- ./app x.txt    more samples in the same time
///   pleach record --phases -- ./app input.txt                   reports phases while the command runs
///   pleach record --pid 1234 --duration 30s                     a process that runs already
///   pleach record --event page-faults -- ./app input.txt        also shows what leads to page faults
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Engine that samples branch vectors.
    #[arg(long, value_enum, default_value_t = EngineArg::Auto)]
    engine: EngineArg,
    /// Also record which paths lead to an event (`pleach paths --event`); may be repeated. With shadow execution:
    /// page-faults, minor-faults, major-faults, context-switches, cpu-migrations (one in N of them as page-faults:N;
    /// default: as many as the budget allows), call:FUNCTION, allocations, syscalls, syscall:NAME. With branch records
    /// (lbr), one event of the processor, at which they are read: near_taken, cycles, cache-misses, branch-misses, … or
    /// rHEX (default: near_taken, or cycles if the processor has no such event).
    #[arg(long, value_name = "EVENT", conflicts_with_all = ["verify", "env"])]
    event: Vec<String>,
    /// CPU time to spend on sampling, as a percentage of the program's: 1%, 0.5%, 300%.
    #[arg(long, default_value = "1%", value_parser = percentage)]
    overhead: f64,
    /// Check shadow execution: single-step the program after each burst and compare every instruction. Slow; finds bugs
    /// in pleach.
    #[arg(long, conflicts_with = "engine")]
    verify: bool,
    /// Wall time to sample, from the command's start, or with --env from now: 30s, 500ms (default: the whole run). The
    /// command is not stopped afterwards.
    #[arg(long, value_parser = duration)]
    duration: Option<Duration>,
    /// Mean CPU time between bursts, in place of a budget (--overhead): 500us, 4ms. Periods are random, unless `fixed`
    /// follows: 4ms,fixed. Fixed periods can alias with loops of the same period.
    #[arg(long, value_parser = period, value_name = "TIME[,fixed]", conflicts_with = "overhead")]
    period: Option<Period>,
    /// Usual number of taken branches in a burst; up to four times as many where ticks are rare, as in containers (default:
    /// 1000, for `--engine step` 64, or what the budget allows). Hardware has its own (lbr).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_BURST as i64))]
    burst: Option<u32>,
    /// Use a CPU timer with the kernel's tick rate, as if perf_event_open were refused.
    #[arg(long, hide = true)]
    timer_only: bool,
    /// Number of times to run the command; all runs go into one profile, and read a file that is the standard input from
    /// the beginning. `auto`: until there are 300
    /// bursts and another recording of the same length would differ in less than 10 % of the taken branches, but at most
    /// 1000 times.
    #[arg(long, default_value = "1", value_parser = repeat, value_name = "N|auto")]
    repeat: Repeat,
    /// Seed of the random periods, for repeatable tests.
    #[arg(long, hide = true)]
    seed: Option<u64>,
    /// Write measurements of the recording to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    /// Correct the time bias: timer ticks hit slow code more often. Hardware breakpoints measure the time per branch at
    /// some bursts, and branches are weighted by it. Costs a third of the bursts; helps programs whose phases differ in
    /// speed.
    #[arg(long, conflicts_with_all = ["verify", "env"])]
    correct_time_bias: bool,
    /// Whether one-shot breakpoints show which code is executed, rare code included, and which is not: beside sampling,
    /// in the same budget (on), or in place of sampling (only). Branch records (lbr) have none.
    #[arg(long, value_enum, default_value_t = CoverageArg::On)]
    coverage: CoverageArg,
    /// CPU time that breakpoints may use at the start of a recording, ahead of the budget. A hit costs some 4 µs. Code
    /// whose breakpoints would exceed it is reported as unknown (default: the budget of six CPU-seconds, at most 60ms).
    #[arg(long, value_parser = duration_or_zero, value_name = "TIME", conflicts_with = "env")]
    coverage_advance: Option<Duration>,
    /// Sample only threads of this name (as in /proc/PID/task/TID/comm, 15 bytes) or kernel id; may be repeated. Not
    /// with branch records (lbr). Breakpoints see all threads.
    #[arg(long, value_name = "NAME|TID", conflicts_with_all = ["exclude_thread", "verify"])]
    thread: Vec<String>,
    /// Sample all threads but those, for instance one that spins; may be repeated.
    #[arg(long, value_name = "NAME|TID", conflicts_with = "verify")]
    exclude_thread: Vec<String>,
    /// Keep the raw vectors in the profile.
    #[arg(long)]
    keep_vectors: bool,
    /// Maximum size of the raw vectors in the profile, in bytes: 64k, 20M, 1G. Above it, vectors are compressed to a
    /// sample while the command runs, which also bounds memory and temporary files; for runs of hours.
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "env")]
    max_size: Option<u64>,
    /// Report the phases of the program on standard error as they are found, in bounded memory. First executions, which
    /// reveal shorter phases, are known at the end only (`pleach phases`).
    #[arg(long, conflicts_with_all = ["verify", "env"])]
    phases: bool,
    /// Length of the compared intervals in bursts, or auto (see `pleach phases --help`).
    #[arg(long, default_value = "auto", value_parser = interval, value_name = "N|auto", requires = "phases")]
    interval: Interval,
    #[command(flatten)]
    files: RecordedFiles,
    /// Print only errors.
    #[arg(short, long)]
    quiet: bool,
    /// This is one of several recordings that are merged: it may have no samples.
    #[arg(long, hide = true)]
    part: bool,
    /// The profile to write.
    #[arg(short, long, default_value = "default.pleach", value_name = "FILE")]
    output: PathBuf,
    /// Run nothing: begin a recording in this directory, and print the environment of programs that a service manager
    /// or a container engine starts. `pleach collect` makes a profile of what they have written. Without breakpoints.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["command", "repeat", "output", "stats", "keep_vectors", "verify", "binary", "symfs"])]
    env: Option<PathBuf>,
    /// With --env: maximum size of what all processes write together. Sampling pauses when this size is reached, until
    /// `pleach collect --rotate` has taken what was written.
    #[arg(long, alias = "max-folder", value_name = "SIZE", default_value = "256M", value_parser = size, requires = "env")]
    max_dir_size: u64,
    /// With --env: the number of seccomp filters that programs start with (Seccomp_filters in /proc/PID/status). These
    /// filters must allow the sampler's system calls. A process with more filters is not sampled.
    #[arg(long, value_name = "N", default_value = "0", requires = "env")]
    seccomp_filters: u64,
    /// Record running processes and their children, until they end, --duration has passed, or ^C. The processes are not
    /// restarted or stopped. For --engine lbr, the default where the processor has branch records, and --engine ptrace.
    #[arg(short, long, value_name = "PID", value_delimiter = ',', conflicts_with_all = ["command", "repeat", "env", "event"])]
    pid: Vec<u32>,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true, required_unless_present_any = ["env", "pid"], value_name = "CMD")]
    command: Vec<OsString>,
}

impl Args {
    /// Only shadow execution can be checked, and has bursts of a length to choose.
    fn wants<'w>(&self, events: &'w WantedEvents) -> Wants<'w> {
        Wants {
            event: events.processor.as_deref(),
            run_ahead: self.verify
                || events.needs_shadow()
                || self.burst.is_some()
                || self.coverage == CoverageArg::Only
                || self.chooses_threads(),
        }
    }

    /// Whether the program is sampled from outside.
    ///
    /// # Errors
    /// What was asked for cannot be done from outside.
    fn is_from_outside(&self, events: &WantedEvents) -> Result<bool> {
        let is_asked_for = self.engine == EngineArg::Ptrace || !self.pid.is_empty();
        let obstacle = [
            (self.coverage == CoverageArg::Only, "--coverage only"),
            (self.correct_time_bias, "--correct-time-bias"),
            (!events.kernel.is_empty(), "--event of the kernel"),
            (self.verify, "--verify"),
            (self.timer_only, "--timer-only"),
        ];
        let obstacle = obstacle
            .into_iter()
            .find_map(|(is_there, option)| is_there.then_some(option));
        match obstacle {
            Some(option) if is_asked_for => {
                let from_outside = if self.pid.is_empty() {
                    "--engine ptrace"
                } else {
                    "--pid"
                };
                bail!("{option} needs the preloaded sampler and cannot be used with `{from_outside}`")
            }
            Some(_) => Ok(false),
            None if is_asked_for => Ok(true),
            None => Ok(self.engine == EngineArg::Auto && self.command.first().is_some_and(|name| is_static(name))),
        }
    }

    /// Options that an engine cannot follow.
    ///
    /// # Errors
    /// There is one.
    fn check_engine(&self, engine: Engine) -> Result<()> {
        if engine == Engine::Lbr && self.coverage == CoverageArg::Only {
            bail!("branch records have no breakpoints: with --coverage only, leave out `--engine lbr` and --event");
        }
        if engine != Engine::RunAhead && self.correct_time_bias {
            bail!("--correct-time-bias is for `--engine run-ahead`: other engines do not time their bursts");
        }
        if self.coverage == CoverageArg::Off && self.coverage_advance.is_some() {
            bail!(
                "--coverage-advance is what breakpoints may use, and --coverage off sets none: leave one of them out"
            );
        }
        Ok(())
    }

    fn chooses_threads(&self) -> bool {
        !(self.thread.is_empty() && self.exclude_thread.is_empty())
    }

    /// Which threads are sampled with an engine.
    fn threads(&self, engine: Engine) -> Result<ThreadFilter> {
        if engine == Engine::Lbr && self.chooses_threads() {
            bail!("--thread and --exclude-thread are not for branch records: leave out `--engine lbr` and --event");
        }
        let is_exclusion = self.thread.is_empty();
        let names = if is_exclusion {
            &self.exclude_thread
        } else {
            &self.thread
        };
        ThreadFilter::new(is_exclusion, names.iter().map(String::as_str)).map_err(|error| match error {
            ThreadFilterError::Name => anyhow!("a thread's name has a comma, a colon or an equals sign, or is empty"),
            ThreadFilterError::TooLong => anyhow!("the names of threads are too long together: name fewer"),
        })
    }

    /// Whether a recording without samples is a failure.
    fn needs_samples(&self) -> bool {
        self.coverage != CoverageArg::Only && !self.part
    }
}

/// Whether breakpoints are used.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CoverageArg {
    /// No breakpoints.
    Off,
    /// Breakpoints and sampling.
    On,
    /// Breakpoints only: exact coverage, no weights.
    Only,
}

impl CoverageArg {
    fn mode(self) -> CoverageMode {
        match self {
            Self::Off => CoverageMode::Off,
            Self::On => CoverageMode::On,
            Self::Only => CoverageMode::Only,
        }
    }
}

/// What ends `--repeat auto`: bursts for superblocks and cold splitting, and a distribution of branches that another
/// recording would change by less than a tenth.
const STOPPING_RULE: StoppingRule = StoppingRule {
    bursts: MIN_BURSTS_FOR_SPLITTING,
    change: 0.1,
    runs: 1000,
};

/// Parses the value of `--repeat`.
pub fn repeat(text: &str) -> Result<Repeat, String> {
    if text == "auto" {
        return Ok(Repeat::Until(STOPPING_RULE));
    }
    let times = text.parse().ok().filter(|&times| times > 0);
    times
        .map(Repeat::Times)
        .ok_or_else(|| "expected a number from 1 on, or auto".into())
}

fn size(text: &str) -> Result<u64, String> {
    let units = [("k", 10), ("K", 10), ("M", 20), ("G", 30)];
    let unit = units
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (number, shift) = unit.unwrap_or((text, 0));
    let bytes = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift));
    let enough = bytes.filter(|bytes| *bytes >= MIN_SIZE);
    enough.ok_or_else(|| "expected a size of 16k or more, like 64k, 20M or 1G".into())
}

/// A smaller size would hold only a few dozen windows.
const MIN_SIZE: u64 = 16 << 10;

/// Records.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(folder) = &args.env {
        return print_environment(args, folder);
    }
    ensure_writable(args)?;
    let finder = args.files.finder()?;
    let events = WantedEvents::parse(&args.event)?;
    if !args.pid.is_empty() && matches!(args.engine, EngineArg::RunAhead | EngineArg::Step) {
        bail!("--pid: processes that run already are recorded with `--engine lbr` or `--engine ptrace`");
    }
    let engine = args.engine.engine(args.wants(&events))?;
    events.check(engine, args.engine)?;
    args.check_engine(engine)?;
    let from_outside = engine == Engine::RunAhead && args.is_from_outside(&events)?;
    if from_outside && args.engine == EngineArg::Auto && args.pid.is_empty() && !args.quiet {
        eprintln!(
            "pleach: note: the program is linked statically: it is sampled from outside (`--engine ptrace`), without \
             breakpoints; children that live for less than a tenth of a second are missed"
        );
    }
    let phases = args.phases.then(|| PhaseWatch::new(args.interval));
    let options = RecordOptions {
        engine,
        event: events.processor.clone(),
        kernel_events: events.kernel.clone(),
        overhead: args.overhead,
        verify: args.verify,
        duration: args.duration,
        period: args.period.map(|period| period.mean),
        has_equal_periods: args.period.is_some_and(|period| period.is_fixed),
        burst: args.burst,
        repeat: args.repeat,
        seed: args.seed,
        max_size: args.max_size,
        timer_only: args.timer_only,
        times_bursts: args.correct_time_bias,
        coverage: args.coverage.mode(),
        coverage_advance: args.coverage_advance,
        threads: args.threads(engine)?,
        watcher: phases.as_ref().map(PhaseWatch::watcher),
        after_run: progress::runs(&args.repeat, args.quiet),
        from_outside,
        ..RecordOptions::new(if from_outside {
            PathBuf::new()
        } else {
            sampling::sampler(engine)?
        })
    };
    // What was recorded is written even if the user interrupts.
    let _handlers = Handlers::begin();
    let recorded = match args.pid.as_slice() {
        [] => record(&args.command, &options),
        processes => attach(processes, &options),
    };
    let recording = match recorded {
        Ok(recording) => recording,
        Err(error) => return Ok(refused(&error, &args.pid)),
    };
    if let Some(phases) = &phases {
        phases.finish();
    }
    let target = Target {
        output: &args.output,
        stats: args.stats.as_deref(),
        finder,
        keep_vectors: args.keep_vectors,
        correct_time_bias: args.correct_time_bias,
        events: &events.in_bursts,
        needs_samples: args.needs_samples(),
        quiet: args.quiet,
        keeps_old: !args.part,
        subject: match args.pid.is_empty() {
            true => Subject::Command,
            false => Subject::Running,
        },
        budget: args.overhead,
    };
    let written = target.write(&recording);
    if let Ok(false) = written
        && recording.status.success()
        && args.needs_samples()
    {
        return Ok(ExitCode::from(NOTHING_SAMPLED));
    }
    if let Err(error) = written {
        // Both failures are reported; the exit status is the command's.
        eprintln!("pleach: error: {}", crate::explain(&error));
        if recording.status.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(exit_code(recording.status))
}

/// Begins a recording without a recorder.
fn print_environment(args: &Args, folder: &Path) -> Result<ExitCode> {
    let engine = args.engine.engine(Wants {
        event: None,
        run_ahead: true,
    })?;
    if engine == Engine::Lbr || args.engine == EngineArg::Ptrace {
        bail!(
            "branch records and sampling from outside need a recorder: with --env, leave out `--engine lbr` or `ptrace`"
        );
    }
    if args.coverage == CoverageArg::Only {
        bail!("breakpoints need a recorder: with --env, leave out --coverage only");
    }
    let options = RecordOptions {
        engine,
        overhead: args.overhead,
        duration: args.duration,
        period: args.period.map(|period| period.mean),
        has_equal_periods: args.period.is_some_and(|period| period.is_fixed),
        burst: args.burst,
        timer_only: args.timer_only,
        threads: args.threads(engine)?,
        ..RecordOptions::new(sampling::sampler(engine)?)
    };
    let limits = Limits {
        max_bytes: args.max_dir_size,
        seccomp_filters: args.seccomp_filters,
    };
    let variables = detached::begin(folder, &options, limits)?;
    let lines = variables
        .iter()
        .map(|(name, value)| format!("{name}={}\n", value.display()));
    print(&lines.collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

/// A command that was not run, or not sampled: the status is a shell's for commands that cannot be run.
fn refused(error: &RecordError, running: &[u32]) -> ExitCode {
    eprintln!("pleach: error: {error}");
    if let RecordError::Refused(reason) = error
        && !matches!(reason, Refusal::UnknownEvent { .. } | Refusal::Event { .. })
    {
        let engine = if running.is_empty() { "run-ahead" } else { "ptrace" };
        eprintln!(
            "pleach: without branch records, `--engine {engine}` works; `pleach doctor` shows why there are none"
        );
    }
    ExitCode::from(error.exit_code())
}

/// Finds out before the run, not after it, that the profile cannot be written.
fn ensure_writable(args: &Args) -> Result<()> {
    let dir = match args.output.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let output = args.output.display();
    if args.output.is_dir() {
        bail!("cannot write {output}: it is a directory");
    }
    if args.output.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        bail!("cannot write {output}: it is a device or pipe; name a file");
    }
    ensure_replaceable(&args.output)?;
    if !dir.is_dir() {
        bail!("cannot write {output}: there is no directory {}", dir.display());
    }
    pleach_store::probe_writable(dir).with_context(|| format!("cannot write {output}: name a file elsewhere with -o"))
}

/// The command's exit status, as a shell would report it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(code as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn what_only_shadow_execution_does() {
        let wants = |options: &str| {
            let words = ["record"].into_iter().chain(options.split_whitespace()).chain(["true"]);
            Line::try_parse_from(words).map(|line| {
                let events = WantedEvents::parse(&line.args.event).expect("known events");
                let wants = line.args.wants(&events);
                (wants.event.map(str::to_owned), wants.run_ahead)
            })
        };
        assert_eq!(wants("").unwrap(), (None, false));
        assert_eq!(wants("--verify").unwrap(), (None, true));
        assert_eq!(wants("--burst 100").unwrap(), (None, true));
        assert_eq!(wants("--event cycles").unwrap(), (Some("cycles".to_owned()), false));
        assert_eq!(wants("--event page-faults --event call:f").unwrap(), (None, true));
        assert_eq!(wants("--exclude-thread spin").unwrap(), (None, true));
        assert!(wants("--verify --event cycles").is_err() && wants("--thread a --exclude-thread b").is_err());
    }

    #[test]
    fn repetitions_are_read() {
        assert_eq!(repeat("20"), Ok(Repeat::Times(20)));
        assert_eq!(repeat("auto"), Ok(Repeat::Until(STOPPING_RULE)));
        assert!(repeat("0").is_err() && repeat("often").is_err());
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(
            ["64k", "20M", "1G", "16384"].map(size),
            [64 << 10, 20 << 20, 1 << 30, 16384].map(Ok)
        );
        assert!(size("1k").is_err() && size("20 M").is_err() && size("99999999999G").is_err());
    }
}
