//! From the shards that sampled processes write to one set, while they write them.
//!
//! # Where long recordings are compressed
//! A process stores each burst as it is, in its shard, and the recorder compresses. The sampler could do it earlier, but
//! it works in signal handlers of a process that may be killed at any moment: what it had not written would be lost, and each of
//! many processes would need counters of its own. So with a limit on the set's size the recorder reads shards every now
//! and then, once [`UNREAD`] bytes are waiting, and gives the blocks that it has read back to the file system (a hole is punched). What
//! is bounded, however long the command runs:
//!
//! - the disk: [`UNREAD`] bytes and what is sampled in [`PAUSE`], beside a few blocks for each process;
//! - memory: see [`Store`], and [`CHUNK`] bytes;
//! - what a killed process loses: nothing but the frame that it was writing, as without a limit.
//!
//! Not bounded are the names: a few dozen bytes for each process image and each file that it maps. Where the file system cannot
//! punch holes, only the disk is not bounded ([`Gathering::unreclaimed`]). If the recorder itself is killed, the recording is lost, as without a limit.

use crate::convert::{Conversion, Found};
use crate::store::Store;
use crate::vector::VectorSet;
use pleach_wire::shard::EXTENSION;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{Error, Result};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Shards are read as soon as they hold so many bytes, or as many as the limit if that is less.
const UNREAD: u64 = 4 << 20;
/// How often it is seen how much they hold.
const PAUSE: Duration = Duration::from_millis(100);
/// How much is read at once; more than the longest frame.
const CHUNK: usize = 4 << 20;
/// Bytes in which a process has told who it is.
const HEAD: usize = 8 << 10;

/// A set while it is gathered.
#[derive(Debug)]
pub(crate) struct Gathering {
    set: VectorSet,
    store: Store,
    found: Found,
    limit: Option<u64>,
    unreclaimed: bool,
}

impl Gathering {
    /// Begins with nothing. `limit`: bytes that the set may take in a file.
    pub(crate) fn new(limit: Option<u64>, seed: u64) -> Self {
        Self {
            set: VectorSet::default(),
            store: Store::new(limit, seed),
            found: Found::default(),
            limit,
            unreclaimed: false,
        }
    }

    /// Gathers what goes to a directory while `run` runs, and what is there then. Says how many shards there were.
    pub(crate) fn run<T>(&mut self, directory: &Path, run: impl FnOnce() -> T) -> Result<(T, u64)> {
        let mut conversion = Conversion::default();
        let ended = AtomicBool::new(false);
        let result = match self.limit {
            None => run(),
            Some(limit) => std::thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    while !ended.load(Ordering::Acquire) {
                        std::thread::park_timeout(PAUSE);
                        // What cannot be read now may be read in the end; if not, that is the time to tell.
                        let _ = self.read_some(directory, limit.min(UNREAD), &mut conversion);
                    }
                });
                let result = run();
                ended.store(true, Ordering::Release);
                reader.thread().unpark();
                result
            }),
        };
        self.read(directory, true, &mut conversion)?;
        let found = conversion.finish(&mut self.set);
        let shards = found.shards;
        self.found.join(found);
        Ok((result, shards))
    }

    /// The set, what was found besides, and whether a file system kept what was given back.
    pub(crate) fn finish(mut self) -> (VectorSet, Found, bool) {
        self.store.finish(&mut self.set);
        (self.set, self.found, self.unreclaimed)
    }

    fn read_some(&mut self, directory: &Path, enough: u64, conversion: &mut Conversion) -> Result<()> {
        let read: u64 = conversion.met().iter().map(|(_, read)| read).sum();
        let mut written = 0;
        for shard in shards(directory)? {
            written += directory.join(OsStr::from_bytes(&shard)).metadata()?.size();
        }
        if written.saturating_sub(read) >= enough {
            self.read(directory, false, conversion)?;
        }
        Ok(())
    }

    /// Reads what shards hold. `all`: no more will come.
    fn read(&mut self, directory: &Path, all: bool, conversion: &mut Conversion) -> Result<()> {
        let mut heads = Vec::new();
        for name in shards(directory)? {
            if !conversion.knows(&name) {
                let file = File::open(directory.join(OsStr::from_bytes(&name)))?;
                heads.push((name, read_at(&file, 0, HEAD)?));
            }
        }
        conversion.meet(&heads, &mut self.set);
        for (name, _) in heads.iter().filter(|_| all) {
            if !conversion.knows(name) {
                conversion.refuse(directory.join(OsStr::from_bytes(name)).metadata()?.size());
            }
        }
        drop(heads);
        for (name, from) in conversion.met() {
            self.read_shard(directory, &name, from, all, conversion)?;
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
        let file = OpenOptions::new()
            .read(true)
            .write(!all)
            .open(directory.join(OsStr::from_bytes(name)))?;
        let begin = from;
        loop {
            let bytes = read_at(&file, from, CHUNK)?;
            let last = all && bytes.len() < CHUNK;
            let done = conversion.take(name, &bytes, last, &mut self.set, &mut self.store);
            from += done as u64;
            if last || bytes.len() < CHUNK {
                break;
            }
        }
        if !all && from > begin && !give_back(&file, from) {
            self.unreclaimed = true;
        }
        Ok(())
    }
}

/// Names of the shards in a directory.
fn shards(directory: &Path) -> Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name: OsString = entry?.file_name();
        if Path::new(&name).extension() == Some(OsStr::new(EXTENSION)) {
            names.push(name.into_vec());
        }
    }
    Ok(names)
}

/// Up to so many bytes of a file.
fn read_at(file: &File, from: u64, most: usize) -> Result<Vec<u8>> {
    let left = file.metadata()?.size().saturating_sub(from);
    let mut bytes = vec![0; most.min(usize::try_from(left).unwrap_or(most))];
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

/// Frees the blocks of what was read. The file's length stays: its writer appends.
fn give_back(file: &File, bytes: u64) -> bool {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let bytes = libc::off_t::try_from(bytes).unwrap_or(0);
    loop {
        // SAFETY: plain numbers, and a descriptor that lives as long as the file.
        if bytes == 0 || unsafe { libc::fallocate(file.as_raw_fd(), mode, 0, bytes) } == 0 {
            return true;
        }
        if Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return false;
        }
    }
}
