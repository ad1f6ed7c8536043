//! A sampled process image, and its shard.

use super::clock::{CpuClock, CpuTimer};
use pleach_shadow::Outcome;
use pleach_wire::kinds::{EndReason, Engine};
use pleach_wire::shard::{BurstHead, Counters, EXTENSION, Encoder, FRAME_HEADER, FrameKind, MAX_PAYLOAD};
use procfs::process::{MMPermissions, MMapPath, Process, Stat};
use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of one mapping without its path, at most, and of the longest path that is written.
const MAPPING: usize = 64;
const MAX_PATH: usize = 4096;
/// Bytes of a frame of mappings above which another one continues it.
const MAPPINGS_FRAME: usize = 256 << 10;

/// A sampled process image: a new one begins with `execve`.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) process: u32,
    pub(super) clock: CpuClock,
    pub(super) timer: CpuTimer,
    pub(super) name: String,
    /// Where its stack begins, which is random in each image.
    stack: u64,
    /// CPU time before this image, or before the recording.
    base_cpu_ns: u64,
    /// CPU time when the clock was read last.
    cpu_ns: u64,
    pub(super) counters: Counters,
    threads: HashSet<u32>,
    /// Executable mappings in force.
    mappings: Vec<Range<u64>>,
    shard: File,
}

/// The branches of a burst, as its frame has them.
#[derive(Debug)]
pub(super) struct Record {
    bytes: Vec<u8>,
    length: usize,
    last: u64,
    pub(super) branches: u32,
    pub(super) begin_ns: u64,
    start: u64,
}

impl Record {
    /// For bursts of at most so many branches.
    pub(super) fn new(max_branches: u32) -> Self {
        /// A branch takes at most 20 bytes.
        const BRANCH: usize = 20;
        Self {
            bytes: vec![0; FRAME_HEADER + BurstHead::LENGTH + BRANCH * (max_branches as usize + 1)],
            length: 0,
            last: 0,
            branches: 0,
            begin_ns: 0,
            start: 0,
        }
    }

    /// Starts an empty burst.
    pub(super) fn begin(&mut self, start: u64, begin_ns: u64) {
        (self.start, self.last, self.begin_ns) = (start, start, begin_ns);
        self.branches = 0;
        self.length = FRAME_HEADER + BurstHead::LENGTH;
    }

    /// Adds a taken branch.
    pub(super) fn branch(&mut self, from: u64, to: u64) {
        let mut e = Encoder::resume(&mut self.bytes, self.length);
        e.delta(self.last, from);
        e.delta(from, to);
        self.length = e.length();
        self.last = to;
        self.branches += 1;
    }
}

impl Target {
    /// Begins the shard of a process image. `parent`: the name of its parent's shard, for a child made by `fork`.
    pub(super) fn begin(
        directory: &Path,
        process: &Process,
        stat: &Stat,
        timer: CpuTimer,
        base_cpu_ns: u64,
        start_ns: u64,
        parent: &str,
    ) -> std::io::Result<Self> {
        let id = process.pid as u32;
        let name = format!("{id}-{start_ns}.{EXTENSION}");
        let shard = File::options()
            .append(true)
            .create_new(true)
            .open(directory.join(&name))?;
        let mut target = Self {
            process: id,
            clock: CpuClock::of(id),
            timer,
            name,
            stack: stat.startstack,
            base_cpu_ns,
            cpu_ns: base_cpu_ns,
            counters: Counters::default(),
            threads: HashSet::new(),
            mappings: Vec::new(),
            shard,
        };
        let executable = process.exe().unwrap_or_default();
        let arguments = process.cmdline().unwrap_or_default();
        let arguments: Vec<u8> = arguments
            .iter()
            .flat_map(|argument| argument.bytes().chain([0]))
            .take(MAX_PATH)
            .collect();
        target.write(FrameKind::Process, 3 * MAX_PATH, |e| {
            e.u32(id);
            e.u32(stat.ppid as u32);
            e.u64(start_ns);
            // CPU times are those of the image.
            e.u64(0);
            e.string(parent.as_bytes());
            e.string(executable.as_os_str().as_bytes());
            e.string(&arguments);
        })?;
        Ok(target)
    }

    /// Whether the process still has the image that this began with.
    pub(super) fn is_same_image(&self, stat: &Stat) -> bool {
        self.stack == stat.startstack
    }

    /// CPU time of the program in this image, as of now or as last read.
    pub(super) fn cpu_ns(&mut self) -> u64 {
        if let Some(now) = self.clock.now() {
            self.cpu_ns = now;
        }
        self.cpu_ns.saturating_sub(self.base_cpu_ns)
    }

    /// CPU time of the process when this image ends.
    pub(super) fn whole_cpu_ns(&self) -> u64 {
        self.cpu_ns
    }

    /// Whether an address lies in a known executable mapping.
    pub(super) fn knows(&self, address: u64) -> bool {
        let after = self.mappings.partition_point(|range| range.start <= address);
        after > 0 && self.mappings[after - 1].contains(&address)
    }

    /// Writes the executable mappings that are in force.
    pub(super) fn read_mappings(&mut self, process: &Process) -> std::io::Result<()> {
        let Ok(maps) = process.maps() else { return Ok(()) };
        let is_code = |permissions: MMPermissions| permissions.contains(MMPermissions::EXECUTE);
        let maps: Vec<_> = maps.into_iter().filter(|map| is_code(map.perms)).collect();
        self.mappings = maps.iter().map(|map| map.address.0..map.address.1).collect();
        self.mappings.sort_unstable_by_key(|range| range.start);
        let mut rest = maps.as_slice();
        let mut is_continued = false;
        while !rest.is_empty() || !is_continued {
            let count = (MAPPINGS_FRAME / (MAPPING + MAX_PATH)).clamp(1, rest.len().max(1));
            let (now, later) = rest.split_at(count.min(rest.len()));
            self.write(FrameKind::Mappings, MAPPINGS_FRAME, |e| {
                e.u8(is_continued.into());
                for map in now {
                    let path = match &map.pathname {
                        MMapPath::Path(path) => path.as_os_str().as_bytes(),
                        _ => b"",
                    };
                    for value in [map.address.0, map.address.1, map.offset, map.inode] {
                        e.u64(value);
                    }
                    e.string(&path[..path.len().min(MAX_PATH)]);
                }
            })?;
            (rest, is_continued) = (later, true);
        }
        Ok(())
    }

    /// Writes a burst of a thread.
    pub(super) fn write_burst(
        &mut self,
        record: &mut Record,
        thread: u32,
        outcome: &Outcome,
        system_call: Option<u32>,
    ) -> std::io::Result<()> {
        if self.threads.insert(thread) {
            self.counters.threads += 1;
        }
        let head = BurstHead {
            engine: Engine::RunAhead as u8,
            end_reason: EndReason::from(outcome.end) as u8,
            is_isolated: false,
            thread,
            time_ns: record.begin_ns,
            start: record.start,
            end: outcome.end_pc,
            instructions: outcome.instructions,
            branches: record.branches,
            // The end of the image tells it.
            thread_cpu_ns: 0,
            counters: self.counters,
            system_call: system_call.map_or(0, |number| number.saturating_add(1)),
        };
        let mut e = Encoder::resume(&mut record.bytes, record.length);
        e.patch(FRAME_HEADER, &head.to_bytes());
        let frame = e.finish(FrameKind::Burst).unwrap_or_default();
        self.shard.write_all(frame)
    }

    /// Writes the end of the image.
    pub(super) fn end(mut self) -> std::io::Result<()> {
        let (cpu_ns, counters) = (self.cpu_ns() + self.counters.own_ns, self.counters);
        self.write(FrameKind::Final, MAPPING + Counters::LENGTH, |e| {
            e.u64(cpu_ns);
            e.bytes(&counters.to_bytes());
            e.u8(0);
        })
    }

    fn write(&mut self, kind: FrameKind, size: usize, fill: impl FnOnce(&mut Encoder<'_>)) -> std::io::Result<()> {
        let mut bytes = vec![0; FRAME_HEADER + size.min(MAX_PAYLOAD)];
        let mut e = Encoder::new(&mut bytes);
        fill(&mut e);
        self.shard.write_all(e.finish(kind).unwrap_or_default())
    }
}
