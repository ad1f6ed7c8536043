//! Gathers and scatters: vector instructions whose operands lie at several addresses.

use super::Engine;
use super::access::Step;
use super::op::{Kind, NONE, Op, RIP};
use super::state::Machine;
use iced_x86::{EncodingKind, Instruction, Mnemonic as M, Register};

/// The operands of a gather or scatter apart from its registers, packed into the immediate of an [`Op`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shape {
    /// Logarithms of the sizes of an index and of an element.
    index_size: u8,
    size: u8,
    count: u8,
    scatters: bool,
    /// Masked by an opmask register, else by the signs of a vector's elements.
    has_opmask: bool,
}

impl Shape {
    fn pack(self) -> u64 {
        let [scatters, has_opmask] = [self.scatters, self.has_opmask].map(u64::from);
        u64::from(self.index_size)
            | u64::from(self.size) << 4
            | u64::from(self.count) << 8
            | scatters << 16
            | has_opmask << 17
    }

    fn unpack(packed: u64) -> Self {
        Self {
            index_size: packed as u8 & 15,
            size: packed as u8 >> 4,
            count: (packed >> 8) as u8,
            scatters: packed >> 16 & 1 != 0,
            has_opmask: packed >> 17 & 1 != 0,
        }
    }
}

/// Logarithms of the sizes of index and element, and whether the instruction stores; `None` for other instructions.
fn sizes(mnemonic: M) -> Option<(u8, u8, bool)> {
    Some(match mnemonic {
        M::Vpgatherdd | M::Vgatherdps => (2, 2, false),
        M::Vpgatherdq | M::Vgatherdpd => (2, 3, false),
        M::Vpgatherqd | M::Vgatherqps => (3, 2, false),
        M::Vpgatherqq | M::Vgatherqpd => (3, 3, false),
        M::Vpscatterdd | M::Vscatterdps => (2, 2, true),
        M::Vpscatterdq | M::Vscatterdpd => (2, 3, true),
        M::Vpscatterqd | M::Vscatterqps => (3, 2, true),
        M::Vpscatterqq | M::Vscatterqpd => (3, 3, true),
        _ => return None,
    })
}

/// Decodes a gather or scatter; `None` for other instructions, for those that the processor lacks, and for invalid
/// combinations of registers.
pub(super) fn decode(op: &mut Op, instruction: &Instruction, machine: &Machine) -> Option<()> {
    let (index_size, size, scatters) = sizes(instruction.mnemonic())?;
    let index = instruction.memory_index();
    let data = instruction.op_register(u32::from(scatters));
    let has_opmask = instruction.encoding() == EncodingKind::EVEX;
    let (mask, exists) = if has_opmask {
        (instruction.op_mask(), machine.has_avx512)
    } else {
        (instruction.op2_register(), machine.has_avx2)
    };
    let plain_base = instruction.memory_base() == Register::None || instruction.memory_base().is_gpr64();
    let plain_segment = !matches!(instruction.memory_segment(), Register::FS | Register::GS);
    let clash = !scatters && data.number() == index.number()
        || !has_opmask && (mask.number() == data.number() || mask.number() == index.number());
    if !exists || mask == Register::None || !plain_base || !plain_segment || clash {
        return None;
    }
    let count = (index.size() >> index_size).min(data.size() >> size);
    op.kind = Kind::Gather;
    op.base = match instruction.memory_base() {
        Register::None => NONE,
        base => base.number() as u8,
    };
    debug_assert!(op.base < RIP);
    op.index = index.number() as u8;
    op.dst = data.number() as u8;
    op.src = mask.number() as u8;
    op.scale = instruction.memory_index_scale().trailing_zeros() as u8;
    op.disp = instruction.memory_displacement64() as i32;
    let shape = Shape {
        index_size,
        size,
        count: count as u8,
        scatters,
        has_opmask,
    };
    op.set_imm(shape.pack());
    Some(())
}

/// Runs a gather or scatter.
///
/// # Safety
/// Called within a burst.
pub(super) unsafe fn run(engine: &mut Engine, op: &Op) -> Step {
    let shape = Shape::unpack(op.imm());
    let bits = 8usize << shape.size;
    let element = |vector: &[u64; 8], i: usize, size: u8| {
        let (at, bits) = (i << size, 8u32 << size);
        vector[at / 8 % 8] >> (at % 8 * 8) & u64::MAX >> (64 - bits)
    };
    let index = engine.state.vectors[op.index as usize % 32];
    let mut data = engine.state.vectors[op.dst as usize % 32];
    let opmask = engine.state.masks[op.src as usize % 8];
    let signs = engine.state.vectors[op.src as usize % 32];
    for i in 0..usize::from(shape.count).min(16) {
        let is_on = if shape.has_opmask {
            opmask >> i & 1 != 0
        } else {
            element(&signs, i, shape.size) >> (bits - 1) != 0
        };
        if !is_on {
            continue;
        }
        let offset = match shape.index_size {
            2 => element(&index, i, 2) as i32 as i64 as u64,
            _ => element(&index, i, 3),
        };
        let address = engine
            .register(op.base)
            .wrapping_add(offset << (op.scale & 3))
            .wrapping_add(op.disp as i64 as u64);
        if shape.scatters {
            let value = element(&data, i, shape.size);
            engine.store(address, shape.size, value)?;
        } else {
            // SAFETY: Loads may fault (burst invariant).
            let value = unsafe { engine.load(address, shape.size) };
            let (at, kept) = (i << shape.size, u64::MAX >> (64 - bits));
            let word = &mut data[at / 8 % 8];
            let shift = at % 8 * 8;
            *word = *word & !(kept << shift) | value << shift;
        }
    }
    if !shape.scatters {
        let end = usize::from(shape.count) << shape.size;
        for (i, word) in data.iter_mut().enumerate() {
            if 8 * i >= end {
                *word = 0;
            } else if 8 * i + 8 > end {
                *word &= 0xffff_ffff;
            }
        }
        engine.state.vectors[op.dst as usize % 32] = data;
    }
    if shape.has_opmask {
        engine.state.masks[op.src as usize % 8] = 0;
    } else {
        engine.state.vectors[op.src as usize % 32] = [0; 8];
    }
    Ok(())
}
