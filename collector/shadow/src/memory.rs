//! Loads from the program's memory, which may fault.

use core::arch::asm;

/// Loads 1, 2, 4 or 8 bytes: `size` is the logarithm.
///
/// # Safety
/// Called within a burst, or the memory is readable.
#[inline(always)]
pub(super) unsafe fn load(address: u64, size: u8) -> u64 {
    let value: u64;
    // SAFETY: Loads may fault (burst invariant): the instruction only reads, and a fault ends the burst. As assembly,
    // it makes no assumption about bytes that other threads change.
    unsafe {
        match size {
            0 => asm!("movzx {v:e}, byte ptr [{a}]", v = out(reg) value, a = in(reg) address,
                      options(nostack, readonly, preserves_flags)),
            1 => asm!("movzx {v:e}, word ptr [{a}]", v = out(reg) value, a = in(reg) address,
                      options(nostack, readonly, preserves_flags)),
            2 => asm!("mov {v:e}, dword ptr [{a}]", v = out(reg) value, a = in(reg) address,
                      options(nostack, readonly, preserves_flags)),
            _ => asm!("mov {v}, qword ptr [{a}]", v = out(reg) value, a = in(reg) address,
                      options(nostack, readonly, preserves_flags)),
        }
    }
    value
}

/// Loads any number of bytes.
///
/// # Safety
/// As for [`load`].
pub(super) unsafe fn copy(address: u64, to: &mut [u8]) {
    let mut chunks = to.chunks_exact_mut(8);
    let mut at = address;
    for chunk in &mut chunks {
        // SAFETY: Loads may fault (burst invariant), as the caller promises.
        chunk.copy_from_slice(&unsafe { load(at, 3) }.to_le_bytes());
        at = at.wrapping_add(8);
    }
    for byte in chunks.into_remainder() {
        // SAFETY: Loads may fault (burst invariant), as the caller promises.
        *byte = unsafe { load(at, 0) } as u8;
        at = at.wrapping_add(1);
    }
}
