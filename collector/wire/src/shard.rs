//! The stream between a sampled process and the recorder.
//!
//! Every sampled process image appends *frames* to a file of its own, a shard. A frame is written by one `write`: magic
//! (2 bytes), kind (1), a zero byte, payload length (4), checksum of kind, length and payload (4), payload; all
//! integers little-endian. A process that is killed leaves at most a truncated last frame. A short write leaves a
//! damaged frame in the middle: the reader continues at the next intact frame.
//!
//! Encoding allocates nothing and never panics: it runs in signal handlers.

use xxhash_rust::xxh3::xxh3_64;

/// Names the directory in which processes create their shards.
pub const DIRECTORY_VARIABLE: &str = "PLEACH_SHARD_DIR";
/// Settings of the sampler, `key=value,key=value`.
pub const SETTINGS_VARIABLE: &str = "PLEACH_SAMPLER";
/// Extension of a shard's file name, which is `<pid>-<start in nanoseconds>.shard`.
pub const EXTENSION: &str = "shard";

const MAGIC: [u8; 2] = *b"\xb5P";
/// Bytes before the payload.
pub const FRAME_HEADER: usize = 12;
/// Maximum size of a payload in bytes. A larger length means that the frame is damaged.
pub const MAX_PAYLOAD: usize = 1 << 20;

/// Kind of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FrameKind {
    /// Who writes this shard.
    Process = 1,
    /// Counters of the process as it ends.
    Final = 4,
    /// Result of comparing a shadow burst with real execution.
    Verified = 5,
    /// Opcodes that shadow execution met, and how each was handled.
    Opcodes = 6,
    /// Time that the program took for the branches after a burst.
    BurstTiming = 7,
    /// One burst. (3 was one without a system call, 8 one without divisors.)
    Burst = 9,
    /// Executable mappings, in force from here on. (2 was without build-ids.)
    Mappings = 10,
}

/// Appends little-endian fields to a fixed buffer. A field that does not fit marks the encoder as overflowed.
#[derive(Debug)]
pub struct Encoder<'a> {
    buffer: &'a mut [u8],
    length: usize,
    overflowed: bool,
}

impl<'a> Encoder<'a> {
    /// Starts a frame in `buffer`.
    pub fn new(buffer: &'a mut [u8]) -> Self {
        let overflowed = buffer.len() < FRAME_HEADER;
        Self {
            buffer,
            length: FRAME_HEADER,
            overflowed,
        }
    }

    /// Continues a frame of which `length` bytes are already in `buffer`.
    pub fn resume(buffer: &'a mut [u8], length: usize) -> Self {
        let overflowed = buffer.len() < length || length < FRAME_HEADER;
        Self {
            buffer,
            length,
            overflowed,
        }
    }

    /// Bytes so far, header included.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Bytes that still fit.
    pub fn free_space(&self) -> usize {
        self.buffer.len().saturating_sub(self.length)
    }

    /// Appends bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        match self.buffer.get_mut(self.length..self.length + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            None => self.overflowed = true,
        }
    }

    /// Appends one byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    /// Appends four bytes.
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends a length and that many bytes, at most 65 535.
    pub fn string(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(u16::MAX as usize)];
        self.bytes(&(bytes.len() as u16).to_le_bytes());
        self.bytes(bytes);
    }

    /// Appends the difference `to - from`, short when it is small.
    pub fn delta(&mut self, from: u64, to: u64) {
        let difference = to.wrapping_sub(from) as i64;
        let mut value = ((difference << 1) ^ (difference >> 63)) as u64;
        let mut bytes = [0u8; 10];
        let mut length = 0;
        for slot in &mut bytes {
            *slot = value as u8 & 0x7f;
            value >>= 7;
            length += 1;
            if value == 0 {
                break;
            }
            *slot |= 0x80;
        }
        self.bytes(bytes.get(..length).unwrap_or_default());
    }

    /// Overwrites bytes at an offset of the frame.
    pub fn patch(&mut self, at: usize, bytes: &[u8]) {
        match self.buffer.get_mut(at..at + bytes.len()) {
            Some(place) => place.copy_from_slice(bytes),
            None => self.overflowed = true,
        }
    }

    /// Fills in the header. `None`: the buffer was too small.
    pub fn finish(self, kind: FrameKind) -> Option<&'a [u8]> {
        if self.overflowed {
            return None;
        }
        let frame = self.buffer.get_mut(..self.length)?;
        let payload = (self.length - FRAME_HEADER) as u32;
        frame.get_mut(..2)?.copy_from_slice(&MAGIC);
        frame.get_mut(2..4)?.copy_from_slice(&[kind as u8, 0]);
        frame.get_mut(4..8)?.copy_from_slice(&payload.to_le_bytes());
        let check = checksum(kind as u8, frame.get(FRAME_HEADER..)?);
        frame.get_mut(8..12)?.copy_from_slice(&check.to_le_bytes());
        Some(frame)
    }
}

fn checksum(kind: u8, payload: &[u8]) -> u32 {
    let hash = xxh3_64(payload)
        .wrapping_add((payload.len() as u64) << 8)
        .wrapping_add(u64::from(kind));
    (hash ^ hash >> 32) as u32
}

/// Counters of a process image, all cumulative.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// CPU time of the sampler in this process image.
    pub own_ns: u64,
    /// Bursts that could not be stored.
    pub lost: u64,
    /// Ticks at which sampling was declined.
    pub declined: u64,
    /// Threads that were sampled.
    pub threads: u32,
    /// Threads that could not be sampled: they got no tick or no memory.
    pub unsampled_threads: u32,
}

impl Counters {
    /// Encoded length.
    pub const LENGTH: usize = 32;

    /// Little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        let mut at = 0;
        for value in [self.own_ns, self.lost, self.declined] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            at += 8;
        }
        bytes[24..28].copy_from_slice(&self.threads.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.unsampled_threads.to_le_bytes());
        bytes
    }
}

/// Fixed part of a burst's payload. The deltas of its branches follow, and then the observed values: for each the delta
/// of the branch's position, and where the value was observed and the value itself as deltas from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BurstHead {
    /// [`crate::kinds::Engine`] as a number.
    pub engine: u8,
    /// [`crate::kinds::EndReason`] as a number.
    pub end_reason: u8,
    /// At the tick, only the thread itself determined its control flow: the process had no other thread, no handler for
    /// signals that others send, and no memory shared with other processes.
    pub is_isolated: bool,
    /// Kernel thread id.
    pub thread: u32,
    /// `CLOCK_MONOTONIC` when the burst began.
    pub time_ns: u64,
    /// Run-time address at which the thread was interrupted.
    pub start: u64,
    /// Run-time address of the first instruction not followed.
    pub end: u64,
    /// Instructions followed.
    pub instructions: u32,
    /// Taken branches.
    pub branches: u32,
    /// CPU time of the thread when the burst ended, the sampler's included.
    pub thread_cpu_ns: u64,
    /// Counters of the process at that time.
    pub counters: Counters,
    /// The number of the system call at which the burst ended, plus one; 0: it ended otherwise, or the number depends on
    /// what cannot be predicted.
    pub system_call: u32,
}

impl BurstHead {
    /// Encoded length.
    pub const LENGTH: usize = 48 + Counters::LENGTH + 4;

    /// Little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[0] = self.engine;
        bytes[1] = self.end_reason;
        bytes[2] = self.is_isolated.into();
        bytes[4..8].copy_from_slice(&self.thread.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.time_ns.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.start.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.end.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.instructions.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.branches.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.thread_cpu_ns.to_le_bytes());
        bytes[48..Self::LENGTH - 4].copy_from_slice(&self.counters.to_bytes());
        bytes[Self::LENGTH - 4..].copy_from_slice(&self.system_call.to_le_bytes());
        bytes
    }
}

/// General registers in the order of their encoding, flags, program counter.
pub const REGISTERS: usize = 18;

/// An instruction after which shadow execution and real execution differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Disagreement {
    /// Its address.
    pub from: u64,
    /// Bytes of `code` that could be read.
    pub length: u8,
    /// The bytes at its address.
    pub code: [u8; 16],
    /// Only status flags differ.
    pub only_flags: bool,
    /// Registers other than the general ones that differ, one bit each: vectors, opmasks, x87, MXCSR.
    pub others: u64,
    /// Its operand lies in memory where the kernel or another process stores.
    pub shared_memory: bool,
    /// The program has handlers of signals, one of which may have run.
    pub handlers: bool,
    /// General registers before it; zeroes if it is the first of its burst.
    pub before: [u64; REGISTERS],
    /// General registers after it, in shadow execution.
    pub shadow: [u64; REGISTERS],
    /// General registers after it, in real execution.
    pub real: [u64; REGISTERS],
}

impl Disagreement {
    /// Appends it to a frame.
    pub fn encode(&self, e: &mut Encoder) {
        e.u64(self.from);
        let flags = [self.only_flags, self.shared_memory, self.handlers];
        e.bytes(&[self.length]);
        e.u64(self.others);
        e.bytes(&flags.map(u8::from));
        e.bytes(&self.code);
        for register in [self.before, self.shadow, self.real].as_flattened() {
            e.u64(*register);
        }
    }
}

/// Time that the program took for the branches after a burst ([`crate::timing_target`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BurstTimingFrame {
    /// Kernel thread id.
    pub thread: u32,
    /// `time_ns` of the burst, which it and the thread identify.
    pub time_ns: u64,
    /// Passes of the timing target during the measurement; 0 if the measurement was cancelled.
    pub passes: u32,
    /// Taken branches from one pass to the next, in sixteenths.
    pub distance_16: u32,
    /// CPU time of the thread without the cost of the measurement; negative if that cost was overestimated.
    pub elapsed_ns: i64,
}

impl BurstTimingFrame {
    /// Appends it to a frame.
    pub fn encode(&self, e: &mut Encoder) {
        e.u32(self.thread);
        e.u64(self.time_ns);
        e.u32(self.passes);
        e.u32(self.distance_16);
        e.u64(self.elapsed_ns as u64);
    }
}

/// Who writes a shard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcessHead {
    /// Process id.
    pub pid: u32,
    /// Process id of the parent.
    pub ppid: u32,
    /// `CLOCK_MONOTONIC` at the start of sampling.
    pub start_ns: u64,
    /// CPU time that the process had used before this image, or before sampling began.
    pub base_cpu_ns: u64,
    /// File name of the parent's shard, for a child made by `fork`; else empty.
    pub parent: Vec<u8>,
    /// Path of the executable.
    pub executable: Vec<u8>,
    /// Arguments, each ended by a zero byte.
    pub arguments: Vec<u8>,
}

/// One executable mapping.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mapping {
    /// First run-time address.
    pub start: u64,
    /// One past the last run-time address.
    pub end: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Inode of the file, 0 if there is none.
    pub inode: u64,
    /// Path as the kernel has it; empty for anonymous memory.
    pub path: Vec<u8>,
    /// Build-id of the file as it is in memory; empty if there is none.
    pub build_id: Vec<u8>,
}

/// An operand that was observed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RawValue {
    /// Position of the last branch before it.
    pub branch: u32,
    /// The instruction that divides by it; 0: it is the length of the memory operation that the branch enters.
    pub at: u64,
    /// The value.
    pub value: u64,
}

/// One burst with run-time addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawBurst {
    /// Everything but the branches.
    pub head: BurstHead,
    /// Taken branches, (from, to), oldest first.
    pub branches: Vec<(u64, u64)>,
    /// Observed values, in their order.
    pub values: Vec<RawValue>,
}

/// A decoded frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// Who writes this shard.
    Process(ProcessHead),
    /// Executable mappings; if the flag is set, they continue those of the previous frame.
    Mappings(bool, Vec<Mapping>),
    /// One burst.
    Burst(RawBurst),
    /// CPU time of the whole process at its end, the counters, and whether it ended undisturbed, as
    /// `Process::undisturbed` of the vector file has it.
    Final(u64, Counters, bool),
    /// Instructions compared in a burst, and the first after which something differs.
    Verified(u32, Option<Box<Disagreement>>),
    /// Numbers of opcodes, with a bit for each `shadow::Handling`.
    Opcodes(Vec<(u16, u8)>),
    /// Time of the branches after a burst.
    BurstTiming(BurstTimingFrame),
}

/// Reads the frames of a shard; damaged parts are skipped and counted. Zeros behind a frame, or at the beginning, are
/// not damaged: frames were there whose space the recorder has freed.
#[derive(Debug)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
    start: usize,
    /// End of the frame that was read last, or of the zeros behind it.
    intact: usize,
    damaged: usize,
}

impl<'a> Frames<'a> {
    /// Reads from the start of a shard.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            start: 0,
            intact: 0,
            damaged: 0,
        }
    }

    /// Bytes that belong to no intact frame, so far.
    pub fn damaged(&self) -> usize {
        self.damaged
    }

    /// Where the frame begins that was returned last.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Bytes read so far: the end of the frame that was returned last.
    pub fn position(&self) -> usize {
        self.at
    }

    fn frame_at(&self, at: usize) -> Option<(u8, &'a [u8])> {
        let header = self.bytes.get(at..at.checked_add(FRAME_HEADER)?)?;
        if header[..2] != MAGIC {
            return None;
        }
        let length = u32::from_le_bytes(header[4..8].try_into().ok()?) as usize;
        let check = u32::from_le_bytes(header[8..12].try_into().ok()?);
        if length > MAX_PAYLOAD {
            return None;
        }
        let payload = self.bytes.get(at + FRAME_HEADER..at + FRAME_HEADER + length)?;
        (checksum(header[2], payload) == check).then_some((header[2], payload))
    }
}

impl Iterator for Frames<'_> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        while self.at < self.bytes.len() {
            if let Some((kind, payload)) = self.frame_at(self.at) {
                let length = FRAME_HEADER + payload.len();
                self.start = self.at;
                self.at += length;
                self.intact = self.at;
                match decode_frame(kind, payload) {
                    Some(frame) => return Some(frame),
                    None => self.damaged += length,
                }
            } else {
                let is_free = self.at == self.intact && self.bytes[self.at] == 0;
                self.at += 1;
                match is_free {
                    true => self.intact = self.at,
                    false => self.damaged += 1,
                }
            }
        }
        None
    }
}

struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        let length = u16::from_le_bytes(self.take(2)?.try_into().ok()?);
        Some(self.take(length.into())?.to_vec())
    }

    fn delta(&mut self, from: u64) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let difference = (value >> 1) as i64 ^ -((value & 1) as i64);
                return Some(from.wrapping_add(difference as u64));
            }
        }
        None
    }

    fn disagreement(&mut self) -> Option<Disagreement> {
        let mut found = Disagreement {
            from: self.u64()?,
            length: self.u8()?,
            others: self.u64()?,
            only_flags: self.u8()? != 0,
            shared_memory: self.u8()? != 0,
            handlers: self.u8()? != 0,
            code: self.take(16)?.try_into().ok()?,
            ..Disagreement::default()
        };
        for registers in [&mut found.before, &mut found.shadow, &mut found.real] {
            for register in registers {
                *register = self.u64()?;
            }
        }
        Some(found)
    }

    fn counters(&mut self) -> Option<Counters> {
        Some(Counters {
            own_ns: self.u64()?,
            lost: self.u64()?,
            declined: self.u64()?,
            threads: self.u32()?,
            unsampled_threads: self.u32()?,
        })
    }
}

fn decode_frame(kind: u8, payload: &[u8]) -> Option<Frame> {
    let mut d = Decoder(payload);
    Some(match kind {
        1 => Frame::Process(ProcessHead {
            pid: d.u32()?,
            ppid: d.u32()?,
            start_ns: d.u64()?,
            base_cpu_ns: d.u64()?,
            parent: d.string()?,
            executable: d.string()?,
            arguments: d.string()?,
        }),
        10 => {
            let continued = d.u8()? != 0;
            let mut mappings = Vec::new();
            while !d.0.is_empty() {
                mappings.push(Mapping {
                    start: d.u64()?,
                    end: d.u64()?,
                    offset: d.u64()?,
                    inode: d.u64()?,
                    path: d.string()?,
                    build_id: d.string()?,
                });
            }
            Frame::Mappings(continued, mappings)
        }
        9 => {
            let (engine, end_reason, is_isolated) = (d.u8()?, d.u8()?, d.u8()? != 0);
            d.take(1)?;
            let head = BurstHead {
                engine,
                end_reason,
                is_isolated,
                thread: d.u32()?,
                time_ns: d.u64()?,
                start: d.u64()?,
                end: d.u64()?,
                instructions: d.u32()?,
                branches: d.u32()?,
                thread_cpu_ns: d.u64()?,
                counters: d.counters()?,
                system_call: d.u32()?,
            };
            // Two bytes are the least that a branch takes.
            if head.branches as usize > d.0.len() / 2 {
                return None;
            }
            let mut branches = Vec::with_capacity(head.branches as usize);
            let mut last = head.start;
            for _ in 0..head.branches {
                let from = d.delta(last)?;
                last = d.delta(from)?;
                branches.push((from, last));
            }
            let mut values = Vec::new();
            let mut position = 0;
            while !d.0.is_empty() {
                position = d.delta(position)?;
                if position >= head.branches.into() {
                    return None;
                }
                values.push(RawValue {
                    branch: position as u32,
                    at: d.delta(0)?,
                    value: d.delta(0)?,
                });
            }
            Frame::Burst(RawBurst { head, branches, values })
        }
        4 => Frame::Final(d.u64()?, d.counters()?, d.u8()? != 0),
        5 => {
            let compared = d.u32()?;
            Frame::Verified(
                compared,
                if d.0.is_empty() {
                    None
                } else {
                    Some(Box::new(d.disagreement()?))
                },
            )
        }
        6 => {
            let mut opcodes = Vec::new();
            while !d.0.is_empty() {
                opcodes.push((d.u16()?, d.u8()?));
            }
            Frame::Opcodes(opcodes)
        }
        7 => Frame::BurstTiming(BurstTimingFrame {
            thread: d.u32()?,
            time_ns: d.u64()?,
            passes: d.u32()?,
            distance_16: d.u32()?,
            elapsed_ns: d.u64()? as i64,
        }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
