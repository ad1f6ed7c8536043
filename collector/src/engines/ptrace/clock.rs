//! CPU clocks of other processes, and ticks when they have advanced.

#![allow(unsafe_code, reason = "system calls")]

use super::tracer::gone;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The CPU clock of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuClock(libc::clockid_t);

impl CpuClock {
    pub(super) fn of(process: u32) -> Self {
        /// What the kernel schedules by, of all threads together.
        const SCHEDULED: libc::clockid_t = 2;
        Self((!process as libc::clockid_t) << 3 | SCHEDULED)
    }

    /// CPU time of the process in nanoseconds; `None`: it has ended.
    pub(super) fn now(self) -> Option<u64> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the time lives here.
        let result = unsafe { libc::clock_gettime(self.0, &mut time) };
        (result == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
}

/// Receives the ticks of all timers. The signal of the ticks stays blocked in the thread that made it: timers may outlive
/// this.
#[derive(Debug)]
pub(super) struct Ticks {
    signal: i32,
    received: OwnedFd,
}

impl Ticks {
    pub(super) fn new() -> Result<Self, Error> {
        let signal = libc::SIGRTMIN() + 5;
        // SAFETY: all zeroes is valid for the set, which the calls fill; the descriptor is a new one.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, signal);
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(Error::last_os_error());
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            Ok(Self {
                signal,
                received: OwnedFd::from_raw_fd(fd),
            })
        }
    }

    /// Readable when a tick has come.
    pub(super) fn descriptor(&self) -> i32 {
        self.received.as_raw_fd()
    }

    /// The number of a timer that has ticked.
    pub(super) fn next(&self) -> Option<u32> {
        // SAFETY: all zeroes is valid for this plain structure, which the kernel fills.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of::<libc::signalfd_siginfo>();
            let read = libc::read(self.descriptor(), (&raw mut info).cast(), size);
            (read == size as isize).then_some(info.ssi_int as u32)
        }
    }

    /// A timer of another process, not yet armed; its ticks have a number.
    ///
    /// # Errors
    /// The process has ended (`ESRCH`), or the kernel has no more timers.
    pub(super) fn timer(&self, clock: CpuClock, number: u32) -> Result<CpuTimer, Error> {
        let mut id: i32 = 0;
        // SAFETY: all zeroes is valid for the event; both it and the id live here.
        let result = unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = self.signal;
            event.sigev_notify_thread_id = libc::gettid();
            event.sigev_value.sival_ptr = number as usize as *mut libc::c_void;
            libc::syscall(libc::SYS_timer_create, clock.0, &raw mut event, &raw mut id)
        };
        if result == 0 {
            return Ok(CpuTimer(id));
        }
        let error = Error::last_os_error();
        // Of a process that has just ended, the kernel says that there is no such clock.
        Err(if clock.now().is_none() { gone() } else { error })
    }
}

/// A timer on another process's CPU clock. The kernel lets it tick at its own rate, which is 100 to 1000 Hz.
#[derive(Debug)]
pub(super) struct CpuTimer(i32);

impl CpuTimer {
    /// Arms it to tick once, after `ns` of CPU time.
    pub(super) fn arm(&self, ns: u64) {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let time = libc::itimerspec {
            it_interval: zero,
            it_value: libc::timespec {
                tv_sec: (ns / 1_000_000_000) as i64,
                tv_nsec: (ns % 1_000_000_000).max(1) as i64,
            },
        };
        // SAFETY: our timer; the time lives here.
        unsafe { libc::syscall(libc::SYS_timer_settime, self.0, 0, &raw const time, 0) };
    }
}

impl Drop for CpuTimer {
    fn drop(&mut self) {
        // SAFETY: our timer.
        unsafe { libc::syscall(libc::SYS_timer_delete, self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn another_process_ticks_when_it_has_used_cpu_time() {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let ticks = Ticks::new().unwrap();
        let clock = CpuClock::of(child.id());
        let timer = ticks.timer(clock, 7).unwrap();
        let begin = clock.now().unwrap();
        timer.arm(20_000_000);
        let limit = Instant::now() + Duration::from_secs(20);
        let tick = loop {
            match ticks.next() {
                None if Instant::now() < limit => std::thread::sleep(Duration::from_millis(1)),
                tick => break tick,
            }
        };
        assert_eq!(tick, Some(7));
        assert!(clock.now().unwrap() >= begin + 20_000_000);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(clock.now(), None);
        assert_eq!(ticks.timer(clock, 8).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }
}
