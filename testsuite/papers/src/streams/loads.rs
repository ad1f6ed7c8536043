//! Observes the loads of a burst, for value profiles.

#![allow(unsafe_code, reason = "the stepped program's memory is read")]

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register};
use pleach_shadow::{End, Engine, Limits, Observed, Outcome};
use pleach_wire::x86::MAX_LENGTH;

const PAGE: u64 = 4096;

/// Continues a burst as [`Engine::go_on`] does, one instruction at a time, and passes to `loads` the address of each
/// load instruction and the loaded value, zero-extended. Much slower than [`Engine::go_on`].
///
/// Loads are instructions with a memory operand of at most eight bytes that they read and do not write, except string
/// instructions, pops, returns, and accesses by `gs`.
///
/// # Safety
/// Memory that an instruction has read remains mapped until the next instruction.
pub unsafe fn observe(
    engine: &mut Engine,
    limits: &Limits,
    observed: &mut dyn FnMut(Observed),
    loads: &mut dyn FnMut(u64, u64),
) -> Outcome {
    let mut all = Outcome {
        end: End::Instructions,
        end_pc: engine.state().pc(),
        instructions: 0,
        branches: 0,
        decodes: 0,
        thunks: 0,
    };
    while all.instructions < limits.max_instructions {
        let (pc, before, fs) = (engine.state().pc(), *engine.state().general(), engine.state().fs_base());
        let step = Limits {
            max_instructions: 1,
            max_branches: limits.max_branches - all.branches,
            max_new_decodes: limits.max_new_decodes - all.decodes,
        };
        let outcome = engine.go_on(&step, observed);
        (all.end, all.end_pc) = (outcome.end, outcome.end_pc);
        all.instructions += outcome.instructions;
        all.branches += outcome.branches;
        all.decodes += outcome.decodes;
        all.thunks += outcome.thunks;
        if outcome.instructions == 1 {
            // SAFETY: the instruction ran in the last step, so its bytes are readable, as the caller promises.
            let instruction = unsafe { instruction_at(engine, pc) };
            if let Some((address, size)) = load_of(&instruction, &before, fs) {
                let mut value = [0; 8];
                // SAFETY: the instruction has read these bytes in the last step, and the caller promises that they
                // remain.
                unsafe { engine.read(address, &mut value[..size]) };
                loads(pc, u64::from_le_bytes(value));
            }
        }
        if outcome.end != End::Instructions {
            break;
        }
    }
    all
}

/// # Safety
/// There is an instruction at this address.
unsafe fn instruction_at(engine: &Engine, pc: u64) -> Instruction {
    let mut bytes = [0; MAX_LENGTH];
    let in_page = ((PAGE - pc % PAGE) as usize).min(MAX_LENGTH);
    // SAFETY: these bytes are on the page of the instruction's first byte, which is readable.
    unsafe { engine.read(pc, &mut bytes[..in_page]) };
    let mut decoder = Decoder::with_ip(64, &bytes[..in_page], pc, DecoderOptions::NONE);
    let instruction = decoder.decode();
    if !instruction.is_invalid() || in_page == MAX_LENGTH {
        return instruction;
    }
    // SAFETY: the instruction is incomplete on the first page and ran, so the next page is readable too.
    unsafe { engine.read(pc, &mut bytes) };
    Decoder::with_ip(64, &bytes, pc, DecoderOptions::NONE).decode()
}

/// Address and size of an instruction's load, given the general registers and fs before it.
pub(super) fn load_of(instruction: &Instruction, before: &[u64; 16], fs: u64) -> Option<(u64, usize)> {
    if !instruction.op_kinds().any(|kind| kind == OpKind::Memory) {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_memory();
    let load = used.iter().find(|used| used.access() == OpAccess::Read)?;
    let size = load.memory_size().size();
    let address = load.virtual_address(0, |register, _, _| match register {
        Register::ES | Register::CS | Register::SS | Register::DS => Some(0),
        Register::FS => Some(fs),
        general if general.is_gpr64() => before.get(general.number()).copied(),
        general if general.is_gpr32() => before.get(general.number()).map(|value| value & 0xffff_ffff),
        _ => None,
    })?;
    (1..=8).contains(&size).then_some((address, size))
}
