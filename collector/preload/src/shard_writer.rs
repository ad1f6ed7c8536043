//! The shard of this process. It is opened with the first burst. The recording's first process opens it even without a
//! burst, and so does a process without the page of the account, or one that is about to change its user.

use crate::account;
use crate::counters::{self, LOST, OWN_NS};
use crate::coverage;
use crate::descriptors;
use crate::isolation;
use crate::mappings;
use crate::process::{self, pid};
use crate::state_section::state_section;
use crate::sys::{self, SpinLock, syscall};
use crate::waiting;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};
use pleach_wire::shard::{Encoder, FrameKind};

state_section! {
    static BASE_CPU_NS: AtomicU64 = AtomicU64::new(0);
    static START_NS: AtomicU64 = AtomicU64::new(0);
    /// Guards the shard's opening, the map table and the static buffers. Take it with signals blocked.
    pub static LOCK: SpinLock = SpinLock::new();
    static NAME: Text<NAME_CAPACITY> = Text::new();
    static PARENT: Text<NAME_CAPACITY> = Text::new();
    static SHARD_FD: AtomicI32 = AtomicI32::new(-1);
    static OPENED: AtomicBool = AtomicBool::new(false);
    static MAPPED: AtomicBool = AtomicBool::new(false);
    /// Whether the name is that of the parent's shard.
    static HAS_NAME_OF_PARENT: AtomicBool = AtomicBool::new(false);
}

const DIRECTORY_CAPACITY: usize = 512;
const NAME_CAPACITY: usize = 64;

/// Fixed-size text, written under [`LOCK`] or before there are threads.
struct Text<const N: usize> {
    bytes: core::cell::UnsafeCell<[u8; N]>,
    length: AtomicU32,
}

// SAFETY: Lock.
unsafe impl<const N: usize> Sync for Text<N> {}

impl<const N: usize> Text<N> {
    const fn new() -> Self {
        Self {
            bytes: core::cell::UnsafeCell::new([0; N]),
            length: AtomicU32::new(0),
        }
    }

    fn set(&self, parts: &[&[u8]]) -> bool {
        // SAFETY: Lock.
        let bytes = unsafe { &mut *self.bytes.get() };
        let mut length = 0;
        for part in parts {
            // One byte stays for a terminating zero.
            match bytes.get_mut(length..length + part.len()) {
                Some(target) if length + part.len() < N => target.copy_from_slice(part),
                _ => return false,
            }
            length += part.len();
        }
        if let Some(end) = bytes.get_mut(length) {
            *end = 0;
        }
        self.length.store(length as u32, Release);
        true
    }

    fn get(&self) -> &[u8] {
        // SAFETY: Lock.
        let bytes = unsafe { &*self.bytes.get() };
        bytes.get(..self.length.load(Acquire) as usize).unwrap_or_default()
    }
}

static DIRECTORY: Text<DIRECTORY_CAPACITY> = Text::new();
static DIRECTORY_FD: AtomicI32 = AtomicI32::new(-1);
static SHARD_DEVICE: AtomicU64 = AtomicU64::new(0);
static SHARD_INODE: AtomicU64 = AtomicU64::new(0);

/// Starts sampling in the process, whose shard will be in `directory`.
pub fn begin(directory: &[u8]) -> bool {
    if !DIRECTORY.set(&[directory]) {
        return false;
    }
    BASE_CPU_NS.store(sys::process_cpu_ns(), Relaxed);
    START_NS.store(sys::now_ns(), Relaxed);
    process::activate();
    let path = DIRECTORY.get();
    // SAFETY: Kernel: the text ends with a zero byte.
    let fd = unsafe {
        syscall!(
            libc::SYS_openat,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::O_PATH | libc::O_CLOEXEC,
            0
        )
    };
    DIRECTORY_FD.store(descriptors::move_up(fd as i32).unwrap_or(-1), Relaxed);
    if account::needs_shard() {
        open_shard();
        return OPENED.load(Relaxed);
    }
    true
}

/// Starts over in a child made by `fork`; its shard is opened with its first frame.
#[inline(always)]
pub fn begin_child() {
    LOCK.release();
    if OPENED.load(Relaxed) {
        HAS_NAME_OF_PARENT.store(true, Relaxed);
    }
    OPENED.store(false, Relaxed);
    MAPPED.store(false, Relaxed);
    process::set_pid();
    BASE_CPU_NS.store(0, Relaxed);
    START_NS.store(0, Relaxed);
    counters::reset();
    account::begin_child();
    mappings::forget();
}

/// Makes the state that a child made by `fork` inherited its own. Nothing needs that before: the child has not opened
/// its shard.
pub fn take_over() {
    if !OPENED.load(Relaxed) {
        descriptors::drop_ours(SHARD_FD.swap(-1, Relaxed));
    }
    if HAS_NAME_OF_PARENT.swap(false, Relaxed) {
        PARENT.set(&[NAME.get()]);
    }
    if START_NS.load(Relaxed) == 0 {
        START_NS.store(sys::now_ns(), Relaxed);
    }
}

/// Opens the shard and writes what identifies the process. The caller has the lock or is alone, with signals blocked.
fn open_shard() {
    take_over();
    if OPENED.swap(true, Relaxed) {
        return;
    }
    let start = START_NS.load(Relaxed);
    let (mut a, mut b) = ([0; 20], [0; 20]);
    NAME.set(&[
        sys::decimal(pid() as u64, &mut a),
        b"-",
        sys::decimal(start, &mut b),
        b".shard",
    ]);
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_APPEND | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: Kernel: the name ends with a zero byte.
    let fd = unsafe {
        syscall!(
            libc::SYS_openat,
            DIRECTORY_FD.load(Relaxed),
            NAME.get().as_ptr(),
            flags,
            0o600
        )
    };
    let Some(fd) = descriptors::move_up(fd as i32) else {
        return;
    };
    if let Some((device, inode)) = sys::identity(fd) {
        SHARD_DEVICE.store(device, Relaxed);
        SHARD_INODE.store(inode, Relaxed);
    }
    SHARD_FD.store(fd, Relaxed);

    let mut frame = [0u8; 6 * 1024];
    let mut text = [0u8; 4096];
    let mut e = Encoder::new(&mut frame);
    e.u32(pid() as u32);
    // SAFETY: Kernel: the call has no arguments.
    e.u32(unsafe { syscall!(libc::SYS_getppid) } as u32);
    e.u64(start);
    e.u64(BASE_CPU_NS.load(Relaxed));
    e.string(PARENT.get());
    let (path, capacity) = (c"/proc/self/exe", text.len());
    // SAFETY: Kernel: the path is terminated and at most `capacity` bytes are written.
    let length = unsafe {
        syscall!(
            libc::SYS_readlinkat,
            libc::AT_FDCWD,
            path.as_ptr(),
            text.as_mut_ptr(),
            capacity
        )
    };
    e.string(text.get(..length.clamp(0, 1024) as usize).unwrap_or_default());
    let arguments = sys::read_file(c"/proc/self/cmdline", &mut text);
    e.string(arguments);
    if let Some(frame) = e.finish(FrameKind::Process) {
        write_all(frame);
    }
}

/// Writes a frame by one system call. The program may have closed our descriptor and reused its number.
fn write_all(frame: &[u8]) -> bool {
    let fd = SHARD_FD.load(Relaxed);
    if fd < 0 || sys::identity(fd) != Some((SHARD_DEVICE.load(Relaxed), SHARD_INODE.load(Relaxed))) {
        return false;
    }
    // SAFETY: Kernel: the frame is readable.
    let written = unsafe { syscall!(libc::SYS_write, fd, frame.as_ptr(), frame.len()) };
    if written == -(libc::EFBIG as isize) {
        // The limit on file sizes also sent a signal, which must not reach the program. Signals are blocked here.
        sys::drop_pending(sys::bit(libc::SIGXFSZ));
    }
    if written > 0 {
        account::note_written(written as usize);
    }
    let is_complete = written == frame.len() as isize;
    if !is_complete {
        account::note_unwritten();
    }
    is_complete
}

/// Whether the shard was opened and has mappings.
pub fn is_begun() -> bool {
    OPENED.load(Relaxed) && MAPPED.load(Relaxed)
}

/// Opens the shard ahead of its first frame, while it can be opened. Call with signals blocked.
pub fn open_early() {
    let before = sys::thread_cpu_ns();
    if LOCK.acquire(false) {
        open_shard();
        LOCK.release();
    }
    let cost = sys::thread_cpu_ns().saturating_sub(before);
    OWN_NS.fetch_add(cost, Relaxed);
    account::spend_on_start(cost);
}

/// Opens the shard if needed, and writes the present mappings if they changed.
///
/// Call with signals blocked. `stale`: an address was met that is in no known mapping.
pub fn ready(stale: bool) {
    if OPENED.load(Relaxed) && MAPPED.load(Relaxed) && !stale && !mappings::is_due() {
        return;
    }
    if LOCK.acquire(false) {
        open_shard();
        mappings::refresh(&mut |frame| write_all(frame), !MAPPED.load(Relaxed));
        MAPPED.store(true, Relaxed);
        LOCK.release();
    }
}

/// Stores a frame. A missing frame, or one that cannot be written, counts as lost. Call with signals blocked.
pub fn append(frame: Option<&[u8]>) {
    if !frame.is_some_and(write_all) {
        LOST.fetch_add(1, Relaxed);
    }
}

/// Whether the process has no shard and needs none.
#[inline(always)]
fn has_none() -> bool {
    !OPENED.load(Relaxed) && !account::needs_shard()
}

/// Stores the final counters. The process may continue afterwards. `ends`: it calls `_exit`, or is in `exit`.
pub fn conclude(ends: bool) {
    if !process::is_sampled_here() {
        return;
    }
    let _blocked = sys::SignalsBlocked::new();
    let before = sys::thread_cpu_ns();
    coverage::conclude();
    if has_none() {
        // That of a child that waits is accounted for.
        if !waiting::is_waiting() {
            let cost = sys::thread_cpu_ns().saturating_sub(before);
            OWN_NS.fetch_add(cost, Relaxed);
            account::spend_on_start(cost);
        }
        account::conclude_without_burst(ends);
        return;
    }
    if LOCK.acquire(false) {
        open_shard();
        LOCK.release();
    }
    let mut buffer = [0u8; 128];
    let mut e = Encoder::new(&mut buffer);
    let is_undisturbed = ends && isolation::was_always_isolated();
    e.u64(sys::process_cpu_ns());
    let cost = sys::thread_cpu_ns().saturating_sub(before);
    OWN_NS.fetch_add(cost, Relaxed);
    account::spend_on_start(cost);
    account::conclude(ends);
    e.bytes(&counters::snapshot().to_bytes());
    e.u8(is_undisturbed.into());
    if let Some(frame) = e.finish(FrameKind::Final) {
        write_all(frame);
    }
}

/// The same for a process that confines itself and makes no further reports.
pub fn conclude_confined() {
    if has_none() {
        account::conclude_without_burst(true);
    } else {
        conclude(false);
    }
}
