//! The recorder's side of the account that the processes of a run share ([`pleach_wire::account`]).

#![allow(unsafe_code, reason = "the account is mapped")]

use crate::stats::{Confined, Unsampled};
use crate::sys::open_regular;
use pleach_wire::account::{Account, FILE, SIZE, Totals, time};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Result, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The account of a run. It continues that of the previous run.
#[derive(Debug)]
pub(crate) struct RunAccount {
    page: memmap2::Mmap,
    /// Process images that had begun before the run.
    begun_before: u64,
    /// Figures of unsampled processes before the run.
    unsampled_before: Unsampled,
}

impl RunAccount {
    /// Makes the page in the directory of the shards. `before`: the previous run, whose learned costs are kept.
    ///
    /// # Errors
    /// The file cannot be made or mapped.
    pub(crate) fn begin(directory: &Path, before: Option<&Self>) -> Result<Self> {
        let path = directory.join(OsStr::from_bytes(FILE.to_bytes()));
        let mut file: File = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        match before {
            Some(before) => file.write_all(&before.page)?,
            None => file.write_all(&Account::new_page())?,
        }
        // SAFETY: the file is ours and does not shrink; processes change it only by atomic operations, as we read it.
        let page = unsafe { memmap2::Mmap::map(&file)? };
        let mut this = Self {
            page,
            begun_before: 0,
            unsampled_before: Unsampled::default(),
        };
        (this.begun_before, this.unsampled_before) = (this.account().started.load(Relaxed), this.reported());
        Ok(this)
    }

    /// A copy of the page of a recording that another process began.
    ///
    /// # Errors
    /// The file cannot be read, or is none.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let mut page = memmap2::MmapMut::map_anon(SIZE)?;
        open_regular(directory, FILE.to_bytes(), false)?.read_exact(&mut page)?;
        let this = Self {
            page: page.make_read_only()?,
            begun_before: 0,
            unsampled_before: Unsampled::default(),
        };
        if this.account().is_valid() {
            Ok(this)
        } else {
            Err(std::io::Error::other("another version of pleach made it"))
        }
    }

    /// Subtracts bytes of shards that were freed from those that count towards the limit of a recording that another
    /// process began.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub(crate) fn subtract_written(directory: &Path, bytes: u64) -> Result<()> {
        let file = open_regular(directory, FILE.to_bytes(), true)?;
        if file.metadata()?.len() < SIZE as u64 {
            return Err(std::io::Error::other("the account of the recording is damaged"));
        }
        // SAFETY: the file does not shrink; processes change it only by atomic operations, as we do.
        let page = unsafe { memmap2::MmapOptions::new().len(SIZE).map_mut(&file)? };
        // SAFETY: the page is large enough and aligned; any value is valid.
        let account = unsafe { &*page.as_ptr().cast::<Account>() };
        let less = |written: u64| Some(written.saturating_sub(bytes));
        account
            .written
            .fetch_update(Relaxed, Relaxed, less)
            .map(drop)
            .or(Ok(()))
    }

    /// Figures that unsampled processes reported after `before`.
    pub(crate) fn unsampled_since(&self, before: Unsampled) -> Unsampled {
        self.reported().without(before)
    }

    fn account(&self) -> &Account {
        // SAFETY: the page is large enough, aligned, and lives as long as `self`; any value is valid.
        unsafe { &*self.page.as_ptr().cast::<Account>() }
    }

    /// Whether the sampler was loaded into any process of the run.
    pub(crate) fn has_begun(&self) -> bool {
        self.account().started.load(Relaxed) != self.begun_before
    }

    /// Whether some process may have loaded libraries without their being observed.
    pub(crate) fn may_load_unobserved(&self) -> bool {
        self.account().may_load_unobserved.load(Relaxed) > 0
    }

    /// Whether the dynamic loader could not be watched in some process.
    pub(crate) fn is_loader_not_watched(&self) -> bool {
        self.account().loader_not_watched.load(Relaxed) > 0
    }

    /// Bursts and other frames that could not be written.
    pub(crate) fn unwritten(&self) -> u64 {
        self.account().unwritten.load(Relaxed)
    }

    /// Whether it is unknown which modules some process had.
    pub(crate) fn has_unknown_modules(&self) -> bool {
        self.account().modules_unknown.load(Relaxed) > 0
    }

    /// Signatures of modules, with the number of processes of all runs that had them without breakpoints and without the
    /// sampler.
    pub(crate) fn unobserved(&self) -> Vec<(u64, u64)> {
        self.account().unobserved().collect()
    }

    /// Processes in valgrind.
    pub(crate) fn in_valgrind(&self) -> u64 {
        self.account().in_valgrind.load(Relaxed)
    }

    /// The processes that confined themselves.
    pub(crate) fn confined(&self) -> Option<Confined> {
        let (process, name) = self.account().first_confined()?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(Confined {
            process,
            name: String::from_utf8_lossy(name).into_owned(),
            processes: self.account().confined.load(Relaxed),
        })
    }

    /// CPU time that all runs have used so far.
    pub(crate) fn totals(&self) -> Totals {
        self.account().totals()
    }

    /// Figures that the unsampled processes of this run have reported so far.
    pub(crate) fn unsampled(&self) -> Unsampled {
        self.reported().without(self.unsampled_before)
    }

    /// Figures that unsampled processes of all runs have reported so far.
    fn reported(&self) -> Unsampled {
        let account = self.account();
        let count = |word: &AtomicU64| word.load(Relaxed).min(u32::MAX.into());
        let (cpu, own) = (time(&account.unsampled_cpu_ns), time(&account.unsampled_own_ns));
        Unsampled {
            processes: count(&account.unsampled),
            program_cpu_seconds: cpu.saturating_sub(own) as f64 * 1e-9,
            own_cpu_seconds: own as f64 * 1e-9,
            threads: count(&account.threads),
            unsampled_threads: count(&account.threads_without_tick),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_account_is_empty() {
        let directory = tempfile::tempdir().unwrap();
        let account = RunAccount::begin(directory.path(), None).unwrap();
        assert_eq!(account.unsampled(), Unsampled::default());
        assert!(account.unsampled().as_process().is_none());
        assert!(!account.has_begun());
        assert!(
            RunAccount::begin(directory.path(), None).is_err(),
            "it is there already"
        );
    }

    #[test]
    fn the_next_run_goes_on() {
        let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let first = RunAccount::begin(directories[0].path(), None).unwrap();
        let path = directories[0].path().join(OsStr::from_bytes(FILE.to_bytes()));
        let mut reported = Account::default();
        *reported.started.get_mut() = 7;
        *reported.unsampled.get_mut() = 5;
        reported.learn_burst(90_000);
        // SAFETY: all of it is atomic numbers.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const reported).cast::<u8>(), size_of::<Account>()) };
        OpenOptions::new()
            .write(true)
            .open(path)
            .unwrap()
            .write_all(bytes)
            .unwrap();
        assert!(first.has_begun());
        assert_eq!(first.unsampled().processes, 5);
        let second = RunAccount::begin(directories[1].path(), Some(&first)).unwrap();
        assert!(!second.has_begun());
        assert_eq!(second.unsampled(), Unsampled::default());
        assert_eq!(second.account().burst_cost(), Some(90_000.0));
    }
}
