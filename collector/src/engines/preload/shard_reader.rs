//! Reads the shards of sampled processes into one set, while they are written.
//!
//! # Where long recordings are compressed
//! A process stores uncompressed bursts in its shard, and the recorder compresses them. The sampler could compress
//! earlier, but it runs in signal handlers of a process that may be killed at any moment: unwritten state would be
//! lost, and each process would need its own counters. With a limit on the set's size, the recorder therefore reads
//! shards whenever [`UNREAD_THRESHOLD`] bytes are waiting, and punches holes where the bursts were that it has read. The
//! following is bounded, however long the command runs:
//!
//! - the disk: [`UNREAD_THRESHOLD`] bytes, the samples of a [`MAX_POLL_INTERVAL`], and a few blocks for each process;
//! - memory: see [`Store`], and [`CHUNK`] bytes;
//! - the loss when a process is killed: the frame that it was writing, as without a limit.
//!
//! Names are not bounded: a few dozen bytes for each process image and each file that it maps. If the file system
//! cannot punch holes, the disk is not bounded ([`ShardReader::unreclaimed`]). If the recorder is killed, what it had
//! read is lost; the rest can be recovered, because the frames that identify a process, and its mappings, stay.

#![allow(unsafe_code, reason = "system calls")]

use crate::convergence::Convergence;
use crate::convert::{Conversion, Found, Taken};
use crate::store::Store;
use crate::sys::open_regular;
use crate::vector::VectorSet;
use crate::watch::Watcher;
use pleach_wire::shard::{EXTENSION, Frame, Frames};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, Result};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Unread bytes of shards at which they are read. A smaller limit takes precedence.
const UNREAD_THRESHOLD: u64 = 4 << 20;
/// Polling interval; the longest one, where it takes long to look at the shards of many processes.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(10);
/// A poll is followed by a pause of so many times its duration.
const PAUSES_PER_POLL: u32 = 20;
/// Bytes of a read; more than the longest frame.
const CHUNK: usize = 4 << 20;
/// Maximum size of the frame that identifies the process, at the beginning of a shard.
const HEAD: usize = 8 << 10;

/// A set while it is gathered.
#[derive(Debug)]
pub(crate) struct ShardReader {
    set: VectorSet,
    store: Store,
    found: Found,
    limit: Option<u64>,
    unreclaimed: bool,
    /// What was taken of the shards, by file name.
    taken: HashMap<Vec<u8>, Taken>,
}

impl ShardReader {
    /// An empty set. `limit`: maximum size of its file, in bytes.
    pub(crate) fn new(limit: Option<u64>, seed: u64) -> Self {
        Self {
            set: VectorSet::default(),
            store: Store::new(limit, seed),
            found: Found::default(),
            limit,
            unreclaimed: false,
            taken: HashMap::new(),
        }
    }

    /// Reads only what earlier collections have not taken.
    pub(crate) fn begin_after(&mut self, taken: HashMap<Vec<u8>, Taken>) {
        self.taken = taken;
    }

    /// What was taken of the shards, with what the last [`Self::run`] read.
    pub(crate) fn taken(&self) -> &HashMap<Vec<u8>, Taken> {
        &self.taken
    }

    /// Measures the convergence of runs from now on.
    pub(crate) fn compare_runs(&mut self) {
        self.store.convergence = Some(Convergence::default());
    }

    /// Shows bursts as they arrive, from now on.
    pub(crate) fn watch(&mut self, watcher: Watcher) {
        self.store.watcher = Some(watcher);
    }

    /// Convergence of the runs so far, if it is measured.
    pub(crate) fn convergence(&self) -> Option<&Convergence> {
        self.store.convergence.as_ref()
    }

    /// Assigns later bursts to this run.
    pub(crate) fn begin_run(&mut self, run: u32) {
        if let Some(convergence) = &mut self.store.convergence {
            convergence.begin_run(run);
        }
    }

    /// Reads the shards in a directory while `run` runs, and the rest afterwards. Returns the number of shards.
    pub(crate) fn run<T>(&mut self, directory: &Path, run: impl FnOnce() -> T) -> Result<(T, u64)> {
        let mut conversion = Conversion::after(std::mem::take(&mut self.taken));
        let ended = AtomicBool::new(false);
        // A watcher waits for every burst; a limit, for as many as are worth a read.
        let threshold = match (&self.store.watcher, self.limit) {
            (Some(_), _) => Some(1),
            (None, limit) => limit.map(|limit| limit.min(UNREAD_THRESHOLD)),
        };
        let result = match threshold {
            None => run(),
            Some(threshold) => std::thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    let mut pause = POLL_INTERVAL;
                    while !ended.load(Ordering::Acquire) {
                        std::thread::park_timeout(pause);
                        let start = Instant::now();
                        // Errors are reported by the last read, if they persist.
                        let _ = self.read_some(directory, threshold, &mut conversion);
                        pause = (start.elapsed() * PAUSES_PER_POLL).clamp(POLL_INTERVAL, MAX_POLL_INTERVAL);
                    }
                });
                let result = run();
                ended.store(true, Ordering::Release);
                reader.thread().unpark();
                result
            }),
        };
        self.read(directory, true, &mut conversion)?;
        self.taken = conversion.taken();
        let found = conversion.finish(&mut self.set);
        let shards = found.shards;
        self.found.join(found);
        Ok((result, shards))
    }

    /// The set, the figures of its conversion, and whether the file system could not free blocks.
    pub(crate) fn finish(mut self) -> (VectorSet, Found, bool) {
        self.store.finish(&mut self.set);
        (self.set, self.found, self.unreclaimed)
    }

    fn read_some(&mut self, directory: &Path, threshold: u64, conversion: &mut Conversion) -> Result<()> {
        let read: u64 = conversion.met().iter().map(|(_, read)| read).sum();
        let mut written = 0;
        for shard in shards(directory)? {
            written += directory.join(OsStr::from_bytes(&shard)).metadata()?.size();
        }
        if written.saturating_sub(read) >= threshold {
            self.read(directory, false, conversion)?;
        }
        Ok(())
    }

    /// Reads the shards. `all`: they are complete.
    fn read(&mut self, directory: &Path, all: bool, conversion: &mut Conversion) -> Result<()> {
        let mut heads = Vec::new();
        for name in shards(directory)? {
            if !conversion.knows(&name) {
                let file = open_regular(directory, &name, false)?;
                if conversion.taken_of(&name) > 0 && file.metadata()?.size() <= conversion.taken_of(&name) {
                    continue; // nothing new
                }
                heads.push((name, read_at(&file, 0, HEAD)?));
            }
        }
        conversion.register_shards(&heads, &mut self.set);
        for (name, _) in heads.iter().filter(|_| all) {
            if !conversion.knows(name) {
                conversion.refuse(directory.join(OsStr::from_bytes(name)).metadata()?.size());
            }
        }
        drop(heads);
        for (name, from) in conversion.met() {
            self.read_shard(directory, &name, from, all, conversion)?;
        }
        if let Some(watcher) = &self.store.watcher {
            watcher.round();
        }
        Ok(())
    }

    fn read_shard(
        &mut self,
        directory: &Path,
        name: &[u8],
        mut from: u64,
        all: bool,
        conversion: &mut Conversion,
    ) -> Result<()> {
        let file = open_regular(directory, name, !all)?;
        loop {
            let taken = conversion.taken_left(name);
            if taken == 0 {
                break;
            }
            let hole = next_data(&file, from).map_or(taken, |data| taken.min(data - from));
            if hole > 0 {
                conversion.skip(name, hole);
                from += hole;
                continue;
            }
            let bytes = read_at(&file, from, CHUNK.min(usize::try_from(taken).unwrap_or(CHUNK)))?;
            let last = bytes.len() as u64 >= taken || bytes.len() < CHUNK;
            from += conversion.take(name, &bytes, last, &mut self.set, &mut self.store) as u64;
            if bytes.is_empty() {
                break;
            }
        }
        let begin = from;
        loop {
            // A recorder that was killed had read what was there.
            let hole = next_data(&file, from).map_or(0, |data| data - from);
            conversion.skip(name, hole);
            from += hole;
            let bytes = read_at(&file, from, CHUNK)?;
            let last = all && bytes.len() < CHUNK;
            let done = conversion.take(name, &bytes, last, &mut self.set, &mut self.store);
            from += done as u64;
            if last || bytes.len() < CHUNK {
                break;
            }
        }
        if self.limit.is_some() && !all && from > begin && free(directory, name, begin..from).is_err() {
            self.unreclaimed = true;
        }
        Ok(())
    }
}

/// Frees the blocks of the frames in a range of a shard, except of those that identify the process, and its mappings. The
/// range begins and ends between frames. Returns the number of bytes.
///
/// # Errors
/// The shard cannot be read or written, or the file system cannot free blocks.
pub(crate) fn free(directory: &Path, name: &[u8], range: Range<u64>) -> Result<u64> {
    let file = open_regular(directory, name, true)?;
    let (mut at, mut freed) = (range.start, 0);
    while at < range.end {
        let chunk = read_at(&file, at, CHUNK.min(usize::try_from(range.end - at).unwrap_or(CHUNK)))?;
        let mut frames = Frames::new(&chunk);
        let (mut begin, mut end) = (0, 0);
        while let Some(frame) = frames.next() {
            let (start, is_kept) = (frames.start(), matches!(frame, Frame::Process(_) | Frame::Mappings(..)));
            if is_kept {
                freed += free_range(&file, at, begin..start)?;
                begin = frames.position();
            }
            end = frames.position();
        }
        // A frame may go on in the next chunk.
        let done = if at + chunk.len() as u64 >= range.end || end == 0 {
            chunk.len()
        } else {
            end
        };
        freed += free_range(&file, at, begin..done)?;
        if done == 0 {
            break;
        }
        at += done as u64;
    }
    Ok(freed)
}

/// Frees a range of bytes behind a position.
fn free_range(file: &File, at: u64, range: Range<usize>) -> Result<u64> {
    if range.is_empty() {
        return Ok(0);
    }
    punch(file, at + range.start as u64, range.len() as u64)?;
    Ok(range.len() as u64)
}

/// Names of the shards in a directory. Links and pipes are none.
fn shards(directory: &Path) -> Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name: OsString = entry.file_name();
        if Path::new(&name).extension() == Some(OsStr::new(EXTENSION)) && entry.file_type()?.is_file() {
            names.push(name.into_vec());
        }
    }
    Ok(names)
}

/// Reads at most `size` bytes of a file.
fn read_at(file: &File, from: u64, size: usize) -> Result<Vec<u8>> {
    let left = file.metadata()?.size().saturating_sub(from);
    let mut bytes = vec![0; size.min(usize::try_from(left).unwrap_or(size))];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], from + length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Where the first block that was not freed begins, at `from` or behind it; `None` if there is none. Weeks of a service
/// are files of which all but a few blocks were freed.
fn next_data(file: &File, from: u64) -> Option<u64> {
    let from = libc::off_t::try_from(from).ok()?;
    // SAFETY: plain numbers, and a descriptor that lives as long as the file. Reads do not use its position.
    let found = unsafe { libc::lseek(file.as_raw_fd(), from, libc::SEEK_DATA) };
    match (found, Error::last_os_error().raw_os_error()) {
        (0.., _) => u64::try_from(found).ok(),
        (_, Some(libc::ENXIO)) => None,
        // The file system does not know.
        _ => u64::try_from(from).ok(),
    }
}

/// Frees blocks. What lies in them reads as zeros; the file's length remains, because its writer appends.
fn punch(file: &File, at: u64, bytes: u64) -> Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let number = |value: u64| libc::off_t::try_from(value).map_err(Error::other);
    let (at, bytes) = (number(at)?, number(bytes)?);
    loop {
        // SAFETY: plain numbers, and a descriptor that lives as long as the file.
        if unsafe { libc::fallocate(file.as_raw_fd(), mode, at, bytes) } == 0 {
            return Ok(());
        }
        let error = Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
