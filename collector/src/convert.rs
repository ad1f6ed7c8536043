//! Shards to vectors: run-time addresses become offsets in files, with the mappings in force when they were recorded.
//!
//! Shards can be read while they grow. Imported recordings use [`modules`] and [`space`], too.

pub(crate) mod modules;
mod proof;
mod reading;
pub(crate) mod space;

use crate::store::Store;
use crate::vector::VectorSet;
use crate::verify::Verified;
use modules::{Builds, Modules};
use reading::Reading;
pub(crate) use reading::Taken;
use std::collections::HashMap;

/// Figures of a conversion, apart from the vectors.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// Shards read.
    pub shards: u64,
    /// Bytes outside of intact frames: a process was killed while it wrote, or the disk was full.
    pub damaged_bytes: u64,
    /// Sampled threads.
    pub threads: u64,
    /// Threads that could not be sampled.
    pub unsampled_threads: u64,
    /// Bursts with a complete time measurement.
    pub timed_bursts: u64,
    /// Cancelled time measurements.
    pub incomplete_timings: u64,
    /// The result of comparing shadow execution with real execution, if requested.
    pub verified: Verified,
}

impl Found {
    /// Adds the figures of another conversion.
    pub fn join(&mut self, other: Self) {
        self.shards += other.shards;
        self.damaged_bytes += other.damaged_bytes;
        self.threads += other.threads;
        self.unsampled_threads += other.unsampled_threads;
        self.timed_bursts += other.timed_bursts;
        self.incomplete_timings += other.incomplete_timings;
        self.verified.join(other.verified);
    }
}

/// Adds complete shards to a set; `shards` are pairs of file name and contents.
pub fn convert(shards: &[(Vec<u8>, Vec<u8>)], set: &mut VectorSet) -> Found {
    let mut conversion = Conversion::default();
    let mut store = Store::new(None, 0);
    conversion.register_shards(shards, set);
    for (name, bytes) in shards {
        if conversion.knows(name) {
            conversion.take(name, bytes, true, set, &mut store);
        } else {
            conversion.refuse(bytes.len() as u64);
        }
    }
    let found = conversion.finish(set);
    store.finish(set);
    found
}

/// The shards of one run while they are read.
#[derive(Debug, Default)]
pub(crate) struct Conversion {
    shards: Vec<Reading>,
    positions: HashMap<Vec<u8>, usize>,
    builds: Builds,
    /// Bytes of files that are no shards.
    foreign: u64,
    /// What earlier collections took, by file name.
    taken: HashMap<Vec<u8>, Taken>,
}

impl Conversion {
    /// Registers new shards, given as pairs of file name and first bytes. Known shards are skipped, and so are shards
    /// without a process frame yet. Processes are added to the set in the order of their start.
    pub(crate) fn register_shards(&mut self, shards: &[(Vec<u8>, Vec<u8>)], set: &mut VectorSet) {
        let new = shards.iter().filter(|(name, _)| !self.positions.contains_key(name));
        let begin = |(name, bytes): &(Vec<u8>, Vec<u8>)| {
            Reading::begin(name, bytes, self.taken.get(name).cloned().unwrap_or_default())
        };
        let mut new: Vec<Reading> = new.filter_map(begin).collect();
        new.sort_by_key(|shard| (shard.head.start_ns, shard.head.pid));
        let mut modules = Modules::with(set, std::mem::take(&mut self.builds));
        for mut shard in new {
            shard.announce(&mut modules);
            self.positions.insert(shard.name.clone(), self.shards.len());
            self.shards.push(shard);
        }
        self.builds = modules.into_builds();
    }

    /// A conversion of what earlier ones have not taken.
    pub(crate) fn after(taken: HashMap<Vec<u8>, Taken>) -> Self {
        Self {
            taken,
            ..Self::default()
        }
    }

    /// What earlier conversions took of a shard, in bytes.
    pub(crate) fn taken_of(&self, name: &[u8]) -> u64 {
        self.taken.get(name).map_or(0, |taken| taken.bytes)
    }

    /// What is taken by now, by file name: all that was read, and what earlier conversions took.
    pub(crate) fn taken(&self) -> HashMap<Vec<u8>, Taken> {
        let read = self.shards.iter().map(|shard| (shard.name.clone(), shard.taken()));
        self.taken.clone().into_iter().chain(read).collect()
    }

    /// Bytes of a registered shard that are still to be read of what was taken earlier.
    pub(crate) fn taken_left(&self, name: &[u8]) -> u64 {
        self.positions.get(name).map_or(0, |at| self.shards[*at].taken_left())
    }

    /// Skips bytes of a registered shard that were taken, and whose blocks are free.
    pub(crate) fn skip(&mut self, name: &[u8], bytes: u64) {
        if let Some(at) = self.positions.get(name) {
            self.shards[*at].read += bytes;
        }
    }

    /// Whether a shard is registered.
    pub(crate) fn knows(&self, name: &[u8]) -> bool {
        self.positions.contains_key(name)
    }

    /// All registered shards in the order of their processes, as pairs of file name and bytes read.
    pub(crate) fn met(&self) -> Vec<(Vec<u8>, u64)> {
        let shards = self.shards.iter();
        shards.map(|shard| (shard.name.clone(), shard.read)).collect()
    }

    /// Reads further bytes of a registered shard, and returns how many were consumed. `all`: these are the last bytes.
    pub(crate) fn take(
        &mut self,
        name: &[u8],
        bytes: &[u8],
        all: bool,
        set: &mut VectorSet,
        store: &mut Store,
    ) -> usize {
        let Some(at) = self.positions.get(name) else { return 0 };
        let mut modules = Modules::with(set, std::mem::take(&mut self.builds));
        let done = self.shards[*at].take(bytes, all, &mut modules, store);
        self.builds = modules.into_builds();
        done
    }

    /// Counts the bytes of a file that is no shard.
    pub(crate) fn refuse(&mut self, bytes: u64) {
        self.foreign += bytes;
    }

    /// Completes the processes of the set: CPU time, losses, and parents.
    pub(crate) fn finish(mut self, set: &mut VectorSet) -> Found {
        let mut found = Found {
            damaged_bytes: self.foreign,
            ..Found::default()
        };
        // CPU time continues over `execve`: the time of earlier images is subtracted from that of a later image.
        let mut order: Vec<usize> = (0..self.shards.len()).collect();
        order.sort_by_key(|at| (self.shards[*at].head.start_ns, self.shards[*at].head.pid));
        let mut before: HashMap<u32, u64> = HashMap::new();
        for at in order {
            let shard = &mut self.shards[at];
            let base = &mut shard.head.base_cpu_ns;
            // Shards of which nothing is new are not read: those of earlier images may be among them.
            let unknown = if self.taken.is_empty() { 0 } else { *base };
            *base = before.get(&shard.head.pid).copied().unwrap_or(unknown).min(*base);
            before.insert(shard.head.pid, shard.head.base_cpu_ns.saturating_add(shard.cpu_ns()));
        }
        for shard in &self.shards {
            found.shards += 1;
            found.damaged_bytes += shard.damaged;
            found.threads += u64::from(shard.counters.threads);
            found.unsampled_threads += u64::from(shard.counters.unsampled_threads);
            let threads = shard.counters.threads.saturating_add(shard.counters.unsampled_threads);
            found.timed_bursts += shard.timed_bursts;
            found.incomplete_timings += shard.incomplete_timings;
            found.verified.add(shard.compared, &shard.disagreements, threads);
            found.verified.add_opcodes(&shard.opcodes);
            let (program, own, lost, declined) = shard.since_taken();
            let parent = self.positions.get(&shard.head.parent);
            let process = &mut set.processes[shard.process as usize];
            process.parent = parent.map(|at| self.shards[*at].process);
            process.program_cpu_seconds = program as f64 * 1e-9;
            process.own_cpu_seconds = own as f64 * 1e-9;
            // A process cannot count a last burst that it fails to write.
            process.lost = lost.max(u64::from(shard.damaged > 0));
            process.declined = declined;
            process.undisturbed = shard.undisturbed;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{Branch, BuildId, BurstTiming, CodeAddress, ModuleId};
    use pleach_wire::shard::{BurstHead, BurstTimingFrame, Counters, Encoder, FrameKind};

    /// Reads shards in steps of `step` bytes.
    fn convert_by(step: usize, shards: &[(Vec<u8>, Vec<u8>)], set: &mut VectorSet) -> Found {
        let mut conversion = Conversion::default();
        let mut store = Store::new(None, 1);
        let longest = shards.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or(0);
        for so_far in (step..longest).step_by(step).chain([longest]) {
            let part = |bytes: &[u8]| bytes[..so_far.min(bytes.len())].to_vec();
            let parts: Vec<_> = shards.iter().map(|(name, bytes)| (name.clone(), part(bytes))).collect();
            conversion.register_shards(&parts, set);
            for (name, read) in conversion.met() {
                let bytes = &parts.iter().find(|part| part.0 == name).unwrap().1;
                conversion.take(&name, &bytes[read as usize..], so_far == longest, set, &mut store);
            }
        }
        for (name, bytes) in shards {
            if !conversion.knows(name) {
                conversion.refuse(bytes.len() as u64);
            }
        }
        let found = conversion.finish(set);
        store.finish(set);
        found
    }

    /// All at once, and compared with reading in steps.
    fn convert(shards: &[(Vec<u8>, Vec<u8>)], set: &mut VectorSet) -> Found {
        let found = super::convert(shards, set);
        for step in [1, 7, 64, 300] {
            let mut other = VectorSet::default();
            assert_eq!(convert_by(step, shards, &mut other), found, "{step} bytes at a time");
            let sorted = |set: &VectorSet| {
                let mut bursts: Vec<_> = set.bursts.iter().map(|b| (b.thread, b.branches.len())).collect();
                bursts.sort_unstable();
                bursts
            };
            assert_eq!(sorted(&other), sorted(set), "{step} bytes at a time");
        }
        found
    }

    fn frame(kind: FrameKind, fill: impl FnOnce(&mut Encoder)) -> Vec<u8> {
        let mut buffer = [0; 1024];
        let mut e = Encoder::new(&mut buffer);
        fill(&mut e);
        e.finish(kind).unwrap().to_vec()
    }

    fn process(pid: u32, start: u64, base: u64, parent: &str) -> Vec<u8> {
        frame(FrameKind::Process, |e| {
            e.u32(pid);
            e.u32(1);
            e.u64(start);
            e.u64(base);
            e.string(parent.as_bytes());
            e.string(b"/bin/prog");
            e.string(b"prog\0-x\0");
        })
    }

    fn mappings(continued: bool, list: &[(u64, u64, u64, u64, &str)]) -> Vec<u8> {
        mappings_of_build(b"", continued, list)
    }

    fn mappings_of_build(build_id: &[u8], continued: bool, list: &[(u64, u64, u64, u64, &str)]) -> Vec<u8> {
        frame(FrameKind::Mappings, |e| {
            e.u8(continued.into());
            for (start, end, offset, inode, path) in list {
                for value in [start, end, offset, inode] {
                    e.u64(*value);
                }
                e.string(path.as_bytes());
                e.string(build_id);
            }
        })
    }

    fn burst(thread: u32, start: u64, branches: &[(u64, u64)], thread_cpu_ns: u64, own_ns: u64) -> Vec<u8> {
        let counters = Counters {
            own_ns,
            threads: 2,
            ..Counters::default()
        };
        let (end, branches_len) = (start, branches.len() as u32);
        let head = BurstHead {
            thread,
            start,
            end,
            branches: branches_len,
            thread_cpu_ns,
            counters,
            ..BurstHead::default()
        };
        frame(FrameKind::Burst, |e| {
            e.bytes(&head.to_bytes());
            let mut last = start;
            for (from, to) in branches {
                e.delta(last, *from);
                e.delta(*from, *to);
                last = *to;
            }
        })
    }

    fn last(cpu_ns: u64, own_ns: u64) -> Vec<u8> {
        frame(FrameKind::Final, |e| {
            e.u64(cpu_ns);
            e.bytes(
                &Counters {
                    own_ns,
                    ..Counters::default()
                }
                .to_bytes(),
            );
            e.u8(1);
        })
    }

    fn at(module: u32, offset: u64) -> CodeAddress {
        CodeAddress {
            module: ModuleId(module),
            offset,
        }
    }

    #[test]
    fn addresses_belong_to_the_mappings_of_their_time() {
        let shard = [
            process(7, 1, 0, ""),
            mappings(
                false,
                &[(0x1000, 0x2000, 0x400, 5, "/a"), (0x8000, 0x9000, 0, 0, "[vdso]")],
            ),
            mappings(true, &[(0x5000, 0x6000, 0, 9, "/c")]),
            burst(
                7,
                0x1010,
                &[(0x1020, 0x8004), (0x8008, 0x5000), (0x5004, 0x3000)],
                100,
                10,
            ),
            mappings(false, &[(0x1000, 0x2000, 0, 6, "/b"), (0x3000, 0x4000, 0x100, 5, "/a")]),
            burst(7, 0x1010, &[(0x5004, 0x3000)], 200, 20),
        ];
        let mut set = VectorSet::default();
        let found = convert(&[(b"x".to_vec(), shard.concat())], &mut set);
        assert_eq!((found.shards, found.threads, found.damaged_bytes), (1, 2, 0));
        let paths: Vec<_> = set.modules.iter().map(|module| module.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["/a", "/c", "/b"]);
        let external = ModuleId::EXTERNAL.0;
        let first = &set.bursts[0];
        assert_eq!(first.start, Some(at(0, 0x410)));
        assert_eq!(
            first.branches[0],
            Branch {
                from: at(0, 0x420),
                to: at(external, 0x8004)
            }
        );
        assert_eq!(
            first.branches[1],
            Branch {
                from: at(external, 0x8008),
                to: at(1, 0)
            }
        );
        // Mapped a moment later: the next snapshot has it.
        assert_eq!(
            first.branches[2],
            Branch {
                from: at(1, 4),
                to: at(0, 0x100)
            }
        );
        assert_eq!(set.bursts[1].start, Some(at(2, 0x10)));
        assert_eq!(
            set.bursts[1].branches[0],
            Branch {
                from: at(external, 0x5004),
                to: at(0, 0x100)
            }
        );
        assert_eq!(set.modules[0].mappings.len(), 2);
        assert_eq!(set.processes[0].command, "prog -x");
    }

    #[test]
    fn a_file_keeps_its_build_after_it_is_deleted() {
        let at = |build_id: u8, path| mappings_of_build(&[build_id], false, &[(0x1000, 0x2000, 0, 5, path)]);
        let shards = [at(1, "/a"), at(1, "/a (deleted)"), at(2, "/a")].map(|mappings| {
            let burst = burst(7, 0x1010, &[(0x1020, 0x1040)], 100, 10);
            [mappings, burst].concat()
        });
        let shard = [process(7, 1, 0, ""), shards.concat()].concat();
        let mut set = VectorSet::default();
        convert(&[(b"x".to_vec(), shard)], &mut set);
        let builds = set
            .modules
            .iter()
            .map(|module| (module.path.to_str(), module.build_id.clone()));
        let expected = [1, 2].map(|build_id| (Some("/a"), Some(BuildId(vec![build_id]))));
        assert!(builds.eq(expected), "{:?}", set.modules);
        let modules: Vec<u32> = set.bursts.iter().map(|burst| burst.branches[0].from.module.0).collect();
        assert_eq!(modules, [0, 0, 1]);
    }

    #[test]
    fn clocks_join_the_bursts_that_they_name() {
        let timing = |thread, time_ns, passes, elapsed_ns| {
            let timing = BurstTimingFrame {
                thread,
                time_ns,
                passes,
                distance_16: 16 * 250 + 8,
                elapsed_ns,
            };
            frame(FrameKind::BurstTiming, |e| timing.encode(e))
        };
        // All began at 0.
        let shard = [
            process(7, 1, 0, ""),
            mappings(false, &[(0x1000, 0x2000, 0x400, 5, "/a")]),
            burst(7, 0x1010, &[], 100, 0),
            burst(8, 0x1010, &[], 100, 0),
            timing(7, 0, 4, 3000),
            // Of no burst; of another time; not measured.
            timing(9, 0, 4, 3000),
            timing(8, 1, 4, 3000),
            timing(8, 0, 0, 3000),
            // Waits for the mapping of its address, with its timing.
            burst(9, 0x9010, &[], 100, 0),
            timing(9, 0, 2, -70),
        ];
        let mut set = VectorSet::default();
        let found = convert(&[(b"x".to_vec(), shard.concat())], &mut set);
        assert_eq!((found.timed_bursts, found.incomplete_timings), (4, 1));
        let timings: Vec<_> = set.bursts.iter().map(|burst| (burst.thread, burst.timing)).collect();
        let timing = |branches, nanoseconds| Some(BurstTiming { branches, nanoseconds });
        assert_eq!(
            timings,
            [(7, timing(1002.0, 3000.0)), (8, None), (9, timing(501.0, 0.0))]
        );
    }

    #[test]
    fn what_was_taken_does_not_count_again() {
        let (head, maps) = (
            process(7, 1, 0, ""),
            mappings(false, &[(0x1000, 0x2000, 0x400, 5, "/a")]),
        );
        let (first, second) = (burst(7, 0x1010, &[], 100, 10), burst(8, 0x1020, &[], 50, 30));
        let third = burst(7, 0x1030, &[], 400, 70);
        let collect = |taken, bytes: &[u8]| {
            let (mut conversion, mut set) = (Conversion::after(taken), VectorSet::default());
            let mut store = Store::new(None, 0);
            conversion.register_shards(&[(b"x".to_vec(), bytes.to_vec())], &mut set);
            let ended = conversion.taken_left(b"x") as usize;
            let done = conversion.take(b"x", &bytes[..ended], true, &mut set, &mut store);
            conversion.take(b"x", &bytes[done..], true, &mut set, &mut store);
            let taken = conversion.taken();
            let found = conversion.finish(&mut set);
            store.finish(&mut set);
            let starts: Vec<_> = set.bursts.iter().map(|burst| burst.start).collect();
            let [process] = &set.processes[..] else {
                panic!("{set:?}")
            };
            let cpu = [process.program_cpu_seconds, process.own_cpu_seconds].map(|s| (s * 1e9).round() as u64);
            (taken, starts, cpu, found.damaged_bytes)
        };
        // The last frame is still being written.
        let mut shard = [&head[..], &maps, &first, &second, &third[..20]].concat();
        let (taken, starts, cpu, _) = collect(HashMap::new(), &shard);
        assert_eq!(starts, [Some(at(0, 0x410)), Some(at(0, 0x420))]);
        assert_eq!(cpu, [150 - 30, 30]);
        let kept = head.len() + maps.len();
        shard[kept..kept + first.len() + second.len()].fill(0);
        shard.extend(&third[20..]);
        let (taken, starts, cpu, damaged) = collect(taken, &shard);
        assert_eq!(starts, [Some(at(0, 0x430))]);
        assert_eq!((cpu, damaged), ([300 - 40, 40], 0));
        assert_eq!(taken[&b"x"[..]].bytes, shard.len() as u64);
    }

    #[test]
    fn processes_have_their_own_time_and_their_parents() {
        let shards = [
            (
                "2-5.shard",
                [process(2, 5, 0, "1-1.shard"), last(3_000_000_000, 1_000_000_000)].concat(),
            ),
            // Killed: the last reports of its threads count.
            (
                "1-1.shard",
                [
                    process(1, 1, 700, ""),
                    burst(8, 1, &[], 4_000_000_000, 0),
                    burst(9, 1, &[], 2_000_000_000, 0),
                ]
                .concat(),
            ),
            // The second image of a process: its first one had used three seconds.
            (
                "2-9.shard",
                [process(2, 9, 3_500_000_000, ""), last(9_000_000_000, 0)].concat(),
            ),
            ("3-2.shard", b"no frame at all".to_vec()),
        ];
        let shards = shards.map(|(name, bytes)| (name.as_bytes().to_vec(), bytes));
        let mut set = VectorSet::default();
        let found = convert(&shards, &mut set);
        assert_eq!((found.shards, found.damaged_bytes), (3, 15));
        let seen: Vec<_> = set
            .processes
            .iter()
            .map(|p| (p.pid, p.parent, p.program_cpu_seconds, p.own_cpu_seconds))
            .collect();
        assert_eq!(seen, [(1, None, 6.0, 0.0), (2, Some(0), 2.0, 1.0), (2, None, 6.0, 0.0)]);
    }
}
