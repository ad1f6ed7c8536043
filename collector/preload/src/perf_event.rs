//! Perf events of the calling thread that send it the tick's signal.

use crate::sys::{self, syscall};
use crate::{descriptors, owned_signals};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};

/// Minimum capacity of the program's signal queue for the use of events.
pub const MIN_QUEUED_SIGNALS: u64 = 256;
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

const ENABLE: u32 = 0x2400;
const DISABLE: u32 = 0x2401;
const REFRESH: u32 = 0x2402;
const PERIOD: u32 = 0x4008_2404;
const ID: u32 = 0x8008_2407;
const MODIFY: u32 = 0x4008_240b;

/// An event: its descriptor and the kernel's id for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    fd: i32,
    id: u64,
}

/// An event that other threads may read. The two halves may be of different events: every request compares the
/// kernel's id.
#[derive(Debug)]
pub struct AtomicEvent {
    /// The descriptor plus one; 0: there is none.
    fd: AtomicI32,
    id: AtomicU64,
}

impl AtomicEvent {
    /// Replaces the event.
    pub fn store(&self, event: Option<Event>) {
        self.id.store(event.map_or(0, |event| event.id), Relaxed);
        self.fd.store(event.map_or(0, |event| event.fd + 1), Relaxed);
    }

    /// The event, if there is one.
    pub fn load(&self) -> Option<Event> {
        let fd = self.fd.load(Relaxed).checked_sub(1).filter(|fd| *fd >= 0)?;
        let id = self.id.load(Relaxed);
        Some(Event { fd, id })
    }
}

/// The part of `struct perf_event_attr` that its second version had.
#[repr(C)]
#[derive(Default)]
pub struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
    breakpoint_length: u64,
}

impl Attributes {
    /// The thread's CPU time, disabled.
    pub fn task_clock() -> Self {
        const SOFTWARE: u32 = 1;
        const TASK_CLOCK: u64 = 1;
        Self {
            kind: SOFTWARE,
            config: TASK_CLOCK,
            sample_period: 1_000_000_000,
            ..Self::in_user_mode()
        }
    }

    /// Execution of an instruction, disabled; a signal after each `period` executions.
    pub fn breakpoint(address: u64, period: u64) -> Self {
        const BREAKPOINT: u32 = 5;
        const EXECUTE: u32 = 4;
        Self {
            kind: BREAKPOINT,
            sample_period: period,
            breakpoint_type: EXECUTE,
            breakpoint_address: address,
            breakpoint_length: size_of::<usize>() as u64,
            ..Self::in_user_mode()
        }
    }

    fn in_user_mode() -> Self {
        const DISABLED: u64 = 1;
        const EXCLUDE_KERNEL: u64 = 1 << 5;
        const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
        Self {
            size: size_of::<Self>() as u32,
            flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            wakeup_events: 1,
            ..Self::default()
        }
    }
}

/// Forbids arming events from now on.
pub fn forbid() {
    FORBIDDEN.store(true, Relaxed);
}

/// Whether [`forbid`] was called.
pub fn are_forbidden() -> bool {
    FORBIDDEN.load(Relaxed)
}

impl Event {
    /// Opens one. Call with signals blocked.
    pub fn open(attributes: &Attributes) -> Option<Self> {
        if are_forbidden() {
            return None;
        }
        // The event's signal needs a queue entry; without one it would arrive as a fatal SIGIO.
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        let none = core::ptr::null::<libc::rlimit>();
        // SAFETY: Kernel: `limit` lives here.
        unsafe { syscall!(libc::SYS_prlimit64, 0, libc::RLIMIT_SIGPENDING, none, &raw mut limit) };
        if limit.rlim_cur < MIN_QUEUED_SIGNALS {
            return None;
        }
        const CLOSE_ON_EXEC: usize = 8;
        // SAFETY: Kernel: the attributes are readable.
        let fd = unsafe {
            syscall!(
                libc::SYS_perf_event_open,
                attributes as *const Attributes,
                0,
                -1isize,
                -1isize,
                CLOSE_ON_EXEC
            )
        };
        let fd = descriptors::move_up(fd as i32)?;
        let owner = [0, sys::thread_id()]; // F_OWNER_TID
        let mut id = 0u64;
        // SAFETY: Kernel: our descriptor; the structures live here.
        let set_up = unsafe {
            syscall!(libc::SYS_fcntl, fd, 15, owner.as_ptr()) == 0 // F_SETOWN_EX
                && syscall!(libc::SYS_fcntl, fd, 10, owned_signals::tick_signal()) == 0 // F_SETSIG
                && syscall!(libc::SYS_fcntl, fd, libc::F_SETFL, libc::O_RDWR | libc::O_ASYNC) == 0
                && syscall!(libc::SYS_ioctl, fd, ID, &raw mut id) == 0
        };
        if !set_up {
            descriptors::drop_ours(fd);
            return None;
        }
        Some(Self { fd, id })
    }

    /// Whether the descriptor still is this event: the program may have closed it.
    fn is_open(self) -> bool {
        let mut now = 0u64;
        // SAFETY: Kernel: `now` lives here; other files refuse the request.
        unsafe { syscall!(libc::SYS_ioctl, self.fd, ID, &raw mut now) == 0 && now == self.id }
    }

    /// Makes a request. A descriptor of any other file refuses all requests of this module.
    fn control(self, request: u32, argument: usize) -> bool {
        // SAFETY: Kernel: callers pass numbers, or pointers to what lives there.
        unsafe { syscall!(libc::SYS_ioctl, self.fd, request, argument) == 0 }
    }

    /// Closes it.
    pub fn close(self) {
        if self.is_open() {
            descriptors::drop_ours(self.fd);
        }
    }

    /// Stops it.
    pub fn disable(self) {
        if self.is_open() {
            self.control(DISABLE, 0);
        }
    }

    /// Arms it to overflow once, after `period` events.
    pub fn arm_once(self, period: u64) {
        self.control(PERIOD, &raw const period as usize);
        self.control(REFRESH, 1);
    }

    /// Moves a disabled breakpoint to an address, and arms it to overflow after each `period` passes until it is
    /// disabled.
    pub fn arm_at(self, address: u64, period: u64) -> bool {
        // The kernel requires all fields except the address to be unchanged, including the period.
        let attributes = Attributes::breakpoint(address, period);
        self.control(PERIOD, &raw const period as usize)
            && self.control(MODIFY, &raw const attributes as usize)
            && self.control(ENABLE, 0)
    }

    /// Its count since it was opened; `None` if the program closed it.
    pub fn count(self) -> Option<u64> {
        // Reading another file would consume the program's data.
        if !self.is_open() {
            return None;
        }
        let mut count = 0u64;
        // SAFETY: Kernel: `count` has eight bytes.
        let read = unsafe { syscall!(libc::SYS_read, self.fd, &raw mut count, 8) };
        (read == 8).then_some(count)
    }

    /// Whether it sent a signal.
    pub fn sent(self, info: &libc::siginfo_t) -> bool {
        sender(info) == Some(self.fd)
    }
}

/// The descriptor that sent a signal, if one did.
pub fn sender(info: &libc::siginfo_t) -> Option<i32> {
    // struct { int si_signo, si_errno, si_code, pad; long si_band; int si_fd; }
    // SAFETY: within the structure's 128 bytes; a code of POLL_… comes with a descriptor.
    (1..=6)
        .contains(&info.si_code)
        .then(|| unsafe { (info as *const libc::siginfo_t).cast::<i32>().add(6).read() })
}
