//! How machine instructions transfer control.

mod aarch64;
mod x86;

use crate::binary::{Architecture, Binary};
use crate::probe::Address;
use std::ops::Range;

/// How an instruction transfers control.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transfer {
    /// Always continues at the next instruction.
    Next,
    /// Calls a known address.
    Call,
    /// Calls through a register or memory.
    IndirectCall,
    /// Returns.
    Return,
    /// Jumps to a known address.
    Jump,
    /// Jumps through a register or memory.
    IndirectJump,
    /// Jumps or falls through.
    Conditional,
    /// System calls, interrupts, traps of a debugger, transactions: usually continues at the next instruction.
    Other,
    /// Always raises an exception.
    Stop,
}

/// A decoded instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// Its address.
    pub address: Address,
    /// Length in bytes.
    pub len: u8,
    /// How it transfers control.
    pub transfer: Transfer,
    /// Where a direct call or jump leads.
    pub target: Option<Address>,
}

impl Instruction {
    /// Address after the instruction.
    pub fn next(&self) -> Address {
        Address(self.address.0.wrapping_add(u64::from(self.len)))
    }
}

/// The instructions of a range of code.
#[derive(Default)]
pub(crate) struct Decoded {
    /// In address order.
    pub instructions: Vec<Instruction>,
    /// Some are system calls that may change signal masks or actions, or confine the program.
    pub makes_system_calls: bool,
}

/// Decodes the instruction at an address. Returns `None` outside code and for bytes that are no instruction.
pub fn instruction_at(binary: &Binary, address: Address) -> Option<Instruction> {
    let code = binary.code_at(address)?;
    match binary.architecture {
        Architecture::X86_64 => x86::instruction(code, address),
        Architecture::Aarch64 => aarch64::instruction(code, address),
    }
}

/// Decodes a range of code. Returns `None` if some of its bytes are no instruction.
pub(crate) fn decode(binary: &Binary, range: &Range<Address>) -> Option<Decoded> {
    let size = usize::try_from(range.end.0.checked_sub(range.start.0)?).ok()?;
    let code = binary.code_at(range.start)?.get(..size)?;
    match binary.architecture {
        Architecture::X86_64 => x86::decode(code, range.start),
        Architecture::Aarch64 => aarch64::decode(code, range.start),
    }
}

/// The assembly text of an instruction: AT&T syntax for x86-64. Bytes that are no instruction give `(bad)`.
pub fn text_at(binary: &Binary, address: Address) -> Option<String> {
    let code = binary.code_at(address)?;
    Some(match binary.architecture {
        Architecture::X86_64 => x86::text(code, address),
        Architecture::Aarch64 => aarch64::text(code, address),
    })
}

/// Whether an instruction does nothing.
pub fn is_padding(binary: &Binary, instruction: &Instruction) -> bool {
    let code = binary.code_at(instruction.address);
    let Some(code) = code.and_then(|code| code.get(..usize::from(instruction.len))) else {
        return false;
    };
    match binary.architecture {
        Architecture::X86_64 => x86::is_padding(code),
        Architecture::Aarch64 => aarch64::is_padding(code),
    }
}
