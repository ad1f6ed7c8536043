//! Instructions of x86-64.

use super::{Decoded, Instruction, Transfer};
use crate::probe::Address;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, Mnemonic, Register};

/// System calls that change signal masks or actions, or confine the program.
const SIGNAL_CALLS: [u64; 5] = [13, 14, 128, 157, 317];

fn decoder(code: &[u8], at: Address) -> Decoder<'_> {
    Decoder::with_ip(64, code, at.0, DecoderOptions::NONE)
}

fn convert(from: &iced_x86::Instruction) -> Option<Instruction> {
    let transfer = match from.flow_control() {
        FlowControl::Next if from.mnemonic() == Mnemonic::Syscall => Transfer::Other,
        FlowControl::Next => Transfer::Next,
        FlowControl::Call => Transfer::Call,
        FlowControl::IndirectCall => Transfer::IndirectCall,
        FlowControl::Return => Transfer::Return,
        FlowControl::UnconditionalBranch => Transfer::Jump,
        FlowControl::IndirectBranch => Transfer::IndirectJump,
        FlowControl::ConditionalBranch => Transfer::Conditional,
        FlowControl::Interrupt | FlowControl::XbeginXabortXend => Transfer::Other,
        FlowControl::Exception => Transfer::Stop,
    };
    let is_direct = matches!(transfer, Transfer::Call | Transfer::Jump | Transfer::Conditional);
    (!from.is_invalid()).then(|| Instruction {
        address: Address(from.ip()),
        len: from.len() as u8,
        transfer,
        target: is_direct.then(|| Address(from.near_branch_target())),
    })
}

pub(super) fn instruction(code: &[u8], at: Address) -> Option<Instruction> {
    convert(&decoder(code, at).decode())
}

pub(super) fn decode(code: &[u8], at: Address) -> Option<Decoded> {
    let mut decoder = decoder(code, at);
    let (mut decoded, mut number) = (Decoded::default(), None);
    let mut instruction = iced_x86::Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let converted = convert(&instruction)?;
        match instruction.mnemonic() {
            Mnemonic::Mov if matches!(instruction.op0_register(), Register::EAX | Register::RAX) => {
                let is_constant = matches!(instruction.code(), Code::Mov_r32_imm32 | Code::Mov_rm64_imm32);
                number = is_constant.then(|| instruction.immediate(1));
            }
            Mnemonic::Syscall | Mnemonic::Sysenter => {
                decoded.makes_system_calls |= number.is_none_or(|number: u64| SIGNAL_CALLS.contains(&number));
                number = None;
            }
            _ => {}
        }
        if matches!(
            converted.transfer,
            Transfer::Call | Transfer::IndirectCall | Transfer::Other
        ) {
            number = None;
        }
        decoded.instructions.push(converted);
    }
    Some(decoded)
}

pub(super) fn text(code: &[u8], at: Address) -> String {
    let mut formatter = GasFormatter::new();
    formatter.options_mut().set_branch_leading_zeros(false);
    let mut text = String::new();
    formatter.format(&decoder(code, at).decode(), &mut text);
    text
}

/// Whether the code is `nop`, or `nop` with operands, after prefixes of operand size and segments.
pub(super) fn is_padding(code: &[u8]) -> bool {
    let opcode = code.iter().position(|byte| !matches!(byte, 0x66 | 0x2e));
    matches!(opcode.map(|at| &code[at..]), Some([0x90] | [0x0f, 0x1f, ..]))
}
