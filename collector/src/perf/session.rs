//! Tracks processes and their mappings through events in order of time, and turns samples into bursts.

use super::Watch;
use super::branches::{RawBranch, clean};
use super::mapping::RawMapping;
use super::replacement::Replacement;
use super::report::Report;
use crate::convert::modules::Modules;
use crate::convert::space::{Space, external};
use crate::vector::{
    Branch, BranchFacts, Burst, EndReason, Engine, EventId, EventSample, HardwareSample, Process, VectorSet,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

/// A sample without its branches.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleHead {
    pub(super) pid: u32,
    pub(super) thread: u32,
    pub(super) time_ns: u64,
    pub(super) ip: u64,
    /// The program's instruction, where `ip` may be the kernel's.
    pub(super) user_ip: Option<u64>,
    pub(super) period: u64,
    pub(super) event: EventId,
}

/// A process image. It is added to the set with its first sample, because most processes of a machine have none.
#[derive(Clone, Debug, Default)]
struct Image {
    command: String,
    mappings: Rc<Vec<RawMapping>>,
    space: Space,
    process: Rc<Cell<Option<u32>>>,
    parent: Option<Rc<Cell<Option<u32>>>>,
}

/// The state of an import.
pub(super) struct Session<'a> {
    /// The engine of the vectors.
    engine: Engine,
    /// Processes and bursts that the set had before.
    first: (usize, usize),
    modules: Modules<'a>,
    replacement: Option<&'a Replacement>,
    images: HashMap<u32, Image>,
    /// Parents of the processes in the set.
    parents: Vec<Option<Rc<Cell<Option<u32>>>>>,
    /// Lost samples by process.
    lost: HashMap<u32, u64>,
    cleaned: Vec<RawBranch>,
    watch: Option<Progress<'a>>,
    /// Keep samples without branches as samples of kernel events.
    keeps_events: bool,
    pub(super) report: Report,
}

/// The callback for progress, the total of bytes, and the last reported byte.
struct Progress<'a> {
    watch: Watch<'a>,
    bytes: u64,
    told: u64,
}

/// Bytes between two reports of progress.
const STRIDE: u64 = 1 << 20;

impl<'a> Session<'a> {
    /// Adds to a set.
    pub(super) fn new(set: &'a mut VectorSet, engine: Engine, replacement: Option<&'a Replacement>) -> Self {
        Self {
            engine,
            first: (set.processes.len(), set.bursts.len()),
            modules: Modules::new(set),
            replacement,
            images: HashMap::new(),
            parents: Vec::new(),
            lost: HashMap::new(),
            cleaned: Vec::new(),
            watch: None,
            keeps_events: false,
            report: Report::default(),
        }
    }

    /// The same, for events of which samples have no branches.
    pub(super) fn keeping_events(mut self) -> Self {
        self.keeps_events = true;
        self
    }

    /// The same, with a callback for progress; `bytes` is the total.
    pub(super) fn watched(mut self, watch: Watch<'a>, bytes: u64) -> Self {
        self.watch = Some(Progress { watch, bytes, told: 0 });
        self
    }

    /// Reports progress: all bytes before `at` were read.
    pub(super) fn reached(&mut self, at: u64) {
        if let Some(progress) = &mut self.watch
            && at >= progress.told.saturating_add(STRIDE)
        {
            progress.told = at;
            (progress.watch)(at, progress.bytes);
        }
    }

    /// The position of an event's name, which is added if it is new.
    pub(super) fn event(&mut self, name: &str) -> EventId {
        let events = &mut self.modules.set.events;
        let known = events.iter().position(|known| known == name);
        EventId(known.unwrap_or_else(|| {
            events.push(name.to_owned());
            events.len() - 1
        }) as u32)
    }

    pub(super) fn map(&mut self, pid: u32, mut mapping: RawMapping) {
        if let Some(identity) = self.replacement.and_then(|file| file.identity_of(&mapping)) {
            mapping.identity = identity;
        }
        let image = self.images.entry(pid).or_default();
        if let Some(process) = image.process.get() {
            image.space.map(locate(&mut self.modules, process, &mapping));
        }
        Rc::make_mut(&mut image.mappings).push(mapping);
    }

    /// Names a process. With `exec`, a new image begins.
    pub(super) fn name(&mut self, pid: u32, command: String, exec: bool) {
        let image = self.images.entry(pid).or_default();
        if exec {
            *image = Image::default();
        }
        if let Some(process) = image.process.get() {
            self.modules.set.processes[process as usize]
                .command
                .clone_from(&command);
        }
        image.command = command;
    }

    /// Begins a process as a copy of another one; without its mappings if they follow one by one.
    pub(super) fn fork(&mut self, parent: u32, child: u32, with_mappings: bool) {
        if parent == child {
            return;
        }
        let from = self.images.entry(parent).or_default();
        let image = Image {
            command: from.command.clone(),
            mappings: if with_mappings {
                Rc::clone(&from.mappings)
            } else {
                Rc::default()
            },
            space: Space::default(),
            process: Rc::default(),
            parent: Some(Rc::clone(&from.process)),
        };
        self.images.insert(child, image);
    }

    pub(super) fn lose(&mut self, pid: Option<u32>, samples: u64) {
        self.report.lost = self.report.lost.saturating_add(samples);
        if let Some(process) = pid.and_then(|pid| self.images.get(&pid)?.process.get()) {
            let lost = &mut self.modules.set.processes[process as usize].lost;
            *lost = lost.saturating_add(samples);
        } else if let Some(pid) = pid {
            let lost = self.lost.entry(pid).or_default();
            *lost = lost.saturating_add(samples);
        }
    }

    /// Makes a burst of a sample's branches.
    pub(super) fn sample(&mut self, head: SampleHead, newest_first: impl DoubleEndedIterator<Item = RawBranch>) {
        self.report.samples += 1;
        clean(newest_first, &mut self.cleaned, &mut self.report);
        if self.cleaned.is_empty() {
            self.report.without_branches += 1;
            if self.keeps_events {
                self.keep_event(head);
            }
            return;
        }
        let process = self.process(head.pid);
        let space = &self.images[&head.pid].space;
        let at = |address| space.find(address).unwrap_or(external(address));
        let branches = self.cleaned.iter().map(|raw| Branch {
            from: at(raw.from),
            to: at(raw.to),
        });
        let known = self.cleaned.iter().any(|raw| raw.facts != BranchFacts::default());
        let facts = if known { &self.cleaned[..] } else { &[] };
        let burst = Burst {
            process,
            thread: head.thread,
            time_ns: head.time_ns,
            engine: self.engine,
            start: None,
            branches: branches.collect(),
            // More branches may have been taken between reading the stack and the sample's own address.
            end: None,
            end_reason: EndReason::Budget,
            instructions: 0,
            count: 1,
            proved: true,
            values: Vec::new(),
            system_call: None,
            hardware: Some(Box::new(HardwareSample {
                event: head.event,
                ip: at(head.ip),
                facts: facts.iter().map(|raw| raw.facts).collect(),
            })),
            timing: None,
        };
        self.modules.set.bursts.push(burst);
    }

    fn keep_event(&mut self, head: SampleHead) {
        self.process(head.pid);
        let ip = head.user_ip.unwrap_or(head.ip);
        let at = self.images[&head.pid].space.find(ip).unwrap_or(external(ip));
        self.modules.set.samples.push(EventSample {
            event: head.event,
            thread: head.thread,
            time_ns: head.time_ns,
            at,
            period: head.period,
        });
    }

    /// The bursts of the set so far.
    pub(super) fn bursts(&self) -> &[Burst] {
        &self.modules.set.bursts
    }

    /// Adds the CPU seconds of all processes to one process, which is added to the set if needed.
    pub(super) fn account(&mut self, pid: u32, program_cpu_seconds: f64, own_cpu_seconds: f64) {
        let process = self.process(pid);
        let lost = self.report.lost;
        let process = &mut self.modules.set.processes[process as usize];
        process.program_cpu_seconds += program_cpu_seconds;
        process.own_cpu_seconds += own_cpu_seconds;
        process.lost = lost;
    }

    /// The position of a process's image in the set, to which it is added if needed.
    fn process(&mut self, pid: u32) -> u32 {
        let image = self.images.entry(pid).or_default();
        if let Some(process) = image.process.get() {
            return process;
        }
        let process = self.modules.set.processes.len() as u32;
        self.modules.set.processes.push(Process {
            pid,
            parent: None,
            command: image.command.clone(),
            program_cpu_seconds: 0.0,
            own_cpu_seconds: 0.0,
            lost: self.lost.remove(&pid).unwrap_or(0),
            declined: 0,
            undisturbed: false,
        });
        self.parents.push(image.parent.clone());
        image.process.set(Some(process));
        for mapping in image.mappings.iter() {
            image.space.map(locate(&mut self.modules, process, mapping));
        }
        process
    }

    /// Ends the import.
    pub(super) fn finish(self) -> Report {
        let mut report = self.report;
        let set = self.modules.set;
        let (processes, bursts) = (&mut set.processes[self.first.0..], &mut set.bursts[self.first.1..]);
        for (process, parent) in processes.iter_mut().zip(&self.parents) {
            process.parent = parent.as_ref().and_then(|parent| parent.get());
        }
        super::branches::drop_duplicates(bursts, &mut report);
        report.vectors = bursts.len() as u64;
        report.branches = bursts.iter().map(|burst| burst.branches.len() as u64).sum();
        report
    }
}

fn locate(modules: &mut Modules, process: u32, mapping: &RawMapping) -> crate::convert::space::Located {
    modules.locate(
        process,
        &mapping.path,
        mapping.addresses.clone(),
        mapping.offset,
        mapping.identity.clone(),
    )
}
