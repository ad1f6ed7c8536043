//! System calls for memory mappings, without libc.

use core::arch::asm;

pub(super) const READ_WRITE: usize = 3;
pub(super) const READ_EXECUTE: usize = 5;
/// Shared, anonymous, not reserved.
pub(super) const SHARED: usize = 0x4021;
/// Private, anonymous, not reserved.
pub(super) const PRIVATE: usize = 0x4022;

const MMAP: usize = 9;
const MUNMAP: usize = 11;
const MPROTECT: usize = 10;
const MREMAP: usize = 25;

/// # Safety
/// As unsafe as the call itself.
unsafe fn call(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention; without `nomem`, the compiler assumes that memory changes.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") args[0], in("rsi") args[1],
             in("rdx") args[2], in("r10") args[3], in("r8") args[4], in("r9") args[5],
             out("rcx") _, out("r11") _, options(nostack));
    }
    result
}

/// Makes a new mapping. Returns the kernel's error number if that fails.
pub(super) fn map(length: usize, protection: usize, flags: usize) -> Result<*mut u8, i32> {
    const NO_FILE: usize = usize::MAX;
    // SAFETY: the kernel picks the address, so no existing mapping changes.
    let address = unsafe { call(MMAP, [0, length, protection, flags, NO_FILE, 0]) };
    if (-4095..0).contains(&address) {
        Err(-address as i32)
    } else {
        Ok(address as *mut u8)
    }
}

/// # Safety
/// The mapping is not used any more.
pub(super) unsafe fn unmap(address: *mut u8, length: usize) {
    // SAFETY: the caller does not use the mapping any more.
    unsafe { call(MUNMAP, [address as usize, length, 0, 0, 0, 0]) };
}

/// Whether children made by `fork` get a mapping. False if the kernel refuses to change that.
pub(super) fn set_inherited(address: *const u8, length: usize, is_inherited: bool) -> bool {
    const MADVISE: usize = 28;
    const DONT_FORK: usize = 10;
    const DO_FORK: usize = 11;
    let advice = if is_inherited { DO_FORK } else { DONT_FORK };
    // SAFETY: nothing changes in this process.
    unsafe { call(MADVISE, [address as usize, length, advice, 0, 0, 0]) == 0 }
}

/// Maps the same shared memory a second time. Returns the kernel's error number if that fails.
pub(super) fn map_again(address: *mut u8, length: usize) -> Result<*mut u8, i32> {
    const MAY_MOVE: usize = 1;
    // SAFETY: an old length of zero duplicates a shared mapping and leaves the old one in place.
    let again = unsafe { call(MREMAP, [address as usize, 0, length, MAY_MOVE, 0, 0]) };
    if (-4095..0).contains(&again) {
        Err(-again as i32)
    } else {
        Ok(again as *mut u8)
    }
}

/// Changes the protection of a mapping. Returns the kernel's error number if that fails.
///
/// # Safety
/// Only the caller uses the mapping.
pub(super) unsafe fn protect(address: *mut u8, length: usize, protection: usize) -> Result<(), i32> {
    // SAFETY: the caller alone uses the mapping.
    match unsafe { call(MPROTECT, [address as usize, length, protection, 0, 0, 0]) } {
        0 => Ok(()),
        error => Err(-error as i32),
    }
}
