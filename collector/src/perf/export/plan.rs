//! The order of an export: names and mappings precede the first sample that needs them.

use super::{ExportOptions, Exported};
use crate::convert::space::{Located, Space};
use crate::vector::{
    BranchFacts, Burst, CodeAddress, Compressed, EndReason, Engine, EventId, Module, ModuleId, ModuleMapping, Process,
    VectorSet, Window,
};
use std::collections::{HashMap, HashSet};

/// Writes the events of the plan.
pub(super) trait Sink {
    /// A process image begins.
    fn process(&mut self, pid: u32, parent: Option<u32>, process: &Process, time_ns: u64);
    /// A file is mapped.
    fn mapping(&mut self, pid: u32, module: &Module, mapping: &ModuleMapping, time_ns: u64);
    /// A branch stack.
    fn stack(&mut self, stack: &Stack);
}

/// A branch stack, newest branch first.
pub(super) struct Stack<'a> {
    pub(super) pid: u32,
    pub(super) thread: u32,
    pub(super) time_ns: u64,
    pub(super) ip: u64,
    pub(super) event: Option<EventId>,
    /// Number of stacks that it represents.
    pub(super) period: u64,
    pub(super) branches: &'a [(u64, u64, BranchFacts)],
}

/// Passes the set to a sink.
pub(super) fn run(set: &VectorSet, options: ExportOptions, sink: &mut impl Sink) -> Exported {
    let mut plan = Plan {
        set,
        depth: options.depth.clamp(1, ExportOptions::DEEPEST),
        pids: pids(set),
        spaces: HashMap::new(),
        exported: Exported::default(),
    };
    let windows = set.compressed.as_ref().map(|compressed| windows(set, compressed));
    let windows = windows.unwrap_or_default();
    let rate = set.compressed.as_ref().map_or(1, |compressed| compressed.rate.max(1));
    let all = set.bursts.iter().map(|burst| (burst, 1));
    let mut order: Vec<(&Burst, u64)> = all.chain(windows.iter().map(|burst| (burst, rate))).collect();
    order.sort_by_key(|(burst, _)| burst.time_ns);
    for (burst, period) in order {
        plan.burst(burst, period, sink);
    }
    plan.exported
}

/// Windows as bursts. Each weight w is a multiple of r: a window is written w ÷ r times with period r, so that the
/// weights of all windows are in proportion.
fn windows(set: &VectorSet, compressed: &Compressed) -> Vec<Burst> {
    let burst = |window: &Window| Burst {
        process: window.process,
        thread: set
            .processes
            .get(window.process as usize)
            .map_or(0, |process| process.pid),
        time_ns: compressed
            .epochs
            .get(window.epoch as usize)
            .map_or(0, |epoch| epoch.first_ns),
        engine: Engine::RunAhead,
        start: None,
        branches: window.branches.clone(),
        end: window.end,
        end_reason: EndReason::Budget,
        instructions: 0,
        count: window.weight / compressed.rate.max(1),
        proved: window.proved,
        system_call: None,
        hardware: None,
        values: Vec::new(),
        timing: None,
    };
    compressed.windows.iter().map(burst).collect()
}

struct Plan<'a> {
    set: &'a VectorSet,
    depth: usize,
    /// By position of the process.
    pids: Vec<u32>,
    /// Mappings in force, by position of the process.
    spaces: HashMap<u32, Space>,
    exported: Exported,
}

/// A unique process id for each process image: if two images share an id, the later one gets a new id.
fn pids(set: &VectorSet) -> Vec<u32> {
    let mut used: HashSet<u32> = set.processes.iter().map(|process| process.pid).collect();
    let mut taken = HashSet::new();
    let mut free = 1..=i32::MAX as u32;
    let mut own = |process: &Process| {
        if taken.insert(process.pid) {
            return process.pid;
        }
        let pid = free.find(|pid| !used.contains(pid)).unwrap_or(process.pid);
        used.insert(pid);
        pid
    };
    set.processes.iter().map(&mut own).collect()
}

impl Plan<'_> {
    fn burst(&mut self, burst: &Burst, period: u64, sink: &mut impl Sink) {
        if burst.branches.is_empty() || burst.process as usize >= self.set.processes.len() {
            return;
        }
        self.begin(burst.process, burst.time_ns, sink);
        let facts = burst.hardware.as_ref().map_or(&[][..], |hardware| &hardware.facts);
        let mut branches = Vec::with_capacity(burst.branches.len());
        for (position, branch) in burst.branches.iter().enumerate() {
            let from = self.address(burst, branch.from, sink);
            let to = self.address(burst, branch.to, sink);
            match (from, to) {
                (Some(from), Some(to)) => branches.push((from, to, facts.get(position).copied().unwrap_or_default())),
                _ => self.exported.unmapped = self.exported.unmapped.saturating_add(burst.count),
            }
        }
        let last = burst.hardware.as_ref().map(|hardware| hardware.ip).or(burst.end);
        let last = last.and_then(|ip| self.address(burst, ip, sink));
        for at in (0..branches.len()).step_by(self.depth) {
            let next = (at + self.depth).min(branches.len());
            // Between stacks, the thread is about to take the next branch.
            let ip = branches
                .get(next)
                .map(|next| next.0)
                .or(last)
                .unwrap_or(branches[next - 1].1);
            let mut newest_first = branches[at..next].to_vec();
            newest_first.reverse();
            let stack = Stack {
                pid: self.pids[burst.process as usize],
                thread: burst.thread,
                time_ns: burst.time_ns,
                ip,
                event: burst.hardware.as_ref().map(|hardware| hardware.event),
                period,
                branches: &newest_first,
            };
            for _ in 0..burst.count {
                sink.stack(&stack);
            }
            self.exported.stacks += burst.count;
            self.exported.branches += burst.count * newest_first.len() as u64;
            self.exported.period = self.exported.period.max(period);
        }
    }

    /// Writes a process's name and mappings before its first use, after those of its parents.
    fn begin(&mut self, process: u32, time_ns: u64, sink: &mut impl Sink) {
        let mut new = Vec::new();
        let mut next = Some(process);
        while let Some(process) = next.filter(|process| !self.spaces.contains_key(process)) {
            self.spaces.insert(process, Space::default());
            new.push(process);
            next = self.parent(process);
        }
        for process in new.into_iter().rev() {
            let parent = self.parent(process).map(|parent| self.pids[parent as usize]);
            let (pid, told) = (self.pids[process as usize], &self.set.processes[process as usize]);
            sink.process(pid, parent, told, time_ns);
            for (position, module) in self.set.modules.iter().enumerate() {
                for mapping in module.mappings.iter().filter(|mapping| mapping.process == process) {
                    self.map(ModuleId(position as u32), mapping, time_ns, sink);
                }
            }
        }
    }

    fn parent(&self, process: u32) -> Option<u32> {
        let parent = self.set.processes[process as usize].parent;
        parent.filter(|parent| (*parent as usize) < self.pids.len())
    }

    fn map(&mut self, module: ModuleId, mapping: &ModuleMapping, time_ns: u64, sink: &mut impl Sink) {
        if mapping.start >= mapping.end {
            return;
        }
        let pid = self.pids[mapping.process as usize];
        sink.mapping(pid, &self.set.modules[module.0 as usize], mapping, time_ns);
        self.spaces.entry(mapping.process).or_default().map(Located {
            start: mapping.start,
            end: mapping.end,
            offset: mapping.file_offset,
            module,
        });
    }

    /// The run-time address. Its mapping is written again if a later mapping has replaced it.
    fn address(&mut self, burst: &Burst, address: CodeAddress, sink: &mut impl Sink) -> Option<u64> {
        let (process, offset) = (burst.process, address.offset);
        if address.module == ModuleId::EXTERNAL {
            return Some(offset);
        }
        let space = self.spaces.get(&process)?;
        let found = space
            .of_module(address.module)
            .find_map(|mapping| mapping.run_time_address(offset));
        if found.is_some() {
            return found;
        }
        let module = self.set.modules.get(address.module.0 as usize)?;
        let has = |mapping: &&ModuleMapping| {
            let into = offset.checked_sub(mapping.file_offset);
            mapping.process == process && into.is_some_and(|into| into < mapping.end.saturating_sub(mapping.start))
        };
        let mapping = *module.mappings.iter().find(has)?;
        self.map(address.module, &mapping, burst.time_ns, sink);
        Some(mapping.start + (offset - mapping.file_offset))
    }
}
