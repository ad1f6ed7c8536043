//! System calls that go straight to the kernel: they leave `errno` alone and cannot be interposed.

use core::arch::asm;

/// Bit of a signal in the kernel's 64-bit signal set.
pub const fn bit(signal: i32) -> u64 {
    1 << ((signal - 1) as u64 & 63)
}

/// All signals: the mask of our handlers and critical sections.
pub const ALL_SIGNALS: u64 = u64::MAX;

/// One system call; a negative result is `-errno`.
///
/// # Safety
/// As unsafe as the call itself.
#[inline(always)]
pub unsafe fn call(number: i64, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention; memory effects are assumed.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") args[0], in("rsi") args[1],
             in("rdx") args[2], in("r10") args[3], in("r8") args[4], in("r9") args[5],
             out("rcx") _, out("r11") _, options(nostack));
    }
    result
}

/// Convenience for calls with up to six arguments.
macro_rules! syscall {
    ($number:expr $(, $arg:expr)* $(,)?) => {{
        let given = [$($arg as usize),*];
        let mut args = [0usize; 6];
        let mut i = 0;
        while i < given.len() {
            args[i] = given[i];
            i += 1;
        }
        $crate::sys::call($number, args)
    }};
}
pub(crate) use syscall;

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct KernelAction {
    /// `SIG_DFL`, `SIG_IGN` or a function.
    pub handler: usize,
    /// `SA_…`.
    pub flags: u64,
    /// Where the handler returns to.
    pub restorer: usize,
    /// Signals blocked while it runs.
    pub mask: u64,
}

impl From<KernelAction> for libc::sigaction {
    fn from(action: KernelAction) -> Self {
        // SAFETY: all zeroes is valid for this plain structure.
        let mut converted: Self = unsafe { core::mem::zeroed() };
        converted.sa_sigaction = action.handler;
        converted.sa_flags = action.flags as i32;
        // SAFETY: the set lives here.
        unsafe { write_signal_set(&mut converted.sa_mask, action.mask) };
        converted
    }
}

/// Installs or reads an action without libc. Returns 0 or `-errno`.
pub fn signal_action(signal: i32, new: Option<&KernelAction>, old: Option<&mut KernelAction>) -> isize {
    let new = new.map_or(core::ptr::null(), |a| a as *const KernelAction);
    let old = old.map_or(core::ptr::null_mut(), |a| a as *mut KernelAction);
    // SAFETY: Kernel: both are null or valid for the kernel's structure.
    unsafe { syscall!(libc::SYS_rt_sigaction, signal, new, old, 8) }
}

/// Changes the real signal mask of the thread and returns the one before.
pub fn signal_mask(how: i32, set: u64) -> u64 {
    let mut old = 0u64;
    // SAFETY: Kernel: both sets live here.
    unsafe { syscall!(libc::SYS_rt_sigprocmask, how, &raw const set, &raw mut old, 8) };
    old
}

/// Takes pending signals of a set, which is blocked, away from the calling thread.
pub fn drop_pending(set: u64) {
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: Kernel: set and time live here.
    while unsafe { syscall!(libc::SYS_rt_sigtimedwait, &raw const set, 0, &raw const none, 8) } > 0 {}
}

/// Blocks all signals while it lives.
#[derive(Debug)]
pub struct SignalsBlocked(u64);

impl SignalsBlocked {
    /// Blocks them.
    pub fn new() -> Self {
        Self(signal_mask(libc::SIG_SETMASK, ALL_SIGNALS))
    }

    /// The mask that comes back at the end.
    pub fn saved(&self) -> u64 {
        self.0
    }

    /// Sets the mask that comes back at the end.
    pub fn restore_instead(&mut self, mask: u64) {
        self.0 = mask;
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        signal_mask(libc::SIG_SETMASK, self.0);
    }
}

fn clock(id: i32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: Kernel: `time` lives here.
    unsafe { syscall!(libc::SYS_clock_gettime, id, &raw mut time) };
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

/// CPU time of the calling thread in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the process in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Time between two ticks of the kernel in nanoseconds.
pub fn kernel_tick_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: Kernel: `time` lives here.
    unsafe { syscall!(libc::SYS_clock_getres, libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    time.tv_nsec as u64
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn now_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Kernel thread id.
pub fn thread_id() -> i32 {
    // SAFETY: Kernel: the call has no arguments.
    unsafe { syscall!(libc::SYS_gettid) as i32 }
}

/// Name of the calling thread, with zeros after it.
pub fn thread_name() -> [u8; 16] {
    let mut name = [0_u8; 16];
    // SAFETY: Kernel: it writes at most 16 bytes, the size of `name`.
    unsafe { syscall!(libc::SYS_prctl, libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// Process id. In a child made by `vfork`, it differs from the id stored in the shared memory.
pub fn process_id() -> i32 {
    // SAFETY: Kernel: the call has no arguments.
    unsafe { syscall!(libc::SYS_getpid) as i32 }
}

/// Whether the process has one thread; `None`: the kernel does not say. Far cheaper than a look at `/proc`.
pub fn has_one_thread() -> Option<bool> {
    // Without other flags, the kernel only checks that, and changes nothing.
    // SAFETY: Kernel: numbers only.
    match unsafe { syscall!(libc::SYS_unshare, libc::CLONE_THREAD) } as i32 {
        0 => Some(true),
        error if error == -libc::EINVAL => Some(false),
        _ => None,
    }
}

/// Closes a descriptor.
pub fn close(fd: i32) {
    // SAFETY: Kernel: the caller owns the descriptor.
    unsafe { syscall!(libc::SYS_close, fd) };
}

/// Lets another thread run.
pub fn yield_now() {
    // SAFETY: Kernel: the call has no arguments.
    unsafe { syscall!(libc::SYS_sched_yield) };
}

/// Copies memory of this process that may not be mapped; returns the bytes copied.
pub fn read_memory(address: u64, buffer: &mut [u8]) -> usize {
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut _,
        iov_len: buffer.len(),
    };
    // SAFETY: Kernel: it checks both ranges; the local one is ours.
    let copied = unsafe {
        syscall!(
            libc::SYS_process_vm_readv,
            process_id(),
            &raw const local,
            1,
            &raw const remote,
            1,
            0
        )
    };
    copied.max(0) as usize
}

/// Queues a signal to a thread of this process with all its information. Only to the calling thread does the kernel let
/// it look as if another process had sent it; for others, it comes from `sigqueue`.
pub fn queue_signal(thread: i32, signal: i32, info: &libc::siginfo_t) {
    let queue = |info: *const libc::siginfo_t| {
        // SAFETY: Kernel: it copies the information.
        unsafe { syscall!(libc::SYS_rt_tgsigqueueinfo, process_id(), thread, signal, info) }
    };
    if queue(info) == -libc::EPERM as isize {
        let mut info = *info;
        info.si_code = libc::SI_QUEUE;
        queue(&info);
    }
}

/// A lock for short sections that run with all signals blocked.
#[derive(Debug)]
pub struct SpinLock(core::sync::atomic::AtomicBool);

impl SpinLock {
    /// An open lock.
    pub const fn new() -> Self {
        Self(core::sync::atomic::AtomicBool::new(false))
    }

    /// Waits, at most for some milliseconds where `patient` is false.
    pub fn acquire(&self, patient: bool) -> bool {
        use core::sync::atomic::Ordering::{Acquire, Relaxed};
        let mut tries = 0u32;
        while self.0.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            tries = tries.wrapping_add(1);
            if !patient && tries > 4096 {
                return false;
            }
            if tries & 15 == 15 {
                yield_now()
            } else {
                core::hint::spin_loop()
            }
        }
        true
    }

    /// Opens it in a child made by `fork`, where nobody holds it. Writes only where that is needed, since it would copy
    /// a page.
    pub fn release_in_child(&self) {
        if self.0.load(core::sync::atomic::Ordering::Relaxed) {
            self.release();
        }
    }

    /// Opens it.
    pub fn release(&self) {
        self.0.store(false, core::sync::atomic::Ordering::Release);
    }
}

/// Opens a file for reading, without libc. Returns the descriptor or `-errno`.
pub fn open_to_read(path: &core::ffi::CStr) -> isize {
    // SAFETY: Kernel: the path is terminated.
    unsafe {
        syscall!(
            libc::SYS_openat,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
            0
        )
    }
}

fn status(fd: i32) -> Option<libc::stat> {
    // SAFETY: all zeroes is valid for this plain structure.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: Kernel: `stat` lives here.
    let result = unsafe { syscall!(libc::SYS_fstat, fd, &raw mut stat) };
    (result == 0).then_some(stat)
}

/// Device and inode of an open file.
pub fn identity(fd: i32) -> Option<(u64, u64)> {
    status(fd).map(|stat| (stat.st_dev, stat.st_ino))
}

/// Size of an open file.
pub fn file_size(fd: i32) -> Option<usize> {
    status(fd).and_then(|stat| stat.st_size.try_into().ok())
}

/// A number in decimal digits.
pub fn decimal(mut value: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    while at > 0 {
        at -= 1;
        if let Some(slot) = buffer.get_mut(at) {
            *slot = b'0' + (value % 10) as u8;
        }
        value /= 10;
        if value == 0 {
            break;
        }
    }
    buffer.get(at..).unwrap_or_default()
}

/// Reads a small file of `/proc` whole, or as much as fits in the buffer.
pub fn read_file<'a>(path: &core::ffi::CStr, buffer: &'a mut [u8]) -> &'a [u8] {
    let fd = open_to_read(path);
    if fd < 0 {
        return &[];
    }
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        // SAFETY: Kernel: it writes at most `rest`.
        let got = unsafe { syscall!(libc::SYS_read, fd, rest.as_mut_ptr(), rest.len()) };
        if got <= 0 {
            break;
        }
        length += got as usize;
    }
    close(fd as i32);
    buffer.get(..length).unwrap_or_default()
}

/// The 64 signals of a set of libc: there are no others.
///
/// # Safety
/// `set` is readable.
pub unsafe fn read_signal_set(set: *const libc::sigset_t) -> u64 {
    // SAFETY: the caller passes a readable set, and `sigset_t` has more than 64 bits.
    unsafe { set.cast::<u64>().read() }
}

/// Replaces the 64 signals of a set of libc.
///
/// # Safety
/// `set` is writable.
pub unsafe fn write_signal_set(set: *mut libc::sigset_t, signals: u64) {
    // SAFETY: the caller passes a writable set, and `sigset_t` has more than 64 bits.
    unsafe { set.cast::<u64>().write(signals) };
}
