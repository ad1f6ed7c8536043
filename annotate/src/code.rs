//! How machine instructions transfer control.

use crate::binary::Binary;
use crate::probe::Address;
use iced_x86::{Decoder, DecoderOptions, FlowControl};

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
    /// System calls, interrupts, traps.
    Other,
}

/// A decoded instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// Length in bytes.
    pub len: u8,
    /// How it transfers control.
    pub transfer: Transfer,
}

/// Decodes the instruction at an address. Returns `None` outside code and for bytes that are no instruction.
pub fn instruction_at(binary: &Binary, address: Address) -> Option<Instruction> {
    let code = binary.code_at(address)?;
    let mut decoder = Decoder::with_ip(64, code, address.0, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let transfer = match instruction.flow_control() {
        FlowControl::Next => Transfer::Next,
        FlowControl::Call => Transfer::Call,
        FlowControl::IndirectCall => Transfer::IndirectCall,
        FlowControl::Return => Transfer::Return,
        FlowControl::UnconditionalBranch => Transfer::Jump,
        FlowControl::IndirectBranch => Transfer::IndirectJump,
        FlowControl::ConditionalBranch => Transfer::Conditional,
        FlowControl::Interrupt | FlowControl::XbeginXabortXend | FlowControl::Exception => Transfer::Other,
    };
    (!instruction.is_invalid()).then_some(Instruction {
        len: instruction.len() as u8,
        transfer,
    })
}
