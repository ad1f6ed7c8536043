//! Waits until no handler runs, before the program confines itself: a seccomp filter may kill it for our system calls,
//! and each handler makes at least the one that returns from it.

use crate::owned_signals::tick_signal;
use crate::sys::{self, SignalsBlocked, syscall};
use crate::thread::Thread;
use crate::{threads, tick};
use core::sync::atomic::Ordering::Relaxed;

/// Maximum wait. Ticks may also be blocked because a thread is in a handler of the program.
const MAX_WAIT_NS: u64 = 50_000_000;
/// Polling interval.
const POLL_NS: i64 = 200_000;

/// Waits until no other thread is in a handler of ours, and none can enter one. Call when ticks are not armed any more.
pub fn all_threads() {
    let deadline = sys::now_ns() + MAX_WAIT_NS;
    // A burst that was running armed the next tick at its end, so sources are disarmed after the wait.
    wait(deadline);
    let blocked = SignalsBlocked::new();
    threads::for_all(|thread| {
        tick::disable(thread.published.tick_source());
        thread.published.disable_timing();
        true
    });
    // Signals that arrived meanwhile are handled now.
    drop(blocked);
    wait(deadline);
}

fn wait(deadline: u64) {
    let own = sys::thread_id();
    let is_idle = |thread: &Thread| thread.id.load(Relaxed) == own || is_idle(thread);
    while !threads::for_all(is_idle) && sys::now_ns() < deadline {
        let pause = libc::timespec {
            tv_sec: 0,
            tv_nsec: POLL_NS,
        };
        // SAFETY: Kernel: the time lives here.
        unsafe { syscall!(libc::SYS_nanosleep, &raw const pause, 0) };
    }
}

/// Whether a thread is in no handler of ours (all signals would be blocked), has no pending tick, and is not stepped.
fn is_idle(thread: &Thread) -> bool {
    let mut path = [0u8; 48];
    let mut digits = [0u8; 20];
    let id = sys::decimal(thread.id.load(Relaxed) as u64, &mut digits);
    let mut length = 0;
    for part in [&b"/proc/self/task/"[..], id, b"/status\0"] {
        if let Some(target) = path.get_mut(length..length + part.len()) {
            target.copy_from_slice(part);
        }
        length += part.len();
    }
    let Ok(path) = core::ffi::CStr::from_bytes_until_nul(&path) else {
        return true;
    };
    let mut buffer = [0u8; 4096];
    let status = sys::read_file(path, &mut buffer);
    let set = |name: &[u8]| {
        let mut lines = status.split(|byte| *byte == b'\n');
        let hex = lines.find_map(|line| line.strip_prefix(name)).unwrap_or(b"0");
        core::str::from_utf8(hex).map_or(0, |hex| u64::from_str_radix(hex.trim(), 16).unwrap_or(0))
    };
    let ours = sys::bit(tick_signal());
    (set(b"SigPnd:") | set(b"SigBlk:")) & ours == 0 && !thread.published.is_stepping()
}
