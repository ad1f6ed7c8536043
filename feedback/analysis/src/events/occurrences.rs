//! Every occurrence of an event in the bursts, and the blocks that led there.

use super::history::{EventHistory, Passed};
use super::targets::{Hit, Targets};
use crate::decode::{Event, Position};
use crate::program::{Program, Site};
use crate::replay::{Observer, ReplayUnit, Run};
use crate::time_bias::Weights;
use pleach_annotate::cfg::ProbeTarget;
use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_collector::vector::{Branch, CodeAddress, EndReason, ModuleId};
use pleach_profile::events::EventProfile;
use rustc_hash::FxHashMap;

/// Occurrences that are kept of all events together; later ones are left out.
const MAX_OCCURRENCES: usize = 4 << 20;
/// Branches without annotated code between a call and what it leads to.
const MAX_FOREIGN: usize = 256;

/// Position of a path in a [`PathTable`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct PathId(pub u32);

/// Paths, each once.
#[derive(Debug, Default)]
pub(super) struct PathTable {
    paths: Vec<Box<[Passed]>>,
    ids: FxHashMap<Box<[Passed]>, PathId>,
}

impl PathTable {
    pub fn intern(&mut self, path: &[Passed]) -> PathId {
        if let Some(id) = self.ids.get(path) {
            return *id;
        }
        let id = PathId(self.paths.len() as u32);
        self.paths.push(path.into());
        self.ids.insert(path.into(), id);
        id
    }

    /// The blocks, oldest first.
    pub fn steps(&self, id: PathId) -> &[Passed] {
        &self.paths[id.0 as usize]
    }

    /// The last steps of a path.
    pub fn end_of(&self, id: PathId, steps: usize) -> &[Passed] {
        let path = self.steps(id);
        &path[path.len().saturating_sub(steps)..]
    }
}

/// An occurrence of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occurrence {
    /// Position of its place among those of the event.
    pub place: u32,
    pub path: PathId,
    /// Taken branches from the burst's beginning.
    pub distance: u32,
    pub burst: u32,
    pub weight: f64,
}

/// An occurrence that the branches of a burst show before they are decoded.
struct Mark {
    /// Position of the branch before the mark. `after`: blocks decoded after that branch belong to the history, too.
    branch: usize,
    after: bool,
    hit: Hit,
    /// The block that calls, if it is known.
    site: Option<Site>,
}

/// Observes a replay.
pub(super) struct Occurrences<'p> {
    program: &'p Program,
    weights: &'p Weights,
    targets: &'p Targets,
    history: EventHistory,
    marks: Vec<Mark>,
    next_mark: usize,
    /// Whether occurrences in this burst count: it did not begin right after a system call.
    is_counted: bool,
    /// Events by position.
    found: Vec<Vec<Occurrence>>,
    count: usize,
    paths: PathTable,
}

impl<'p> Occurrences<'p> {
    pub fn new(program: &'p Program, weights: &'p Weights, targets: &'p Targets) -> Self {
        Self {
            program,
            weights,
            targets,
            history: EventHistory::default(),
            marks: Vec::new(),
            next_mark: 0,
            is_counted: true,
            found: targets.events.iter().map(|_| Vec::new()).collect(),
            count: 0,
            paths: PathTable::default(),
        }
    }

    /// Whether later occurrences were left out.
    pub fn is_full(&self) -> bool {
        self.count == MAX_OCCURRENCES
    }

    /// The occurrences of each event, and their paths.
    pub fn finish(self) -> (Vec<Vec<Occurrence>>, PathTable) {
        (self.found, self.paths)
    }

    fn record(&mut self, run: Run<'_>, branch: usize, (event, place): Hit) {
        let Some(weight) = run.weight(Position::Branch(branch), self.weights) else {
            return;
        };
        if self.count == MAX_OCCURRENCES || !self.is_counted {
            return;
        }
        self.count += 1;
        // One more for the place itself.
        let path: Vec<Passed> = self.history.last(EventProfile::MAX_STEPS + 1).collect();
        self.found[event].push(Occurrence {
            place,
            path: self.paths.intern(&path),
            distance: branch as u32 + 1,
            burst: run.number as u32,
            weight,
        });
    }

    /// An annotated function begins: out of line, or inlined.
    fn enter_function(
        &mut self,
        run: Run<'_>,
        branch: usize,
        map: &AddressMap,
        (module, instance): (ModuleId, InlineInstanceIndex),
    ) {
        let targets = self.targets;
        let inlined = &map.inline_instances[instance.index()];
        let hits = targets.at_function(module, inlined.function);
        if hits.is_empty() {
            return;
        }
        let site = match inlined.parent {
            Some((parent, call)) => call.and_then(|call| {
                let call = map.function_of(parent).cfg.calls.get(call.index())?;
                Some((module, parent, call.block))
            }),
            None => self.call_site(&run.source.branches()[..=branch]),
        };
        self.call_from(site);
        for &hit in hits {
            self.record(run, branch, hit);
        }
    }

    fn call_from(&mut self, site: Option<Site>) {
        if let Some(site) = site {
            self.history.call_from(site);
        }
    }

    /// Records the marks before an event that follows a branch; all of them at the end.
    fn pass_marks(&mut self, run: Run<'_>, upto: Option<usize>) {
        while let Some(mark) = self.marks.get(self.next_mark) {
            let is_due = upto.is_none_or(|upto| mark.branch < upto || mark.branch == upto && !mark.after);
            if !is_due {
                return;
            }
            let (branch, hit, site) = (mark.branch, mark.hit, mark.site);
            self.next_mark += 1;
            self.call_from(site);
            self.record(run, branch, hit);
        }
    }

    /// The block of the last annotated call among branches.
    fn call_site(&self, branches: &[Branch]) -> Option<Site> {
        let mut annotated = 0;
        for branch in branches.iter().rev().take(MAX_FOREIGN) {
            let Some((map, address)) = self.program.locate(branch.from) else {
                continue;
            };
            for probe in map.probes_in(address, address) {
                if let ProbeTarget::Call(call) = probe.target {
                    let block = map.function_of(probe.instance).cfg.calls.get(call.index())?.block;
                    return Some((branch.from.module, probe.instance, block));
                }
            }
            // A jump of the linkage table may come between.
            annotated += 1;
            if annotated > 1 {
                return None;
            }
        }
        None
    }

    fn find_marks(&mut self, source: ReplayUnit<'_>) {
        self.marks.clear();
        self.next_mark = 0;
        self.is_counted = match source {
            ReplayUnit::Burst(burst) => !burst
                .start
                .is_some_and(|start| self.targets.is_after_system_call(start)),
            ReplayUnit::Window(_) => true,
        };
        if !self.is_counted {
            return;
        }
        let branches = source.branches();
        let (end, system_call, hardware) = match source {
            ReplayUnit::Burst(burst) => (
                burst.end.map(|end| (end, burst.end_reason == EndReason::SystemCall)),
                burst.system_call,
                burst.hardware.as_deref().map(|sample| sample.event.0),
            ),
            ReplayUnit::Window(window) => (window.end.map(|end| (end, false)), None, None),
        };
        // The last allocation, until annotated code runs again.
        let mut nested: Option<usize> = None;
        for (at, branch) in branches.iter().enumerate() {
            if self.program.map(branch.from.module).is_some() {
                nested = None;
            }
            for &hit in self.targets.at_entry(branch.from, branch.to) {
                if self.targets.nests(hit.0) && nested.replace(hit.0).is_some() {
                    continue;
                }
                let site = self.call_site(&branches[..=at]);
                self.marks.push(Mark {
                    branch: at,
                    after: false,
                    hit,
                    site,
                });
            }
            let last = branches
                .get(at + 1)
                .map(|next| next.from)
                .or_else(|| end.and_then(before_end));
            if let Some(last) = last {
                self.mark_addresses(branches, at, branch.to, last);
            }
        }
        let Some(last) = branches.len().checked_sub(1) else {
            return;
        };
        let at_end = system_call.map(|number| self.targets.at_system_call(number).collect::<Vec<_>>());
        let of_hardware = hardware.and_then(|event| self.targets.at_hardware(event));
        for hit in at_end.into_iter().flatten() {
            let site = self.call_site(branches);
            self.marks.push(Mark {
                branch: last,
                after: true,
                hit,
                site,
            });
        }
        self.marks.extend(of_hardware.map(|hit| Mark {
            branch: last,
            after: true,
            hit,
            site: None,
        }));
    }

    /// Marks places of samples between two instructions, each place once.
    fn mark_addresses(&mut self, branches: &[Branch], at: usize, first: CodeAddress, last: CodeAddress) {
        let from = self.marks.len();
        for hit in self.targets.at_addresses(first, last) {
            if self.marks[from..].iter().all(|mark| mark.hit != hit) {
                let site = self.call_site(&branches[..=at]);
                self.marks.push(Mark {
                    branch: at,
                    after: true,
                    hit,
                    site,
                });
            }
        }
    }
}

/// The last instruction that ran before a burst's end, or is the system call there.
fn before_end((end, is_system_call): (CodeAddress, bool)) -> Option<CodeAddress> {
    let offset = if is_system_call {
        end.offset
    } else {
        end.offset.checked_sub(1)?
    };
    Some(CodeAddress { offset, ..end })
}

impl Observer for Occurrences<'_> {
    fn begin(&mut self, run: Run<'_>) {
        self.history.clear();
        self.find_marks(run.source);
    }

    fn event(&mut self, run: Run<'_>, position: Position, event: Event) {
        if let Position::Branch(branch) = position {
            self.pass_marks(run, Some(branch));
        }
        match event {
            Event::Entered { frame } => self.history.enter(frame),
            Event::Left { frame } => {
                let branch = run.branch(position);
                let site = branch.and_then(|branch| self.program.block_before_return(branch.to));
                self.history.leave(frame, site);
            }
            Event::Block {
                module,
                frame,
                instance,
                block,
                ..
            } => {
                let Some(map) = self.program.map(module) else { return };
                let Position::Branch(branch) = position else {
                    self.history.block(map, frame, (module, instance, block));
                    return;
                };
                if block == BlockIndex::ENTRY {
                    self.enter_function(run, branch, map, (module, instance));
                }
                self.history.block(map, frame, (module, instance, block));
                let targets = self.targets;
                for &hit in targets.at_block((module, instance, block)) {
                    self.record(run, branch, hit);
                }
            }
            Event::IndirectCall { .. } | Event::Throw { .. } | Event::Unwound { .. } | Event::Value { .. } => {}
        }
    }

    fn end(&mut self, run: Run<'_>) {
        self.pass_marks(run, None);
    }
}
