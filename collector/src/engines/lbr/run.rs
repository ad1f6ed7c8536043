//! Records a command with branch records.

use super::attr::Scope;
use super::control::{Controller, Goal};
use super::diagnose::{Refusal, diagnose};
use super::follow::Follow;
use super::open::Opened;
use super::spawn_stopped::StoppedChild;
use super::{Facts, Plan, calibrate, probe, sys};
use crate::convergence::{Convergence, Repeat};
use crate::convert::Found;
use crate::engines::error::{RecordError, io};
use crate::engines::options::RecordOptions;
use crate::engines::run_loop::{Recording, run_all};
use crate::engines::session::{Collected, Session};
use crate::launch;
use crate::perf::Report;
use crate::perf::live::RunningProcess;
use crate::signals::Forwarding;
use crate::stats::Stats;
use crate::store::Store;
use crate::sys::monotonic_ns;
use crate::vector::{Engine, VectorSet};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// A command, or processes that run already, to be recorded with branch records.
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
        Ok(Self::planned(launch::examine_outside(command)?, options, &facts, &plan))
    }

    /// Prepares a recording with a given plan. `program`: the command's file; empty for processes that run already.
    pub(super) fn planned(program: PathBuf, options: &'a RecordOptions, facts: &Facts, plan: &Plan) -> Self {
        Self {
            options,
            program,
            facts: facts.clone(),
            plan: plan.clone(),
            goal: options.period.map_or(Goal::Overhead(options.overhead), Goal::Period),
            sample_ns: calibrate::sample_cost(plan),
            seed: options
                .seed
                .unwrap_or_else(|| u64::from(std::process::id()) ^ monotonic_ns()),
            vectors: VectorSet::default(),
            reports: Vec::new(),
            convergence: matches!(options.repeat, Repeat::Until(_)).then(Convergence::default),
        }
    }

    fn first_period(&self) -> u64 {
        let pace = Controller::samples_per_second(self.goal, self.sample_ns);
        self.plan.event.first_period(pace)
    }

    /// Opens the plan's events on threads.
    ///
    /// # Errors
    /// The kernel's error number.
    pub(super) fn open(&self, threads: &[u32], scope: Scope) -> Result<Opened, i32> {
        Opened::new(&self.plan, threads, self.first_period(), scope)
    }

    /// The reason for an error number of [`LbrSession::open`].
    pub(super) fn explain(&self, errno: i32) -> Refusal {
        match errno {
            libc::ENOMEM => Refusal::Memory,
            _ => diagnose(&self.facts, errno, &self.plan.name, self.options.event.is_some()),
        }
    }

    /// Samples until all `roots` have ended, the time is over, or a signal ended the recording. `running`: the processes
    /// that ran before. `began`: this thread's CPU time when the recording began, in nanoseconds.
    pub(super) fn sample(
        &mut self,
        number: u32,
        began: u64,
        opened: Opened,
        (roots, running): (&[u32], Vec<RunningProcess>),
        is_interrupted: &dyn Fn() -> bool,
    ) {
        let seed = self.seed.wrapping_add(u64::from(number) << 32);
        let (period, event) = (self.first_period(), &self.plan.event);
        let follow = Follow {
            opened: &opened,
            duration: self.options.duration,
            watcher: self.options.watcher.as_ref(),
            began,
            is_interrupted,
        };
        let before = self.vectors.bursts.len();
        let controller = Controller::new(self.goal, self.sample_ns, period, event.least_period(), seed);
        let report = follow.to_the_end(controller, (roots, running), &mut self.vectors);
        if let Some(convergence) = &mut self.convergence {
            convergence.begin_run(number);
            self.vectors.bursts[before..]
                .iter()
                .for_each(|burst| convergence.add(burst));
        }
        self.reports.push(report);
    }

    /// What was read in each run.
    pub(super) fn reports(&self) -> &[Report] {
        &self.reports
    }
}

impl Session for LbrSession<'_> {
    fn program(&self) -> &Path {
        &self.program
    }

    fn run(&mut self, command: Command, number: u32) -> Result<ExitStatus, RecordError> {
        let cannot_run = format!("cannot run {}", self.program.display());
        let began = sys::thread_cpu_ns();
        let mut forwarding = Forwarding::begin();
        let stopped = StoppedChild::spawn(command).map_err(io(&*cannot_run))?;
        let pid = stopped.pid();
        let opened = self.open(&[pid], Scope::FromExec);
        let opened = opened.map_err(|errno| self.explain(errno))?;
        let mut child = stopped.release().map_err(io(&*cannot_run))?;
        forwarding.to(pid);
        self.sample(number, began, opened, (&[pid], Vec::new()), &|| false);
        child.wait().map_err(io(cannot_run))
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
    let mut session = LbrSession::planned(launch::examine_outside(name)?, options, facts, plan);
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
