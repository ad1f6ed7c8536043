//! Selects the instructions that the processor runs natively on the shadow's registers, and emits a thunk for each.

use super::op::{Kind, Op, ThunkRef};
use super::operand::{general, set_memory};
use super::rewrite::{Place, rewrite};
use super::state::Machine;
use super::thunk::{Thunks, Used, Width};
use iced_x86::{
    Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, InstructionInfoFactory, Mnemonic as M, OpAccess,
    OpKind, Register,
};

/// Emits a thunk that runs `instruction` natively; `code` holds its bytes. `None` if it must not run natively.
pub(super) fn by_processor(
    op: &mut Op,
    instruction: &Instruction,
    code: &[u8],
    machine: &Machine,
    thunks: &mut Thunks,
    info: &mut InstructionInfoFactory,
) -> Option<Kind> {
    let refused = instruction.flow_control() != FlowControl::Next
        || instruction.is_privileged()
        || instruction.is_stack_instruction()
        || instruction.is_save_restore_instruction()
        || instruction.is_vsib()
        || instruction.is_string_instruction()
        || refused(instruction.mnemonic());
    if refused {
        return None;
    }
    let explicit = (0..instruction.op_count()).any(|i| instruction.op_kind(i) == OpKind::Memory);
    let mut thunk = ThunkRef {
        offset: 0,
        memory: 0,
        reads_memory: false,
        writes_memory: false,
        writes_flags: instruction.rflags_modified() != 0,
        divides: matches!(instruction.mnemonic(), M::Div | M::Idiv),
    };
    if thunk.divides && !explicit {
        op.src = general(instruction.op0_register())?;
        op.set_size(instruction.op0_register().size());
    }
    if explicit {
        // With a bit index in a register, the instruction accesses memory outside of its operand.
        if matches!(instruction.mnemonic(), M::Bt | M::Bts | M::Btr | M::Btc)
            && instruction.op1_kind() == OpKind::Register
        {
            return None;
        }
        set_memory(op, instruction)?;
        let size = instruction.memory_size().size();
        if !(1..=64).contains(&size) {
            return None;
        }
        thunk.memory = size as u8;
    }
    // With a RIP-relative operand, the instruction uses only the registers that it uses apart from addressing.
    let used_by = if explicit {
        let bytes = rewrite(code, Place::Relative)?;
        let elsewhere = Decoder::with_ip(64, bytes.get(), instruction.ip(), DecoderOptions::NONE).decode();
        if elsewhere.code() != instruction.code() {
            return None;
        }
        elsewhere
    } else {
        *instruction
    };
    let mut used = Used {
        flags: instruction.rflags_read() != 0 || instruction.rflags_modified() != 0,
        writes_flags: thunk.writes_flags,
        width: match instruction.encoding() {
            EncodingKind::VEX => Width::Vex,
            EncodingKind::EVEX => Width::Evex,
            EncodingKind::Legacy => Width::Legacy,
            _ => return None,
        },
        ..Used::default()
    };
    let described = info.info(&used_by);
    for register in described.used_registers() {
        let writes = !matches!(
            register.access(),
            OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess
        );
        let register = register.register();
        if register.is_gpr() {
            used.general |= 1 << register.full_register().number();
        } else if register.is_vector_register() {
            used.vectors |= 1 << register.number();
            used.written_vectors |= u32::from(writes) << register.number();
        } else if register.is_k() {
            used.masks |= 1 << register.number();
        } else if register.is_st() || register.is_mm() {
            used.x87 = true;
        } else if !matches!(
            register,
            Register::None
                | Register::RIP
                | Register::EIP
                | Register::DS
                | Register::SS
                | Register::FS
                | Register::GS
                | Register::ES
                | Register::CS
        ) {
            return None;
        } else if writes {
            // The instruction would write a segment register of the host.
            return None;
        }
    }
    let mut memory_uses = 0;
    for memory in described.used_memory() {
        memory_uses += 1;
        match memory.access() {
            OpAccess::Read | OpAccess::CondRead => thunk.reads_memory = true,
            OpAccess::Write => thunk.writes_memory = true,
            // A masked instruction accesses some of the bytes. The burst reads all, and ends if any is unmapped.
            OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                (thunk.reads_memory, thunk.writes_memory) = (true, true);
            }
            _ => {}
        }
    }
    if memory_uses > usize::from(explicit) {
        return None;
    }
    used.x87 |= instruction.cpuid_features().iter().any(|f| {
        matches!(
            f,
            iced_x86::CpuidFeature::FPU
                | iced_x86::CpuidFeature::FPU287
                | iced_x86::CpuidFeature::FPU387
                | iced_x86::CpuidFeature::MMX
        )
    });
    used.x87 |= instruction.mnemonic() == M::Wait;
    // An unmasked exception leaves the operand unchanged.
    thunk.reads_memory |= used.x87;
    // A thunk needs the host's stack pointer. An encoding requires the processor's extension.
    if used.general & 1 << 4 != 0
        || used.width == Width::Evex && !machine.has_avx512
        || used.width == Width::Vex && !machine.has_avx
        || used.masks != 0 && !machine.has_avx512
        || used.width == Width::Legacy && used.vectors >> 16 != 0
    {
        return None;
    }
    let memory = if explicit {
        Some(*[3u8, 6, 7, 1, 2, 0].iter().find(|r| used.general >> **r & 1 == 0)?)
    } else {
        None
    };
    let base = *[3u8, 6, 7, 1, 2, 0, 8, 9, 10, 11, 14, 15, 5, 13]
        .iter()
        .find(|r| used.general >> **r & 1 == 0 && Some(**r) != memory)?;
    let offset = match memory {
        Some(register) => {
            let bytes = rewrite(code, Place::At(register))?;
            thunks.make(bytes.get(), &used, memory, base, machine)
        }
        None => thunks.make(code, &used, None, base, machine),
    }?;
    thunk.offset = offset;
    op.set_imm(thunk.pack());
    Some(Kind::Thunk)
}

/// Instructions that must not run natively, or whose result depends on where they run.
fn refused(mnemonic: M) -> bool {
    matches!(
        mnemonic,
        M::Xbegin
            | M::Xend
            | M::Xabort
            | M::Xtest
            | M::Wrfsbase
            | M::Wrgsbase
            | M::Rdpkru
            | M::Wrpkru
            | M::Rdsspd
            | M::Rdsspq
            | M::Incsspd
            | M::Incsspq
            | M::Xlatb
            | M::Maskmovdqu
            | M::Maskmovq
            | M::Vmaskmovdqu
            | M::Clflush
            | M::Clflushopt
            | M::Clwb
            | M::Cldemote
            | M::Clzero
            | M::Monitorx
            | M::Mwaitx
            | M::Umonitor
            | M::Umwait
            | M::Tpause
            | M::Emms
            | M::Fldenv
            | M::Fnstenv
            | M::Frstor
            | M::Fnsave
            | M::Enter
            | M::Lds
            | M::Les
            | M::Lfs
            | M::Lgs
            | M::Lss
            | M::Sgdt
            | M::Sidt
            | M::Sldt
            | M::Smsw
            | M::Str
            | M::Lsl
            | M::Lar
            | M::Verr
            | M::Verw
    )
}
