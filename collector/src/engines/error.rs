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
    /// The command cannot be run or sampled.
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
    /// The user interrupted before the sampler in the command began.
    #[error("interrupted before anything was recorded (signal {0})")]
    Interrupted(i32),
    /// Directories, files or processes failed.
    #[error("{what}: {error}{}", remedy(error))]
    Io {
        /// The operation that failed.
        what: String,
        /// The error of the operating system.
        #[source]
        error: std::io::Error,
    },
    /// A process to be recorded does not exist.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// The kernel does not let a process be traced.
    #[error(
        "process {process} cannot be traced: {error}. Root may trace it, unless a container or a security module forbids that, or `sudo sysctl kernel.yama.ptrace_scope=0` allows \
         it for processes of the same user"
    )]
    Untraceable {
        /// The process.
        process: u32,
        /// The error of the operating system.
        #[source]
        error: std::io::Error,
    },
    /// A process cannot be sampled.
    #[error("process {process} {reason}")]
    UnfitProcess {
        /// The process.
        process: u32,
        /// Why.
        reason: String,
    },
    /// A folder for a recording without a recorder has one.
    #[error("{} has a recording already: delete it, or choose another directory", .0.display())]
    Begun(PathBuf),
    /// Another collection takes samples out of a folder.
    #[error("another `pleach collect` is reading {}: try again when it has ended", .0.display())]
    Collected(PathBuf),
    /// A folder has no recording.
    #[error("{} is not the directory of a recording: `pleach record --env` makes one", .0.display())]
    NoRecording(PathBuf),
    /// The program ran, but the sampler in it did not.
    #[error(
        "{command} ran ({status}) but was not sampled: the dynamic loader did not load {preload}, or it ran in valgrind"
    )]
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
    /// The exit status of the recorder: as that of shells if the command cannot be run or a signal ended it, otherwise
    /// 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Launch(error) => error.exit_code(),
            Self::Interrupted(signal) => (128 + signal) as u8,
            _ => 1,
        }
    }
}

/// What to do about a full file system: what is recorded is first in temporary files.
fn remedy(error: &std::io::Error) -> String {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    if matches!(error.kind(), StorageFull | QuotaExceeded) {
        let folder = std::env::temp_dir();
        format!(
            " (temporary files are in {}: set TMPDIR to a directory with more space)",
            folder.display()
        )
    } else {
        String::new()
    }
}

pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> RecordError {
    let what = what.into();
    move |error| RecordError::Io { what, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_system_has_a_remedy() {
        let text = |code| io("cannot make a temporary file")(std::io::Error::from_raw_os_error(code)).to_string();
        assert!(
            text(libc::ENOSPC).contains("set TMPDIR to a directory with more space"),
            "{}",
            text(libc::ENOSPC)
        );
        assert!(!text(libc::EACCES).contains("TMPDIR"), "{}", text(libc::EACCES));
    }
}
