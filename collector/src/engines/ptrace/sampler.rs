//! Ticks of the sampled processes, and the bursts at them.

use super::clock::Ticks;
use super::faults::GuardedEngine;
use super::stopped::{NotStopped, StoppedThread, read_memory};
use super::target::{Record, Target};
use crate::engines::lbr::sys::{process_end, thread_cpu_ns};
use crate::engines::options::RecordOptions;
use crate::sys::monotonic_ns;
use pleach_shadow::{End, FLOATING_IMAGE, Limits, Taken};
use pleach_wire::account::{Totals, interval, mean_interval};
use pleach_wire::random::Random;
use procfs::process::{Process, Stat};
use std::collections::BTreeMap;
use std::io::Error;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Interval at which children and the end of the recording are looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Timers tick at the kernel's rate, which is 100 to 1000 Hz.
const MIN_PERIOD_NS: f64 = 4_000_000.0;
/// Taken branches of a burst, where none are asked for.
const BURST: u32 = 1000;
/// First guess of a tick's cost.
const FIRST_COST_NS: f64 = 600_000.0;
/// Weight of a tick in the expected cost.
const LEARNING_RATE: f64 = 0.1;

/// Samples processes from outside.
pub(super) struct Sampler<'a> {
    options: &'a RecordOptions,
    directory: &'a Path,
    ticks: Ticks,
    engine: GuardedEngine,
    /// The process whose memory bursts read.
    reads: Arc<AtomicU32>,
    image: Box<[u8; FLOATING_IMAGE]>,
    record: Record,
    random: Random,
    limits: Limits,
    /// By the numbers of their timers.
    targets: BTreeMap<u32, (Target, Option<OwnedFd>)>,
    begun: u32,
    /// Program's CPU time of images that have ended.
    ended_cpu_ns: u64,
    /// CPU time of this thread when it began.
    began_cpu_ns: u64,
    /// Time for which programs were stopped, beyond the CPU time that it took here.
    waited_ns: u64,
    tick_cost_ns: f64,
    /// Why the kernel refused to stop a thread, the last time.
    refusal: Option<Error>,
}

/// What a recording from outside found.
#[derive(Debug, Default)]
pub(super) struct Sampled {
    /// The status of the process `root`, if it is a child that has ended and was waited for.
    pub(super) status: Option<ExitStatus>,
    /// CPU time of the sampler.
    pub(super) own_ns: u64,
    /// Why the kernel refused to stop a thread, the last time.
    pub(super) refusal: Option<Error>,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(options: &'a RecordOptions, directory: &'a Path, seed: u64) -> Result<Self, Error> {
        let reads = Arc::new(AtomicU32::new(0));
        let mut engine = GuardedEngine::new()?;
        let process = reads.clone();
        engine.get().read_memory_of_other(Box::new(move |address, page| {
            read_memory(process.load(Ordering::Relaxed), address, page)
        }));
        let burst = options.burst.unwrap_or(BURST);
        Ok(Self {
            options,
            directory,
            ticks: Ticks::new()?,
            engine,
            reads,
            image: Box::new([0; FLOATING_IMAGE]),
            record: Record::new(burst),
            random: Random::from_seed(seed, 0),
            limits: Limits::of_sample(burst),
            targets: BTreeMap::new(),
            begun: 0,
            ended_cpu_ns: 0,
            began_cpu_ns: thread_cpu_ns(),
            waited_ns: 0,
            tick_cost_ns: FIRST_COST_NS,
            refusal: None,
        })
    }

    /// Begins to sample a process, from now on. `base_cpu_ns`: CPU time that does not count.
    pub(super) fn add(&mut self, process: u32, base_cpu_ns: u64, parent: &str) -> Result<(), Error> {
        let gone = |_| Error::from_raw_os_error(libc::ESRCH);
        let files = Process::new(process as i32).map_err(gone)?;
        let stat = files.stat().map_err(gone)?;
        let number = self.begun;
        let timer = self.ticks.timer(super::clock::CpuClock::of(process), number)?;
        let mut target = Target::begin(
            self.directory,
            &files,
            &stat,
            timer,
            base_cpu_ns,
            monotonic_ns(),
            parent,
        )?;
        target.read_mappings(&files)?;
        self.begun += 1;
        self.targets.insert(number, (target, process_end(process)));
        self.arm(number);
        Ok(())
    }

    /// Samples until all processes `roots` have ended, the time is over, or `is_over` says so. `is_child`: the one root is
    /// a child of this process, which is waited for.
    pub(super) fn run(mut self, roots: &[u32], is_child: bool, is_over: impl Fn() -> bool) -> Result<Sampled, Error> {
        let deadline = self.options.duration.map(|duration| Instant::now() + duration);
        let mut status = None;
        let mut look_at = Instant::now() + LOOK_INTERVAL;
        loop {
            let ended = self.wait(deadline.map_or(look_at, |deadline| deadline.min(look_at)));
            while let Some(number) = self.ticks.next() {
                status = self.tick(number)?.or(status);
            }
            for number in ended {
                self.end(number)?;
            }
            if is_child && status.is_none() {
                status = roots.first().and_then(|root| try_wait(*root));
            }
            let now = Instant::now();
            let has_root = self.targets.values().any(|(target, _)| roots.contains(&target.process));
            if !has_root || is_over() || deadline.is_some_and(|deadline| now >= deadline) {
                break;
            }
            if now >= look_at {
                self.look_for_children();
                look_at = now + LOOK_INTERVAL;
            }
        }
        let own_ns = self.own_ns();
        let numbers: Vec<u32> = self.targets.keys().copied().collect();
        for number in numbers {
            self.end(number)?;
        }
        Ok(Sampled {
            status,
            own_ns,
            refusal: self.refusal.take(),
        })
    }

    /// CPU time of the sampler, and what programs waited for it beyond that.
    fn own_ns(&self) -> u64 {
        thread_cpu_ns().saturating_sub(self.began_cpu_ns) + self.waited_ns
    }

    /// Waits for a tick, or for the end of a process. Returns the numbers of those that have ended.
    fn wait(&self, until: Instant) -> Vec<u32> {
        let entry = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // Negative descriptors are ignored.
        let ends = self
            .targets
            .values()
            .map(|(_, end)| end.as_ref().map_or(-1, |end| end.as_raw_fd()));
        let mut polled: Vec<_> = std::iter::once(self.ticks.descriptor())
            .chain(ends)
            .map(entry)
            .collect();
        let wait = until.saturating_duration_since(Instant::now());
        let wait = wait.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32;
        // SAFETY: the entries are a local array of that length. A signal ends the call early, which is harmless.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, wait) };
        let targets = self.targets.iter().zip(&polled[1..]);
        let ended = targets.filter(|((_, (target, _)), end)| end.revents != 0 || target.clock.now().is_none());
        ended.map(|((number, _), _)| *number).collect()
    }

    /// Lets a process tick after a random part of its CPU time, as the budget allows.
    fn arm(&mut self, number: u32) {
        let mean = match self.options.period {
            Some(period) => period.as_nanos() as f64,
            None => {
                let running: u64 = self.targets.values_mut().map(|(target, _)| target.cpu_ns()).sum();
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
        if let Some((target, _)) = self.targets.get(&number) {
            target.timer.arm(ns as u64);
        }
    }

    /// A tick of a process: a burst of one of its threads that run. Returns the status of the process if it is a child
    /// and has ended.
    fn tick(&mut self, number: u32) -> Result<Option<ExitStatus>, Error> {
        let before = thread_cpu_ns();
        let tick = self.sample(number)?;
        let cpu_ns = thread_cpu_ns().saturating_sub(before);
        let waited_ns = tick.stopped_ns.saturating_sub(cpu_ns);
        self.waited_ns += waited_ns;
        let cost_ns = cpu_ns + waited_ns;
        self.tick_cost_ns += (cost_ns as f64 - self.tick_cost_ns) * LEARNING_RATE;
        if let Some((target, _)) = self.targets.get_mut(&number) {
            target.counters.own_ns += cost_ns;
            target.counters.declined += u64::from(!tick.is_burst);
        }
        self.arm(number);
        Ok(tick.status)
    }

    fn sample(&mut self, number: u32) -> Result<Tick, Error> {
        let Some((target, _)) = self.targets.get_mut(&number) else {
            return Ok(Tick::default());
        };
        let id = target.process;
        let (Ok(files), random) = (Process::new(id as i32), &mut self.random) else {
            return Ok(Tick::default());
        };
        let Some((thread, stat)) = running_thread(&files, self.options, random) else {
            return Ok(Tick::default());
        };
        if !target.is_same_image(&stat) {
            return self.replace(number).map(|()| Tick::default());
        }
        let stopped_at = monotonic_ns();
        let stopped = match StoppedThread::stop(id, thread) {
            Ok(stopped) => stopped,
            Err(NotStopped::Ended(status)) => {
                return Ok(Tick {
                    status: status.filter(|_| thread == id),
                    ..Tick::default()
                });
            }
            Err(NotStopped::Busy) => return Ok(Tick::default()),
            Err(NotStopped::Refused(error)) => {
                self.refusal = Some(error);
                return Ok(Tick::default());
            }
        };
        let mut tick = Tick::default();
        if let Some(registers) = stopped.registers(&mut self.image) {
            self.reads.store(id, Ordering::Relaxed);
            let engine = self.engine.get();
            engine.load_registers(&registers);
            self.record.begin(registers.pc, stopped_at);
            let (record, mut has_unknown) = (&mut self.record, !target.knows(registers.pc));
            let outcome = engine.run_loaded(&self.limits, &mut |Taken { from, to, .. }| {
                has_unknown = has_unknown || !target.knows(to);
                record.branch(from, to);
            });
            drop(stopped);
            let system_call = engine.system_call().filter(|_| outcome.end == End::SystemCall);
            tick.stopped_ns = monotonic_ns().saturating_sub(stopped_at);
            tick.is_burst = true;
            if has_unknown {
                target.read_mappings(&files)?;
            }
            target.write_burst(&mut self.record, thread, &outcome, system_call)?;
        }
        Ok(tick)
    }

    /// Begins the shard of the image that a process has since `execve`.
    fn replace(&mut self, number: u32) -> Result<(), Error> {
        let Some((mut target, _)) = self.targets.remove(&number) else {
            return Ok(());
        };
        let process = target.process;
        self.ended_cpu_ns += target.cpu_ns();
        let base = target.whole_cpu_ns();
        target.end()?;
        // It may have ended.
        let _ = self.add(process, base, "");
        Ok(())
    }

    /// Ends the shard of a process.
    fn end(&mut self, number: u32) -> Result<(), Error> {
        if let Some((mut target, _)) = self.targets.remove(&number) {
            self.ended_cpu_ns += target.cpu_ns();
            target.end()?;
        }
        Ok(())
    }

    /// Samples the children of sampled processes, too.
    fn look_for_children(&mut self) {
        let known: Vec<u32> = self.targets.values().map(|(target, _)| target.process).collect();
        let mut found = Vec::new();
        for (target, _) in self.targets.values() {
            let threads = Process::new(target.process as i32).and_then(|process| process.tasks());
            for thread in threads.into_iter().flatten().flatten() {
                let children = thread.children().unwrap_or_default();
                let new = children.into_iter().filter(|child| !known.contains(child));
                found.extend(new.map(|child| (child, target.name.clone())));
            }
        }
        for (child, parent) in found {
            // It may have ended.
            let _ = self.add(child, 0, &parent);
        }
    }
}

/// What became of a tick.
#[derive(Debug, Default)]
struct Tick {
    is_burst: bool,
    /// Wall time for which the thread was stopped.
    stopped_ns: u64,
    /// The status of the process, if it is a child that has ended.
    status: Option<ExitStatus>,
}

/// One of the threads that run, at random.
fn running_thread(process: &Process, options: &RecordOptions, random: &mut Random) -> Option<(u32, Stat)> {
    let mut running = Vec::new();
    for thread in process.tasks().ok()?.flatten() {
        let Ok(stat) = thread.stat() else { continue };
        if stat.state == 'R' && options.threads.admits(stat.comm.as_bytes(), thread.tid as u32) {
            running.push((thread.tid as u32, stat));
        }
    }
    let at = (random.fraction() * running.len() as f64) as usize;
    (at < running.len()).then(|| running.swap_remove(at))
}

/// The status of a child, if it has ended.
fn try_wait(child: u32) -> Option<ExitStatus> {
    use std::os::unix::process::ExitStatusExt;
    let mut status = 0;
    // SAFETY: the status lives here.
    let waited = unsafe { libc::waitpid(child as i32, &mut status, libc::WNOHANG) };
    (waited == child as i32).then(|| ExitStatus::from_raw(status))
}
