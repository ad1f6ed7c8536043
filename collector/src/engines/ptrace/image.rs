//! A sampled process image, and its shard.

#![allow(unsafe_code, reason = "system calls")]

use super::clock::{CpuClock, CpuTimer, Ticks};
use super::tracer::{gone, stat_of_program, system_error};
use crate::engines::lbr::sys::process_end;
use crate::sys::monotonic_ns;
use pleach_shadow::Outcome;
use pleach_wire::kinds::{EndReason, Engine};
use pleach_wire::shard::{BurstHead, Counters, EXTENSION, Encoder, FRAME_HEADER, FrameKind, MAX_PAYLOAD};
use procfs::process::{MMPermissions, MMapPath, Process, Stat};
use std::collections::HashSet;
use std::fs::File;
use std::io::{Error, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of one mapping without its path, at most, and of the longest path that is written.
const MAPPING: usize = 64;
const MAX_PATH: usize = 4096;
/// Bytes of a frame of mappings, above which another one continues it.
const MAPPINGS_FRAME: usize = 256 << 10;

/// What tells one image of a process from the next: addresses of its stack, code and arguments.
type Identity = (u64, u64, u64, Option<u64>);

/// A sampled process image: a new one begins with `execve`.
#[derive(Debug)]
pub(super) struct ProcessImage {
    pub(super) process: u32,
    /// The name of the shard.
    pub(super) name: String,
    pub(super) timer: CpuTimer,
    pub(super) counters: Counters,
    /// Readable when the process has ended.
    end: Option<OwnedFd>,
    clock: CpuClock,
    identity: Identity,
    /// CPU time of the process before this image, or before the recording.
    base_cpu_ns: u64,
    /// CPU time of the process when the clock was read last.
    process_cpu_ns: u64,
    threads: HashSet<u32>,
    /// The first thread; until the image ends, all CPU time of the image is attributed to it.
    first_thread: Option<u32>,
    /// Executable mappings in force.
    mappings: Vec<Range<u64>>,
    shard: File,
}

fn identity(stat: &Stat) -> Identity {
    (stat.startstack, stat.startcode, stat.endcode, stat.arg_start)
}

impl ProcessImage {
    /// Begins the shard of a process's present image, whose timer has a number. `base_cpu_ns`: CPU time that does not
    /// count; `None`: all up to now. `parent`: the name of its parent's shard, for a child made by `fork`.
    ///
    /// # Errors
    /// The process has ended (`ESRCH`), or files cannot be opened.
    pub(super) fn begin(
        directory: &Path,
        process: u32,
        (ticks, number): (&Ticks, u32),
        base_cpu_ns: Option<u64>,
        parent: &str,
    ) -> Result<Self, Error> {
        let files = Process::new(process as i32).map_err(system_error)?;
        let stat = stat_of_program(&files)?;
        let (clock, end) = (CpuClock::of(process), process_end(process));
        let process_cpu_ns = clock.now().ok_or_else(gone)?;
        if has_ended(end.as_ref()) {
            return Err(gone());
        }
        let timer = ticks.timer(clock, number)?;
        let start_ns = monotonic_ns();
        let name = format!("{process}-{start_ns}.{EXTENSION}");
        let path = directory.join(&name);
        let shard = File::options().append(true).create_new(true).open(path)?;
        let mut image = Self {
            process,
            name,
            timer,
            counters: Counters::default(),
            end,
            clock,
            identity: identity(&stat),
            base_cpu_ns: base_cpu_ns.unwrap_or(process_cpu_ns),
            process_cpu_ns,
            threads: HashSet::new(),
            first_thread: None,
            mappings: Vec::new(),
            shard,
        };
        let executable = files.exe().unwrap_or_default();
        let arguments = files.cmdline().unwrap_or_default();
        let arguments = arguments.iter().flat_map(|argument| argument.bytes().chain([0]));
        let arguments: Vec<u8> = arguments.take(MAX_PATH).collect();
        image.write(FrameKind::Process, 3 * MAX_PATH, |e| {
            e.u32(process);
            e.u32(stat.ppid as u32);
            e.u64(start_ns);
            // CPU times are those of the image.
            e.u64(0);
            e.string(parent.as_bytes());
            e.string(executable.as_os_str().as_bytes());
            e.string(&arguments);
        })?;
        image.write_mappings(&files)?;
        Ok(image)
    }

    /// Whether the process still has this image.
    pub(super) fn is_in(&self, stat: &Stat) -> bool {
        self.identity == identity(stat)
    }

    /// CPU time of this image in nanoseconds, as of now, or as last read.
    pub(super) fn cpu_ns(&mut self) -> u64 {
        if let Some(now) = self.clock.now() {
            self.process_cpu_ns = now;
        }
        self.process_cpu_ns.saturating_sub(self.base_cpu_ns)
    }

    /// Whether the process is there, perhaps as one that has ended and was not waited for.
    pub(super) fn exists(&self) -> bool {
        self.clock.now().is_some()
    }

    /// CPU time of the process, as last read.
    pub(super) fn process_cpu_ns(&self) -> u64 {
        self.process_cpu_ns
    }

    /// The descriptor that is readable when the process has ended; negative if the kernel has none.
    pub(super) fn end_descriptor(&self) -> i32 {
        self.end.as_ref().map_or(-1, |end| end.as_raw_fd())
    }

    /// Whether an address lies in a known executable mapping.
    pub(super) fn knows(&self, address: u64) -> bool {
        let after = self.mappings.partition_point(|range| range.start <= address);
        after > 0 && self.mappings[after - 1].contains(&address)
    }

    /// Writes the executable mappings that are in force.
    pub(super) fn write_mappings(&mut self, files: &Process) -> Result<(), Error> {
        let Ok(maps) = files.maps() else { return Ok(()) };
        let is_code = |permissions: MMPermissions| permissions.contains(MMPermissions::EXECUTE);
        let maps: Vec<_> = maps.into_iter().filter(|map| is_code(map.perms)).collect();
        // The kernel lists them by address.
        self.mappings = maps.iter().map(|map| map.address.0..map.address.1).collect();
        for (number, part) in maps.chunks(MAPPINGS_FRAME / (MAPPING + MAX_PATH)).enumerate() {
            self.write(FrameKind::Mappings, MAPPINGS_FRAME, |e| {
                e.u8(u8::from(number > 0));
                for map in part {
                    let path = match &map.pathname {
                        MMapPath::Path(path) => path.as_os_str().as_bytes(),
                        _ => b"",
                    };
                    for value in [map.address.0, map.address.1, map.offset, map.inode] {
                        e.u64(value);
                    }
                    e.string(&path[..path.len().min(MAX_PATH)]);
                    e.string(b"");
                }
            })?;
        }
        Ok(())
    }

    /// Writes a burst of a thread.
    pub(super) fn write_burst(
        &mut self,
        record: &mut BurstRecord,
        thread: u32,
        outcome: &Outcome,
        system_call: Option<u32>,
    ) -> Result<(), Error> {
        if self.threads.insert(thread) {
            self.counters.threads += 1;
        }
        let is_first = *self.first_thread.get_or_insert(thread) == thread;
        let image_cpu_ns = self.cpu_ns() + self.counters.own_ns;
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
            thread_cpu_ns: if is_first { image_cpu_ns } else { 0 },
            counters: self.counters,
            system_call: system_call.map_or(0, |number| number.saturating_add(1)),
        };
        let mut e = Encoder::resume(&mut record.bytes, record.length);
        e.patch(FRAME_HEADER, &head.to_bytes());
        self.shard.write_all(e.finish(FrameKind::Burst).unwrap_or_default())
    }

    /// Writes the end of the image.
    pub(super) fn end(mut self) -> Result<(), Error> {
        let (cpu_ns, counters) = (self.cpu_ns() + self.counters.own_ns, self.counters);
        self.write(FrameKind::Final, MAPPING + Counters::LENGTH, |e| {
            e.u64(cpu_ns);
            e.bytes(&counters.to_bytes());
            e.u8(0);
        })
    }

    fn write(&mut self, kind: FrameKind, size: usize, fill: impl FnOnce(&mut Encoder<'_>)) -> Result<(), Error> {
        let mut bytes = vec![0; FRAME_HEADER + size.min(MAX_PAYLOAD)];
        let mut e = Encoder::new(&mut bytes);
        fill(&mut e);
        self.shard.write_all(e.finish(kind).unwrap_or_default())
    }
}

/// Whether a process has ended, though it may not have been waited for.
fn has_ended(end: Option<&OwnedFd>) -> bool {
    let mut polled = libc::pollfd {
        fd: end.map_or(-1, |end| end.as_raw_fd()),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one local entry.
    unsafe { libc::poll(&mut polled, 1, 0) > 0 }
}

/// The branches of a burst, as its frame has them.
#[derive(Debug)]
pub(super) struct BurstRecord {
    bytes: Vec<u8>,
    length: usize,
    last_target: u64,
    branches: u32,
    begin_ns: u64,
    start: u64,
}

impl BurstRecord {
    /// For bursts of at most `max_branches` branches.
    pub(super) fn new(max_branches: u32) -> Self {
        /// A branch takes at most 20 bytes.
        const BRANCH: usize = 20;
        Self {
            bytes: vec![0; FRAME_HEADER + BurstHead::LENGTH + BRANCH * (max_branches as usize + 1)],
            length: 0,
            last_target: 0,
            branches: 0,
            begin_ns: 0,
            start: 0,
        }
    }

    /// Starts an empty burst.
    pub(super) fn begin(&mut self, start: u64, begin_ns: u64) {
        (self.start, self.last_target, self.begin_ns) = (start, start, begin_ns);
        (self.branches, self.length) = (0, FRAME_HEADER + BurstHead::LENGTH);
    }

    /// Adds a taken branch.
    pub(super) fn branch(&mut self, from: u64, to: u64) {
        let mut e = Encoder::resume(&mut self.bytes, self.length);
        e.delta(self.last_target, from);
        e.delta(from, to);
        (self.length, self.last_target) = (e.length(), to);
        self.branches += 1;
    }
}
