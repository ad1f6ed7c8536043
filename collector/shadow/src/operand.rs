//! Operands of instructions: registers, immediates, and the memory operand of an [`Op`].

use super::op::{HIGH, NONE, Op, RIP, SEGMENT_FS, SEGMENT_GS, SHORT_ADDRESS};
use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind, Register};

/// Decodes only the memory operand of an instruction; `None` if it has none.
pub(super) fn read_memory_operand(code: &[u8], address: u64) -> Option<Op> {
    let instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
    let mut op = Op::new(instruction.len());
    set_memory(&mut op, &instruction)?;
    op.has_address().then_some(op)
}

/// Number of a general register of any size.
pub(super) fn general(register: Register) -> Option<u8> {
    match register {
        Register::AH | Register::CH | Register::DH | Register::BH => {
            Some(HIGH + (register as u32 - Register::AH as u32) as u8)
        }
        register if register.is_gpr() => Some(register.full_register().number() as u8),
        _ => None,
    }
}

/// Fills in the memory operand, if there is one. `None`: its kind is not supported.
pub(super) fn set_memory(op: &mut Op, instruction: &Instruction) -> Option<()> {
    let explicit = (0..instruction.op_count()).any(|i| instruction.op_kind(i) == OpKind::Memory);
    if !explicit {
        return Some(());
    }
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    op.scale = instruction.memory_index_scale().trailing_zeros() as u8;
    op.disp = instruction.memory_displacement64() as i32;
    match base {
        Register::None => {}
        Register::RIP => {
            op.base = RIP;
            op.disp = instruction.memory_displacement64().wrapping_sub(instruction.next_ip()) as i32;
        }
        Register::EIP => return None,
        _ => op.base = general(base)?,
    }
    if index != Register::None {
        op.index = general(index)?;
    }
    if base.size() == 4 || index.size() == 4 || instruction.memory_displ_size() == 4 && base == Register::None {
        // A displacement alone is sign-extended unless the address is short.
        if base != Register::None || index != Register::None {
            op.scale |= SHORT_ADDRESS;
        }
    }
    match instruction.memory_segment() {
        Register::FS => op.scale |= SEGMENT_FS,
        Register::GS => op.scale |= SEGMENT_GS,
        _ => {}
    }
    // The displacement has 32 bits, which are sign-extended: other absolute addresses do not fit.
    let absolute = instruction.memory_displacement64();
    if op.base == NONE && op.index == NONE && i64::from(op.disp) as u64 != absolute {
        return None;
    }
    Some(())
}

/// An operand: the number of its register, memory, or its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    Register(u8),
    Memory,
    Immediate(u64),
}

/// The operand of number `i`; `None` for a kind that is not interpreted.
pub(super) fn operand(instruction: &Instruction, i: u32) -> Option<Operand> {
    match instruction.op_kind(i) {
        OpKind::Register => general(instruction.op_register(i)).map(Operand::Register),
        OpKind::Memory => Some(Operand::Memory),
        OpKind::Immediate8
        | OpKind::Immediate16
        | OpKind::Immediate32
        | OpKind::Immediate64
        | OpKind::Immediate8to16
        | OpKind::Immediate8to32
        | OpKind::Immediate8to64
        | OpKind::Immediate32to64 => Some(Operand::Immediate(instruction.immediate(i))),
        _ => None,
    }
}

/// Bytes of the operand of number `i`.
pub(super) fn size_of_operand(instruction: &Instruction, i: u32) -> usize {
    match instruction.op_kind(i) {
        OpKind::Register => instruction.op_register(i).size(),
        _ => instruction.memory_size().size(),
    }
}
