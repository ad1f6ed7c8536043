//! From bytes to [`Op`]s.

use super::alu::{ROL_BY_CONSTANT, ROR_BY_CONSTANT, TEST};
use super::native::by_processor;
use super::op::{FS, GS, Kind, Op, Repeat, SEGMENT_FS, SEGMENT_GS};
use super::operand::{Operand, general, operand, set_memory, size_of_operand};
use super::state::Machine;
use super::thunk::Thunks;
use super::{gather, save, taint};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic as M, OpKind, Register,
};

/// Decodes the instruction at an address: as an [`Op`], and as the decoder's own type. `None` if the bytes are no
/// instruction.
pub(super) fn decode(
    code: &[u8],
    address: u64,
    machine: &Machine,
    thunks: &mut Thunks,
    info: &mut InstructionInfoFactory,
) -> Option<(Op, Instruction)> {
    let instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        return None;
    }
    let op = translate(&instruction, code, machine, thunks, info);
    Some((op, instruction))
}

fn translate(
    instruction: &Instruction,
    code: &[u8],
    machine: &Machine,
    thunks: &mut Thunks,
    info: &mut InstructionInfoFactory,
) -> Op {
    let mut op = Op::new(instruction.len());
    let is_jump = matches!(
        instruction.flow_control(),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
    );
    if is_jump && code.first() == Some(&0x66) {
        // Some processors truncate the target to 16 bits, others do not.
        return op;
    }
    let known = set_memory(&mut op, instruction).is_some() && interpreted(&mut op, instruction, machine).is_some();
    if known || gather::decode(&mut op, instruction, machine).is_some() {
        return op;
    }
    let code = code.get(..instruction.len()).unwrap_or_default();
    if save::decode(&mut op, instruction, code, machine, thunks).is_none() {
        op.kind = by_processor(&mut op, instruction, code, machine, thunks, info).unwrap_or(Kind::Stop);
    }
    op
}

fn condition(code: iced_x86::ConditionCode) -> u8 {
    use iced_x86::ConditionCode as C;
    match code {
        C::o => 0,
        C::no => 1,
        C::b => 2,
        C::ae => 3,
        C::e => 4,
        C::ne => 5,
        C::be => 6,
        C::a => 7,
        C::s => 8,
        C::ns => 9,
        C::p => 10,
        C::np => 11,
        C::l => 12,
        C::ge => 13,
        C::le => 14,
        _ => 15,
    }
}

/// Fills in an instruction that is interpreted; `None` for any other.
fn interpreted(op: &mut Op, instruction: &Instruction, machine: &Machine) -> Option<()> {
    match instruction.flow_control() {
        FlowControl::Next => {}
        _ => return flow(op, instruction),
    }
    let mnemonic = instruction.mnemonic();
    // `lock` prefixes are ignored, because other threads do not see the overlay.
    match mnemonic {
        M::Nop
        | M::Endbr64
        | M::Endbr32
        | M::Pause
        | M::Mfence
        | M::Lfence
        | M::Sfence
        | M::Prefetcht0
        | M::Prefetcht1
        | M::Prefetcht2
        | M::Prefetchnta
        | M::Prefetchw
        | M::Fnop => op.kind = Kind::Nop,
        M::Clc => op.kind = Kind::Clc,
        M::Stc => op.kind = Kind::Stc,
        M::Cmc => op.kind = Kind::Cmc,
        M::Cld => op.kind = Kind::Cld,
        M::Std => op.kind = Kind::Std,
        M::Lahf => op.kind = Kind::Lahf,
        M::Sahf => op.kind = Kind::Sahf,
        M::Rdtsc | M::Rdtscp | M::Cpuid | M::Rdrand | M::Rdseed | M::Rdpid | M::Xgetbv => {
            op.kind = Kind::Unknown;
            op.set_extra(taint::TaintSource::from_mnemonic(mnemonic) as u8);
            if instruction.op0_kind() == OpKind::Register && instruction.op_count() > 0 {
                op.dst = general(instruction.op0_register())?;
                op.set_size(instruction.op0_register().size());
            }
        }
        // Without a shadow stack they do nothing.
        M::Rdsspd | M::Rdsspq if !machine.has_shadow_stack => op.kind = Kind::Nop,
        M::Rdfsbase | M::Rdgsbase => {
            op.kind = Kind::MovRR;
            op.dst = general(instruction.op0_register())?;
            op.src = if mnemonic == M::Rdfsbase { FS } else { GS };
            op.set_size(instruction.op0_register().size());
        }
        M::Pushfq => op.kind = Kind::PushFlags,
        M::Popfq => op.kind = Kind::PopFlags,
        M::Vzeroupper => op.kind = Kind::ZeroUpper,
        M::Vzeroall => {
            op.kind = Kind::ZeroUpper;
            op.set_extra(1);
        }
        M::Mov => moves(op, instruction)?,
        M::Movzx => extend(op, instruction, Kind::ZeroExtendR, Kind::ZeroExtendM)?,
        // Processors differ in the number of bytes that this form reads.
        M::Movsxd if instruction.op0_register().size() == 2 => return None,
        M::Movsx | M::Movsxd => extend(op, instruction, Kind::SignExtendR, Kind::SignExtendM)?,
        M::Lea => {
            op.kind = Kind::Lea;
            op.scale &= !(SEGMENT_FS | SEGMENT_GS);
            op.dst = general(instruction.op0_register())?;
            op.set_size(instruction.op0_register().size());
        }
        M::Add => alu(op, instruction, 0)?,
        M::Or => alu(op, instruction, 1)?,
        M::Adc => alu(op, instruction, 2)?,
        M::Sbb => alu(op, instruction, 3)?,
        M::And => alu(op, instruction, 4)?,
        M::Sub => alu(op, instruction, 5)?,
        M::Xor => alu(op, instruction, 6)?,
        M::Cmp => alu(op, instruction, super::alu::CMP)?,
        M::Test => alu(op, instruction, TEST)?,
        M::Inc => unary(op, instruction, 0)?,
        M::Dec => unary(op, instruction, 1)?,
        M::Not => unary(op, instruction, 2)?,
        M::Neg => unary(op, instruction, 3)?,
        M::Rol => shift(op, instruction, 0)?,
        M::Ror => shift(op, instruction, 1)?,
        M::Rcl => shift(op, instruction, 2)?,
        M::Rcr => shift(op, instruction, 3)?,
        M::Shl | M::Sal => shift(op, instruction, 4)?,
        M::Shr => shift(op, instruction, 5)?,
        M::Sar => shift(op, instruction, 7)?,
        M::Imul if instruction.op_count() > 1 => imul(op, instruction)?,
        M::Mul | M::Imul => {
            op.set_size(size_of_operand(instruction, 0));
            op.set_extra((mnemonic == M::Imul).into());
            match operand(instruction, 0)? {
                Operand::Register(register) => (op.kind, op.src) = (Kind::MulR, register),
                _ => op.kind = Kind::MulM,
            }
        }
        M::Xchg => exchange(op, instruction)?,
        M::Push | M::Pop => stack(op, instruction, mnemonic == M::Push)?,
        M::Leave if instruction.code() == Code::Leaveq => op.kind = Kind::Leave,
        M::Cbw | M::Cwde | M::Cdqe => {
            op.kind = Kind::Widen;
            op.set_size(match mnemonic {
                M::Cbw => 2,
                M::Cwde => 4,
                _ => 8,
            });
        }
        M::Cwd | M::Cdq | M::Cqo => {
            op.kind = Kind::SpreadSign;
            op.set_size(match mnemonic {
                M::Cwd => 2,
                M::Cdq => 4,
                _ => 8,
            });
        }
        _ if instruction.is_string_instruction() => string(op, instruction)?,
        _ if is_cmov(mnemonic) => {
            op.set_size(instruction.op0_register().size());
            op.set_extra(condition(instruction.condition_code()));
            op.dst = general(instruction.op0_register())?;
            match operand(instruction, 1)? {
                Operand::Register(register) => (op.kind, op.src) = (Kind::CmovR, register),
                _ => op.kind = Kind::CmovM,
            }
        }
        _ if is_setcc(mnemonic) => {
            op.set_size(1);
            op.set_extra(condition(instruction.condition_code()));
            match operand(instruction, 0)? {
                Operand::Register(register) => (op.kind, op.dst) = (Kind::SetR, register),
                _ => op.kind = Kind::SetM,
            }
        }
        M::Movups | M::Movaps | M::Movdqu | M::Movdqa | M::Movupd | M::Movapd => vector(op, instruction)?,
        _ => return None,
    }
    Some(())
}

fn is_cmov(mnemonic: M) -> bool {
    matches!(
        mnemonic,
        M::Cmovo
            | M::Cmovno
            | M::Cmovb
            | M::Cmovae
            | M::Cmove
            | M::Cmovne
            | M::Cmovbe
            | M::Cmova
            | M::Cmovs
            | M::Cmovns
            | M::Cmovp
            | M::Cmovnp
            | M::Cmovl
            | M::Cmovge
            | M::Cmovle
            | M::Cmovg
    )
}

fn is_setcc(mnemonic: M) -> bool {
    matches!(
        mnemonic,
        M::Seto
            | M::Setno
            | M::Setb
            | M::Setae
            | M::Sete
            | M::Setne
            | M::Setbe
            | M::Seta
            | M::Sets
            | M::Setns
            | M::Setp
            | M::Setnp
            | M::Setl
            | M::Setge
            | M::Setle
            | M::Setg
    )
}

fn moves(op: &mut Op, instruction: &Instruction) -> Option<()> {
    let (to, from) = (operand(instruction, 0)?, operand(instruction, 1)?);
    op.set_size(size_of_operand(instruction, 0));
    match (to, from) {
        (Operand::Register(to), Operand::Register(from)) => (op.kind, op.dst, op.src) = (Kind::MovRR, to, from),
        (Operand::Register(to), Operand::Immediate(value)) => {
            // A value that does not fit in 32 bits takes the next slot.
            let is_wide = op.size() == 3 && i64::from(value as i32) as u64 != value;
            (op.kind, op.dst) = (if is_wide { Kind::MovWide } else { Kind::MovRI }, to);
            op.set_imm(value);
        }
        (Operand::Register(to), Operand::Memory) => (op.kind, op.dst) = (Kind::Load, to),
        (Operand::Memory, Operand::Register(from)) => (op.kind, op.src) = (Kind::Store, from),
        (Operand::Memory, Operand::Immediate(value)) => {
            op.kind = Kind::StoreI;
            op.set_imm(value);
        }
        _ => return None,
    }
    Some(())
}

fn extend(op: &mut Op, instruction: &Instruction, from_register: Kind, from_memory: Kind) -> Option<()> {
    op.dst = general(instruction.op0_register())?;
    op.set_size(instruction.op0_register().size());
    op.set_extra(size_of_operand(instruction, 1).trailing_zeros() as u8);
    match operand(instruction, 1)? {
        Operand::Register(register) => (op.kind, op.src) = (from_register, register),
        _ => op.kind = from_memory,
    }
    Some(())
}

fn alu(op: &mut Op, instruction: &Instruction, what: u8) -> Option<()> {
    let (to, from) = (operand(instruction, 0)?, operand(instruction, 1)?);
    op.set_size(size_of_operand(instruction, 0));
    op.set_extra(what);
    match (to, from) {
        (Operand::Register(to), Operand::Register(from)) => (op.kind, op.dst, op.src) = (Kind::AluRR, to, from),
        (Operand::Register(to), Operand::Immediate(value)) => {
            (op.kind, op.dst) = (Kind::AluRI, to);
            op.set_imm(value);
        }
        (Operand::Register(to), Operand::Memory) => (op.kind, op.dst) = (Kind::AluRM, to),
        (Operand::Memory, Operand::Register(from)) => (op.kind, op.src) = (Kind::AluMR, from),
        (Operand::Memory, Operand::Immediate(value)) => {
            op.kind = Kind::AluMI;
            op.set_imm(value);
        }
        _ => return None,
    }
    Some(())
}

fn unary(op: &mut Op, instruction: &Instruction, what: u8) -> Option<()> {
    op.set_size(size_of_operand(instruction, 0));
    op.set_extra(what);
    match operand(instruction, 0)? {
        Operand::Register(register) => (op.kind, op.dst) = (Kind::UnaryR, register),
        _ => op.kind = Kind::UnaryM,
    }
    Some(())
}

fn shift(op: &mut Op, instruction: &Instruction, what: u8) -> Option<()> {
    op.set_size(size_of_operand(instruction, 0));
    op.set_extra(what);
    let by_register = instruction.op1_kind() == OpKind::Register;
    if !by_register {
        op.set_imm(instruction.immediate(1));
        match what {
            0 => op.set_extra(ROL_BY_CONSTANT),
            1 => op.set_extra(ROR_BY_CONSTANT),
            _ => {}
        }
    }
    op.kind = match (operand(instruction, 0)?, by_register) {
        (Operand::Register(register), by_register) => {
            op.dst = register;
            if by_register { Kind::ShiftRC } else { Kind::ShiftRI }
        }
        (_, true) => Kind::ShiftMC,
        (_, false) => Kind::ShiftMI,
    };
    Some(())
}

fn imul(op: &mut Op, instruction: &Instruction) -> Option<()> {
    op.dst = general(instruction.op0_register())?;
    op.set_size(instruction.op0_register().size());
    let third = instruction.op_count() == 3;
    if third {
        op.set_imm(instruction.immediate(2));
    }
    op.kind = match (operand(instruction, 1)?, third) {
        (Operand::Register(register), third) => {
            op.src = register;
            if third { Kind::ImulRRI } else { Kind::ImulRR }
        }
        (_, true) => Kind::ImulRMI,
        (_, false) => Kind::ImulRM,
    };
    Some(())
}

fn exchange(op: &mut Op, instruction: &Instruction) -> Option<()> {
    op.set_size(size_of_operand(instruction, 0));
    match (operand(instruction, 0)?, operand(instruction, 1)?) {
        (Operand::Register(a), Operand::Register(b)) => (op.kind, op.dst, op.src) = (Kind::XchgRR, a, b),
        (Operand::Memory, Operand::Register(b)) | (Operand::Register(b), Operand::Memory) => {
            (op.kind, op.src) = (Kind::XchgMR, b);
        }
        _ => return None,
    }
    Some(())
}

fn stack(op: &mut Op, instruction: &Instruction, push: bool) -> Option<()> {
    // Pushes of 16 bits or of segment registers are not supported.
    if instruction.stack_pointer_increment().abs() != 8 {
        return None;
    }
    op.set_size(8);
    op.kind = match (operand(instruction, 0)?, push) {
        (Operand::Register(register), true) => {
            op.src = register;
            Kind::PushR
        }
        (Operand::Immediate(value), true) => {
            op.set_imm(value);
            Kind::PushI
        }
        (Operand::Memory, true) => Kind::PushM,
        (Operand::Register(register), false) => {
            op.dst = register;
            Kind::PopR
        }
        (Operand::Memory, false) => Kind::PopM,
        _ => return None,
    };
    Some(())
}

fn string(op: &mut Op, instruction: &Instruction) -> Option<()> {
    let (kind, size) = match instruction.mnemonic() {
        M::Movsb => (Kind::Movs, 1),
        M::Movsw => (Kind::Movs, 2),
        // The vector instruction has the same name.
        M::Movsd if instruction.code() == Code::Movsd_m32_m32 => (Kind::Movs, 4),
        M::Movsq => (Kind::Movs, 8),
        M::Stosb => (Kind::Stos, 1),
        M::Stosw => (Kind::Stos, 2),
        M::Stosd => (Kind::Stos, 4),
        M::Stosq => (Kind::Stos, 8),
        M::Lodsb => (Kind::Lods, 1),
        M::Lodsw => (Kind::Lods, 2),
        M::Lodsd => (Kind::Lods, 4),
        M::Lodsq => (Kind::Lods, 8),
        M::Scasb => (Kind::Scas, 1),
        M::Scasw => (Kind::Scas, 2),
        M::Scasd => (Kind::Scas, 4),
        M::Scasq => (Kind::Scas, 8),
        M::Cmpsb => (Kind::Cmps, 1),
        M::Cmpsw => (Kind::Cmps, 2),
        M::Cmpsd if instruction.code() == Code::Cmpsd_m32_m32 => (Kind::Cmps, 4),
        M::Cmpsq => (Kind::Cmps, 8),
        _ => return None,
    };
    let has_short_address = (0..instruction.op_count()).any(|i| {
        matches!(
            instruction.op_kind(i),
            OpKind::MemorySegSI
                | OpKind::MemorySegESI
                | OpKind::MemorySegDI
                | OpKind::MemorySegEDI
                | OpKind::MemoryESDI
                | OpKind::MemoryESEDI
        )
    });
    if has_short_address || !matches!(instruction.segment_prefix(), Register::None | Register::DS) {
        return None;
    }
    op.kind = kind;
    op.set_size(size);
    let repeat = if instruction.has_repne_prefix() {
        Repeat::NotEqual
    } else if instruction.has_rep_prefix() {
        Repeat::Equal
    } else {
        Repeat::Once
    };
    op.set_extra(repeat as u8);
    Some(())
}

fn vector(op: &mut Op, instruction: &Instruction) -> Option<()> {
    let number = |i: u32| {
        let register = instruction.op_register(i);
        (instruction.op_kind(i) == OpKind::Register && register.is_xmm()).then(|| register.number() as u8)
    };
    // These instructions fault if their operand is not aligned.
    let aligned = matches!(instruction.mnemonic(), M::Movaps | M::Movdqa | M::Movapd);
    op.set_extra(aligned.into());
    match (number(0), number(1)) {
        (Some(to), Some(from)) => (op.kind, op.dst, op.src) = (Kind::VectorMove, to, from),
        (Some(to), None) => (op.kind, op.dst) = (Kind::VectorLoad, to),
        (None, Some(from)) => (op.kind, op.src) = (Kind::VectorStore, from),
        (None, None) => return None,
    }
    Some(())
}

/// Jumps, calls, and entries to the kernel.
fn flow(op: &mut Op, instruction: &Instruction) -> Option<()> {
    // The distance from the next instruction.
    op.set_imm(instruction.near_branch_target().wrapping_sub(instruction.next_ip()));
    op.set_size(8);
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch if instruction.is_jmp_short_or_near() => {
            op.kind = Kind::Jump;
        }
        FlowControl::ConditionalBranch if instruction.is_jcc_short_or_near() => {
            op.kind = Kind::JumpIf;
            op.set_extra(condition(instruction.condition_code()));
        }
        FlowControl::ConditionalBranch => {
            op.kind = Kind::Loop;
            op.set_extra(match instruction.code() {
                Code::Jrcxz_rel8_64 => 0,
                Code::Loop_rel8_64_RCX => 1,
                Code::Loope_rel8_64_RCX => 2,
                Code::Loopne_rel8_64_RCX => 3,
                _ => return None,
            });
        }
        FlowControl::Call if instruction.is_call_near() => op.kind = Kind::Call,
        FlowControl::IndirectBranch | FlowControl::IndirectCall => {
            let is_call = instruction.flow_control() == FlowControl::IndirectCall;
            if !instruction.is_jmp_near_indirect() && !instruction.is_call_near_indirect() {
                return None;
            }
            op.kind = match (operand(instruction, 0)?, is_call) {
                (Operand::Register(register), call) if instruction.op0_register().size() == 8 => {
                    op.src = register;
                    if call { Kind::CallR } else { Kind::JumpR }
                }
                (Operand::Memory, call) if instruction.memory_size().size() == 8 => {
                    if call {
                        Kind::CallM
                    } else {
                        Kind::JumpM
                    }
                }
                _ => return None,
            };
        }
        FlowControl::Return if matches!(instruction.code(), Code::Retnq | Code::Retnq_imm16) => {
            op.kind = Kind::Return;
            op.set_imm(0);
            if instruction.op_count() > 0 {
                op.set_imm(instruction.immediate(0));
            }
        }
        FlowControl::Call if matches!(instruction.mnemonic(), M::Syscall | M::Sysenter) => op.kind = Kind::SystemCall,
        FlowControl::Interrupt => op.kind = Kind::SystemCall,
        _ => return None,
    }
    Some(())
}
