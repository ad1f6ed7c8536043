//! Joins recordings: their vectors as if one recording had made them.

use super::coverage::{ModuleCoverage, SegmentCoverage, SegmentState};
use super::{Branch, BuildId, Burst, CodeAddress, EventId, EventSample, Module, ModuleId, ModuleMapping, VectorSet};
use std::collections::HashMap;
use std::path::PathBuf;

/// Why recordings cannot be joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JoinError {
    /// A sample of windows cannot be added to another: their rates differ.
    #[error("a recording was compressed (--max-size) and cannot be joined with others: record without it")]
    Compressed,
    /// More than 2³² modules, processes or events.
    #[error("they have too many modules or processes")]
    TooMany,
}

/// Joins recordings, in their order. Modules are the same if path and build-id are.
pub fn join(sets: impl IntoIterator<Item = VectorSet>) -> Result<VectorSet, JoinError> {
    let mut sets = sets.into_iter();
    let Some(first) = sets.next() else {
        return Ok(VectorSet::default());
    };
    let mut joined = Joined::new(first)?;
    sets.try_for_each(|set| joined.add(set))?;
    Ok(joined.set)
}

struct Joined {
    set: VectorSet,
    modules: HashMap<(PathBuf, Option<BuildId>), ModuleId>,
}

/// Where the parts of a set are in the joined one.
struct Positions {
    modules: Vec<ModuleId>,
    events: Vec<EventId>,
    processes: u32,
}

impl Positions {
    fn module(&self, module: ModuleId) -> ModuleId {
        *self.modules.get(module.0 as usize).unwrap_or(&ModuleId::EXTERNAL)
    }

    fn address(&self, address: CodeAddress) -> CodeAddress {
        CodeAddress {
            module: self.module(address.module),
            ..address
        }
    }

    fn branch(&self, branch: Branch) -> Branch {
        Branch {
            from: self.address(branch.from),
            to: self.address(branch.to),
        }
    }

    fn burst(&self, mut burst: Burst) -> Burst {
        burst.process += self.processes;
        burst.start = burst.start.map(|address| self.address(address));
        burst.end = burst.end.map(|address| self.address(address));
        for branch in &mut burst.branches {
            *branch = self.branch(*branch);
        }
        if let Some(sample) = &mut burst.hardware {
            sample.event = *self.events.get(sample.event.0 as usize).unwrap_or(&sample.event);
            sample.ip = self.address(sample.ip);
        }
        burst
    }
}

impl Joined {
    fn new(set: VectorSet) -> Result<Self, JoinError> {
        if set.compressed.is_some() {
            return Err(JoinError::Compressed);
        }
        let modules = set.modules.iter().enumerate();
        let modules = modules.map(|(at, module)| (key(module), ModuleId(at as u32))).collect();
        Ok(Self { set, modules })
    }

    fn add(&mut self, set: VectorSet) -> Result<(), JoinError> {
        if set.compressed.is_some() {
            return Err(JoinError::Compressed);
        }
        let counts = [
            self.set.processes.len() + set.processes.len(),
            self.set.modules.len() + set.modules.len(),
            self.set.events.len() + set.events.len(),
        ];
        if counts.iter().any(|&count| count >= u32::MAX as usize) {
            return Err(JoinError::TooMany);
        }
        let had = self.set.modules.len();
        let processes = self.set.processes.len() as u32;
        let positions = Positions {
            modules: set
                .modules
                .into_iter()
                .map(|module| self.module(module, processes))
                .collect(),
            events: set.events.into_iter().map(|event| self.event(event)).collect(),
            processes,
        };
        self.set.processes.extend(set.processes.into_iter().map(|mut process| {
            process.parent = process.parent.map(|parent| parent + processes);
            process
        }));
        self.set
            .bursts
            .extend(set.bursts.into_iter().map(|burst| positions.burst(burst)));
        self.set
            .samples
            .extend(set.samples.into_iter().map(|sample| EventSample {
                event: *positions.events.get(sample.event.0 as usize).unwrap_or(&sample.event),
                at: positions.address(sample.at),
                ..sample
            }));
        let coverage = set.coverage.into_iter().map(|coverage| ModuleCoverage {
            module: positions.module(coverage.module),
            ..coverage
        });
        self.add_coverage(coverage.collect(), &positions.modules, had);
        Ok(())
    }

    /// The position of a module, which is added if it is new.
    fn module(&mut self, module: Module, processes: u32) -> ModuleId {
        let new = ModuleId(self.set.modules.len() as u32);
        let id = *self.modules.entry(key(&module)).or_insert(new);
        let mappings = module.mappings.iter().map(|mapping| ModuleMapping {
            process: mapping.process + processes,
            ..*mapping
        });
        match self.set.modules.get_mut(id.0 as usize) {
            Some(known) => known.mappings.extend(mappings),
            None => {
                let mappings = mappings.collect();
                self.set.modules.push(Module { mappings, ..module });
            }
        }
        id
    }

    fn event(&mut self, event: String) -> EventId {
        let events = &mut self.set.events;
        let at = events.iter().position(|known| *known == event).unwrap_or_else(|| {
            events.push(event);
            events.len() - 1
        });
        EventId(at as u32)
    }

    /// Adds the coverage of another recording. `theirs`: its modules; `had`: the number of modules before it.
    fn add_coverage(&mut self, coverage: Vec<ModuleCoverage>, theirs: &[ModuleId], had: usize) {
        // What one recording proved not executed, the other may have executed, if it had the module unobserved.
        for ours in &mut self.set.coverage {
            if theirs.contains(&ours.module) && coverage.iter().all(|other| other.module != ours.module) {
                forget_not_executed(ours);
            }
        }
        for mut other in coverage {
            match self.set.coverage.iter_mut().find(|ours| ours.module == other.module) {
                Some(ours) => add_module(ours, other),
                None => {
                    if (other.module.0 as usize) < had {
                        forget_not_executed(&mut other);
                    }
                    self.set.coverage.push(other);
                }
            }
        }
    }
}

fn key(module: &Module) -> (PathBuf, Option<BuildId>) {
    (module.path.clone(), module.build_id.clone())
}

fn forget_not_executed(coverage: &mut ModuleCoverage) {
    for segment in &mut coverage.segments {
        if segment.state == SegmentState::NotExecuted {
            segment.state = SegmentState::Unknown;
        }
    }
}

fn add_module(ours: &mut ModuleCoverage, mut other: ModuleCoverage) {
    let places = |coverage: &ModuleCoverage| -> Vec<(u64, u64)> {
        coverage
            .segments
            .iter()
            .map(|segment| (segment.start, segment.end))
            .collect()
    };
    if places(ours) != places(&other) {
        // A file that changed under its name. Addresses of one say nothing about the other.
        forget_not_executed(ours);
        return;
    }
    ours.processes += other.processes;
    ours.traps += other.traps;
    ours.completed &= other.completed;
    for (failure, count) in other.failures.drain(..) {
        match ours.failures.iter_mut().find(|(known, _)| *known == failure) {
            Some((_, known)) => *known += count,
            None => ours.failures.push((failure, count)),
        }
    }
    for (ours, other) in ours.segments.iter_mut().zip(other.segments) {
        add_segment(ours, other);
    }
}

fn add_segment(ours: &mut SegmentCoverage, other: SegmentCoverage) {
    let never = |segment: &SegmentCoverage| segment.state == SegmentState::NotExecuted;
    let executed = |segment: &SegmentCoverage| segment.state >= SegmentState::Implied;
    let at_most = match (ours.at_most, other.at_most) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (known, None) if never(&other) => known,
        (None, known) if never(ours) => known,
        _ => None,
    };
    ours.state = if executed(ours) || executed(&other) {
        ours.state.max(other.state)
    } else if never(ours) && never(&other) {
        SegmentState::NotExecuted
    } else {
        SegmentState::Unknown
    };
    ours.hits = ours.hits.saturating_add(other.hits);
    ours.at_most = at_most;
    ours.first_hit_ns = [ours.first_hit_ns, other.first_hit_ns].into_iter().flatten().min();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{Compressed, EndReason, Engine, Process};

    fn process(pid: u32, parent: Option<u32>) -> Process {
        Process {
            pid,
            parent,
            command: format!("program {pid}"),
            program_cpu_seconds: 1.0,
            own_cpu_seconds: 0.01,
            lost: 0,
            declined: 0,
            undisturbed: true,
        }
    }

    fn module(path: &str, build: u8, processes: u32) -> Module {
        Module {
            path: path.into(),
            build_id: Some(BuildId(vec![build])),
            mappings: (0..processes)
                .map(|process| ModuleMapping {
                    process,
                    start: 0x1000,
                    end: 0x2000,
                    file_offset: 0,
                })
                .collect(),
        }
    }

    fn address(module: u32, offset: u64) -> CodeAddress {
        let module = ModuleId(module);
        CodeAddress { module, offset }
    }

    fn burst(process: u32, module: u32) -> Burst {
        Burst {
            process,
            thread: 1,
            time_ns: 0,
            engine: Engine::RunAhead,
            start: Some(address(module, 1)),
            branches: vec![Branch {
                from: address(module, 2),
                to: address(u32::MAX, 3),
            }],
            values: Vec::new(),
            end: None,
            end_reason: EndReason::Budget,
            instructions: 1,
            count: 1,
            proved: false,
            system_call: None,
            hardware: None,
            timing: None,
        }
    }

    fn coverage(states: &[SegmentState]) -> ModuleCoverage {
        ModuleCoverage {
            module: ModuleId(0),
            processes: 1,
            traps: 2,
            completed: true,
            failures: Vec::new(),
            segments: (0u64..)
                .zip(states)
                .map(|(at, &state)| SegmentCoverage {
                    start: at * 4,
                    end: at * 4 + 4,
                    state,
                    hits: u32::from(state == SegmentState::Hit),
                    at_most: (state == SegmentState::Hit).then_some(5),
                    first_hit_ns: (state == SegmentState::Hit).then_some(9),
                })
                .collect(),
        }
    }

    #[test]
    fn equal_modules_are_one_and_processes_stay_apart() {
        let first = VectorSet {
            modules: vec![module("/a", 1, 1)],
            processes: vec![process(10, None)],
            bursts: vec![burst(0, 0)],
            ..VectorSet::default()
        };
        let second = VectorSet {
            modules: vec![module("/b", 2, 2), module("/a", 1, 2), module("/a", 9, 2)],
            processes: vec![process(20, None), process(21, Some(0))],
            bursts: vec![burst(1, 1), burst(0, 0), burst(0, 2)],
            ..VectorSet::default()
        };
        let joined = join([first, second]).unwrap();
        let names = joined
            .modules
            .iter()
            .map(|m| (m.path.to_str().unwrap(), m.mappings.len()));
        assert_eq!(names.collect::<Vec<_>>(), [("/a", 3), ("/b", 2), ("/a", 2)]);
        assert_eq!(joined.processes[2].parent, Some(1));
        let places = joined.bursts.iter().map(|b| (b.process, b.start.unwrap().module.0));
        assert_eq!(places.collect::<Vec<_>>(), [(0, 0), (2, 0), (1, 1), (1, 2)]);
        assert!(
            joined
                .bursts
                .iter()
                .all(|b| b.branches[0].to.module == ModuleId::EXTERNAL)
        );
        assert_eq!(VectorSet::from_bytes(&joined.to_bytes()).unwrap(), joined);
    }

    #[test]
    fn coverage_adds_up() {
        use SegmentState::{Hit, Implied, NotExecuted, Unknown};
        let set = |states: &[SegmentState]| VectorSet {
            modules: vec![module("/a", 1, 1)],
            processes: vec![process(1, None)],
            coverage: vec![coverage(states)],
            ..VectorSet::default()
        };
        let joined = join([
            set(&[Hit, NotExecuted, NotExecuted, Unknown, Hit]),
            set(&[NotExecuted, NotExecuted, Unknown, Implied, Hit]),
        ])
        .unwrap();
        let [coverage] = joined.coverage.as_slice() else {
            panic!("{joined:?}")
        };
        let states: Vec<_> = coverage.segments.iter().map(|r| (r.state, r.hits, r.at_most)).collect();
        assert_eq!(
            states,
            [
                (Hit, 1, Some(5)),
                (NotExecuted, 0, None),
                (Unknown, 0, None),
                (Implied, 0, None),
                (Hit, 2, Some(10))
            ]
        );
        assert_eq!((coverage.processes, coverage.traps), (2, 4));
    }

    #[test]
    fn an_unobserved_recording_proves_nothing() {
        use SegmentState::{Hit, NotExecuted, Unknown};
        let observed = VectorSet {
            modules: vec![module("/a", 1, 1)],
            coverage: vec![coverage(&[Hit, NotExecuted])],
            ..VectorSet::default()
        };
        let unobserved = VectorSet {
            coverage: Vec::new(),
            ..observed.clone()
        };
        let other_program = VectorSet {
            modules: vec![module("/b", 1, 1)],
            ..VectorSet::default()
        };
        let states = |sets: [&VectorSet; 2]| {
            let joined = join(sets.map(VectorSet::clone)).unwrap();
            let segments = joined.coverage[0].segments.iter();
            segments.map(|segment| segment.state).collect::<Vec<_>>()
        };
        assert_eq!(states([&observed, &unobserved]), [Hit, Unknown]);
        assert_eq!(states([&unobserved, &observed]), [Hit, Unknown]);
        assert_eq!(states([&observed, &other_program]), [Hit, NotExecuted]);
    }

    #[test]
    fn samples_of_windows_are_refused() {
        let compressed = VectorSet {
            compressed: Some(Compressed::default()),
            ..VectorSet::default()
        };
        assert_eq!(join([VectorSet::default(), compressed]), Err(JoinError::Compressed));
        assert_eq!(join([]), Ok(VectorSet::default()));
    }
}
