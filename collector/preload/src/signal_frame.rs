//! The stack that a signal takes.
//!
//! `AT_MINSIGSTKSZ` counts every part of the extended state that the processor has. A part that needs a permission, such
//! as the tiles of AMX, which are 8 KiB, is in signal frames only when the process has this permission. The kernel refuses
//! the permission while a thread has an alternate stack that is too small for it, and small stacks after it. So the
//! parts that are permitted at any time decide.

use crate::sys::syscall;
use core::arch::x86_64::__cpuid_count;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

/// `ARCH_GET_XCOMP_PERM` of `arch_prctl(2)`.
const GET_PERMITTED: usize = 0x1022;
/// The processor's leaf on the extended state.
const EXTENDED_STATE: u32 = 0xd;
/// Size of the part that is always there: x87, SSE, and a header.
const LEGACY: usize = 576;

/// Size of a signal frame, at most, in bytes; it is read once. What our handlers use beside it, some dozen bytes, fits in
/// the hundreds by which the kernel's bound is too high for 64-bit programs.
pub fn size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    let known = SIZE.load(Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: no pointers.
    let all = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    let size = permitted_size(all).max(1);
    SIZE.store(size, Relaxed);
    size
}

/// `all`: the size with every part of the state.
fn permitted_size(all: usize) -> usize {
    let mut permitted = 0u64;
    // SAFETY: Kernel: `permitted` lives here.
    let result = unsafe { syscall!(libc::SYS_arch_prctl, GET_PERMITTED, &raw mut permitted) };
    if result != 0 {
        return all; // before Linux 5.16, which has no such parts
    }
    let whole_state = __cpuid_count(EXTENDED_STATE, 0).ebx as usize;
    let end_of = |part: u32| {
        let leaf = __cpuid_count(EXTENDED_STATE, part);
        let is_of_kernel = leaf.ecx & 1 != 0;
        if leaf.eax == 0 || is_of_kernel {
            0
        } else {
            (leaf.ebx + leaf.eax) as usize
        }
    };
    let parts = (2..64).filter(|part| permitted >> part & 1 != 0).map(end_of);
    let state = parts.fold(LEGACY, usize::max);
    all.saturating_sub(whole_state.saturating_sub(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_not_larger_than_the_kernel_says() {
        // SAFETY: no pointers.
        let all = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
        let size = size();
        assert!(size <= all.max(1) && size == self::size(), "{size} of {all}");
        // x87, SSE and AVX, and the frame's head.
        assert!(all == 0 || size > LEGACY + 440, "{size} of {all}");
    }
}
