//! Memory from the kernel, without libc.

use core::arch::asm;

pub(super) const READ_WRITE: usize = 3;
pub(super) const READ_EXECUTE: usize = 5;
pub(super) const SHARED: usize = 1;
/// Private, anonymous, not reserved.
pub(super) const PRIVATE: usize = 0x4022;

const MMAP: usize = 9;
const MUNMAP: usize = 11;
const CLOSE: usize = 3;
const FTRUNCATE: usize = 77;
const MEMFD_CREATE: usize = 319;

/// # Safety
/// As unsafe as the call itself.
unsafe fn call(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention; memory effects are assumed.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") args[0], in("rsi") args[1],
             in("rdx") args[2], in("r10") args[3], in("r8") args[4], in("r9") args[5],
             out("rcx") _, out("r11") _, options(nostack));
    }
    result
}

/// A new mapping, or the kernel's error number.
pub(super) fn map(length: usize, protection: usize, flags: usize, fd: isize) -> Result<*mut u8, i32> {
    // SAFETY: a mapping at a place that the kernel picks.
    let address = unsafe { call(MMAP, [0, length, protection, flags, fd as usize, 0]) };
    if (-4095..0).contains(&address) {
        Err(-address as i32)
    } else {
        Ok(address as *mut u8)
    }
}

/// # Safety
/// The mapping is not used any more.
pub(super) unsafe fn unmap(address: *mut u8, length: usize) {
    // SAFETY: given.
    unsafe { call(MUNMAP, [address as usize, length, 0, 0, 0, 0]) };
}

/// Memory that can be mapped twice.
pub(super) fn memory_file(length: usize) -> Result<isize, i32> {
    const CLOSE_ON_EXEC: usize = 1;
    const EXECUTABLE: usize = 0x10;
    let name = c"pleach".as_ptr() as usize;
    // SAFETY: the name is terminated.
    let mut fd = unsafe { call(MEMFD_CREATE, [name, CLOSE_ON_EXEC | EXECUTABLE, 0, 0, 0, 0]) };
    if fd < 0 {
        // Older kernels do not know the second flag.
        // SAFETY: as above.
        fd = unsafe { call(MEMFD_CREATE, [name, CLOSE_ON_EXEC, 0, 0, 0, 0]) };
    }
    if fd < 0 {
        return Err(-fd as i32);
    }
    // SAFETY: our descriptor.
    let cut = unsafe { call(FTRUNCATE, [fd as usize, length, 0, 0, 0, 0]) };
    if cut < 0 {
        close(fd);
        return Err(-cut as i32);
    }
    Ok(fd)
}

/// Closes a descriptor of ours.
pub(super) fn close(fd: isize) {
    // SAFETY: ours.
    unsafe { call(CLOSE, [fd as usize, 0, 0, 0, 0, 0]) };
}
