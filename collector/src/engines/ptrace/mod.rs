//! The engine for processes that run already, and for programs into which nothing can be preloaded: shadow execution in
//! the recorder.
//!
//! At a tick of a process's CPU clock ([`clock`]), one of its threads is stopped ([`stopped`]), the shadow runs ahead from
//! its registers on copies of the pages that it reads, and the thread goes on. Nothing is written to the process, and it
//! is traced for the time of a burst only. Bursts are stored in shards ([`target`]), as the preloaded sampler does.
//!
//! Limits: ticks come at the kernel's timer rate; there are no breakpoints, no lengths of memory operations and no proofs;
//! children are found when they are a tenth of a second old.

mod clock;
mod faults;
mod sampler;
mod stopped;
mod target;

use super::error::{RecordError, io};
use super::options::RecordOptions;
use super::preload::gather::Gathering;
use super::preload::seconds_of_children;
use super::run_loop::{Recording, Runs};
use super::session::{Collected, Session};
use crate::convergence::{Convergence, Repeat};
use crate::detached;
use crate::launch;
use crate::signals::{Forwarding, Watch};
use crate::stats::Stats;
use crate::sys::monotonic_ns;
use crate::vector::Engine;
use clock::CpuClock;
use sampler::{Sampled, Sampler};
use std::ffi::OsStr;
use std::io::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use stopped::{NotStopped, StoppedThread};

/// A command to be recorded from outside.
#[derive(Debug)]
pub(crate) struct PtraceSession<'a> {
    options: &'a RecordOptions,
    program: PathBuf,
    gathering: Gathering,
    seed: u64,
    /// CPU seconds of the command and all that it waited for, and of the sampler.
    command_cpu_seconds: f64,
    own_cpu_seconds: f64,
    refusal: Option<Error>,
}

impl<'a> PtraceSession<'a> {
    /// Examines the command.
    ///
    /// # Errors
    /// The command cannot be run.
    pub(crate) fn new(command: &OsStr, options: &'a RecordOptions) -> Result<Self, RecordError> {
        Ok(Self::of(launch::examine_outside(command)?, options))
    }

    fn of(program: PathBuf, options: &'a RecordOptions) -> Self {
        let seed = options.seed.unwrap_or_else(monotonic_ns);
        let mut gathering = Gathering::new(options.max_size, seed);
        if matches!(options.repeat, Repeat::Until(_)) {
            gathering.compare_runs();
        }
        if let Some(watcher) = &options.watcher {
            gathering.watch(watcher.clone());
        }
        Self {
            options,
            program,
            gathering,
            seed,
            command_cpu_seconds: 0.0,
            own_cpu_seconds: 0.0,
            refusal: None,
        }
    }

    /// Samples while `begin` and `sample` say so, and reads the shards.
    fn gather(
        &mut self,
        run: u32,
        sample: impl FnOnce(Sampler<'_>) -> Result<Sampled, RecordError>,
    ) -> Result<Sampled, RecordError> {
        let folder = detached::temporary_folder().map_err(io("cannot make a temporary directory"))?;
        detached::sign(folder.path(), Engine::RunAhead).map_err(io("cannot make a temporary file"))?;
        self.gathering.begin_run(run);
        let (options, seed) = (self.options, self.seed.wrapping_add(u64::from(run) << 32));
        let sampled = self.gathering.run(folder.path(), || {
            sample(Sampler::new(options, folder.path(), seed).map_err(io("cannot sample"))?)
        });
        let (sampled, _) = sampled.map_err(io("cannot read what was sampled"))?;
        let mut sampled = sampled?;
        self.own_cpu_seconds += sampled.own_ns as f64 * 1e-9;
        self.refusal = sampled.refusal.take().or(self.refusal.take());
        Ok(sampled)
    }
}

impl Session for PtraceSession<'_> {
    fn program(&self) -> &Path {
        &self.program
    }

    fn run(&mut self, mut command: Command, run: u32) -> Result<ExitStatus, RecordError> {
        let cannot_run = format!("cannot run {}", self.program.display());
        let seconds_before = seconds_of_children();
        let mut status = None;
        self.gather(run, |mut sampler| {
            let mut forwarding = Forwarding::begin();
            let mut child = command.spawn().map_err(io(cannot_run.clone()))?;
            forwarding.to(child.id());
            let sampled = match sampler.add(child.id(), 0, "") {
                Ok(()) => sampler.run(&[child.id()], true, || false),
                // It has ended already.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(Sampled::default()),
                Err(error) => Err(error),
            };
            // The command runs to its end, whatever becomes of its recording.
            status = match &sampled {
                Ok(Sampled {
                    status: Some(status), ..
                }) => Some(*status),
                _ => child.wait().ok(),
            };
            sampled.map_err(io("cannot sample"))
        })?;
        self.command_cpu_seconds += seconds_of_children() - seconds_before;
        status.ok_or_else(|| io(cannot_run)(Error::from_raw_os_error(libc::ECHILD)))
    }

    fn convergence(&self) -> Option<&Convergence> {
        self.gathering.convergence()
    }

    fn finish(self: Box<Self>) -> Collected {
        let (vectors, found, unreclaimed) = self.gathering.finish();
        let mut stats = Stats::from_vectors(&vectors, Engine::RunAhead, found);
        stats.set_own(self.own_cpu_seconds);
        // The sampler's time is not in the command's.
        stats.add_command(self.command_cpu_seconds + self.own_cpu_seconds);
        let refusal = self.refusal.as_ref().filter(|_| stats.bursts == 0);
        Collected {
            remarks: refusal.map(note_on_refusal).into_iter().collect(),
            vectors,
            stats,
            unreclaimed,
        }
    }
}

/// A note for the user on a kernel that does not let threads be stopped.
fn note_on_refusal(error: &Error) -> String {
    format!(
        "the kernel does not let the process be traced ({error}): another tracer such as a debugger may have it, or a \
         seccomp filter or kernel.yama.ptrace_scope forbids it; root may (CAP_SYS_PTRACE)"
    )
}

/// Records processes that run already, until they end, the time is over or a signal ends the recording. The processes go
/// on.
///
/// # Errors
/// A process does not exist, or may not be traced.
pub(crate) fn attach(processes: &[u32], options: &RecordOptions) -> Result<Recording, RecordError> {
    processes.iter().try_for_each(|&process| stopped::check(process))?;
    let mut session = PtraceSession::of(PathBuf::new(), options);
    let watch = Watch::since_handlers();
    session.gather(0, |mut sampler| {
        for &process in processes {
            let clock = CpuClock::of(process);
            let base = clock.now().ok_or(RecordError::NoProcess(process))?;
            let added = sampler.add(process, base, "");
            added.map_err(|error| match error.raw_os_error() {
                Some(libc::ESRCH) => RecordError::NoProcess(process),
                _ => io(format!("cannot sample process {process}"))(error),
            })?;
        }
        let sampled = sampler.run(processes, false, || watch.signal().is_some());
        sampled.map_err(io("cannot sample"))
    })?;
    Ok(Recording::new(Runs::one(), None, Box::new(session).finish()))
}

/// Stops a child of this process, as sampling from outside does.
///
/// # Errors
/// The kernel does not let a child be traced. Other processes may be forbidden even so.
pub fn try_child() -> std::io::Result<()> {
    let mut child = Command::new("/bin/sleep").arg("10").spawn()?;
    let stopped = StoppedThread::stop(child.id(), child.id());
    let result = match stopped {
        Err(NotStopped::Refused(error)) => Err(error),
        _ => Ok(()),
    };
    // It may have ended.
    let _ = child.kill();
    let _ = child.wait();
    result
}
