//! The executable mappings: a table to look addresses up in, and snapshots of it for the recorder.
//!
//! They are read from `/proc/self/maps` again when an address is met that the table lacks, after `dlclose`, and once a
//! second.

use crate::account;
use crate::coverage;
use crate::isolation;
use crate::state_section::state_section;
use crate::sys::{self, syscall};
use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, fence};
use object::Endianness;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, ProgramHeader};
use pleach_wire::coverage::IMAGE_EXTENSION;
use pleach_wire::shard::{Encoder, FrameKind};

const MAX_RANGES: usize = 2048;
/// Longest build-id that is taken, in bytes; linkers make 20, or 8 or 16.
const MAX_BUILD_ID: usize = 64;
/// Minimum time between two readings because of unknown addresses.
const MIN_INTERVAL_NS: u64 = 20_000_000;
const MAX_INTERVAL_NS: u64 = 1_000_000_000;

static STARTS: [AtomicU64; MAX_RANGES] = [const { AtomicU64::new(0) }; MAX_RANGES];
static ENDS: [AtomicU64; MAX_RANGES] = [const { AtomicU64::new(0) }; MAX_RANGES];
/// One bit for each range of a file, whose bytes do not change.
static FILES: [AtomicU64; MAX_RANGES / 64] = [const { AtomicU64::new(0) }; MAX_RANGES / 64];
state_section! {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    /// Odd while the table is being written.
    static VERSION: AtomicU32 = AtomicU32::new(0);
    static HASH: AtomicU64 = AtomicU64::new(0);
    static LAST_NS: AtomicU64 = AtomicU64::new(0);
}
static REQUESTED: AtomicU32 = AtomicU32::new(0);
static SEEN: AtomicU32 = AtomicU32::new(0);

struct Buffers {
    input: UnsafeCell<[u8; 16 * 1024]>,
    output: UnsafeCell<[u8; 64 * 1024]>,
    /// The start of a file: its header, and its build-id, which linkers put there.
    header: UnsafeCell<[u8; 4096]>,
}

// SAFETY: Lock.
unsafe impl Sync for Buffers {}

static BUFFERS: Buffers = Buffers {
    input: UnsafeCell::new([0; 16 * 1024]),
    output: UnsafeCell::new([0; 64 * 1024]),
    header: UnsafeCell::new([0; 4096]),
};

/// A known executable mapping.
#[derive(Clone, Copy, Default, Debug)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// Whether a file backs it.
    pub file: bool,
}

impl Range {
    /// Whether an address is in it.
    pub fn contains(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

/// Changes whenever the table may have changed.
pub fn version() -> u32 {
    VERSION.load(Acquire)
}

/// The mapping that holds an address.
pub fn find(address: u64) -> Option<Range> {
    let version = VERSION.load(Acquire);
    let (mut low, mut high) = (0, (COUNT.load(Relaxed) as usize).min(MAX_RANGES));
    let mut found = None;
    while low < high {
        let middle = low.midpoint(high);
        let (start, end) = (STARTS.get(middle)?.load(Relaxed), ENDS.get(middle)?.load(Relaxed));
        if address < start {
            high = middle;
        } else if address >= end {
            low = middle + 1;
        } else {
            let file = FILES.get(middle / 64)?.load(Relaxed) >> (middle % 64) & 1 != 0;
            found = Some(Range { start, end, file });
            break;
        }
    }
    fence(Acquire);
    found.filter(|_| version & 1 == 0 && VERSION.load(Relaxed) == version)
}

/// Requests a new snapshot after the next burst.
pub fn request() {
    REQUESTED.fetch_add(1, Relaxed);
}

/// Whether the mappings should be read again.
pub fn is_due() -> bool {
    REQUESTED.load(Relaxed) != SEEN.load(Relaxed)
        || sys::now_ns().saturating_sub(LAST_NS.load(Relaxed)) > MAX_INTERVAL_NS
}

/// Makes the next reading write a snapshot, for the new shard of a child made by `fork`.
#[inline(always)]
pub fn forget() {
    HASH.store(0, Relaxed);
    LAST_NS.store(0, Relaxed);
    if VERSION.load(Relaxed) & 1 != 0 {
        COUNT.store(0, Relaxed);
        VERSION.fetch_add(1, Release);
    }
}

/// A mapping, as `/proc/self/maps` describes it.
#[derive(Debug)]
pub struct Line<'a> {
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Inode of the file, 0 if there is none.
    pub inode: u64,
    /// Path of the file.
    pub path: &'a [u8],
    permissions: &'a [u8],
}

impl Line<'_> {
    /// Whether it can be read.
    pub fn is_readable(&self) -> bool {
        self.permissions.first() == Some(&b'r')
    }

    /// Whether it can be executed.
    pub fn is_executable(&self) -> bool {
        self.permissions.get(2) == Some(&b'x')
    }
}

fn number(text: &[u8], radix: u64) -> Option<u64> {
    let mut value = 0u64;
    for &byte in text {
        let digit = (byte as char).to_digit(radix as u32)?;
        value = value.wrapping_mul(radix).wrapping_add(u64::from(digit));
    }
    (!text.is_empty()).then_some(value)
}

/// `start-end perms offset device inode      path`.
fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut rest = line;
    let mut field = || {
        let end = rest.iter().position(|b| *b == b' ').unwrap_or(rest.len());
        let (head, tail) = rest.split_at_checked(end)?;
        rest = tail.get(1..).unwrap_or_default();
        Some(head)
    };
    let (range, permissions, offset, _device, inode) = (field()?, field()?, field()?, field()?, field()?);
    let dash = range.iter().position(|b| *b == b'-')?;
    Some(Line {
        start: number(range.get(..dash)?, 16)?,
        end: number(range.get(dash + 1..)?, 16)?,
        offset: number(offset, 16)?,
        inode: number(inode, 10)?,
        path: rest.trim_ascii_start(),
        permissions,
    })
}

/// Shared mappings of our own: they are no memory that the program shares.
static OWN: [AtomicU64; 192] = [const { AtomicU64::new(0) }; 192];

/// Says that a mapping is ours.
pub fn note_own(start: u64) {
    // If there are more, the program seems to share memory, which does no harm.
    let _ = OWN
        .iter()
        .find(|slot| slot.compare_exchange(0, start, Relaxed, Relaxed).is_ok());
}

/// Mappings whose file we replaced by another with the same code: where, and the file that the program mapped.
static REPLACED: [Replaced; 64] = [const {
    Replaced {
        start: AtomicU64::new(0),
        inode: AtomicU64::new(0),
        length: AtomicU32::new(0),
        path: UnsafeCell::new([0; MAX_PATH]),
    }
}; 64];

/// Longest path of a replaced file.
pub const MAX_PATH: usize = 1024;

/// A path with a zero behind it. `None`: it is longer than [`MAX_PATH`].
pub fn terminated(path: &[u8]) -> Option<[u8; MAX_PATH + 1]> {
    let mut name = [0u8; MAX_PATH + 1];
    // The last byte stays zero.
    name.get_mut(..MAX_PATH)?.get_mut(..path.len())?.copy_from_slice(path);
    Some(name)
}

struct Replaced {
    start: AtomicU64,
    inode: AtomicU64,
    length: AtomicU32,
    path: UnsafeCell<[u8; MAX_PATH]>,
}

// SAFETY: the path is written before `start`, and then read only.
unsafe impl Sync for Replaced {}

/// Says that a mapping's file was replaced; snapshots go on to name the original. False if there are too many. Only one
/// thread may call it at a time.
pub fn note_replaced(start: u64, inode: u64, path: &[u8]) -> bool {
    let same = |entry: &&Replaced| entry.start.load(Relaxed) == start;
    let free = || REPLACED.iter().find(|entry| entry.start.load(Relaxed) == 0);
    let Some(entry) = REPLACED.iter().find(same).or_else(free) else {
        return false;
    };
    // SAFETY: by the caller, nobody else writes it; it is read once `start` is set.
    let Some(target) = (unsafe { (*entry.path.get()).get_mut(..path.len()) }) else {
        return false;
    };
    target.copy_from_slice(path);
    entry.length.store(path.len() as u32, Relaxed);
    entry.inode.store(inode, Relaxed);
    entry.start.store(start, Release);
    true
}

/// Says that the program has unmapped a replaced mapping of a file, and mapped the file elsewhere. Only one thread may
/// call it at a time.
pub fn move_replaced(from: u64, to: u64, inode: u64) {
    let is_it = |entry: &&Replaced| entry.start.load(Relaxed) == from && entry.inode.load(Relaxed) == inode;
    if let Some(entry) = REPLACED
        .iter()
        .find(is_it)
        .filter(|_| from != 0 && replaced(to).is_none())
    {
        entry.start.store(to, Release);
    }
}

/// The original inode and path of a replaced mapping.
pub fn replaced(start: u64) -> Option<(u64, &'static [u8])> {
    let entry = REPLACED
        .iter()
        .find(|entry| entry.start.load(Acquire) == start && start != 0)?;
    // SAFETY: written before `start`.
    let path = unsafe { (*entry.path.get()).get(..entry.length.load(Relaxed) as usize)? };
    Some((entry.inode.load(Relaxed), path))
}

/// Calls `each` with every mapping.
pub fn read(input: &mut [u8], each: &mut dyn FnMut(&Line)) -> bool {
    let fd = sys::open_to_read(c"/proc/self/maps");
    if fd < 0 {
        return false;
    }
    let mut length = 0usize;
    let is_complete = loop {
        let rest = input.get_mut(length..).unwrap_or_default();
        // SAFETY: Kernel: it writes at most `rest`.
        let got = unsafe { syscall!(libc::SYS_read, fd, rest.as_mut_ptr(), rest.len()) };
        if got <= 0 {
            break got == 0;
        }
        length += got as usize;
        let mut start = 0;
        while let Some(end) = input
            .get(start..length)
            .and_then(|rest| rest.iter().position(|b| *b == b'\n'))
            .map(|n| start + n)
        {
            if let Some(line) = input.get(start..end).and_then(parse) {
                each(&line);
            }
            start = end + 1;
        }
        input.copy_within(start..length, 0);
        length -= start;
    };
    sys::close(fd as i32);
    is_complete
}

/// Reads the mappings; if they changed, or `force`, writes them as frames. The caller holds the process's lock.
pub fn refresh(write: &mut dyn FnMut(&[u8]) -> bool, force: bool) {
    let now = sys::now_ns();
    let requested = REQUESTED.load(Relaxed);
    if !force && requested == SEEN.load(Relaxed) && now.saturating_sub(LAST_NS.load(Relaxed)) < MIN_INTERVAL_NS {
        return;
    }
    SEEN.store(requested, Relaxed);
    LAST_NS.store(now, Relaxed);
    // SAFETY: Lock.
    let (input, output) = unsafe { (&mut *BUFFERS.input.get(), &mut *BUFFERS.output.get()) };
    // SAFETY: Lock.
    let header = unsafe { &mut *BUFFERS.header.get() };

    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    read(input, &mut |line| {
        // Shared memory of our engines has no file; `mmap` noticed that of the program. The account's page is ours.
        let is_file = line.path != b"/dev/zero (deleted)"
            && line.start != account::address()
            && OWN.iter().all(|own| own.load(Relaxed) != line.start);
        if is_file && line.permissions.get(1) == Some(&b'w') && line.permissions.get(3) == Some(&b's') {
            isolation::SHARES_MEMORY.store(true, Relaxed);
        }
        if !line.is_executable() {
            return;
        }
        for value in [line.start, line.end, line.offset, line.inode] {
            hash = (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
    });
    if hash == HASH.swap(hash, Relaxed) && !force {
        return;
    }

    VERSION.fetch_add(1, Relaxed);
    fence(Release);
    for word in &FILES {
        word.store(0, Relaxed);
    }
    let mut count = 0usize;
    let mut length = start_frame(output, false);
    // Where the start of the last file is mapped: its inode and addresses. It comes before the file's code.
    let mut first = (0, 0, 0);
    read(input, &mut |line| {
        if line.inode != 0 && line.offset == 0 && line.is_readable() {
            first = (line.inode, line.start, line.end);
        }
        if !line.is_executable() {
            return;
        }
        if let (Some(start), Some(end), Some(word)) = (STARTS.get(count), ENDS.get(count), FILES.get(count / 64)) {
            start.store(line.start, Relaxed);
            end.store(line.end, Relaxed);
            // The vDSO has no file, but does not change either.
            if line.inode != 0 || line.path == b"[vdso]" {
                word.fetch_or(1 << (count % 64), Relaxed);
            }
            count += 1;
        }
        let image = line.path.ends_with(IMAGE_EXTENSION.to_bytes());
        let (inode, path) = image
            .then(|| replaced(line.start))
            .flatten()
            .unwrap_or((line.inode, line.path));
        let path = path.get(..path.len().min(4096)).unwrap_or_default();
        let mut e = Encoder::resume(output, length);
        let (of, from, to) = first;
        let build_id = if of != 0 && (of == inode || of == line.inode) && path.starts_with(b"/") {
            // A copy: another thread may unmap the file meanwhile, or its pages may be gone.
            let length = header.len().min(to.saturating_sub(from) as usize);
            let copied = header
                .get_mut(..length)
                .map_or(0, |start| coverage::read_memory(from, start));
            header.get(..copied).and_then(build_id).unwrap_or_default()
        } else {
            b""
        };
        if e.free_space() < 36 + path.len() + build_id.len() {
            if let Some(frame) = e.finish(FrameKind::Mappings) {
                write(frame);
            }
            length = start_frame(output, true);
            e = Encoder::resume(output, length);
        }
        for value in [line.start, line.end, line.offset, inode] {
            e.u64(value);
        }
        e.string(path);
        e.string(build_id);
        length = e.length();
    });
    COUNT.store(count as u32, Relaxed);
    VERSION.fetch_add(1, Release);
    if let Some(frame) = Encoder::resume(output, length).finish(FrameKind::Mappings) {
        write(frame);
    }
}

/// Whether the kernel (in its clock pages) or another process may store at an address.
pub fn is_shared(address: u64, input: &mut [u8]) -> bool {
    let mut shared = false;
    read(input, &mut |line| {
        if line.start <= address && address < line.end {
            shared = line.permissions.get(3) == Some(&b's') || line.path.starts_with(b"[vvar");
        }
    });
    shared
}

/// The build-id in the start of an ELF file. A module's path may lead to another build by the time that anyone looks.
fn build_id(file: &[u8]) -> Option<&[u8]> {
    let header = FileHeader64::<Endianness>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, file).ok()?.iter();
    let notes = segments.filter_map(|segment| segment.notes(endian, file).ok()?);
    notes
        .filter_map(|mut notes| {
            core::iter::from_fn(|| notes.next().ok()?)
                .find(|note| note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID)
        })
        .map(|note| note.desc())
        .find(|id| !id.is_empty() && id.len() <= MAX_BUILD_ID)
}

fn start_frame(output: &mut [u8], continued: bool) -> usize {
    let mut e = Encoder::new(output);
    e.u8(continued.into());
    e.length()
}
