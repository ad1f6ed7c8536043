//! Loads from the program's memory, which may fault.

use core::arch::asm;

/// Loads 1, 2, 4 or 8 bytes: `size` is the logarithm.
///
/// # Safety
/// Called within [`super::fault::enter`].
#[inline(always)]
pub(super) unsafe fn load(address: u64, size: u8) -> u64 {
    let value: u64;
    // SAFETY: a fault ends the burst; nothing is written.
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
        // SAFETY: given.
        chunk.copy_from_slice(&unsafe { load(at, 3) }.to_le_bytes());
        at = at.wrapping_add(8);
    }
    for byte in chunks.into_remainder() {
        // SAFETY: given.
        *byte = unsafe { load(at, 0) } as u8;
        at = at.wrapping_add(1);
    }
}
