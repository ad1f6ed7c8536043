//! The recorder's side of the account that the processes of a run share ([`pleach_wire::account`]).

use crate::vector::Process;
use pleach_wire::account::{Account, FILE, time};
use std::fs::{File, OpenOptions};
use std::io::{Result, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// What the processes took that have no shard: they were not chosen for sampling, or had no burst.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Unsampled {
    /// Process images.
    pub processes: u64,
    /// CPU seconds of the program.
    pub program_cpu_seconds: f64,
    /// CPU seconds of the sampler, which had to be loaded to decide.
    pub own_cpu_seconds: f64,
    /// Threads that could have had bursts.
    pub threads: u64,
    /// Threads that could not.
    pub unsampled_threads: u64,
}

impl Unsampled {
    /// Adds those of another run.
    pub(crate) fn join(&mut self, other: Self) {
        self.processes += other.processes;
        self.program_cpu_seconds += other.program_cpu_seconds;
        self.own_cpu_seconds += other.own_cpu_seconds;
        self.threads += other.threads;
        self.unsampled_threads += other.unsampled_threads;
    }

    /// One record for all of them, `None` if there were none.
    pub(crate) fn as_process(&self) -> Option<Process> {
        (self.processes > 0).then(|| Process {
            pid: 0,
            parent: None,
            command: format!("({} processes that were not sampled)", self.processes),
            program_cpu_seconds: self.program_cpu_seconds,
            own_cpu_seconds: self.own_cpu_seconds,
            lost: 0,
            declined: 0,
            undisturbed: false,
        })
    }
}

/// The account of a run.
#[derive(Debug)]
pub(crate) struct RunAccount {
    page: memmap2::Mmap,
}

impl RunAccount {
    /// Makes the page in the directory of the shards.
    pub(crate) fn begin(directory: &Path) -> Result<Self> {
        let path = directory.join(std::ffi::OsStr::from_bytes(FILE.to_bytes()));
        let mut file: File = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        file.write_all(&Account::new_page())?;
        // SAFETY: the file is ours and does not shrink; processes change it only by atomic operations, as we read it.
        let page = unsafe { memmap2::Mmap::map(&file)? };
        Ok(Self { page })
    }

    /// What the processes of the run that were not sampled have told by now.
    pub(crate) fn unsampled(&self) -> Unsampled {
        // SAFETY: the page is large enough, aligned, and lives as long as `self`; any value is valid.
        let account = unsafe { &*self.page.as_ptr().cast::<Account>() };
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
        let account = RunAccount::begin(directory.path()).unwrap();
        assert_eq!(account.unsampled(), Unsampled::default());
        assert!(account.unsampled().as_process().is_none());
        assert!(RunAccount::begin(directory.path()).is_err(), "it is there already");
    }
}
