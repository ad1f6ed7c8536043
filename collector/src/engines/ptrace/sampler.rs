//! Ticks of the sampled processes, and the bursts at them.

#![allow(unsafe_code, reason = "system calls")]

use super::clock::Ticks;
use super::faults::GuardedEngine;
use super::image::{BurstRecord, ProcessImage};
use super::tracer::{NotStopped, Tracer, gone, has_memory, is_32_bit, read_memory, system_error};
use crate::engines::lbr::sys::thread_cpu_ns;
use crate::engines::options::RecordOptions;
use crate::sys::monotonic_ns;
use pleach_shadow::{End, FLOATING_IMAGE, Limits, Observed, Taken};
use pleach_wire::account::{Totals, mean_interval};
use pleach_wire::random::Random;
use pleach_wire::random::interval;
use procfs::process::{Process, Stat};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Error;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Interval at which children and the end of the recording are looked for; longer if looking takes more than this share
/// of the budget.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
const LOOK_SHARE: f64 = 0.1;
/// Interval at which threads that could not be released are looked at, and the time that is left for them at the end.
const SETTLE_INTERVAL: Duration = Duration::from_millis(2);
const LAST_CHANCE: Duration = Duration::from_secs(1);
/// Timers tick at the kernel's rate, which is 100 to 1000 Hz.
const MIN_PERIOD_NS: f64 = 4_000_000.0;
/// Taken branches of a burst, where none are asked for.
const BURST: u32 = 1000;
/// First guess of a tick's cost.
const FIRST_COST_NS: f64 = 600_000.0;
/// Weight of a tick in the expected cost.
const LEARNING_RATE: f64 = 0.1;
/// Threads of a process that are looked at in a tick, at most.
const MAX_LOOKED_AT: usize = 64;

/// Samples processes from outside. The thread that makes it runs it, and ends after it.
pub(super) struct Sampler<'a> {
    options: &'a RecordOptions,
    directory: &'a Path,
    /// By the numbers of their timers. (Timers end before what receives their ticks.)
    images: BTreeMap<u32, ProcessImage>,
    next_number: u32,
    ticks: Ticks,
    tracer: Tracer,
    engine: GuardedEngine,
    /// The process whose memory bursts read.
    process_read: Arc<AtomicU32>,
    floating: Box<[u8; FLOATING_IMAGE]>,
    record: BurstRecord,
    random: Random,
    limits: Limits,
    /// CPU time of the program in images that have ended.
    ended_cpu_ns: u64,
    /// CPU time of this thread when it began.
    began_cpu_ns: u64,
    /// Time for which programs were stopped, beyond the CPU time that it took here.
    waited_ns: u64,
    tick_cost_ns: f64,
    notes: BTreeSet<String>,
}

/// The root processes of a recording.
pub(super) struct Roots<'a> {
    pub(super) processes: &'a [u32],
    /// The one process is a child of this one, and is waited for.
    pub(super) is_child: bool,
    /// Whether the recording is to end.
    pub(super) is_over: &'a (dyn Fn() -> bool + Sync),
    /// Signals that are blocked in this thread while it does not wait for ticks.
    pub(super) deferred: libc::sigset_t,
}

/// What a recording from outside found.
#[derive(Debug, Default)]
pub(super) struct Sampled {
    /// The status of the child, if it has ended.
    pub(super) status: Option<ExitStatus>,
    /// CPU time of the sampler, and what programs waited for it beyond that.
    pub(super) own_ns: u64,
    /// Notes for the user.
    pub(super) notes: BTreeSet<String>,
}

impl<'a> Sampler<'a> {
    /// # Errors
    /// The kernel refuses memory or descriptors.
    pub(super) fn new(options: &'a RecordOptions, directory: &'a Path, seed: u64) -> Result<Self, Error> {
        let process_read = Arc::new(AtomicU32::new(0));
        let mut engine = GuardedEngine::new()?;
        let process = process_read.clone();
        engine.get().read_memory_of_other(Box::new(move |address, page| {
            read_memory(process.load(Ordering::Relaxed), address, page)
        }));
        let burst = options.burst.unwrap_or(BURST);
        Ok(Self {
            options,
            directory,
            images: BTreeMap::new(),
            next_number: 0,
            ticks: Ticks::new()?,
            tracer: Tracer::default(),
            engine,
            process_read,
            floating: Box::new([0; FLOATING_IMAGE]),
            record: BurstRecord::new(burst),
            random: Random::from_seed(seed, 0),
            limits: Limits::of_sample(burst),
            ended_cpu_ns: 0,
            began_cpu_ns: thread_cpu_ns(),
            waited_ns: 0,
            tick_cost_ns: FIRST_COST_NS,
            notes: BTreeSet::new(),
        })
    }

    /// Samples until all roots have ended, the time is over, or the recording is to end.
    ///
    /// # Errors
    /// What was sampled cannot be written, or a root cannot be sampled.
    pub(super) fn run(mut self, roots: &Roots<'_>) -> Result<Sampled, Error> {
        let began = Instant::now();
        let deadline = self.options.duration.map(|duration| began + duration);
        let mut sampled = Sampled::default();
        for &root in roots.processes {
            match self.add(root, roots.is_child.then_some(0), "") {
                // A child may have ended already.
                Err(error) if !(roots.is_child && error.raw_os_error() == Some(libc::ESRCH)) => return Err(error),
                _ => {}
            }
        }
        let since = boot_ticks();
        let mut look_at = began;
        loop {
            let mut until = deadline.map_or(look_at, |deadline| deadline.min(look_at));
            if self.tracer.holds_any() {
                until = until.min(Instant::now() + SETTLE_INTERVAL);
            }
            let ended = self.wait(until, &roots.deferred);
            self.tracer.settle();
            // Not more, or a short period would leave no time for anything else.
            for _ in 0..self.images.len() {
                let Some(number) = self.ticks.next() else { break };
                self.tick(number)?;
            }
            for number in ended {
                self.end(number)?;
            }
            sampled.status = sampled.status.or_else(|| self.status(roots));
            let now = Instant::now();
            let has_root = self
                .images
                .values()
                .any(|image| roots.processes.contains(&image.process));
            if !has_root || (roots.is_over)() || deadline.is_some_and(|deadline| now >= deadline) {
                break;
            }
            if now >= look_at {
                look_at = now + self.look_for_children(since)?;
            }
        }
        let last = Instant::now() + LAST_CHANCE;
        while self.tracer.holds_any() && Instant::now() < last {
            std::thread::sleep(SETTLE_INTERVAL);
            self.tracer.settle();
        }
        sampled.status = sampled.status.or_else(|| self.status(roots));
        let numbers: Vec<u32> = self.images.keys().copied().collect();
        for number in numbers {
            self.end(number)?;
        }
        sampled.own_ns = self.own_ns();
        sampled.notes = self.notes;
        Ok(sampled)
    }

    /// The status of the child, once it has ended.
    fn status(&mut self, roots: &Roots<'_>) -> Option<ExitStatus> {
        let child = roots.processes.first().filter(|_| roots.is_child)?;
        self.tracer.status_of(*child)
    }

    /// Begins to sample a process, from now on. `base_cpu_ns`: CPU time that does not count; `None`: all up to now.
    ///
    /// # Errors
    /// It has ended (`ESRCH`), or files cannot be opened.
    fn add(&mut self, process: u32, base_cpu_ns: Option<u64>, parent: &str) -> Result<(), Error> {
        let number = self.next_number;
        let image = ProcessImage::begin(self.directory, process, (&self.ticks, number), base_cpu_ns, parent)?;
        self.next_number += 1;
        self.images.insert(number, image);
        self.arm(number);
        Ok(())
    }

    /// CPU time of the sampler, and what programs waited for it beyond that.
    fn own_ns(&self) -> u64 {
        thread_cpu_ns().saturating_sub(self.began_cpu_ns) + self.waited_ns
    }

    /// Waits for a tick, or for the end of a process. Returns the numbers of those that have ended. Only meanwhile can the
    /// user suspend the recorder: no thread is stopped.
    fn wait(&mut self, until: Instant, deferred: &libc::sigset_t) -> Vec<u32> {
        let entry = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // Negative descriptors are ignored.
        let ends = self.images.values().map(ProcessImage::end_descriptor);
        let mut polled: Vec<_> = std::iter::once(self.ticks.descriptor())
            .chain(ends)
            .map(entry)
            .collect();
        let wait = until.saturating_duration_since(Instant::now());
        let wait = libc::timespec {
            tv_sec: wait.as_secs() as i64,
            tv_nsec: wait.subsec_nanos().into(),
        };
        // SAFETY: the entries are a local array of that length; all zeroes is valid for the sets. A signal ends the call
        // early, which is harmless.
        unsafe {
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
            for signal in 1..libc::SIGRTMIN() {
                if libc::sigismember(deferred, signal) == 1 {
                    libc::sigdelset(&mut mask, signal);
                }
            }
            libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, &wait, &mask);
        }
        let mut ended = Vec::new();
        for ((number, image), end) in self.images.iter_mut().zip(&polled[1..]) {
            image.cpu_ns();
            if end.revents != 0 || end.fd < 0 && !image.exists() {
                ended.push(*number);
            }
        }
        ended
    }

    /// Lets a process tick after a random part of its CPU time, as the budget allows.
    fn arm(&mut self, number: u32) {
        let mean = match self.options.period {
            Some(period) => period.as_nanos() as f64,
            None => {
                let running: u64 = self.images.values_mut().map(ProcessImage::cpu_ns).sum();
                let totals = Totals {
                    program_ns: self.ended_cpu_ns + running,
                    own_ns: self.own_ns(),
                    start_ns: 0,
                    coverage_ns: 0,
                };
                mean_interval(self.options.overhead, self.tick_cost_ns, totals).max(MIN_PERIOD_NS)
            }
        };
        let ns = if self.options.has_equal_periods {
            mean
        } else {
            interval(mean, self.random.fraction())
        };
        if let Some(image) = self.images.get(&number) {
            image.timer.arm(ns as u64);
        }
    }

    /// A tick of a process: a burst of one of its threads that run.
    fn tick(&mut self, number: u32) -> Result<(), Error> {
        let before = thread_cpu_ns();
        let tick = self.sample(number)?;
        let cpu_ns = thread_cpu_ns().saturating_sub(before);
        let waited_ns = tick.stopped_ns.saturating_sub(cpu_ns);
        self.waited_ns += waited_ns;
        let cost_ns = cpu_ns + waited_ns;
        self.tick_cost_ns += (cost_ns as f64 - self.tick_cost_ns) * LEARNING_RATE;
        if let Some(image) = self.images.get_mut(&number) {
            image.counters.own_ns += cost_ns;
            image.counters.declined += u64::from(!tick.is_burst);
        }
        self.arm(number);
        Ok(())
    }

    fn sample(&mut self, number: u32) -> Result<Tick, Error> {
        let mut tick = Tick::default();
        let Some(image) = self.images.get_mut(&number) else {
            return Ok(tick);
        };
        let process = image.process;
        let Ok(files) = Process::new(process as i32) else {
            return Ok(tick);
        };
        if self.tracer.holds(process) {
            return Ok(tick);
        }
        let Some((thread, stat)) = running_thread(&files, self.options, &mut self.random) else {
            return Ok(tick);
        };
        if !image.is_in(&stat) {
            return self.replace(number).map(|()| tick);
        }
        let stopped = match self.tracer.stop(process, thread) {
            Ok(stopped) => stopped,
            Err(NotStopped::NotNow) => return Ok(tick),
            Err(NotStopped::Refused(error)) => {
                self.notes.insert(note_on_refusal(process, &error));
                return Ok(tick);
            }
        };
        let stopped_at = monotonic_ns();
        let Some(registers) = stopped.registers(&mut self.floating) else {
            self.tracer.release(stopped);
            tick.stopped_ns = monotonic_ns().saturating_sub(stopped_at);
            return Ok(tick);
        };
        self.process_read.store(process, Ordering::Relaxed);
        let engine = self.engine.get();
        engine.load_registers(&registers);
        self.record.begin(registers.pc, stopped_at);
        let (record, mut is_unknown) = (&mut self.record, !image.knows(registers.pc));
        let outcome = engine.run_loaded(&self.limits, &mut |observed| {
            let Observed::Taken(Taken { from, to, .. }) = observed else {
                return;
            };
            is_unknown = is_unknown || !image.knows(to);
            record.branch(from, to);
        });
        let system_call = engine.system_call().filter(|_| outcome.end == End::SystemCall);
        self.tracer.release(stopped);
        tick.stopped_ns = monotonic_ns().saturating_sub(stopped_at);
        if is_unknown {
            // What is mapped now is what the burst saw, unless the process has called `execve` since.
            image.write_mappings(&files)?;
            if files.stat().is_ok_and(|stat| !image.is_in(&stat)) {
                return Ok(tick);
            }
        }
        image.write_burst(&mut self.record, thread, &outcome, system_call)?;
        tick.is_burst = true;
        Ok(tick)
    }

    /// Begins the shard of the image that a process has since `execve`.
    fn replace(&mut self, number: u32) -> Result<(), Error> {
        let Some(image) = self.images.get(&number) else {
            return Ok(());
        };
        let (process, base) = (image.process, image.process_cpu_ns());
        self.end(number)?;
        if let Err(error) = ignoring_ends(self.add(process, Some(base), "")) {
            let note = format!("process {process} was not sampled once it had started another program: {error}");
            self.notes.insert(note);
        }
        Ok(())
    }

    /// Ends the shard of an image.
    fn end(&mut self, number: u32) -> Result<(), Error> {
        if let Some(mut image) = self.images.remove(&number) {
            self.ended_cpu_ns += image.cpu_ns();
            image.end()?;
        }
        Ok(())
    }

    /// Samples the children of sampled processes, too. `since`: when the recording began, in ticks since the machine did.
    /// Returns the time until the next look.
    fn look_for_children(&mut self, since: u64) -> Result<Duration, Error> {
        let before = thread_cpu_ns();
        let mut known: BTreeSet<u32> = self.images.values().map(|image| image.process).collect();
        known.insert(std::process::id());
        let mut found = Vec::new();
        for image in self.images.values() {
            let threads = Process::new(image.process as i32).and_then(|files| files.tasks());
            for thread in threads.into_iter().flatten().flatten() {
                let children = thread.children().unwrap_or_default();
                found.extend(
                    children
                        .into_iter()
                        .map(|child| (child, image.process, image.name.clone())),
                );
            }
        }
        for (child, parent, name) in found {
            if known.insert(child) {
                let added = self.add_child(child, parent, &name, since);
                if let Err(error) = ignoring_ends(added) {
                    self.notes.insert(format!("some children were not sampled: {error}"));
                }
            }
        }
        let cost_ns = thread_cpu_ns().saturating_sub(before) as f64;
        let affordable = Duration::from_nanos((cost_ns / (self.options.overhead * LOOK_SHARE)) as u64);
        Ok(affordable.max(LOOK_INTERVAL))
    }

    fn add_child(&mut self, child: u32, parent: u32, name: &str, since: u64) -> Result<(), Error> {
        let files = Process::new(child as i32).map_err(system_error)?;
        let stat = files.stat().map_err(system_error)?;
        // Its number may be another process's by now.
        if stat.ppid as u32 != parent || is_32_bit(&files) {
            return Err(gone());
        }
        self.add(child, (stat.starttime >= since).then_some(0), name)
    }
}

/// The outcome of a tick.
#[derive(Debug, Default)]
struct Tick {
    is_burst: bool,
    /// Wall time for which the thread was stopped.
    stopped_ns: u64,
}

/// A process that has ended is no error.
fn ignoring_ends(result: Result<(), Error>) -> Result<(), Error> {
    result.or_else(|error| match error.raw_os_error() {
        Some(libc::ESRCH) => Ok(()),
        _ => Err(error),
    })
}

/// A note for the user on a kernel that does not let a thread be traced.
fn note_on_refusal(process: u32, error: &Error) -> String {
    format!(
        "process {process} could not be traced for a while ({error}): a debugger or another tracer may have it, or a \
         seccomp filter or kernel.yama.ptrace_scope forbids it; root may (CAP_SYS_PTRACE)"
    )
}

/// The time since the machine began, in the clock ticks of `/proc/PID/stat`.
fn boot_ticks() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time lives here.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    let per_second = procfs::ticks_per_second();
    time.tv_sec as u64 * per_second + time.tv_nsec as u64 * per_second / 1_000_000_000
}

/// One of the threads that run, at random.
fn running_thread(files: &Process, options: &RecordOptions, random: &mut Random) -> Option<(u32, Stat)> {
    let mut threads: Vec<_> = files.tasks().ok()?.flatten().collect();
    for _ in 0..MAX_LOOKED_AT.min(threads.len()) {
        let at = (random.fraction() * threads.len() as f64) as usize;
        let thread = threads.swap_remove(at);
        let Ok(stat) = thread.stat() else { continue };
        let number = thread.tid as u32;
        if stat.state == 'R' && has_memory(&stat) && options.threads.admits(stat.comm.as_bytes(), number) {
            return Some((number, stat));
        }
    }
    None
}
