//! How instructions access the shadow's registers and memory. Every other module that runs instructions uses this one.

use super::op::{FS, GS, HIGH, Op, RIP, SEGMENT_FS, SEGMENT_GS, SHORT_ADDRESS};
use super::{End, Engine};

/// The result of an instruction: the reason for the burst's end if the instruction cannot run.
pub(super) type Step = Result<(), End>;

/// Bytes of an operand, from their logarithm.
#[inline]
pub(super) fn bytes(size: u8) -> u64 {
    1 << size
}

/// The lowest bytes of a value; `size` is the logarithm of their number.
#[inline]
fn truncate(value: u64, size: u8) -> u64 {
    value & u64::MAX >> (64 - 8 * bytes(size))
}

impl Engine {
    /// A whole register, by the numbers of [`super::op`].
    #[inline(always)]
    pub(super) fn register(&self, number: u8) -> u64 {
        self.state.registers[number as usize % 24]
    }

    /// The part of a register that an operand of this size names.
    #[inline(always)]
    pub(super) fn part(&self, number: u8, size: u8) -> u64 {
        if number >= HIGH {
            return self.register(number - HIGH) >> 8 & 0xff;
        }
        truncate(self.register(number), size)
    }

    /// Sets the part of a register that an operand of this size names. With 4 bytes, the upper half becomes 0.
    #[inline(always)]
    pub(super) fn write(&mut self, number: u8, size: u8, value: u64) {
        if number >= HIGH {
            let whole = &mut self.state.registers[(number - HIGH) as usize % 24];
            *whole = *whole & !0xff00 | (value & 0xff) << 8;
            return;
        }
        let whole = &mut self.state.registers[number as usize % 24];
        *whole = match size {
            0 => *whole & !0xff | value & 0xff,
            1 => *whole & !0xffff | value & 0xffff,
            2 => value & 0xffff_ffff,
            _ => value,
        };
    }

    /// Address of the memory operand.
    #[inline(always)]
    pub(super) fn address(&self, op: &Op) -> u64 {
        let base = if op.base == RIP {
            self.state.pc.wrapping_add(op.length.into())
        } else {
            self.register(op.base)
        };
        let index = self.register(op.index) << (op.scale & 3);
        let mut address = base.wrapping_add(index).wrapping_add(op.disp as i64 as u64);
        if op.scale >= 4 {
            if op.scale & SHORT_ADDRESS != 0 {
                address &= 0xffff_ffff;
            }
            if let Some(segment) = segment(op.scale) {
                address = address.wrapping_add(self.register(segment));
            }
        }
        address
    }

    /// Loads a value; `size` is the logarithm of its bytes. The overlay hides the program's memory.
    ///
    /// # Safety
    /// Called within a burst.
    #[inline(always)]
    pub(super) unsafe fn load(&self, address: u64, size: u8) -> u64 {
        // SAFETY: Loads may fault (burst invariant): the closure runs within the burst that the caller is in.
        self.overlay
            .load(address, bytes(size), || unsafe { self.load_memory(address, size) })
    }

    /// Stores a value in the overlay; `size` is the logarithm of its bytes.
    ///
    /// # Errors
    /// [`End::OverlayFull`].
    #[inline(always)]
    pub(super) fn store(&mut self, address: u64, size: u8, value: u64) -> Step {
        self.effects = self.effects.wrapping_add(1);
        let stored = self
            .overlay
            .store(address, &value.to_le_bytes()[..bytes(size) as usize]);
        stored.map_err(|_| End::OverlayFull)
    }

    /// Loads any number of bytes, as [`Engine::load`] does.
    ///
    /// # Safety
    /// Called within a burst.
    #[inline]
    pub(super) unsafe fn load_bytes(&self, address: u64, to: &mut [u8]) {
        // SAFETY: Loads may fault (burst invariant).
        unsafe { self.copy_memory(address, to) };
        if !self.overlay.is_empty() {
            self.overlay.patch(address, to);
        }
    }
}

/// The register of the state that holds the base of the operand's segment; `None` if the base is 0.
#[inline]
fn segment(scale: u8) -> Option<u8> {
    match scale & (SEGMENT_FS | SEGMENT_GS) {
        0 => None,
        SEGMENT_FS => Some(FS),
        _ => Some(GS),
    }
}
