//! What can be wrong with a folder of tables, with advice.

use parquet::errors::ParquetError;
use pleach_profile::merge::MergeError;
use std::io;
use std::path::{Path, PathBuf};

/// Why tables could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// A file is not Parquet, or damaged.
    #[error("{path}: damaged, or not a Parquet file ({source}): export its profile again, or remove it")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ParquetError,
    },
    /// The directory holds something else.
    #[error(
        "{path}: not a directory of pleach tables: it has no {missing}, which `pleach export --format parquet` makes"
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The table that is missing.
        missing: &'static str,
    },
    /// A table has no such column, or one of another type.
    #[error("{path}: column {column} is missing or has another type: not the table `{table}` of pleach")]
    Column {
        /// The file.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
    },
    /// Tables of another version.
    #[error("{path}: tables of version {found}, but this pleach reads version {expected}: export the profiles again")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// This build's version.
        expected: i64,
    },
    /// A value that no profile has.
    #[error("{path}: table {table}: {what}: export the profile again")]
    Content {
        /// The folder or file.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// What is wrong.
        what: String,
    },
    /// A run is there twice, or only a part of it.
    #[error("{path}: run {run}: {what}")]
    Run {
        /// The folder or file.
        path: PathBuf,
        /// The run.
        run: String,
        /// What is wrong, and what to do.
        what: &'static str,
    },
    /// The runs do not fit each other.
    #[error(transparent)]
    Merge(#[from] MergeError),
}

impl FleetError {
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            path: path.into(),
            action,
            source,
        }
    }

    pub(crate) fn parquet(path: &Path) -> impl FnOnce(ParquetError) -> Self {
        move |source| Self::Parquet {
            path: path.into(),
            source,
        }
    }
}
