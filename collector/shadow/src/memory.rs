//! Loads from the program's memory, which may fault. It is the memory of this process, or of another one ([`Pages`]).

use super::pages::Pages;
use super::{Engine, fault};
use core::arch::asm;

impl Engine {
    /// Loads 1, 2, 4 or 8 bytes of the program: `size` is the logarithm.
    ///
    /// # Safety
    /// Called within a burst.
    #[inline(always)]
    pub(super) unsafe fn load_memory(&self, address: u64, size: u8) -> u64 {
        if self.pages.is_null() {
            // SAFETY: Loads may fault (burst invariant).
            return unsafe { load(address, size) };
        }
        let mut bytes = [0; 8];
        // SAFETY: the caller is in a burst, and the pages are there.
        unsafe { self.copy_pages(address, &mut bytes[..1 << size]) };
        u64::from_le_bytes(bytes)
    }

    /// Loads any number of bytes of the program.
    ///
    /// # Safety
    /// Called within a burst.
    #[inline(always)]
    pub(super) unsafe fn copy_memory(&self, address: u64, to: &mut [u8]) {
        // SAFETY: Loads may fault (burst invariant); the pages are there where they are used.
        unsafe {
            match self.pages.is_null() {
                true => copy(address, to),
                false => self.copy_pages(address, to),
            }
        }
    }

    /// # Safety
    /// Called within a burst, of another process.
    #[inline(never)]
    unsafe fn copy_pages(&self, address: u64, to: &mut [u8]) {
        let pages: *mut Pages = self.pages;
        // SAFETY: Exclusive (burst invariant): the engine owns the pages, and only this function uses them in a burst.
        // Abandonable: neither this frame nor those of its callers own anything that needs dropping.
        unsafe {
            if !(*pages).copy(address, to) {
                fault::leave((&raw const *self).cast_mut());
            }
        }
    }
}

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
