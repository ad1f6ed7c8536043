//! Clocks of the recorder.

#![allow(unsafe_code, reason = "system calls")]

/// `CLOCK_MONOTONIC` in nanoseconds, the clock that all bursts use.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives here.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
