//! Why nothing was recorded.

use super::lbr::diagnose::Refusal;
use crate::launch::LaunchError;
use crate::vector::Engine;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The command is unfit.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The engine cannot be used here.
    #[error("the engine {} cannot record a command", .0.name())]
    Engine(Engine),
    /// The kernel grants no branch records.
    #[error("no branch records: {0}")]
    Refused(#[from] Refusal),
    /// The budget is not a positive number.
    #[error("the overhead has to be a number above 0, not {0}")]
    Overhead(f64),
    /// The sampler is missing.
    #[error("the sampler {0} does not exist")]
    NoSampler(PathBuf),
    /// Directories, files or processes failed.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: String,
        /// How it failed.
        #[source]
        error: std::io::Error,
    },
    /// The program ran, but the sampler in it did not.
    #[error("{command} ran ({status}) but was not sampled: the dynamic loader did not load {preload}")]
    NotSampled {
        /// The command.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The sampler.
        preload: PathBuf,
    },
}

impl RecordError {
    /// The status to end with: that of shells where the command could not be run, 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Launch(error) => error.exit_code(),
            _ => 1,
        }
    }
}

pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> RecordError {
    let what = what.into();
    move |error| RecordError::Io { what, error }
}
