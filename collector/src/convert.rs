//! Shards to vectors: run-time addresses become offsets in files, with the mappings in force when they were seen.
//!
//! What imported recordings need as well is in [`modules`] and [`space`].

pub(crate) mod modules;
pub(crate) mod space;

use crate::shard::{Counters, Disagreement, EXTENSION, Frame, Frames, Mapping, ProcessHead, RawBurst};
use crate::vector::{Branch, Burst, EndReason, Engine, Process, VectorSet};
use crate::verify::Verified;
use modules::{FileIdentity, Modules};
use space::{Space, external};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a conversion found besides vectors.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// Shards read.
    pub shards: u64,
    /// Bytes of shards that belong to no intact frame: a process was killed while it wrote, or the disk was full.
    pub damaged_bytes: u64,
    /// Sampled threads.
    pub threads: u64,
    /// Threads that could not be sampled.
    pub unsampled_threads: u64,
    /// What comparing shadow execution with the real one found, where it was done.
    pub verified: Verified,
}

/// Adds every shard of a directory to `set`, in the order in which their processes began.
pub fn read_directory(directory: &Path, set: &mut VectorSet) -> std::io::Result<Found> {
    let mut shards = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new(EXTENSION)) {
            let name = path.file_name().unwrap_or_default().as_bytes().to_vec();
            shards.push((name, std::fs::read(&path)?));
        }
    }
    Ok(convert(&shards, set))
}

/// Adds shards, as pairs of file name and contents.
pub fn convert(shards: &[(Vec<u8>, Vec<u8>)], set: &mut VectorSet) -> Found {
    let mut found = Found::default();
    let mut read: Vec<Shard> = Vec::new();
    for (name, bytes) in shards {
        let mut frames = Frames::new(bytes);
        let shard = Shard::read(name.clone(), &mut frames);
        found.damaged_bytes += frames.damaged() as u64;
        if let Some(mut shard) = shard {
            // What failed last can leave no count of itself.
            shard.counters.lost = shard.counters.lost.max(u64::from(frames.damaged() > 0));
            read.push(shard);
        }
    }
    read.sort_by_key(|shard| (shard.head.start_ns, shard.head.pid));
    // CPU time goes on over execve: what a process had used as an earlier image is not the later one's.
    let mut before: HashMap<u32, u64> = HashMap::new();
    for shard in &mut read {
        let base = &mut shard.head.base_cpu_ns;
        *base = before.get(&shard.head.pid).copied().unwrap_or(0).min(*base);
        let ended = shard.head.base_cpu_ns.saturating_add(shard.cpu_ns());
        before.insert(shard.head.pid, ended);
    }
    let first = set.processes.len();
    let positions: HashMap<&[u8], u32> = read
        .iter()
        .enumerate()
        .map(|(i, shard)| (shard.name.as_slice(), (first + i) as u32))
        .collect();
    let mut modules = Modules::new(set);
    for shard in &read {
        let parent = positions.get(shard.head.parent.as_slice()).copied();
        found.shards += 1;
        found.threads += u64::from(shard.counters.threads);
        found.unsampled_threads += u64::from(shard.counters.unsampled_threads);
        let threads = shard.counters.threads.saturating_add(shard.counters.unsampled_threads);
        found.verified.add(shard.compared, &shard.disagreements, threads);
        found.verified.meet(&shard.opcodes);
        shard.add_to(parent, &mut modules);
    }
    found
}

/// One process image.
struct Shard {
    name: Vec<u8>,
    head: ProcessHead,
    snapshots: Vec<Vec<Mapping>>,
    /// Bursts with the number of snapshots before them.
    bursts: Vec<(usize, RawBurst)>,
    counters: Counters,
    /// Instructions of shadow execution compared with the real one.
    compared: u64,
    disagreements: Vec<Disagreement>,
    opcodes: Vec<(u16, u8)>,
    /// CPU time of the process, where it ended in a way that let us know.
    final_cpu_ns: Option<u64>,
}

impl Shard {
    fn read(name: Vec<u8>, frames: &mut Frames) -> Option<Self> {
        let mut shard = Self {
            name,
            head: ProcessHead::default(),
            snapshots: Vec::new(),
            bursts: Vec::new(),
            counters: Counters::default(),
            final_cpu_ns: None,
            compared: 0,
            disagreements: Vec::new(),
            opcodes: Vec::new(),
        };
        let mut known = false;
        for frame in frames {
            match frame {
                Frame::Process(head) => {
                    shard.head = head;
                    known = true;
                }
                Frame::Mappings(true, more) => match shard.snapshots.last_mut() {
                    Some(snapshot) => snapshot.extend(more),
                    None => shard.snapshots.push(more),
                },
                Frame::Mappings(false, snapshot) => shard.snapshots.push(snapshot),
                Frame::Burst(burst) => {
                    shard.count(burst.head.counters);
                    shard.bursts.push((shard.snapshots.len(), burst));
                }
                Frame::Verified(compared, disagreement) => {
                    shard.compared += u64::from(compared);
                    shard.disagreements.extend(disagreement.map(|found| *found));
                }
                Frame::Opcodes(opcodes) => shard.opcodes.extend(opcodes),
                Frame::Final(cpu_ns, counters) => {
                    shard.count(counters);
                    shard.final_cpu_ns = Some(cpu_ns.max(shard.final_cpu_ns.unwrap_or(0)));
                }
            }
        }
        for snapshot in &mut shard.snapshots {
            snapshot.sort_by_key(|mapping| mapping.start);
        }
        known.then_some(shard)
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
    fn cpu_ns(&self) -> u64 {
        let mut threads: HashMap<u32, u64> = HashMap::new();
        for (_, burst) in &self.bursts {
            let seen = threads.entry(burst.head.thread).or_default();
            *seen = burst.head.thread_cpu_ns.max(*seen);
        }
        let seen = threads.values().fold(0, |sum: u64, seen| sum.saturating_add(*seen));
        self.final_cpu_ns
            .map_or(0, |cpu_ns| cpu_ns.saturating_sub(self.head.base_cpu_ns))
            .max(seen)
    }

    fn add_to(&self, parent: Option<u32>, modules: &mut Modules) {
        let process = modules.set.processes.len() as u32;
        let own = self.counters.own_ns;
        let arguments = self.head.arguments.strip_suffix(b"\0").unwrap_or(&self.head.arguments);
        let command = String::from_utf8_lossy(arguments).replace('\0', " ");
        let executable = String::from_utf8_lossy(&self.head.executable);
        modules.set.processes.push(Process {
            pid: self.head.pid,
            parent,
            command: if command.is_empty() {
                executable.into_owned()
            } else {
                command
            },
            program_cpu_seconds: self.cpu_ns().saturating_sub(own) as f64 * 1e-9,
            own_cpu_seconds: own as f64 * 1e-9,
            lost: self.counters.lost,
            declined: self.counters.declined,
        });
        let snapshots: Vec<Space> = self
            .snapshots
            .iter()
            .map(|snapshot| {
                let located = snapshot.iter().map(|mapping| {
                    let identity = FileIdentity::Inode(mapping.inode);
                    modules.locate(
                        process,
                        &mapping.path,
                        mapping.start..mapping.end,
                        mapping.offset,
                        identity,
                    )
                });
                located.collect()
            })
            .collect();
        for (snapshot, burst) in &self.bursts {
            // What was mapped a moment later may have been missed in the snapshot before.
            let current = snapshot.checked_sub(1).and_then(|at| snapshots.get(at));
            let next = snapshots.get(*snapshot);
            let at = |address| {
                let found = [current, next]
                    .into_iter()
                    .flatten()
                    .find_map(|space| space.find(address));
                found.unwrap_or(external(address))
            };
            modules.set.bursts.push(Burst {
                process,
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
                end: Some(at(burst.head.end)),
                end_reason: EndReason::from_u8(burst.head.end_reason).unwrap_or(EndReason::Instruction),
                instructions: burst.head.instructions,
                count: 1,
                hardware: None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::{BurstHead, Encoder, FrameKind};
    use crate::vector::{CodeAddress, ModuleId};

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
        frame(FrameKind::Mappings, |e| {
            e.u8(continued.into());
            for (start, end, offset, inode, path) in list {
                for value in [start, end, offset, inode] {
                    e.u64(*value);
                }
                e.string(path.as_bytes());
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
    fn processes_have_their_own_time_and_their_parents() {
        let shards = [
            (
                "2-5.shard",
                [process(2, 5, 0, "1-1.shard"), last(3_000_000_000, 1_000_000_000)].concat(),
            ),
            // Killed: what its threads last told counts.
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
