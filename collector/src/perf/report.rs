//! Warnings and statistics of an import, and its errors.

pub use super::Format;
use std::fmt;
use std::path::PathBuf;

/// The reason for which a recording cannot be imported, or vectors cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerfError {
    /// Reading or writing failed.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// How it failed.
        #[source]
        error: std::io::Error,
    },
    /// The file is neither perf.data nor text of `perf script`.
    #[error(
        "{path} is neither a perf.data file nor `perf script` text with branch stacks: record with `perf record -b`"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was made on a big-endian machine.
    #[error(
        "{path} was recorded on a big-endian machine: convert it there with `perf script -F ip,brstack --show-mmap-events`"
    )]
    ByteOrder {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged from its beginning.
    #[error("{path} is damaged and nothing of it can be read: {damage}; copy it again, or record again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        damage: Damage,
    },
    /// No event has branches.
    #[error("{path} was recorded without branch stacks: record with `perf record -b`")]
    NoBranches {
        /// The file.
        path: PathBuf,
    },
    /// Hardware left branches out.
    #[error(
        "{path} has only branches of the kind {filter}, so that what ran between them is not known: record with `perf record -b`"
    )]
    Filtered {
        /// The file.
        path: PathBuf,
        /// The name of the filter.
        filter: &'static str,
    },
}

/// A defect of a file, and its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Offset in the file, or number of the line from 1 on in a text.
    pub at: u64,
    /// The defect.
    pub what: String,
    /// The format, which determines the unit of `at`.
    pub format: Format,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.format {
            Format::PerfData => write!(f, "{} at byte {}", self.what, self.at),
            Format::PerfScript => write!(f, "{} in line {}", self.what, self.at),
        }
    }
}

/// Figures of an import.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Samples read.
    pub samples: u64,
    /// Samples that became a burst.
    pub vectors: u64,
    /// Their branches.
    pub branches: u64,
    /// Samples without any branch.
    pub without_branches: u64,
    /// Newest branches that the hardware had recorded twice.
    pub duplicates: u64,
    /// Branches that were fetched but not executed.
    pub wrong_path: u64,
    /// Entries that the hardware left empty.
    pub empty_entries: u64,
    /// Samples that the kernel lost.
    pub lost: u64,
    /// Number of times that the kernel throttled an event, because it was too frequent.
    pub throttled: u64,
    /// Malformed samples and entries, which are left out.
    pub malformed: u64,
    /// The first of them.
    pub first_malformed: Option<Damage>,
    /// The damage that ended the reading early, or made parts unreadable.
    pub damage: Option<Damage>,
}

impl Report {
    /// Counts a malformed record.
    pub(super) fn malformed(&mut self, at: u64, format: Format, what: &str) {
        self.malformed += 1;
        self.first_malformed.get_or_insert_with(|| Damage {
            at,
            what: what.to_owned(),
            format,
        });
    }

    /// Records damage. Only the first damage is kept.
    pub(super) fn damaged(&mut self, at: u64, what: impl Into<String>) {
        self.damage.get_or_insert_with(|| Damage {
            at,
            what: what.into(),
            format: Format::PerfData,
        });
    }
}
