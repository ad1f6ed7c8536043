//! String instructions, repeated or not.

use super::access::{Step, bytes};
use super::alu;
use super::op::{Kind, Op, Repeat};
use super::state::ZERO;
use super::{End, Engine};

const RAX: u8 = 0;
const RCX: usize = 1;
const RSI: usize = 6;
const RDI: usize = 7;
/// Maximum of iterations of one instruction. They count as one instruction.
const MAX_REPEAT: u64 = 4096;

/// Runs a string instruction with all its iterations. If an iteration fails, earlier ones remain done, as on the
/// processor.
///
/// # Safety
/// Called within a burst.
pub(super) unsafe fn run(engine: &mut Engine, op: &Op) -> Step {
    let size = op.size();
    let repeats = op.extra() != Repeat::Once as u8;
    let compares = matches!(op.kind, Kind::Scas | Kind::Cmps);
    let by = if engine.state.is_backwards() {
        bytes(size).wrapping_neg()
    } else {
        bytes(size)
    };
    if repeats && !compares && engine.state.registers[RCX] > MAX_REPEAT {
        return Err(End::Repeat);
    }
    let mut done = 0;
    loop {
        if repeats {
            if engine.state.registers[RCX] == 0 {
                return Ok(());
            }
            if done >= MAX_REPEAT {
                return Err(End::Repeat);
            }
        }
        let (from, to) = (engine.state.registers[RSI], engine.state.registers[RDI]);
        // SAFETY: Loads may fault (burst invariant).
        unsafe {
            match op.kind {
                Kind::Movs => {
                    let value = engine.load(from, size);
                    engine.store(to, size, value)?;
                }
                Kind::Stos => engine.store(to, size, engine.register(RAX))?,
                Kind::Lods => {
                    let value = engine.load(from, size);
                    engine.write(RAX, size, value);
                }
                Kind::Scas => {
                    let value = engine.load(to, size);
                    engine.state.flags = alu::binary(alu::CMP, size, engine.register(RAX), value, engine.state.flags).1;
                }
                _ => {
                    let (a, b) = (engine.load(from, size), engine.load(to, size));
                    engine.state.flags = alu::binary(alu::CMP, size, a, b, engine.state.flags).1;
                }
            }
        }
        if !matches!(op.kind, Kind::Stos | Kind::Scas) {
            engine.state.registers[RSI] = from.wrapping_add(by);
        }
        if op.kind != Kind::Lods {
            engine.state.registers[RDI] = to.wrapping_add(by);
        }
        if !repeats {
            return Ok(());
        }
        done += 1;
        engine.state.registers[RCX] = engine.state.registers[RCX].wrapping_sub(1);
        let equal = engine.state.flags & ZERO != 0;
        if compares && equal != (op.extra() == Repeat::Equal as u8) {
            return Ok(());
        }
    }
}
