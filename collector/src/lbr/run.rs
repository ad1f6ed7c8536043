//! Records a command with branch records.

use super::attr::Scope;
use super::control::{Controller, Goal, Seen};
use super::diagnose::{Refusal, diagnose};
use super::gather::Gather;
use super::held::Held;
use super::open::Opened;
use super::{Facts, Plan, calibrate, probe, sys};
use crate::convert::Found;
use crate::launch;
use crate::perf::Report;
use crate::record::{RecordError, RecordOptions, Recording};
use crate::signals::Forwarding;
use crate::stats::Stats;
use crate::store::Store;
use crate::vector::{Engine, VectorSet};
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How often to see whether the command has ended, where the kernel doesn't tell.
const IMPATIENCE: Duration = Duration::from_millis(10);
/// Before the first look at the budget.
const FIRST_LOOK: Duration = Duration::from_millis(5);

/// Runs a command as [`crate::record::record`] does, with what the kernel grants.
///
/// Fails with a reason where it grants nothing, and where the command cannot be run.
pub fn record(command: &[OsString], options: &RecordOptions) -> Result<Recording, RecordError> {
    let facts = Facts::read();
    let plan = probe(&facts, options.event.as_deref())?;
    record_planned(command, options, &facts, &plan).map(|(recording, _)| recording)
}

/// The same with a plan; also what was found, for each run.
pub fn record_planned(
    command: &[OsString],
    options: &RecordOptions,
    facts: &Facts,
    plan: &Plan,
) -> Result<(Recording, Vec<Report>), RecordError> {
    let Some((name, arguments)) = command.split_first() else {
        return Err(launch::LaunchError::NotFound("(nothing)".to_owned()).into());
    };
    let program = launch::examine_outside(name)?;
    let sample_ns = calibrate::sample_cost(plan);
    let goal = options.period.map_or(Goal::Overhead(options.overhead), Goal::Distance);
    let seed = options
        .seed
        .unwrap_or_else(|| u64::from(std::process::id()) ^ crate::record::monotonic_ns());

    let mut vectors = VectorSet::default();
    let (mut reports, mut status) = (Vec::new(), None);
    for run in 0..options.repeat.max(1) {
        let mut child = Command::new(&program);
        child.args(arguments).arg0(name);
        let redirected = options.redirect.apply(&mut child);
        redirected.map_err(crate::record::io("cannot redirect the command"))?;
        let run = Run {
            plan,
            program: &program,
            explain: &|errno| match errno {
                libc::ENOMEM => Refusal::Memory,
                _ => diagnose(facts, errno, &plan.name, options.event.is_some()),
            },
            goal,
            sample_ns,
            seed: seed.wrapping_add(u64::from(run) << 32),
            duration: options.duration,
        };
        let (ended, report) = run.once(child, &mut vectors)?;
        reports.push(report);
        if status.is_none_or(|before: ExitStatus| before.success()) {
            status = Some(ended);
        }
    }
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
    let mut stats = Stats::of(&vectors, Engine::Lbr, found);
    stats.event = Some(plan.name.clone());
    if options.max_size.is_some() {
        // Memory holds all until here; only the file is bounded.
        let mut store = Store::new(options.max_size, seed);
        for burst in std::mem::take(&mut vectors.bursts) {
            store.push(burst);
        }
        store.finish(&mut vectors);
    }
    let recording = Recording {
        status: status.unwrap_or_default(),
        remarks: remarks(plan, &reports),
        vectors,
        stats,
        unreclaimed: false,
    };
    Ok((recording, reports))
}

/// What is worth knowing, a line each.
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
    /// Says why an event could not be opened.
    explain: &'a dyn Fn(i32) -> Refusal,
    goal: Goal,
    sample_ns: f64,
    seed: u64,
    duration: Option<Duration>,
}

impl Run<'_> {
    fn once(&self, command: Command, vectors: &mut VectorSet) -> Result<(ExitStatus, Report), RecordError> {
        let cannot_run = |error| RecordError::Io {
            what: format!("cannot run {}", self.program.display()),
            error,
        };
        let began = sys::thread_cpu_ns();
        let mut forwarding = Forwarding::begin();
        let held = Held::start(command).map_err(cannot_run)?;
        let pid = held.pid();
        let event = &self.plan.event;
        let period = event.first_period(Controller::samples_per_second(self.goal, self.sample_ns));
        let opened = Opened::new(self.plan, pid, period, Scope::FromExec).map_err(self.explain)?;
        let mut controller = Controller::new(self.goal, self.sample_ns, period, event.least_period(), self.seed);
        let mut gather = Gather::new(vectors, Engine::Lbr, opened.events());
        let mut child = held.release().map_err(cannot_run)?;
        forwarding.to(pid);

        let reading = self.follow(&mut child, &opened, &mut gather, &mut controller, began);
        // What the command has left behind runs on unsampled.
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
        let status = child.wait().map_err(cannot_run)?;
        Ok((status, report))
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
        // Rounded up, so as not to come too early again and again.
        let wait = wait.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32;
        // SAFETY: entries that live here. A signal ends it early, which does no harm.
        let ready = unsafe { libc::poll(self.polled.as_mut_ptr(), self.polled.len() as libc::nfds_t, wait) };
        if ready > 0 {
            for entry in &mut self.polled[1..] {
                // Its threads have ended: it would be ready for ever.
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
