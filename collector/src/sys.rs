//! Clocks and files of the recorder.

#![allow(unsafe_code, reason = "system calls")]

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// `CLOCK_MONOTONIC` in nanoseconds, the clock that all bursts use.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives here.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Opens a file of a folder that another user may write to: a link, which could lead anywhere, and a pipe, which could
/// block, are refused.
///
/// # Errors
/// It cannot be opened, or is no regular file of that folder.
pub(crate) fn open_regular(folder: &Path, name: &[u8], writes: bool) -> Result<File> {
    let refused = |why: &str| {
        Error::new(
            ErrorKind::InvalidInput,
            format!("{} {why}", OsStr::from_bytes(name).display()),
        )
    };
    if name.contains(&b'/') {
        return Err(refused("is outside of the folder"));
    }
    let file = OpenOptions::new()
        .read(true)
        .write(writes)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(folder.join(OsStr::from_bytes(name)))
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => refused("is a link"),
            _ => error,
        })?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(refused("is no regular file")),
    }
}
