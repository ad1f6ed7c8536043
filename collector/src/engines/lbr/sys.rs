//! The system calls of perf events.

#![allow(unsafe_code, reason = "system calls")]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const ENABLE: u64 = 0x2400;
const DISABLE: u64 = 0x2401;
const REFRESH: u64 = 0x2402;
const SET_OUTPUT: u64 = 0x2405;
/// Request numbers, the same on all 64-bit machines except MIPS, PowerPC and SPARC.
const PERIOD: u64 = 0x4008_2404;
const ID: u64 = 0x8008_2407;
const CLOSE_ON_EXEC: u64 = 8;

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// An event. All calls return the kernel's error number if they fail.
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    /// Opens an event on a process (0: the calling thread) and a processor (−1: any).
    pub fn open(attr: &[u8], pid: u32, cpu: i32) -> Result<Self, i32> {
        // SAFETY: the kernel only reads the attribute, which contains its size.
        let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), pid, cpu, -1, CLOSE_ON_EXEC) };
        if fd < 0 {
            return Err(errno());
        }
        // SAFETY: a new descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
    }

    /// Its descriptor.
    pub fn fd(&self) -> i32 {
        self.0.as_raw_fd()
    }

    fn control(&self, request: u64, argument: u64) -> Result<(), i32> {
        // SAFETY: the requests used here take numbers, or pointers that their callers have made.
        match unsafe { libc::ioctl(self.fd(), request as _, argument) } {
            -1 => Err(errno()),
            _ => Ok(()),
        }
    }

    /// Starts or stops it, in all threads.
    pub fn run(&self, on: bool) -> Result<(), i32> {
        self.control(if on { ENABLE } else { DISABLE }, 0)
    }

    /// Makes it send signals to the calling thread.
    pub fn signal(&self, signal: i32) -> Result<(), i32> {
        const SET_SIGNAL: i32 = 10;
        const SET_OWNER: i32 = 15;
        // SAFETY: the owner lives here; `F_OWNER_TID` is 0.
        let is_set = unsafe {
            let owner = [0, libc::syscall(libc::SYS_gettid) as i32];
            libc::fcntl(self.fd(), SET_OWNER, owner.as_ptr()) == 0
                && libc::fcntl(self.fd(), SET_SIGNAL, signal) == 0
                && libc::fcntl(self.fd(), libc::F_SETFL, libc::O_RDWR | libc::O_ASYNC) == 0
        };
        if is_set { Ok(()) } else { Err(errno()) }
    }

    /// Starts it until it has overflowed once.
    pub fn once(&self) -> Result<(), i32> {
        self.control(REFRESH, 1)
    }

    /// Sets the period for one thread, usually the one that it was opened on, and for later threads and processes.
    pub fn set_period(&self, period: u64) -> Result<(), i32> {
        self.control(PERIOD, (&raw const period) as u64)
    }

    /// Redirects its records to another event's buffer.
    pub fn set_output(&self, to: &Self) -> Result<(), i32> {
        self.control(SET_OUTPUT, to.fd() as u64)
    }

    /// The id by which records identify it.
    pub fn id(&self) -> Result<u64, i32> {
        let mut id = 0u64;
        self.control(ID, (&raw mut id) as u64).map(|()| id)
    }

    /// Its count, of all threads and processes together.
    pub fn count(&self) -> Result<u64, i32> {
        let mut count = 0u64;
        // SAFETY: the buffer has 8 bytes.
        match unsafe { libc::read(self.fd(), (&raw mut count).cast(), 8) } {
            8 => Ok(count),
            _ => Err(errno()),
        }
    }
}

/// Whether the kernel grants an event to the calling thread.
pub fn try_open(attr: &[u8], cpu: i32) -> Result<(), i32> {
    Event::open(attr, 0, cpu).map(drop)
}

/// Bytes of a page.
pub fn page_size() -> usize {
    // SAFETY: no pointers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// CPU time of the calling thread in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives here.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A descriptor that becomes readable when a process ends; `None` on kernels before 5.3, which have no pidfds.
pub fn process_end(pid: u32) -> Option<OwnedFd> {
    // SAFETY: plain numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: a new descriptor.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
