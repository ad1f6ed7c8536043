//! Replaces the memory operand of an encoded instruction: the new address is a plain register.

/// Longest instruction.
pub(super) const MAX_LENGTH: usize = 15;

/// An instruction's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    pub bytes: [u8; MAX_LENGTH + 1],
    pub length: usize,
}

impl Bytes {
    fn new() -> Self {
        Self {
            bytes: [0; MAX_LENGTH + 1],
            length: 0,
        }
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    /// The bytes.
    pub(super) fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// The new address of the operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// In memory at a general register: rax, rcx, rdx, rbx, rsi or rdi.
    At(u8),
    /// RIP-relative, to find the registers that the instruction uses apart from addressing.
    Relative,
}

/// The instruction with another address. `None` if the encoding is not supported.
pub(super) fn rewrite(code: &[u8], place: Place) -> Option<Bytes> {
    let mut out = Bytes::new();
    let mut at = 0;
    let next = |at: &mut usize| {
        let byte = code.get(*at).copied();
        *at += 1;
        byte
    };
    let mut byte = next(&mut at)?;
    // Segment and address-size prefixes belong to the old operand.
    while matches!(
        byte,
        0x66 | 0xf2 | 0xf3 | 0xf0 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x67
    ) {
        if matches!(byte, 0x66 | 0xf2 | 0xf3 | 0xf0) {
            out.push(byte);
        }
        byte = next(&mut at)?;
    }
    match byte {
        0xc5 => {
            // The two-byte VEX prefix has no bits for the operand's base and index.
            out.push(byte);
            for _ in 0..2 {
                out.push(next(&mut at)?);
            }
        }
        0xc4 => {
            out.push(byte);
            out.push(next(&mut at)? | 0x60);
            for _ in 0..2 {
                out.push(next(&mut at)?);
            }
        }
        0x62 => {
            out.push(byte);
            out.push(next(&mut at)? | 0x60);
            for _ in 0..3 {
                out.push(next(&mut at)?);
            }
        }
        _ => {
            if byte & 0xf0 == 0x40 {
                out.push(byte & 0xfc);
                byte = next(&mut at)?;
                // A prefix after REX cancels it.
                if byte & 0xf0 == 0x40
                    || matches!(
                        byte,
                        0x66 | 0xf2 | 0xf3 | 0xf0 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64..=0x67
                    )
                {
                    return None;
                }
            }
            out.push(byte);
            if byte == 0x0f {
                let second = next(&mut at)?;
                out.push(second);
                match second {
                    0x38 | 0x3a => out.push(next(&mut at)?),
                    // 3DNow has its opcode at the end.
                    0x0f => return None,
                    _ => {}
                }
            } else if byte == 0x8f {
                return None;
            }
        }
    }
    let modrm = next(&mut at)?;
    if modrm >= 0xc0 {
        return None;
    }
    match place {
        Place::At(register) => out.push(modrm & 0x38 | register),
        Place::Relative => {
            out.push(modrm & 0x38 | 5);
            for _ in 0..4 {
                out.push(0);
            }
        }
    }
    let base = if modrm & 7 == 4 { next(&mut at)? & 7 } else { modrm & 7 };
    at += match modrm >> 6 {
        0 if base == 5 => 4,
        0 => 0,
        1 => 1,
        _ => 4,
    };
    // Only immediates are left.
    for &byte in code.get(at..)? {
        out.push(byte);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind, Register};

    fn decode(code: &[u8]) -> Instruction {
        Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).decode()
    }

    proptest::proptest! {
        /// All other operands stay the same.
        #[test]
        fn only_the_memory_operand_changes(
            start in proptest::sample::select(vec![
                vec![], vec![0x0f], vec![0x66, 0x0f], vec![0xf3, 0x0f], vec![0xf2, 0x48, 0x0f], vec![0x66, 0x0f, 0x38],
                vec![0x66, 0x45, 0x0f, 0x3a], vec![0xc5], vec![0xc4], vec![0x62], vec![0x64, 0x4f], vec![0xf0, 0x65],
            ]),
            rest in proptest::collection::vec(proptest::num::u8::ANY, 15),
        ) {
            let mut code = start;
            code.extend(rest);
            code.truncate(15);
            let old = decode(&code);
            let memory = (0..old.op_count()).filter(|&i| old.op_kind(i) == OpKind::Memory).count();
            let has_vector_index = old.memory_index().is_vector_register();
            if old.is_invalid() || memory != 1 || has_vector_index {
                return Ok(());
            }
            let Some(new) = rewrite(&code[..old.len()], Place::At(3)) else { return Ok(()) };
            let new = decode(new.get());
            // Moves of the accumulator to an absolute address have no such operand.
            if matches!(old.code() as usize, _ if old.memory_base() == Register::None && old.memory_displ_size() == 8) {
                return Ok(());
            }
            proptest::prop_assert_eq!(new.code(), old.code());
            proptest::prop_assert_eq!(new.memory_base(), Register::RBX);
            proptest::prop_assert_eq!(new.memory_displacement64(), 0);
            for i in 0..old.op_count() {
                proptest::prop_assert_eq!(new.op_kind(i), old.op_kind(i));
                if old.op_kind(i) == OpKind::Register {
                    proptest::prop_assert_eq!(new.op_register(i), old.op_register(i));
                } else if old.op_kind(i) != OpKind::Memory {
                    proptest::prop_assert_eq!(new.immediate(i), old.immediate(i));
                }
            }
            proptest::prop_assert_eq!(new.op_mask(), old.op_mask());
            proptest::prop_assert_eq!(new.is_broadcast(), old.is_broadcast());
        }
    }
}
