//! System calls that go straight to the kernel: they leave `errno` alone and cannot be interposed.

use core::arch::asm;
use core::ffi::CStr;

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

fn clock(id: i32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: Kernel: `time` lives here.
    unsafe {
        call(
            libc::SYS_clock_gettime,
            [id as usize, &raw mut time as usize, 0, 0, 0, 0],
        )
    };
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

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn now_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Process id. In a child made by `vfork`, it differs from the id stored in the shared memory.
pub fn process_id() -> i32 {
    // SAFETY: Kernel: the call has no arguments.
    unsafe { call(libc::SYS_getpid, [0; 6]) as i32 }
}

/// Opens a file. Returns the descriptor or `-errno`.
pub fn open(path: &CStr, flags: i32) -> isize {
    let flags = (flags | libc::O_CLOEXEC) as usize;
    // SAFETY: Kernel: the path is terminated.
    unsafe {
        call(
            libc::SYS_openat,
            [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags, 0, 0, 0],
        )
    }
}

/// Closes a descriptor.
pub fn close(fd: isize) {
    // SAFETY: Kernel: the caller owns the descriptor.
    unsafe { call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// Maps memory that can be read and written: anonymous and private, or that of a file and shared.
pub fn map(bytes: usize, file: Option<isize>) -> Option<usize> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let (flags, fd) = match file {
        Some(fd) => (libc::MAP_SHARED, fd),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: Kernel: the mapping is new.
    let address = unsafe { call(libc::SYS_mmap, [0, bytes, protection, flags as usize, fd as usize, 0]) };
    (address > 0).then_some(address as usize)
}

/// Unmaps memory.
///
/// # Safety
/// Nothing refers to it any more.
pub unsafe fn unmap(address: usize, bytes: usize) {
    // SAFETY: by the caller.
    unsafe { call(libc::SYS_munmap, [address, bytes, 0, 0, 0, 0]) };
}

/// Whether the thread runs on an alternate signal stack.
pub fn is_on_alternate_stack() -> bool {
    let mut stack = core::mem::MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: Kernel: `stack` lives here; zeroes are valid for it.
    unsafe {
        call(libc::SYS_sigaltstack, [0, stack.as_mut_ptr() as usize, 0, 0, 0, 0]);
        stack.assume_init_ref().ss_flags & libc::SS_ONSTACK != 0
    }
}

/// Whether a file can be read. By the system call that the dynamic linker makes as well: filters allow it.
pub fn is_readable(path: &CStr) -> bool {
    let (path, mode) = (path.as_ptr() as usize, libc::R_OK as usize);
    // SAFETY: Kernel: the path is terminated.
    unsafe { call(libc::SYS_access, [path, mode, 0, 0, 0, 0]) == 0 }
}

/// Size of an open file.
pub fn file_size(fd: isize) -> Option<usize> {
    let mut stat = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: Kernel: `stat` lives here; it is written where the call succeeds.
    unsafe {
        let result = call(libc::SYS_fstat, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]);
        (result == 0).then(|| stat.assume_init_ref().st_size as usize)
    }
}

/// Device and inode of a file.
pub fn identity(path: &CStr) -> Option<(u64, u64)> {
    let mut stat = core::mem::MaybeUninit::<libc::stat>::uninit();
    let (path, target) = (path.as_ptr() as usize, stat.as_mut_ptr() as usize);
    // SAFETY: Kernel: the path is terminated; `stat` lives here, and is written where the call succeeds.
    unsafe {
        let result = call(libc::SYS_newfstatat, [libc::AT_FDCWD as usize, path, target, 0, 0, 0]);
        (result == 0).then(|| (stat.assume_init_ref().st_dev, stat.assume_init_ref().st_ino))
    }
}

/// Number of seccomp filters in force; the maximum if the kernel does not report it.
pub fn seccomp_filters() -> u64 {
    // SAFETY: Kernel: numbers only.
    if unsafe { call(libc::SYS_prctl, [libc::PR_GET_SECCOMP as usize, 0, 0, 0, 0, 0]) } <= 0 {
        return 0;
    }
    let mut buffer = core::mem::MaybeUninit::<[u8; 4096]>::uninit();
    let fd = open(c"/proc/self/status", libc::O_RDONLY);
    if fd < 0 {
        return u64::MAX;
    }
    // SAFETY: Kernel: it writes at most the buffer's size.
    let got = unsafe {
        call(
            libc::SYS_read,
            [fd as usize, buffer.as_mut_ptr() as usize, 4096, 0, 0, 0],
        )
    };
    close(fd);
    // SAFETY: that much was written.
    let status = unsafe { core::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), got.max(0) as usize) };
    let mut lines = status.split(|byte| *byte == b'\n');
    let count = lines.find_map(|line| line.strip_prefix(b"Seccomp_filters:\t"));
    count.map_or(u64::MAX, |digits| {
        digits.iter().fold(0, |value: u64, digit| {
            value.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0')))
        })
    })
}
