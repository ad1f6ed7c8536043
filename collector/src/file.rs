//! The vector file: a [`VectorSet`] in a compressed, checked container.
//!
//! Layout: magic with version (8 bytes), length of the uncompressed payload (8), checksum of version, length and
//! everything after the header (8), all little-endian; then the payload, compressed by zstd. The payload is modules, processes,
//! events, bursts and compressed bursts, in variable-length integers; code addresses are differences from the last one
//! in the same module. Bits of the burst's engine say whether hardware facts and a time measurement follow, and whether
//! the burst is proved. Older versions are still read:
//!
//! | since version | field |
//! |---|---|
//! | 2 | events, hardware facts |
//! | 3 | compressed bursts |
//! | 4 | proofs, undisturbed processes, times |
//! | 5 | coverage by breakpoints |
//! | 6 | upper bounds of executions in place of exposure times |
//! | 7 | lengths of memory operations |
//! | 8 | system call numbers, samples of kernel events |
//! | 9 | times at which code was first executed |
//! | A | none; the checksum covers the version |
//! | B | divisors |

mod compressed;
mod coverage;
mod write;

use crate::vector::{
    BranchFacts, BuildId, Burst, BurstTiming, CodeAddress, EndReason, Engine, EventId, EventSample, HardwareSample,
    Module, ModuleId, ModuleMapping, ObservedValue, Prediction, Process, VectorSet,
};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

const MAGIC: &[u8; 7] = b"PLEACHV";
const VERSION: u8 = b'B';
/// The last version without divisors.
const VERSION_WITHOUT_DIVISORS: u8 = b'A';
/// The last version whose checksum does not cover the version.
const VERSION_NOT_CHECKED: u8 = b'9';
/// The last version without numbers of system calls and samples of kernel events.
const VERSION_WITHOUT_SAMPLES: u8 = b'7';
/// The last version without lengths of memory operations.
const VERSION_WITHOUT_LENGTHS: u8 = b'6';
/// The last version without coverage by breakpoints.
const VERSION_WITHOUT_COVERAGE: u8 = b'4';
/// The last version that does not say whether a burst is proved.
const VERSION_WITHOUT_PROOF: u8 = b'3';
/// The last version without compressed bursts.
const VERSION_WITHOUT_WINDOWS: u8 = b'2';
/// The last version without events.
const VERSION_WITHOUT_EVENTS: u8 = b'1';
/// In the byte of a burst's engine: a [`HardwareSample`] follows the burst.
const HAS_HARDWARE: u8 = 0x80;
/// In the same byte: the burst is proved ([`Burst::proved`]).
const PROVED: u8 = 0x40;
/// In the same byte: a [`BurstTiming`] follows the burst.
const HAS_TIMING: u8 = 0x20;
/// In the same byte: the number of a system call follows the burst.
const HAS_SYSTEM_CALL: u8 = 0x10;
const HEADER: usize = 24;
/// A longer file may not claim more uncompressed bytes than so many for each byte, or than [`MIN_SUSPECT`].
const MAX_RATIO: u64 = 4096;
const MIN_SUSPECT: u64 = 16 << 20;
/// Level at which sets of a million branches still take less than a second.
const LEVEL: i32 = 6;

/// Why a vector file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Reading or writing failed.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// How it failed.
        #[source]
        error: std::io::Error,
    },
    /// It does not begin as vector files do.
    #[error("not a vector file")]
    Magic,
    /// It was written by another version of this program.
    #[error("vector file of version {:?}; this program reads version {:?}", char::from(*.0), char::from(VERSION))]
    Version(u8),
    /// It ends before its header does.
    #[error("the vector file ends in its header")]
    Truncated,
    /// Bytes were changed or lost.
    #[error("the vector file is damaged: its checksum does not match")]
    Checksum,
    /// The compressed payload is not what the header says.
    #[error("the vector file's payload cannot be decompressed: {0}")]
    Compression(String),
    /// A field has an impossible value.
    #[error("the vector file is malformed at byte {offset} of its payload: {what}")]
    Malformed {
        /// Offset in the uncompressed payload.
        offset: usize,
        /// The defect.
        what: &'static str,
    },
}

impl VectorSet {
    /// Writes the set to a file atomically: the path never names an incomplete file.
    pub fn write_to(&self, path: &Path) -> Result<(), FileError> {
        let io = |error| FileError::Io {
            path: path.to_owned(),
            error,
        };
        let directory = path
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new()
            .prefix(".pleach-")
            .tempfile_in(directory)
            .map_err(io)?;
        file.write_all(&self.to_bytes()).map_err(io)?;
        // Temporary files are private; the result gets the permissions of a newly created file.
        use std::os::unix::fs::PermissionsExt;
        let permissions = std::fs::Permissions::from_mode(0o666 & !umask());
        file.as_file().set_permissions(permissions).map_err(io)?;
        file.persist(path).map_err(|error| io(error.error))?;
        Ok(())
    }

    /// Reads a file written by [`VectorSet::write_to`].
    pub fn read_from(path: &Path) -> Result<Self, FileError> {
        let bytes = std::fs::read(path).map_err(|error| FileError::Io {
            path: path.to_owned(),
            error,
        })?;
        Self::from_bytes(&bytes)
    }

    /// Encodes the set as the contents of a vector file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let payload = write::payload(self);
        // Compressing to memory cannot fail at a valid level.
        let compressed = zstd::bulk::compress(&payload, LEVEL).unwrap_or_default();
        let length = (payload.len() as u64).to_le_bytes();
        let mut out = Vec::with_capacity(HEADER + compressed.len());
        out.extend(MAGIC);
        out.push(VERSION);
        out.extend(length);
        out.extend(checksum(VERSION, &length, &compressed).to_le_bytes());
        out.extend(compressed);
        out
    }

    /// Decodes the contents of a vector file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FileError> {
        if bytes.len() < MAGIC.len() || !bytes.starts_with(MAGIC) {
            return Err(FileError::Magic);
        }
        let version = match bytes.get(MAGIC.len()).copied() {
            Some(version @ (b'1'..=VERSION_NOT_CHECKED | VERSION)) => version,
            Some(version) => return Err(FileError::Version(version)),
            None => return Err(FileError::Truncated),
        };
        let (Some(header), Some(compressed)) = (bytes.get(8..HEADER), bytes.get(HEADER..)) else {
            return Err(FileError::Truncated);
        };
        let (length, stored) = header.split_at(8);
        if checksum(version, length, compressed).to_le_bytes() != stored {
            return Err(FileError::Checksum);
        }
        let mut raw = [0; 8];
        raw.copy_from_slice(length);
        let length = u64::from_le_bytes(raw);
        let compression = |error: std::io::Error| FileError::Compression(error.to_string());
        // No recording is compressed so much. A small file's claim cannot exhaust memory.
        if length
            > MAX_RATIO
                .saturating_mul(compressed.len() as u64)
                .saturating_add(MIN_SUSPECT)
        {
            return Err(FileError::Compression(format!(
                "{length} bytes are claimed to be in {}",
                compressed.len()
            )));
        }
        let mut payload = Vec::new();
        let decoder = zstd::stream::read::Decoder::new(compressed).map_err(compression)?;
        decoder
            .take(length.saturating_add(1))
            .read_to_end(&mut payload)
            .map_err(compression)?;
        if payload.len() as u64 != length {
            return Err(FileError::Compression(format!(
                "{} bytes instead of {length}",
                payload.len()
            )));
        }
        let mut reader = Reader {
            bytes: &payload,
            at: 0,
            version,
            last: Vec::new(),
            module: 0,
        };
        let set = reader.set()?;
        if reader.at != payload.len() {
            return Err(reader.error("something follows the last burst"));
        }
        Ok(set)
    }
}

fn checksum(version: u8, length: &[u8], compressed: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    if version > VERSION_NOT_CHECKED {
        hash.update(&[version]);
    }
    hash.update(length);
    hash.update(compressed);
    hash.digest()
}

/// The process's file mode creation mask, without changing it.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(0o022)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    version: u8,
    last: Vec<u64>,
    module: usize,
}

type Decoded<T> = Result<T, FileError>;

impl Reader<'_> {
    fn error(&self, what: &'static str) -> FileError {
        FileError::Malformed { offset: self.at, what }
    }

    fn byte(&mut self) -> Decoded<u8> {
        let byte = *self.bytes.get(self.at).ok_or_else(|| self.error("it ends early"))?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, count: usize) -> Decoded<&[u8]> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| self.error("it ends early"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn number(&mut self) -> Decoded<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.error("a number is too long"))
    }

    fn number32(&mut self) -> Decoded<u32> {
        let value = self.number()?;
        u32::try_from(value).map_err(|_| self.error("a number is too large"))
    }

    fn difference(&mut self, from: u64) -> Decoded<u64> {
        let value = self.number()?;
        Ok(from.wrapping_add(((value >> 1) as i64 ^ -((value & 1) as i64)) as u64))
    }

    fn flag(&mut self) -> Decoded<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.error("a flag is neither 0 nor 1")),
        }
    }

    /// A number of items that take at least `min_size` bytes each. A number that exceeds the remaining bytes is refused
    /// before memory is allocated.
    fn count(&mut self, min_size: usize) -> Decoded<usize> {
        let count = self.number()?;
        let fit = (self.bytes.len() - self.at) / min_size;
        usize::try_from(count)
            .ok()
            .filter(|c| *c <= fit)
            .ok_or_else(|| self.error("more items than bytes"))
    }

    fn byte_string(&mut self) -> Decoded<Vec<u8>> {
        let length = self.count(1)?;
        Ok(self.take(length)?.to_vec())
    }

    fn float(&mut self) -> Decoded<f64> {
        let mut raw = [0; 8];
        raw.copy_from_slice(self.take(8)?);
        Ok(f64::from_le_bytes(raw))
    }

    fn float32(&mut self) -> Decoded<f32> {
        let mut raw = [0; 4];
        raw.copy_from_slice(self.take(4)?);
        Ok(f32::from_le_bytes(raw))
    }

    fn address(&mut self) -> Decoded<CodeAddress> {
        match self.number()? {
            0 => {}
            place => {
                let place = usize::try_from(place - 1).ok().filter(|place| *place < self.last.len());
                self.module = place.ok_or_else(|| self.error("an address is in no module"))?;
            }
        }
        let last = *self
            .last
            .get(self.module)
            .ok_or_else(|| self.error("an address is in no module"))?;
        let offset = self.difference(last)?;
        self.last[self.module] = offset;
        Ok(CodeAddress {
            module: ModuleId((self.module as u32).wrapping_sub(1)),
            offset,
        })
    }

    fn optional(&mut self) -> Decoded<Option<CodeAddress>> {
        if self.flag()? {
            self.address().map(Some)
        } else {
            Ok(None)
        }
    }

    fn set(&mut self) -> Decoded<VectorSet> {
        let mut set = VectorSet::default();
        let modules = self.count(3)?;
        for _ in 0..modules {
            let path = PathBuf::from(std::ffi::OsString::from_vec(self.byte_string()?));
            let build_id = if self.flag()? {
                Some(BuildId(self.byte_string()?))
            } else {
                None
            };
            let count = self.count(4)?;
            let mut mappings = Vec::with_capacity(count);
            for _ in 0..count {
                let (process, start) = (self.number32()?, self.number()?);
                let (end, file_offset) = (self.difference(start)?, self.number()?);
                mappings.push(ModuleMapping {
                    process,
                    start,
                    end,
                    file_offset,
                });
            }
            set.modules.push(Module {
                path,
                build_id,
                mappings,
            });
        }
        let processes = self.count(21)?;
        for _ in 0..processes {
            let pid = self.number32()?;
            let parent = match self.number()? {
                0 => None,
                parent if parent <= processes as u64 => Some((parent - 1) as u32),
                _ => return Err(self.error("a parent is not a process")),
            };
            let command = String::from_utf8(self.byte_string()?);
            set.processes.push(Process {
                pid,
                parent,
                command: command.map_err(|_| self.error("a command is not UTF-8"))?,
                program_cpu_seconds: self.float()?,
                own_cpu_seconds: self.float()?,
                lost: self.number()?,
                declined: self.number()?,
                undisturbed: self.tells_proof() && self.flag()?,
            });
        }
        let of_processes = set
            .modules
            .iter()
            .flat_map(|module| &module.mappings)
            .map(|mapping| mapping.process);
        if of_processes.max().is_some_and(|process| process as usize >= processes) {
            return Err(self.error("a mapping is of no process"));
        }
        let events = if self.version > VERSION_WITHOUT_EVENTS {
            self.count(1)?
        } else {
            0
        };
        for _ in 0..events {
            let name = String::from_utf8(self.byte_string()?);
            set.events.push(name.map_err(|_| self.error("an event is not UTF-8"))?);
        }
        self.last = vec![0; modules + 1];
        let bursts = self.count(10)?;
        set.bursts.reserve(bursts);
        let mut time = 0;
        for _ in 0..bursts {
            let burst = self.burst(time)?;
            if burst.process as usize >= processes {
                return Err(self.error("a burst is of no process"));
            }
            let event = burst.hardware.as_ref().map(|hardware| hardware.event.0 as usize);
            if event.is_some_and(|event| event >= events) {
                return Err(self.error("a burst is of no event"));
            }
            time = burst.time_ns;
            set.bursts.push(burst);
        }
        if self.version > VERSION_WITHOUT_WINDOWS && self.flag()? {
            set.compressed = Some(self.compressed(processes)?);
        }
        if self.version > VERSION_WITHOUT_COVERAGE {
            set.coverage = self.coverage(modules)?;
        }
        if self.tells_samples() {
            set.samples = self.samples(events)?;
        }
        Ok(set)
    }

    /// Whether the file says which bursts are proved. In older files, only bursts of real execution are.
    fn tells_proof(&self) -> bool {
        self.version > VERSION_WITHOUT_PROOF
    }

    /// Whether the file has numbers of system calls and samples of kernel events.
    fn tells_samples(&self) -> bool {
        self.version > VERSION_WITHOUT_SAMPLES
    }

    fn samples(&mut self, events: usize) -> Decoded<Vec<EventSample>> {
        let count = self.count(6)?;
        let mut samples: Vec<EventSample> = Vec::with_capacity(count);
        let mut time = 0;
        for _ in 0..count {
            let event = EventId(self.number32()?);
            if event.0 as usize >= events {
                return Err(self.error("a sample is of no event"));
            }
            let (thread, time_ns) = (self.number32()?, self.difference(time)?);
            time = time_ns;
            samples.push(EventSample {
                event,
                thread,
                time_ns,
                at: self.address()?,
                period: self.number()?,
            });
        }
        Ok(samples)
    }

    fn burst(&mut self, time: u64) -> Decoded<Burst> {
        let (process, thread, time_ns) = (self.number32()?, self.number32()?, self.difference(time)?);
        let (mut engine, end_reason) = (self.byte()?, EndReason::from_u8(self.byte()?));
        let has_hardware = self.version > VERSION_WITHOUT_EVENTS && engine & HAS_HARDWARE != 0;
        if has_hardware {
            engine &= !HAS_HARDWARE;
        }
        let proved = self.tells_proof() && engine & PROVED != 0;
        if proved {
            engine &= !PROVED;
        }
        let has_timing = self.tells_proof() && engine & HAS_TIMING != 0;
        if has_timing {
            engine &= !HAS_TIMING;
        }
        let has_system_call = self.tells_samples() && engine & HAS_SYSTEM_CALL != 0;
        if has_system_call {
            engine &= !HAS_SYSTEM_CALL;
        }
        let (instructions, count, start) = (self.number32()?, self.number()?, self.optional()?);
        let branches = self.count(4)?;
        let mut list = Vec::with_capacity(branches);
        for _ in 0..branches {
            list.push(self.branch()?);
        }
        let end = self.optional()?;
        let hardware = if has_hardware {
            Some(Box::new(self.hardware(branches)?))
        } else {
            None
        };
        let timing = if has_timing { Some(self.timing()?) } else { None };
        let values = if self.version > VERSION_WITHOUT_LENGTHS {
            self.values(branches)?
        } else {
            Vec::new()
        };
        let system_call = if has_system_call { Some(self.number32()?) } else { None };
        let engine = Engine::from_u8(engine).ok_or_else(|| self.error("an engine is unknown"))?;
        Ok(Burst {
            process,
            thread,
            time_ns,
            engine,
            start,
            branches: list,
            values,
            end,
            end_reason: end_reason.ok_or_else(|| self.error("an end reason is unknown"))?,
            system_call,
            instructions,
            count,
            proved: proved || !self.tells_proof() && engine != Engine::RunAhead,
            hardware,
            timing,
        })
    }

    fn values(&mut self, branches: usize) -> Decoded<Vec<ObservedValue>> {
        let mut values = Vec::new();
        for _ in 0..self.count(2)? {
            let branch = self.number32()?;
            if branch as usize >= branches {
                return Err(self.error("a value belongs to no branch"));
            }
            let division = if self.version > VERSION_WITHOUT_DIVISORS {
                self.optional()?
            } else {
                None
            };
            values.push(ObservedValue {
                branch,
                division,
                value: self.number()?,
            });
        }
        Ok(values)
    }

    fn timing(&mut self) -> Decoded<BurstTiming> {
        let timing = BurstTiming {
            branches: self.float32()?,
            nanoseconds: self.float32()?,
        };
        let is_possible = timing.branches > 0.0 && timing.nanoseconds >= 0.0;
        if !(is_possible && (timing.branches + timing.nanoseconds).is_finite()) {
            return Err(self.error("a burst has an impossible timing"));
        }
        Ok(timing)
    }

    fn hardware(&mut self, branches: usize) -> Decoded<HardwareSample> {
        let (event, ip, count) = (EventId(self.number32()?), self.address()?, self.count(1)?);
        if count != 0 && count != branches {
            return Err(self.error("not every branch has its facts"));
        }
        let mut facts = Vec::with_capacity(count);
        for _ in 0..count {
            let fact = self.number()?;
            let prediction = Prediction::from_u8((fact & 3) as u8);
            let cycles = u16::try_from(fact >> 2).ok();
            let (Some(prediction), Some(cycles)) = (prediction, cycles) else {
                return Err(self.error("a branch has impossible facts"));
            };
            facts.push(BranchFacts { prediction, cycles });
        }
        Ok(HardwareSample {
            event,
            ip,
            facts: facts.into(),
        })
    }
}
