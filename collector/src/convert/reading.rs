//! One shard, read while it grows.

use super::modules::{FileIdentity, Modules};
use super::proof::Proof;
use super::space::{Space, external};
use crate::store::Store;
use crate::vector::{Branch, BuildId, Burst, BurstTiming, CodeAddress, EndReason, Engine, ObservedValue, Process};
use pleach_wire::shard::{
    BurstTimingFrame, Counters, Disagreement, FRAME_HEADER, Frame, Frames, MAX_PAYLOAD, Mapping, ProcessHead, RawBurst,
};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};

/// Maximum of waiting bursts. A burst waits for the next snapshot of mappings, if it contains unmapped addresses, and
/// until its proof is decided; one that waits longer proves nothing.
const MAX_WAITING: usize = 256;

/// One process image.
#[derive(Debug)]
pub(super) struct Reading {
    /// File name.
    pub(super) name: Vec<u8>,
    /// Bytes read so far.
    pub(super) read: u64,
    pub(super) head: ProcessHead,
    /// Position in the set.
    pub(super) process: u32,
    /// Snapshots so far.
    snapshots: usize,
    /// The last ones, oldest first.
    spaces: VecDeque<Space>,
    /// Bursts that are not in the store yet.
    waiting: VecDeque<Waiting>,
    pub(super) counters: Counters,
    /// Instructions whose shadow execution was compared with real execution.
    pub(super) compared: u64,
    pub(super) disagreements: Vec<Disagreement>,
    pub(super) opcodes: Vec<(u16, u8)>,
    /// Complete time measurements, and cancelled ones.
    pub(super) timed_bursts: u64,
    pub(super) incomplete_timings: u64,
    /// CPU time of threads.
    threads: HashMap<u32, u64>,
    /// CPU time of the process, if it reported its end.
    final_cpu_ns: Option<u64>,
    /// As [`Process::undisturbed`].
    pub(super) undisturbed: bool,
    pub(super) damaged: u64,
    /// Where the last intact frame ends. What follows may still be written.
    intact: u64,
    /// What earlier collections took.
    taken: Taken,
}

/// What was taken of a shard by an earlier collection, and its reports so far.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Taken {
    /// Bytes at the beginning of which only the frames that identify the process, and its mappings, still count.
    pub(crate) bytes: u64,
    /// CPU time of threads.
    threads: HashMap<u32, u64>,
    /// CPU time of the process, if it reported its end.
    final_cpu_ns: Option<u64>,
    own_ns: u64,
    lost: u64,
    declined: u64,
}

#[derive(Debug)]
struct Waiting {
    /// Snapshots before it.
    snapshots: usize,
    burst: RawBurst,
    proof: Proof,
    timing: Option<BurstTiming>,
}

impl Reading {
    /// A shard that begins with these bytes; `None` while they contain no process frame.
    ///
    /// `taken`: what was taken of it earlier.
    pub(super) fn begin(name: &[u8], bytes: &[u8], taken: Taken) -> Option<Self> {
        let head = Frames::new(bytes).find_map(|frame| match frame {
            Frame::Process(head) => Some(head),
            _ => None,
        })?;
        Some(Self {
            name: name.to_vec(),
            read: 0,
            head,
            process: 0,
            snapshots: 0,
            spaces: VecDeque::new(),
            waiting: VecDeque::new(),
            counters: Counters::default(),
            compared: 0,
            disagreements: Vec::new(),
            opcodes: Vec::new(),
            timed_bursts: 0,
            incomplete_timings: 0,
            threads: taken.threads.clone(),
            final_cpu_ns: taken.final_cpu_ns,
            undisturbed: false,
            damaged: 0,
            intact: taken.bytes,
            taken,
        })
    }

    /// What a later collection must know if this one takes what was read.
    pub(super) fn taken(&self) -> Taken {
        Taken {
            bytes: self.intact,
            threads: self.threads.clone(),
            final_cpu_ns: self.final_cpu_ns,
            own_ns: self.counters.own_ns.max(self.taken.own_ns),
            lost: self.counters.lost.max(self.taken.lost),
            declined: self.counters.declined.max(self.taken.declined),
        }
    }

    /// Bytes that are still to be read of what was taken earlier.
    pub(super) fn taken_left(&self) -> u64 {
        self.taken.bytes.saturating_sub(self.read)
    }

    /// Adds the process to the set. Its CPU time is added when the conversion ends.
    pub(super) fn announce(&mut self, modules: &mut Modules) {
        self.process = modules.set.processes.len() as u32;
        let arguments = self.head.arguments.strip_suffix(b"\0").unwrap_or(&self.head.arguments);
        let command = String::from_utf8_lossy(arguments).replace('\0', " ");
        let executable = String::from_utf8_lossy(&self.head.executable);
        modules.set.processes.push(Process {
            pid: self.head.pid,
            parent: None,
            command: if command.is_empty() {
                executable.into_owned()
            } else {
                command
            },
            program_cpu_seconds: 0.0,
            own_cpu_seconds: 0.0,
            lost: 0,
            declined: 0,
            undisturbed: false,
        });
    }

    /// Reads the bytes that follow those read so far, and returns how many were consumed.
    ///
    /// `all`: these are the last bytes. Otherwise the last frame may be incomplete. Writes do not overlap, so bytes
    /// before an intact frame are damaged, and so are more bytes than the longest frame has.
    pub(super) fn take(&mut self, bytes: &[u8], all: bool, modules: &mut Modules, store: &mut Store) -> usize {
        let is_taken = self.taken_left() > 0;
        let mut frames = Frames::new(bytes);
        let (mut intact, mut damaged) = (0, 0);
        while let Some(frame) = frames.next() {
            (intact, damaged) = (frames.position(), frames.damaged());
            if !is_taken || matches!(frame, Frame::Process(_) | Frame::Mappings(..)) {
                self.frame(frame, modules, store);
            }
        }
        if intact > 0 && !is_taken {
            self.intact = self.read + intact as u64;
        }
        let done = if all {
            if !is_taken {
                self.resolve(usize::MAX, store);
            }
            bytes.len()
        } else {
            intact.max(bytes.len().saturating_sub(FRAME_HEADER + MAX_PAYLOAD))
        };
        if !is_taken {
            let free = bytes[intact..done].iter().take_while(|&&byte| byte == 0).count();
            self.damaged += (damaged + done - intact - free) as u64;
        }
        self.read += done as u64;
        done
    }

    fn frame(&mut self, frame: Frame, modules: &mut Modules, store: &mut Store) {
        match frame {
            Frame::Process(head) => self.head = head,
            Frame::Mappings(continued, mappings) => {
                if !continued || self.spaces.is_empty() {
                    if let Some(complete) = self.snapshots.checked_sub(1) {
                        self.resolve(complete, store);
                    }
                    self.snapshots += 1;
                    self.spaces.push_back(Space::default());
                }
                self.map(mappings, modules);
            }
            Frame::Burst(burst) => {
                self.count(burst.head.counters);
                let seen = self.threads.entry(burst.head.thread).or_default();
                *seen = burst.head.thread_cpu_ns.max(*seen);
                for before in &mut self.waiting {
                    if before.burst.head.thread == burst.head.thread {
                        before.proof.interrupted_at(burst.head.start);
                    }
                }
                // The process continued after its final frame.
                self.undisturbed = false;
                self.waiting.push_back(Waiting {
                    snapshots: self.snapshots,
                    proof: Proof::from_burst(&burst),
                    burst,
                    timing: None,
                });
                self.resolve_known(store);
            }
            Frame::Verified(compared, disagreement) => {
                self.compared += u64::from(compared);
                self.disagreements.extend(disagreement.map(|found| *found));
            }
            Frame::BurstTiming(timing) => self.timing(timing, store),
            Frame::Opcodes(opcodes) => self.opcodes.extend(opcodes),
            Frame::Final(cpu_ns, counters, undisturbed) => {
                self.count(counters);
                self.waiting.iter_mut().for_each(|burst| burst.proof.finish());
                self.undisturbed = undisturbed;
                self.final_cpu_ns = Some(cpu_ns.max(self.final_cpu_ns.unwrap_or(0)));
            }
        }
    }

    /// Adds a time measurement to its burst, which waits here or is in the store.
    fn timing(&mut self, frame: BurstTimingFrame, store: &mut Store) {
        if frame.passes == 0 || frame.distance_16 == 0 {
            self.incomplete_timings += 1;
            return;
        }
        self.timed_bursts += 1;
        let timing = BurstTiming {
            branches: frame.passes as f32 * (frame.distance_16 as f32 / 16.0),
            nanoseconds: frame.elapsed_ns.max(0) as f32,
        };
        let of_thread = |waiting: &&mut Waiting| waiting.burst.head.thread == frame.thread;
        match self.waiting.iter_mut().rev().find(of_thread) {
            Some(waiting) if waiting.burst.head.time_ns == frame.time_ns => waiting.timing = Some(timing),
            Some(_) => {}
            None => store.timing(self.process, frame.thread, frame.time_ns, timing),
        }
    }

    fn map(&mut self, mut mappings: Vec<Mapping>, modules: &mut Modules) {
        mappings.sort_by_key(|mapping| mapping.start);
        let Some(space) = self.spaces.back_mut() else { return };
        for mapping in mappings {
            let mut path = &*mapping.path;
            let identity = match mapping.build_id {
                build_id if build_id.is_empty() => FileIdentity::Inode(mapping.inode),
                build_id => {
                    // The kernel says so of files that were deleted or replaced.
                    path = path.strip_suffix(b" (deleted)").unwrap_or(path);
                    FileIdentity::Build(BuildId(build_id))
                }
            };
            space.map(modules.locate(self.process, path, mapping.start..mapping.end, mapping.offset, identity));
        }
    }

    /// Threads store their records in any order, but the counters only grow.
    fn count(&mut self, now: Counters) {
        let all = &mut self.counters;
        all.own_ns = all.own_ns.max(now.own_ns);
        all.lost = all.lost.max(now.lost);
        all.declined = all.declined.max(now.declined);
        all.threads = all.threads.max(now.threads);
        all.unsampled_threads = all.unsampled_threads.max(now.unsampled_threads);
    }

    /// CPU time of the image, the sampler's included.
    pub(super) fn cpu_ns(&self) -> u64 {
        self.cpu_of(&self.threads, self.final_cpu_ns)
    }

    fn cpu_of(&self, threads: &HashMap<u32, u64>, final_cpu_ns: Option<u64>) -> u64 {
        let seen = threads.values().fold(0, |sum: u64, seen| sum.saturating_add(*seen));
        final_cpu_ns
            .map_or(0, |cpu_ns| cpu_ns.saturating_sub(self.head.base_cpu_ns))
            .max(seen)
    }

    /// CPU time of the program and of the sampler, bursts that were lost, and ticks without one, since the collection
    /// that took the earlier frames.
    pub(super) fn since_taken(&self) -> (u64, u64, u64, u64) {
        let taken = &self.taken;
        let own = self.counters.own_ns.saturating_sub(taken.own_ns);
        let cpu = self
            .cpu_ns()
            .saturating_sub(self.cpu_of(&taken.threads, taken.final_cpu_ns));
        let lost = self.counters.lost.saturating_sub(taken.lost);
        let declined = self.counters.declined.saturating_sub(taken.declined);
        (cpu.saturating_sub(own), own, lost, declined)
    }

    /// The space of a snapshot, counted from 1; none if it is not there yet or any more.
    fn space(&self, snapshot: usize) -> Option<&Space> {
        let before = self.snapshots - self.spaces.len();
        self.spaces.get(snapshot.checked_sub(before + 1)?)
    }

    /// Stores the bursts that follow at most `snapshots` snapshots, and drops snapshots that no burst needs.
    fn resolve(&mut self, snapshots: usize, store: &mut Store) {
        let crowded = self.waiting.len() > MAX_WAITING;
        let is_ready = |first: &Waiting| {
            let decided = first.proof.decided().is_some() || crowded || snapshots == usize::MAX;
            first.snapshots <= snapshots && decided
        };
        while self.waiting.front().is_some_and(is_ready) {
            if let Some(first) = self.waiting.pop_front() {
                store.push(self.burst(&first));
            }
        }
        let needed = self.waiting.front().map_or(self.snapshots, |first| first.snapshots);
        while self.spaces.len() > 1 && self.snapshots - self.spaces.len() + 1 < needed {
            self.spaces.pop_front();
        }
    }

    /// Stores the oldest bursts that need no further snapshot and whose proof is decided, and those that waited too
    /// long.
    fn resolve_known(&mut self, store: &mut Store) {
        while let Some(first) = self.waiting.front() {
            if self.waiting.len() <= MAX_WAITING && !(first.proof.decided().is_some() && self.is_mapped(first)) {
                return;
            }
            let resolved = self.burst(first);
            store.push(resolved);
            self.waiting.pop_front();
        }
    }

    /// Whether all addresses of a burst are in the snapshot before it.
    fn is_mapped(&self, waiting: &Waiting) -> bool {
        let space = self.space(waiting.snapshots);
        let known = |address| space.is_some_and(|space| space.find(address).is_some());
        let RawBurst { head, branches, .. } = &waiting.burst;
        known(head.start) && known(head.end) && branches.iter().all(|(from, to)| known(*from) && known(*to))
    }

    fn burst(&self, waiting: &Waiting) -> Burst {
        let Waiting {
            snapshots,
            burst,
            proof,
            timing,
        } = waiting;
        let spaces = [self.space(*snapshots), self.space(snapshots + 1)];
        let at = |address: u64| -> CodeAddress {
            // The snapshot before the burst may lack a mapping that was made just before the burst.
            let found = spaces.iter().flatten().find_map(|space| space.find(address));
            found.unwrap_or(external(address))
        };
        Burst {
            process: self.process,
            thread: burst.head.thread,
            time_ns: burst.head.time_ns,
            engine: Engine::from_u8(burst.head.engine).unwrap_or(Engine::Step),
            start: Some(at(burst.head.start)),
            branches: burst
                .branches
                .iter()
                .map(|(from, to)| Branch {
                    from: at(*from),
                    to: at(*to),
                })
                .collect(),
            values: burst
                .values
                .iter()
                .map(|observed| ObservedValue {
                    branch: observed.branch,
                    division: (observed.at != 0).then(|| at(observed.at)),
                    value: observed.value,
                })
                .collect(),
            end: Some(at(burst.head.end)),
            end_reason: EndReason::from_u8(burst.head.end_reason).unwrap_or(EndReason::Instruction),
            instructions: burst.head.instructions,
            count: 1,
            proved: proof.decided().unwrap_or(false),
            system_call: burst.head.system_call.checked_sub(1),
            hardware: None,
            timing: *timing,
        }
    }
}
