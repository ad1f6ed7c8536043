//! Instructions that save registers to memory or restore them. The dynamic linker uses them when it binds a function
//! lazily.
//!
//! The processor runs them on all shadow registers. They have a buffer of their own, because their operand is large.

use super::access::Step;
use super::op::{Kind, Op};
use super::operand::set_memory;
use super::rewrite::{Place, rewrite};
use super::state::Machine;
use super::thunk::{Thunks, Used, Width};
use super::{End, Engine};
use iced_x86::{Instruction, Mnemonic as M, OpKind};

/// Bytes of the buffer.
pub(super) const AREA: usize = 4096;
/// The XSAVE state components that the shadow has: x87, SSE, AVX, opmasks and AVX-512.
const COMPONENTS: u64 = 0xe7;
/// Bytes of an `fxsave` area.
const LEGACY: usize = 512;

/// Decodes an instruction that saves or restores registers; `None` for any other.
pub(super) fn decode(
    op: &mut Op,
    instruction: &Instruction,
    code: &[u8],
    machine: &Machine,
    thunks: &mut Thunks,
) -> Option<()> {
    let (restores, extended) = match instruction.mnemonic() {
        M::Fxsave | M::Fxsave64 => (false, false),
        M::Fxrstor | M::Fxrstor64 => (true, false),
        M::Xsave | M::Xsave64 | M::Xsavec | M::Xsavec64 => (false, true),
        M::Xrstor | M::Xrstor64 => (true, true),
        _ => return None,
    };
    if extended && machine.save_size > AREA || instruction.op0_kind() != OpKind::Memory {
        return None;
    }
    let width = match (machine.has_avx512, machine.has_avx) {
        (true, _) if extended => Width::Evex,
        (_, true) if extended => Width::Vex,
        _ => Width::Legacy,
    };
    let vectors = if width == Width::Evex { u32::MAX } else { 0xffff };
    set_memory(op, instruction)?;
    let used = Used {
        // edx and eax select the components.
        general: if extended { 1 | 1 << 2 } else { 0 },
        vectors,
        written_vectors: if restores { vectors } else { 0 },
        masks: if width == Width::Evex { 0xff } else { 0 },
        flags: false,
        writes_flags: false,
        x87: true,
        width,
    };
    // rsi holds the operand's address, rbx the state's.
    let bytes = rewrite(code, Place::At(6))?;
    op.set_imm(thunks.make(bytes.get(), &used, Some(6), 3, machine)?.into());
    op.kind = Kind::Save;
    op.set_extra(u8::from(restores) | u8::from(extended) << 1);
    Some(())
}

/// Runs such an instruction.
///
/// # Safety
/// Called within a burst.
pub(super) unsafe fn run(engine: &mut Engine, op: &Op) -> Step {
    let (restores, extended) = (op.extra() & 1 != 0, op.extra() & 2 != 0);
    let chosen = engine.register(0) & 0xffff_ffff | engine.register(2) << 32;
    if extended && chosen & engine.machine.features & !COMPONENTS != 0 {
        return Err(End::Instruction);
    }
    let address = engine.address(op);
    let size = if extended { engine.machine.save_size } else { LEGACY }.min(AREA);
    if !address.is_multiple_of(if extended { 64 } else { 16 }) {
        return Err(End::Fault);
    }
    // Parts of the area that are not saved keep their contents.
    let area = &raw mut engine.area.0;
    // SAFETY: Loads may fault (burst invariant). Loading reads the overlay and memory, never the area, so the two
    // borrows are disjoint.
    unsafe { engine.load_bytes(address, &mut (&mut *area)[..size]) };
    if restores && extended && word(&engine.area.0, LEGACY) & !COMPONENTS != 0 {
        return Err(End::Instruction);
    }
    let code = engine.thunks.code(op.imm() as u32);
    let state: *mut super::State = &mut engine.state;
    // SAFETY: Thunk code (burst invariant): `make` emitted it for the state and an area of this size and alignment.
    unsafe {
        let code: unsafe extern "C" fn(*mut super::State, *mut u8) = core::mem::transmute(code);
        code(state, engine.area.0.as_mut_ptr());
    }
    if !restores {
        engine.effects = engine.effects.wrapping_add(1);
        let stored = engine.overlay.store(address, &engine.area.0[..size]);
        stored.map_err(|_| End::OverlayFull)?;
        if extended {
            // The contents depend on which components are in use, which cannot be predicted. Restoring them does not.
            engine.saved = (address, hash(&engine.area.0[..size]));
            engine.taint_stored(address, size as u64);
        }
    }
    engine.thunks_run += 1;
    Ok(())
}

fn word(bytes: &[u8; AREA], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
    word.map_or(0, u64::from_le_bytes)
}

impl Engine {
    /// Whether an instruction restores the registers that the last save instruction saved.
    ///
    /// # Safety
    /// Called within a burst.
    pub(super) unsafe fn restores_what_was_saved(&mut self, op: &Op) -> bool {
        let (address, size) = (self.address(op), self.machine.save_size.min(AREA));
        if op.kind != Kind::Save || op.extra() != 3 || address != self.saved.0 {
            return false;
        }
        let area = &raw mut self.area.0;
        // SAFETY: Loads may fault (burst invariant). Loading reads the overlay and memory, never the area, so the two
        // borrows are disjoint.
        unsafe { self.load_bytes(address, &mut (&mut *area)[..size]) };
        hash(&self.area.0[..size]) == self.saved.1
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(0, |sum, word| {
        (sum.rotate_left(23) ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd)
    })
}

/// The operand's buffer.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct Area(pub [u8; AREA]);
