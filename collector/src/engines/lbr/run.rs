//! Records a command with branch records.

use super::attr::Scope;
use super::control::{Controller, Goal, Seen};
use super::diagnose::{Refusal, diagnose};
use super::gather::Gather;
use super::open::Opened;
use super::spawn_stopped::StoppedChild;
use super::{Facts, Plan, calibrate, probe, sys};
use crate::convergence::{Convergence, Repeat};
use crate::convert::Found;
use crate::engines::error::RecordError;
use crate::engines::options::RecordOptions;
use crate::engines::run_loop::{Recording, run_all};
use crate::engines::session::{Collected, Session};
use crate::launch;
use crate::perf::Report;
use crate::signals::Forwarding;
use crate::stats::Stats;
use crate::store::Store;
use crate::sys::monotonic_ns;
use crate::vector::{Burst, Engine, VectorSet};
use crate::watch::Watcher;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Polling interval for the end of the command, on kernels without pidfds.
const IMPATIENCE: Duration = Duration::from_millis(10);
/// Time before the first poll of the controller.
const FIRST_LOOK: Duration = Duration::from_millis(5);

/// A command to be recorded with branch records.
#[derive(Debug)]
pub(crate) struct LbrSession<'a> {
    options: &'a RecordOptions,
    program: PathBuf,
    facts: Facts,
    plan: Plan,
    goal: Goal,
    sample_ns: f64,
    seed: u64,
    vectors: VectorSet,
    reports: Vec<Report>,
    convergence: Option<Convergence>,
}

impl<'a> LbrSession<'a> {
    /// Asks the kernel for branch records and examines the command.
    ///
    /// # Errors
    /// The kernel grants no branch records, or the command cannot be run.
    pub(crate) fn new(command: &OsStr, options: &'a RecordOptions) -> Result<Self, RecordError> {
        let facts = Facts::read();
        let plan = probe(&facts, options.event.as_deref())?;
        Self::planned(command, options, &facts, &plan)
    }

    fn planned(command: &OsStr, options: &'a RecordOptions, facts: &Facts, plan: &Plan) -> Result<Self, RecordError> {
        let program = launch::examine_outside(command)?;
        Ok(Self {
            options,
            program,
            facts: facts.clone(),
            plan: plan.clone(),
            goal: options.period.map_or(Goal::Overhead(options.overhead), Goal::Distance),
            sample_ns: calibrate::sample_cost(plan),
            seed: options
                .seed
                .unwrap_or_else(|| u64::from(std::process::id()) ^ monotonic_ns()),
            vectors: VectorSet::default(),
            reports: Vec::new(),
            convergence: matches!(options.repeat, Repeat::Until(_)).then(Convergence::default),
        })
    }
}

impl Session for LbrSession<'_> {
    fn program(&self) -> &Path {
        &self.program
    }

    fn run(&mut self, command: Command, number: u32) -> Result<ExitStatus, RecordError> {
        let (facts, plan) = (&self.facts, &self.plan);
        let run = Run {
            plan,
            program: &self.program,
            explain: &|errno| match errno {
                libc::ENOMEM => Refusal::Memory,
                _ => diagnose(facts, errno, &plan.name, self.options.event.is_some()),
            },
            goal: self.goal,
            sample_ns: self.sample_ns,
            seed: self.seed.wrapping_add(u64::from(number) << 32),
            duration: self.options.duration,
            watcher: self.options.watcher.as_ref(),
        };
        let before = self.vectors.bursts.len();
        let (status, report) = run.once(command, &mut self.vectors)?;
        if let Some(convergence) = &mut self.convergence {
            convergence.begin_run(number);
            self.vectors.bursts[before..]
                .iter()
                .for_each(|burst| convergence.add(burst));
        }
        self.reports.push(report);
        Ok(status)
    }

    fn convergence(&self) -> Option<&Convergence> {
        self.convergence.as_ref()
    }

    fn finish(self: Box<Self>) -> Collected {
        let mut vectors = self.vectors;
        let threads: HashSet<_> = vectors
            .bursts
            .iter()
            .map(|burst| (burst.process, burst.thread))
            .collect();
        let found = Found {
            shards: vectors.processes.len() as u64,
            threads: threads.len() as u64,
            ..Found::default()
        };
        let mut stats = Stats::from_vectors(&vectors, Engine::Lbr, found);
        stats.event = Some(self.plan.name.clone());
        if self.options.max_size.is_some() {
            // Memory is not bounded up to this point, only the file is.
            let mut store = Store::new(self.options.max_size, self.seed);
            for burst in std::mem::take(&mut vectors.bursts) {
                store.push(burst);
            }
            store.finish(&mut vectors);
        }
        Collected {
            remarks: remarks(&self.plan, &self.reports),
            vectors,
            stats,
            unreclaimed: false,
        }
    }
}

/// Records with a given plan, for tests; also returns the report of each run.
///
/// # Errors
/// As for [`crate::record::record`].
pub fn record_planned(
    command: &[OsString],
    options: &RecordOptions,
    facts: &Facts,
    plan: &Plan,
) -> Result<(Recording, Vec<Report>), RecordError> {
    let name = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let mut session = LbrSession::planned(name, options, facts, plan)?;
    let runs = run_all(command, options, &mut session)?;
    let convergence = session.convergence().cloned();
    let reports = session.reports.clone();
    let recording = Recording::new(runs, convergence, Box::new(session).finish());
    Ok((recording, reports))
}

/// Notes for the user, a line each.
fn remarks(plan: &Plan, reports: &[Report]) -> Vec<String> {
    let mut lines = Vec::new();
    let sum = |figure: fn(&Report) -> u64| reports.iter().map(figure).sum::<u64>();
    if !plan.without.is_empty() {
        let cores = plan.without.join(", ");
        lines.push(format!(
            "what ran on the cores {cores} is not sampled: they have no branch records"
        ));
    }
    let lost = sum(|report| report.lost);
    if lost > 0 {
        lines.push(format!(
            "the kernel lost {lost} samples: its buffers were full; try a lower --overhead"
        ));
    }
    let throttled = sum(|report| report.throttled);
    if throttled > 0 {
        lines.push(format!(
            "the kernel stopped sampling {throttled} times for a moment (kernel.perf_event_max_sample_rate)"
        ));
    }
    let without = sum(|report| report.without_branches);
    let samples = sum(|report| report.samples);
    if plan.branches && without * 2 > samples {
        lines.push(format!("{without} of {samples} samples have no branches"));
    }
    if let Some(damage) = reports.iter().find_map(|report| report.damage.as_ref()) {
        lines.push(format!("part of what was sampled could not be read: {damage}"));
    }
    lines
}

/// One run of the command.
struct Run<'a> {
    plan: &'a Plan,
    program: &'a Path,
    /// The error for an event that could not be opened.
    explain: &'a dyn Fn(i32) -> Refusal,
    goal: Goal,
    sample_ns: f64,
    seed: u64,
    duration: Option<Duration>,
    watcher: Option<&'a Watcher>,
}

impl Run<'_> {
    fn once(&self, command: Command, vectors: &mut VectorSet) -> Result<(ExitStatus, Report), RecordError> {
        let cannot_run = |error| RecordError::Io {
            what: format!("cannot run {}", self.program.display()),
            error,
        };
        let began = sys::thread_cpu_ns();
        let mut forwarding = Forwarding::begin();
        let stopped = StoppedChild::spawn(command).map_err(cannot_run)?;
        let pid = stopped.pid();
        let event = &self.plan.event;
        let period = event.first_period(Controller::samples_per_second(self.goal, self.sample_ns));
        let opened = Opened::new(self.plan, pid, period, Scope::FromExec).map_err(self.explain)?;
        let mut controller = Controller::new(self.goal, self.sample_ns, period, event.least_period(), self.seed);
        let mut shown = vectors.bursts.len();
        let mut gather = Gather::new(vectors, Engine::Lbr, opened.events());
        let mut child = stopped.release().map_err(cannot_run)?;
        forwarding.to(pid);

        let reading = self.follow(&mut child, &opened, &mut gather, &mut controller, began, &mut shown);
        // Descendants that are still running continue without sampling.
        opened.sample(false);
        opened.track(false);
        gather.round(opened.rings());
        let seen = seen(&opened, &gather, began, reading);
        let seconds = |ns: f64| ns * 1e-9;
        let report = gather.finish(
            pid,
            seconds(controller.program_ns(&seen)),
            seconds(controller.spent_ns(&seen)),
        );
        drop(opened);
        self.show(&vectors.bursts, &mut shown);
        let status = child.wait().map_err(cannot_run)?;
        Ok((status, report))
    }

    /// Shows the bursts after the first `shown`.
    fn show(&self, bursts: &[Burst], shown: &mut usize) {
        let Some(watcher) = self.watcher else { return };
        bursts[*shown..].iter().for_each(|burst| watcher.burst(burst));
        *shown = bursts.len();
        watcher.round();
    }

    /// Reads and controls until the command ends, or its time is over; returns the CPU time that reading took, in
    /// nanoseconds.
    fn follow(
        &self,
        child: &mut Child,
        opened: &Opened,
        gather: &mut Gather,
        controller: &mut Controller,
        began: u64,
        shown: &mut usize,
    ) -> u64 {
        let start = Instant::now();
        let deadline = self.duration.map(|duration| start + duration);
        let mut wait = Wait::new(child.id(), opened);
        let mut look_at = start + FIRST_LOOK;
        let (mut open, mut reading) = (true, 0);
        loop {
            let until = deadline.map_or(look_at, |deadline| deadline.min(look_at));
            let ended = wait.until(until, child);
            let before = sys::thread_cpu_ns();
            gather.round(opened.rings());
            reading += sys::thread_cpu_ns().saturating_sub(before);
            self.show(gather.bursts(), shown);
            let now = Instant::now();
            if ended || deadline.is_some_and(|deadline| now >= deadline) {
                return reading;
            }
            if now < look_at {
                continue;
            }
            let decision = controller.look(seen(opened, gather, began, reading));
            if let Some(period) = decision.period {
                opened.set_period(period);
            }
            if decision.open != open {
                open = decision.open;
                opened.sample(open);
            }
            look_at = now + decision.next;
        }
    }
}

fn seen(opened: &Opened, gather: &Gather, began: u64, reading_ns: u64) -> Seen {
    let arrived = gather.arrived();
    Seen {
        cpu_ns: opened.cpu_ns(),
        reader_ns: sys::thread_cpu_ns().saturating_sub(began),
        reading_ns,
        samples: arrived.samples + arrived.lost,
        events: arrived.events,
    }
}

/// Waits for buffers that fill, and for the end of the command.
struct Wait {
    end: Option<OwnedFd>,
    /// The end comes first.
    polled: Vec<libc::pollfd>,
}

impl Wait {
    fn new(pid: u32, opened: &Opened) -> Self {
        let end = sys::process_end(pid);
        let entry = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // Negative descriptors are ignored.
        let first = end.as_ref().map_or(-1, |end| end.as_raw_fd());
        let polled = std::iter::once(first).chain(opened.descriptors()).map(entry).collect();
        Self { end, polled }
    }

    /// Whether the command has ended.
    fn until(&mut self, time: Instant, child: &mut Child) -> bool {
        let mut wait = time.saturating_duration_since(Instant::now());
        if self.end.is_none() {
            wait = wait.min(IMPATIENCE);
        }
        // Rounded up, because `poll` would otherwise return early repeatedly.
        let wait = wait.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32;
        // SAFETY: the entries are a local array of that length. A signal ends the call early, which is harmless.
        let ready = unsafe { libc::poll(self.polled.as_mut_ptr(), self.polled.len() as libc::nfds_t, wait) };
        if ready > 0 {
            for entry in &mut self.polled[1..] {
                // All its threads have ended, so it would stay ready.
                if entry.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
                    entry.fd = -1;
                }
            }
        }
        match &self.end {
            Some(_) => ready > 0 && self.polled[0].revents != 0,
            None => !matches!(child.try_wait(), Ok(None)),
        }
    }
}
