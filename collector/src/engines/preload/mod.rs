//! The engine of the preloaded sampler: shadow execution, and single-stepping.
//!
//! The stub ([`pleach_wire::start`]) is preloaded, and loads the sampler into the processes that need it. [`calibrate`]
//! measures the costs of signals and traps on this machine. Each run has a directory, where every process
//! of the command writes a shard; [`shard_reader`] reads the shards, also while the command runs. Through the page of
//! [`account`], all processes share the budget.

#![allow(unsafe_code, reason = "system calls")]

pub(crate) mod account;
pub mod calibrate;
mod running;
pub(crate) mod shard_reader;

use super::error::{RecordError, io};
use super::kernel_events::{BUDGET_SHARE, KernelEvents};
use super::lbr::{attr, sys::Event};
use super::options::{CoverageMode, RecordOptions};
use super::session::{Collected, Session};
use crate::convergence::{Convergence, Repeat};
use crate::coverage::{Coverage, Unseen};
use crate::detached::{self, TemporaryFolder};
use crate::launch;
use crate::signals::Forwarding;
use crate::stats::{Confined, Stats, Unsampled};
use crate::sys::monotonic_ns;
use crate::vector::Engine;
use account::RunAccount;
use calibrate::Costs;
use pleach_wire::account::Totals;
use pleach_wire::settings::Settings;
use pleach_wire::{shard, start};
use running::Running;
use shard_reader::ShardReader;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// A command to be recorded by the preloaded sampler.
#[derive(Debug)]
pub(crate) struct PreloadSession<'a> {
    options: &'a RecordOptions,
    program: PathBuf,
    preload: PathBuf,
    costs: Costs,
    reader: ShardReader,
    unsampled: Unsampled,
    /// CPU seconds of the command, and of all that it waited for.
    command_cpu_seconds: f64,
    /// The account of the last run.
    account: Option<RunAccount>,
    coverage: Option<Coverage>,
    unseen: Unseen,
    running: Running,
    kernel_events: Option<KernelEvents>,
}

impl<'a> PreloadSession<'a> {
    /// Examines the command, and measures the costs of sampling on this machine.
    ///
    /// # Errors
    /// The command cannot be sampled, or the sampler's library does not exist.
    pub(crate) fn new(command: &OsStr, options: &'a RecordOptions) -> Result<Self, RecordError> {
        let program = launch::examine(command)?;
        let preload = find_libraries(&options.preload)?;
        let mut reader = ShardReader::new(options.max_size, options.seed.unwrap_or_else(monotonic_ns));
        if matches!(options.repeat, Repeat::Until(_)) {
            reader.compare_runs();
        }
        if let Some(watcher) = &options.watcher {
            reader.watch(watcher.clone());
        }
        let coverage = match options.coverage {
            CoverageMode::Off => None,
            CoverageMode::On | CoverageMode::Only => {
                Some(Coverage::begin(&program).map_err(io("cannot make a temporary file"))?)
            }
        };
        let times_bursts = options.times_bursts && options.engine == Engine::RunAhead && !options.verify;
        Ok(Self {
            options,
            program,
            costs: calibrate::costs(&preload, times_bursts),
            preload,
            reader,
            unsampled: Unsampled::default(),
            command_cpu_seconds: 0.0,
            account: None,
            coverage,
            unseen: Unseen::default(),
            running: Running::default(),
            kernel_events: (!options.kernel_events.is_empty())
                .then(|| KernelEvents::new(&options.kernel_events, options.overhead)),
        })
    }

    fn settings(&self, run: u32) -> Settings {
        let options = self.options;
        Settings {
            coverage_advance_ns: self.coverage.as_ref().map(|_| match options.coverage {
                // Coverage is all that was asked for.
                CoverageMode::Only => u64::MAX >> 2,
                _ => options.coverage_advance().as_nanos() as u64,
            }),
            seed: options.seed.map(|seed| seed.wrapping_add(u64::from(run) << 32).max(1)),
            overhead: match self.kernel_events {
                Some(_) => options.overhead * (1.0 - BUDGET_SHARE),
                None => options.overhead,
            },
            ..settings(options, self.costs)
        }
    }
}

/// Opens the kernel's clock event that ticks come from, as the sampler does.
///
/// # Errors
/// The kernel's error number. Ticks then come from a timer, at the kernel's own rate.
pub fn try_tick() -> Result<(), i32> {
    const PERIOD_NS: u64 = 1_000_000;
    Event::open(&attr::tick(PERIOD_NS), 0, -1).map(drop)
}

/// The settings of processes without breakpoints.
pub(crate) fn settings(options: &RecordOptions, costs: Costs) -> Settings {
    let trap = costs.trap.filter(|_| options.times_bursts);
    Settings {
        engine: options.engine,
        overhead: options.overhead,
        period_ns: options.period.map(|period| period.as_nanos() as u64),
        has_equal_periods: options.has_equal_periods,
        burst: options.burst.map(u64::from),
        seed: options.seed,
        step_ns: costs.step_ns,
        // The cost of a burst apart from the handler's own time.
        signal_ns: costs.tick_ns.filter(|_| !options.timer_only).unwrap_or(costs.signal_ns),
        int3_ns: costs.int3_ns,
        trap_ns: trap.map_or(0, |trap| trap.trap_ns),
        trap_signal_ns: trap.map_or(0, |trap| trap.signal_ns),
        load_ns: costs.load_ns,
        fork_ns: costs.fork_ns,
        seccomp_filters: seccomp_filters(),
        timer_only: options.timer_only,
        verify: options.verify,
        deadline_ns: options
            .duration
            .map(|duration| monotonic_ns().saturating_add(duration.as_nanos() as u64)),
        samples: options.coverage != CoverageMode::Only,
        coverage_advance_ns: None,
        max_bytes: None,
        threads: options.threads,
    }
}

impl Session for PreloadSession<'_> {
    fn program(&self) -> &Path {
        &self.program
    }

    fn run(&mut self, mut command: Command, run: u32) -> Result<ExitStatus, RecordError> {
        let directory = TemporaryFolder::new().map_err(io("cannot make a temporary directory"))?;
        command.env("LD_PRELOAD", preload_list(&self.preload, directory.path())?);
        command.env(shard::DIRECTORY_VARIABLE, directory.path());
        command.env(shard::SETTINGS_VARIABLE, self.settings(run).to_text());
        let before = self.account.take();
        let account =
            RunAccount::begin(directory.path(), before.as_ref()).map_err(io("cannot make a temporary file"))?;
        if let Some(coverage) = &self.coverage {
            coverage
                .link_into(directory.path())
                .map_err(io("cannot make a temporary file"))?;
        }
        detached::sign(directory.path(), self.options.engine).map_err(io("cannot make a temporary file"))?;
        self.reader.begin_run(run);
        let (program, kernel_events) = (&self.program, &mut self.kernel_events);
        let seconds_before = seconds_of_children();
        let (ended, shards) = self
            .reader
            .run(directory.path(), || match kernel_events {
                Some(events) => events.run(command, program),
                None => run_forwarding(&mut command).map_err(io(format!("cannot run {}", program.display()))),
            })
            .map_err(io("cannot read what was sampled"))?;
        let status = ended?;
        self.command_cpu_seconds += seconds_of_children() - seconds_before;
        self.unsampled.join(account.unsampled());
        self.running.add(Running::find(directory.path()));
        self.unseen.libraries |= account.may_load_unobserved();
        self.unseen.loader_not_watched |= account.is_loader_not_watched();
        self.unseen.modules |= account.has_unknown_modules();
        self.unseen.in_valgrind |= account.in_valgrind() > 0;
        // The first process of the first run has a shard; others may have been left out.
        let is_sampled = shards > 0 || (before.is_some() && account.has_begun());
        self.account = Some(account);
        if !is_sampled {
            return Err(RecordError::NotSampled {
                command: self.program.display().to_string(),
                status,
                preload: self.preload.clone(),
            });
        }
        Ok(status)
    }

    fn convergence(&self) -> Option<&Convergence> {
        self.reader.convergence()
    }

    fn finish(mut self: Box<Self>) -> Collected {
        let (mut vectors, found, unreclaimed) = self.reader.finish();
        let mut stats = Stats::from_vectors(&vectors, self.options.engine, found);
        stats.add_unsampled(&self.unsampled);
        let told = stats.program_cpu_seconds;
        stats.add_command(self.command_cpu_seconds);
        if self.unsampled.processes > 0 {
            self.unsampled.program_cpu_seconds += stats.program_cpu_seconds - told;
        }
        stats.confined = self.account.as_ref().and_then(RunAccount::confined);
        let note = stats.confined.as_ref().map(note_on_confinement);
        vectors.processes.extend(self.unsampled.as_process());
        let unseen = self.unseen;
        let totals = self.account.as_ref().map(RunAccount::totals).unwrap_or_default();
        let mut remarks = Vec::from_iter(note);
        remarks.extend(note_on_valgrind(
            self.account.as_ref().map_or(0, RunAccount::in_valgrind),
        ));
        remarks.extend(self.running.note());
        remarks.extend(note_on_losses(self.account.as_ref().map_or(0, RunAccount::unwritten)));
        if let Some(coverage) = self.coverage {
            let unobserved = self.account.as_ref().map(RunAccount::unobserved).unwrap_or_default();
            let finished = coverage.finish(
                &mut vectors,
                unseen,
                &unobserved,
                &self.running.files,
                totals.program_ns,
            );
            remarks.extend(finished.remarks);
            // Files of processes that are not chosen for sampling are not looked at.
            stats.unannotated = finished.unannotated && stats.processes + stats.unsampled_processes == 1;
            if self.options.coverage == CoverageMode::On {
                remarks.extend(note_on_breakpoints(&totals, stats.bursts));
            }
        }
        if let Some(events) = self.kernel_events {
            remarks.extend(events.finish(&mut vectors, &mut stats));
        }
        Collected {
            stats,
            vectors,
            remarks,
            unreclaimed,
        }
    }
}

/// A note for the user on processes that confined themselves.
fn note_on_confinement(confined: &Confined) -> String {
    let others = match confined.processes {
        0 | 1 => String::new(),
        more => format!(" (and {} more)", more - 1),
    };
    format!(
        "{} (process {}){others} confined itself by a seccomp filter, which may forbid what the sampler does: sampling \
         ended there. Record it without its sandbox",
        confined.name, confined.process,
    )
}

/// A note for the user on processes that are not sampled.
fn note_on_valgrind(processes: u64) -> Option<String> {
    let (processes, blocks) = match processes {
        0 => return None,
        1 => ("a process".to_owned(), "what it"),
        more => (format!("{more} processes"), "what they"),
    };
    Some(format!(
        "{processes} ran in valgrind and had no samples: {blocks} executed is not known. Record \
         without valgrind"
    ))
}

/// A note for the user where the sampler could not store what it saw.
fn note_on_losses(unwritten: u64) -> Option<String> {
    let what = match unwritten {
        0 => return None,
        1 => "a burst is lost: it".to_owned(),
        more => format!("{more} bursts are lost: they"),
    };
    Some(format!(
        "{what} could not be written to {}: free space there, choose another directory by TMPDIR, or raise the program's \
         limit on file sizes (`ulimit -f`)",
        std::env::temp_dir().display()
    ))
}

/// Bursts from which a recording supports all optimisations but that for size (`pleach_decide::support`, on which this
/// package does not depend).
const MIN_BURSTS_WITHOUT_NOTE: u64 = 300;

/// A note for the user where breakpoints took most of the time that the budget allows. Where nothing was sampled, the
/// command was too short, which is said elsewhere.
fn note_on_breakpoints(totals: &Totals, bursts: u64) -> Option<String> {
    let share = totals.coverage_ns as f64 / totals.own_ns.max(1) as f64;
    ((1..MIN_BURSTS_WITHOUT_NOTE).contains(&bursts) && share > 0.5).then(|| {
        format!(
            "breakpoints took {:.0} % of the sampler's time: `--coverage off`, a longer recording or a higher `--overhead` \
             gives more bursts",
            share * 100.0
        )
    })
}

fn run_forwarding(command: &mut Command) -> std::io::Result<ExitStatus> {
    let mut forwarding = Forwarding::begin();
    let mut child = command.spawn()?;
    forwarding.to(child.id());
    child.wait()
}

/// CPU seconds of all children that have ended.
pub(crate) fn seconds_of_children() -> f64 {
    // SAFETY: all zeroes is valid for this plain structure, which the kernel fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// The path of the sampler, beside the library to preload.
fn beside(preload: &Path) -> PathBuf {
    preload.with_file_name(OsStr::from_bytes(start::SAMPLER.to_bytes()))
}

/// The real path of the library to preload.
///
/// # Errors
/// It, or the sampler beside it, does not exist.
pub(crate) fn find_libraries(preload: &Path) -> Result<PathBuf, RecordError> {
    let missing = |path: &Path| RecordError::NoSampler(path.to_owned());
    let preload = preload.canonicalize().map_err(|_| missing(preload))?;
    let sampler = beside(&preload);
    if sampler.is_file() {
        Ok(preload)
    } else {
        Err(missing(&sampler))
    }
}

/// The value of `LD_PRELOAD`. The loader splits it at spaces and colons, so a path that contains them is replaced by a
/// symbolic link in `directory`, where another one leads to the sampler.
fn preload_list(preload: &Path, directory: &Path) -> Result<OsString, RecordError> {
    let is_split = |path: &OsStr| path.as_bytes().iter().any(|b| b" :".contains(b));
    let mut list = preload.as_os_str().to_owned();
    if is_split(&list) {
        let link = directory.join(start::STUB);
        if is_split(link.as_os_str()) {
            let what = format!(
                "the dynamic loader cannot load {}, whose path has a space or a colon, nor a link to it in {}: set TMPDIR \
                 to a directory without",
                preload.display(),
                directory.display()
            );
            return Err(io(what)(std::io::ErrorKind::InvalidInput.into()));
        }
        for (library, link) in [(preload, &link), (&beside(preload), &beside(&link))] {
            std::os::unix::fs::symlink(library, link).map_err(io("cannot link to the sampler"))?;
        }
        list = link.into_os_string();
    }
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        list.push(OsStr::new(":"));
        list.push(others);
    }
    Ok(list)
}

/// Number of seccomp filters in force in the recorder. A program with more filters has confined itself.
fn seccomp_filters() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let count = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    count.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_confine_themselves_are_named() {
        let note = |processes| {
            note_on_confinement(&Confined {
                process: 7,
                name: "box".to_owned(),
                processes,
            })
        };
        assert!(note(1).starts_with("box (process 7) confined itself"), "{}", note(1));
        assert!(
            note(3).starts_with("box (process 7) (and 2 more) confined"),
            "{}",
            note(3)
        );
    }

    #[test]
    fn breakpoints_that_leave_no_time_are_told() {
        let totals = |coverage_ns| Totals {
            own_ns: 100_000_000,
            coverage_ns,
            ..Totals::default()
        };
        assert_eq!(
            note_on_breakpoints(&totals(40_000_000), 10),
            None,
            "bursts had the rest"
        );
        assert_eq!(note_on_breakpoints(&totals(70_000_000), 400), None, "there are enough");
        assert_eq!(note_on_breakpoints(&totals(70_000_000), 0), None, "too short");
        let note = note_on_breakpoints(&totals(70_000_000), 60).expect("a note");
        assert!(
            note.starts_with("breakpoints took 70 % of the sampler's time"),
            "{note}"
        );
    }
}
