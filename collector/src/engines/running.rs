//! Processes that run before their recording begins.

use super::error::RecordError;
use procfs::process::{Process, Status};

/// `PF_KTHREAD` in the flags of `/proc/PID/stat`.
const IS_KERNEL_THREAD: u32 = 0x0020_0000;

/// A process that is to be recorded, found by its id.
#[derive(Debug)]
pub(super) struct FoundProcess {
    pub(super) files: Process,
    pub(super) status: Status,
}

/// Finds a process.
///
/// # Errors
/// There is none, it has ended, or it is a thread, one of the kernel's, or this process.
pub(super) fn find(process: u32) -> Result<FoundProcess, RecordError> {
    let gone = |_| RecordError::NoProcess(process);
    let unfit = |reason: &str| {
        Err(RecordError::UnfitProcess {
            process,
            reason: reason.to_owned(),
        })
    };
    let files = Process::new(process as i32).map_err(gone)?;
    let status = files.status().map_err(gone)?;
    let stat = files.stat().map_err(gone)?;
    if process == std::process::id() {
        return unfit("is the recorder");
    }
    if status.tgid as u32 != process {
        return unfit(&format!("is a thread of process {}: name that one", status.tgid));
    }
    if matches!(stat.state, 'Z' | 'X') {
        return unfit("has ended");
    }
    if stat.flags & IS_KERNEL_THREAD != 0 {
        return unfit("is a thread of the kernel");
    }
    Ok(FoundProcess { files, status })
}

/// Whether a process has ended, though its parent may not have waited for it.
pub(crate) fn has_ended(process: u32) -> bool {
    let stat = Process::new(process as i32).and_then(|files| files.stat());
    stat.map_or(true, |stat| matches!(stat.state, 'Z' | 'X'))
}
