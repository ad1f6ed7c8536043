//! The engine for processes that run already, and for programs into which nothing can be preloaded: shadow execution in
//! the recorder.
//!
//! At a tick of a process's CPU clock ([`clock`]), one of its threads is stopped ([`tracer`]), the shadow runs ahead from
//! its registers on copies of the pages that it reads, and the thread goes on. Nothing is written to the process, and it
//! is traced for the time of a burst only. Bursts are stored in shards ([`image`]), as the preloaded sampler does.
//!
//! Limits: ticks come at the kernel's timer rate; there are no breakpoints, no observed values and no proofs; children
//! are found when they are a tenth of a second old.

#![allow(unsafe_code, reason = "system calls")]

mod clock;
mod faults;
mod image;
mod sampler;
mod tracer;

use super::error::{RecordError, io};
use super::options::RecordOptions;
use super::preload::seconds_of_children;
use super::preload::shard_reader::ShardReader;
use super::run_loop::{Recording, Runs};
use super::session::{Collected, Session};
use crate::convergence::{Convergence, Repeat};
use crate::detached::{self, TemporaryFolder};
use crate::launch;
use crate::signals::{Forwarding, Watch};
use crate::stats::Stats;
use crate::sys::monotonic_ns;
use crate::vector::Engine;
use sampler::{Roots, Sampled, Sampler};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use tracer::{NotStopped, Tracer};

/// A command to be recorded from outside.
#[derive(Debug)]
pub(crate) struct PtraceSession<'a> {
    options: &'a RecordOptions,
    program: PathBuf,
    reader: ShardReader,
    seed: u64,
    /// CPU seconds of the command and all that it waited for, and of the sampler.
    command_cpu_seconds: f64,
    own_cpu_seconds: f64,
    notes: BTreeSet<String>,
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
        let mut reader = ShardReader::new(options.max_size, seed);
        if matches!(options.repeat, Repeat::Until(_)) {
            reader.compare_runs();
        }
        if let Some(watcher) = &options.watcher {
            reader.watch(watcher.clone());
        }
        Self {
            options,
            program,
            reader,
            seed,
            command_cpu_seconds: 0.0,
            own_cpu_seconds: 0.0,
            notes: BTreeSet::new(),
        }
    }

    /// Samples processes, in a thread of its own: when it ends, the kernel releases whatever it traces. Reads their shards
    /// from `folder`.
    fn sample(
        &mut self,
        run: u32,
        folder: &TemporaryFolder,
        processes: &[u32],
        is_child: bool,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<Sampled, RecordError> {
        self.reader.begin_run(run);
        let (options, seed) = (self.options, self.seed.wrapping_add(u64::from(run) << 32));
        let suspension = SuspensionBlocked::begin();
        let roots = Roots {
            processes,
            is_child,
            is_over,
            deferred: suspension.signals,
        };
        let sample = || Sampler::new(options, folder.path(), seed)?.run(&roots);
        let sampled = self
            .reader
            .run(folder.path(), || std::thread::scope(|scope| scope.spawn(sample).join()));
        let (sampled, _) = sampled.map_err(io("cannot read what was sampled"))?;
        let sampled = sampled.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut sampled = sampled.map_err(io("cannot sample"))?;
        self.own_cpu_seconds += sampled.own_ns as f64 * 1e-9;
        self.notes.append(&mut sampled.notes);
        Ok(sampled)
    }
}

/// A new folder for the shards of a run.
fn shard_folder() -> Result<TemporaryFolder, RecordError> {
    let folder = TemporaryFolder::new().map_err(io("cannot make a temporary directory"))?;
    detached::sign(folder.path(), Engine::RunAhead).map_err(io("cannot make a temporary file"))?;
    Ok(folder)
}

/// While this lives, signals by which users suspend the recorder are blocked in the thread that made it, and in the
/// threads that this one starts. A recorder that was suspended during a burst would suspend the program as well.
struct SuspensionBlocked {
    signals: libc::sigset_t,
    before: libc::sigset_t,
}

impl SuspensionBlocked {
    fn begin() -> Self {
        // SAFETY: all zeroes is valid for these sets, which the calls fill.
        unsafe {
            let mut signals: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut signals);
            for signal in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
                libc::sigaddset(&mut signals, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &signals, &mut before);
            Self { signals, before }
        }
    }
}

impl Drop for SuspensionBlocked {
    fn drop(&mut self) {
        // SAFETY: the set was filled when the signals were blocked.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

impl Session for PtraceSession<'_> {
    fn program(&self) -> &Path {
        &self.program
    }

    fn run(&mut self, mut command: Command, run: u32) -> Result<ExitStatus, RecordError> {
        let cannot_run = format!("cannot run {}", self.program.display());
        let folder = shard_folder()?;
        let seconds_before = seconds_of_children();
        let mut forwarding = Forwarding::begin();
        let mut child = command.spawn().map_err(io(cannot_run.clone()))?;
        forwarding.to(child.id());
        let sampled = self.sample(run, &folder, &[child.id()], true, &|| false);
        // The command runs to its end, whatever becomes of its recording.
        let status = match &sampled {
            Ok(Sampled {
                status: Some(status), ..
            }) => *status,
            _ => child.wait().map_err(io(cannot_run))?,
        };
        self.command_cpu_seconds += seconds_of_children() - seconds_before;
        sampled.map(|_| status)
    }

    fn convergence(&self) -> Option<&Convergence> {
        self.reader.convergence()
    }

    fn finish(self: Box<Self>) -> Collected {
        let (vectors, found, unreclaimed) = self.reader.finish();
        let mut stats = Stats::from_vectors(&vectors, Engine::RunAhead, found);
        stats.set_own(self.own_cpu_seconds);
        // The sampler's time is not in the command's.
        stats.add_command(self.command_cpu_seconds + self.own_cpu_seconds);
        Collected {
            remarks: self.notes.into_iter().collect(),
            vectors,
            stats,
            unreclaimed,
        }
    }
}

/// Records processes that run already, until they end, the time is over or a signal ends the recording. The processes go
/// on.
///
/// # Errors
/// A process does not exist, or cannot be sampled.
pub(crate) fn attach(processes: &[u32], options: &RecordOptions) -> Result<Recording, RecordError> {
    let processes: BTreeSet<u32> = processes.iter().copied().collect();
    processes.iter().try_for_each(|&process| tracer::check(process))?;
    let processes: Vec<u32> = processes.into_iter().collect();
    let mut session = PtraceSession::of(PathBuf::new(), options);
    let (folder, watch) = (shard_folder()?, Watch::since_handlers());
    session.sample(0, &folder, &processes, false, &|| watch.signal().is_some())?;
    Ok(Recording::new(Runs::one(), None, Box::new(session).finish()))
}

/// Stops a child of this process, as sampling from outside does.
///
/// # Errors
/// The kernel does not let a child be traced. Other processes may be forbidden even so.
pub fn try_child() -> std::io::Result<()> {
    // SAFETY: the child only waits, until it is killed.
    let child = unsafe {
        match libc::fork() {
            -1 => return Err(std::io::Error::last_os_error()),
            0 => loop {
                libc::pause();
            },
            child => child as u32,
        }
    };
    let mut tracer = Tracer::default();
    let result = match tracer.stop(child, child) {
        Ok(stopped) => {
            tracer.release(stopped);
            Ok(())
        }
        Err(NotStopped::Refused(error)) => Err(error),
        Err(NotStopped::NotNow) => Err(std::io::ErrorKind::TimedOut.into()),
    };
    // SAFETY: a child of this process, which is waited for by nobody else.
    unsafe {
        libc::kill(child as i32, libc::SIGKILL);
        libc::waitpid(child as i32, std::ptr::null_mut(), 0);
    }
    result
}
