//! Instructions of AArch64, each of four bytes.

use super::{Decoded, Instruction, Transfer};
use crate::probe::Address;
use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{self, InstDecoder, Opcode, Operand};

const LENGTH: usize = 4;
/// `nop`.
const NOP: u32 = 0xd503_201f;

fn word(code: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*code.first_chunk::<LENGTH>()?))
}

fn raw(word: u32) -> Option<a64::Instruction> {
    InstDecoder::default()
        .decode(&mut U8Reader::new(&word.to_le_bytes()))
        .ok()
}

/// Whether an instruction is of the group of branches, exceptions and system instructions (Arm Architecture Reference
/// Manual, C4.1). The others never transfer control, so that those that the decoder does not know do not matter.
fn may_transfer(word: u32) -> bool {
    word >> 26 & 7 == 0b101
}

fn transfer(instruction: &a64::Instruction) -> Transfer {
    match instruction.opcode {
        Opcode::B => Transfer::Jump,
        Opcode::BL => Transfer::Call,
        Opcode::Bcc(_) | Opcode::BCcc(_) | Opcode::CBZ | Opcode::CBNZ | Opcode::TBZ | Opcode::TBNZ => {
            Transfer::Conditional
        }
        Opcode::BR | Opcode::BRAA | Opcode::BRAAZ | Opcode::BRAB | Opcode::BRABZ => Transfer::IndirectJump,
        Opcode::BLR | Opcode::BLRAA | Opcode::BLRAAZ | Opcode::BLRAB | Opcode::BLRABZ => Transfer::IndirectCall,
        Opcode::RET
        | Opcode::RETAA
        | Opcode::RETAB
        | Opcode::RETAASPPC
        | Opcode::RETABSPPC
        | Opcode::RETAASPPCR
        | Opcode::RETABSPPCR => Transfer::Return,
        Opcode::SVC | Opcode::HVC | Opcode::SMC => Transfer::Other,
        Opcode::BRK | Opcode::HLT | Opcode::ERET | Opcode::ERETAA | Opcode::ERETAB | Opcode::DRPS => Transfer::Stop,
        _ => Transfer::Next,
    }
}

pub(super) fn instruction(code: &[u8], at: Address) -> Option<Instruction> {
    let word = word(code)?;
    let (mut transfer_of, mut target) = (Transfer::Next, None);
    if word >> 16 == 0 {
        transfer_of = Transfer::Stop; // `udf`
    } else if may_transfer(word) {
        let raw = raw(word)?;
        transfer_of = transfer(&raw);
        if matches!(transfer_of, Transfer::Call | Transfer::Jump | Transfer::Conditional) {
            let offset = raw.operands.iter().find_map(|operand| match operand {
                Operand::PCOffset(offset) => Some(*offset),
                _ => None,
            });
            target = Some(Address(at.0.wrapping_add_signed(offset?)));
        }
    }
    Some(Instruction {
        address: at,
        len: LENGTH as u8,
        transfer: transfer_of,
        target,
    })
}

pub(super) fn decode(code: &[u8], at: Address) -> Option<Decoded> {
    let mut decoded = Decoded::default();
    for (position, code) in code.chunks(LENGTH).enumerate() {
        let one = instruction(code, Address(at.0 + (position * LENGTH) as u64))?;
        // Which system calls it makes is not looked up.
        decoded.makes_system_calls |= one.transfer == Transfer::Other;
        decoded.instructions.push(one);
    }
    Some(decoded)
}

pub(super) fn text(code: &[u8], at: Address) -> String {
    let Some(raw) = word(code).and_then(raw) else {
        return "(bad)".to_owned();
    };
    let text = raw.to_string();
    // Addresses in place of distances.
    match (instruction(code, at).and_then(|it| it.target), text.rfind('$')) {
        (Some(target), Some(distance)) => format!("{}{:#x}", &text[..distance], target.0),
        _ => text,
    }
}

pub(super) fn is_padding(code: &[u8]) -> bool {
    word(code) == Some(NOP)
}
