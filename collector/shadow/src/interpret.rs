//! The interpreter: runs block after block, instruction after instruction.

use super::access::{Step, bytes};
use super::alu::{self, CMP, TEST};
use super::blocks::Blocks;
use super::op::{HIGH, Kind, NONE, Op, RIP, ThunkRef};
use super::rewrite::MAX_LENGTH;
use super::{End, Engine, Observed, Sink, Taken, gather, save, strings};
use iced_x86::{Decoder, DecoderOptions};

const RCX: usize = 1;
const RDX: usize = 2;
const RSP: usize = 4;
const RBP: usize = 5;

/// Runs ahead until a limit or an instruction that ends the burst. The result is in the engine.
///
/// # Safety
/// Called through [`super::fault::enter`], by a thread that alone uses the engine.
pub(super) unsafe extern "C" fn follow(engine: *mut Engine) {
    // SAFETY: Exclusive: the caller passes an engine of a burst that has just been entered.
    unsafe { (*engine).end = (*engine).follow() };
}

fn sign_extend(value: u64, size: u8) -> u64 {
    let shift = 64 - 8 * bytes(size);
    ((value << shift) as i64 >> shift) as u64
}

impl Engine {
    unsafe fn push(&mut self, value: u64) -> Step {
        let to = self.state.registers[RSP].wrapping_sub(8);
        self.store(to, 3, value)?;
        self.state.registers[RSP] = to;
        Ok(())
    }

    /// Transfers control, and reports the branch if it is taken.
    #[inline(always)]
    fn branch(&mut self, from: u64, to: u64, next: u64, conditional: bool) -> Step {
        reachable(to)?;
        self.state.pc = to;
        // A conditional branch to the next instruction counts as not taken.
        if conditional && to == next {
            return Ok(());
        }
        self.branches_left -= 1;
        if let Some(Sink(sink)) = self.sink {
            // SAFETY: `go_on` set the sink for this burst and clears it before its referent goes out of scope.
            unsafe {
                (*sink)(Observed::Taken(Taken {
                    from,
                    to,
                    third_argument: (self.taint.general & 1 << RDX == 0).then_some(self.state.registers[RDX]),
                }));
            }
        }
        self.look_for_spinning(to)
    }

    /// Ends the burst if a state recurs without a store in between: the program would repeat it forever. The state is
    /// compared with one that is saved whenever the number of branches reaches a power of two.
    #[inline(always)]
    fn look_for_spinning(&mut self, to: u64) -> Step {
        let spin = &mut self.spin;
        spin.count = spin.count.wrapping_add(1);
        if spin.pc == to
            && spin.effects == self.effects
            && spin.registers == *self.state.general()
            && spin.flags == self.state.flags
        {
            return Err(End::Spin);
        }
        if spin.count.is_power_of_two() {
            spin.pc = to;
            spin.effects = self.effects;
            spin.registers = *self.state.general();
            spin.flags = self.state.flags;
        }
        Ok(())
    }

    /// Runs block after block.
    ///
    /// # Safety
    /// Called within a burst.
    unsafe fn follow(&mut self) -> End {
        let mut resumed = self.resume();
        let mut link = None;
        loop {
            if self.instructions_left == 0 {
                return End::Instructions;
            }
            if self.branches_left == 0 {
                return End::Branches;
            }
            let (block, mut slot, end) = match resumed.take() {
                Some(cursor) => (cursor.block, cursor.slot, cursor.end),
                None => {
                    // SAFETY: the caller is in a burst, as `enter` requires.
                    let block = match unsafe { self.enter(link) } {
                        Ok(block) => block,
                        Err(end) => return end,
                    };
                    let (slot, end) = self.blocks.range(block);
                    (block, slot, end)
                }
            };
            let mut next = self.state.pc;
            while slot < end {
                if self.instructions_left == 0 {
                    self.stop_at(block, slot, end);
                    return End::Instructions;
                }
                // SAFETY: Exclusive: the slot is one of this block's instructions, because constants are stepped over,
                // and `Blocks` changes only between instructions.
                let op = unsafe { &*self.blocks.op(slot) };
                next = next.wrapping_add(op.length.into());
                // SAFETY: the caller is in a burst, and `op` is the instruction in `slot`.
                let stepped = unsafe {
                    if self.is_tainted {
                        self.step_tainted(op, slot)
                    } else {
                        self.step(op, slot)
                    }
                };
                if let Err(end) = stepped {
                    return end;
                }
                self.instructions_left -= 1;
                slot += 1 + usize::from(op.kind == Kind::MovWide);
            }
            link = Some(Blocks::link(block, self.state.pc == next));
        }
    }

    /// Runs the instruction in a slot. If that fails, the state is unchanged.
    ///
    /// # Safety
    /// Called within a burst; `op` is the instruction in `slot`.
    #[inline(always)]
    unsafe fn step(&mut self, op: &Op, slot: usize) -> Step {
        // Code is specialised by size: this leaves one indirect jump per instruction instead of several branches.
        // SAFETY: the caller is in a burst, and `op` is the instruction in `slot`.
        unsafe {
            match op.size() {
                3 => self.sized_step::<3>(op, slot),
                2 => self.sized_step::<2>(op, slot),
                1 => self.small_step::<1>(op, slot),
                _ => self.small_step::<0>(op, slot),
            }
        }
    }

    /// Runs the instruction in a slot while a value is tainted.
    ///
    /// # Safety
    /// Called within a burst; `op` is the instruction in `slot`.
    #[cold]
    #[inline(never)]
    unsafe fn step_tainted(&mut self, op: &Op, slot: usize) -> Step {
        if matches!(op.kind, Kind::Unknown | Kind::Nop) {
            // SAFETY: the caller is in a burst, and `op` is the instruction in `slot`.
            return unsafe { self.step(op, slot) };
        }
        self.tainted_left = self.tainted_left.checked_sub(1).ok_or(End::Taint)?;
        let mut code = [0; MAX_LENGTH];
        let code = &mut code[..usize::from(op.length).min(MAX_LENGTH)];
        // SAFETY: Loads may fault (burst invariant).
        unsafe { self.copy_memory(self.state.pc, code) };
        let instruction = Decoder::with_ip(64, code, self.state.pc, DecoderOptions::NONE).decode();
        // SAFETY: the caller is in a burst.
        let is_own = op.kind == Kind::Save && (op.extra() & 1 == 0 || unsafe { self.restores_what_was_saved(op) });
        let effect = self.effect(&instruction, is_own).ok_or(End::Taint)?;
        // SAFETY: the caller is in a burst, and `op` is the instruction in `slot`.
        unsafe { self.step(op, slot)? };
        self.apply(&effect);
        Ok(())
    }

    #[inline(never)]
    unsafe fn small_step<const SIZE: u8>(&mut self, op: &Op, slot: usize) -> Step {
        // SAFETY: the caller is in a burst, and `op` is the instruction in `slot`.
        unsafe { self.sized_step::<SIZE>(op, slot) }
    }

    /// `SIZE`: the logarithm of the operand's size.
    #[inline(always)]
    unsafe fn sized_step<const SIZE: u8>(&mut self, op: &Op, slot: usize) -> Step {
        let pc = self.state.pc;
        let size = SIZE;
        // SAFETY: Loads may fault and Thunk code (burst invariant): every call below needs no more than to be within a
        // burst.
        unsafe {
            let next = pc.wrapping_add(op.length.into());
            match op.kind {
                Kind::Nop => {}
                Kind::MovRR => self.write(op.dst, size, self.part(op.src, size)),
                Kind::MovRI => self.write(op.dst, size, op.imm()),
                Kind::MovWide => self.write(op.dst, size, self.blocks.constant(slot)),
                Kind::Load => {
                    let value = self.load(self.address(op), size);
                    self.write(op.dst, size, value);
                }
                Kind::Store => self.store(self.address(op), size, self.part(op.src, size))?,
                Kind::StoreI => self.store(self.address(op), size, op.imm())?,
                Kind::ZeroExtendR => self.write(op.dst, size, self.part(op.src, op.extra())),
                Kind::ZeroExtendM => {
                    let value = self.load(self.address(op), op.extra());
                    self.write(op.dst, size, value);
                }
                Kind::SignExtendR => self.write(op.dst, size, sign_extend(self.part(op.src, op.extra()), op.extra())),
                Kind::SignExtendM => {
                    let value = self.load(self.address(op), op.extra());
                    self.write(op.dst, size, sign_extend(value, op.extra()));
                }
                Kind::Lea => self.write(op.dst, size, self.address(op)),
                Kind::AluRR => self.arithmetic::<SIZE>(op, self.part(op.src, size)),
                Kind::AluRI => self.arithmetic::<SIZE>(op, op.imm()),
                Kind::AluRM => {
                    let value = self.load(self.address(op), size);
                    self.arithmetic::<SIZE>(op, value);
                }
                Kind::AluMR => self.arithmetic_in_memory::<SIZE>(op, self.part(op.src, size))?,
                Kind::AluMI => self.arithmetic_in_memory::<SIZE>(op, op.imm())?,
                Kind::UnaryR => {
                    let (result, flags) = alu::unary(op.extra(), size, self.part(op.dst, size), self.state.flags);
                    self.state.flags = flags;
                    self.write(op.dst, size, result);
                }
                Kind::UnaryM => {
                    let address = self.address(op);
                    let (result, flags) = alu::unary(op.extra(), size, self.load(address, size), self.state.flags);
                    self.store(address, size, result)?;
                    self.state.flags = flags;
                }
                Kind::ShiftRI => self.shift::<SIZE>(op, op.imm()),
                Kind::ShiftRC => self.shift::<SIZE>(op, self.register(1)),
                Kind::ShiftMI => self.shift_in_memory::<SIZE>(op, op.imm())?,
                Kind::ShiftMC => self.shift_in_memory::<SIZE>(op, self.register(1))?,
                Kind::ImulRR => self.product::<SIZE>(op, self.part(op.dst, size), self.part(op.src, size)),
                Kind::ImulRM => {
                    let value = self.load(self.address(op), size);
                    self.product::<SIZE>(op, self.part(op.dst, size), value);
                }
                Kind::ImulRRI => self.product::<SIZE>(op, self.part(op.src, size), op.imm()),
                Kind::ImulRMI => {
                    let value = self.load(self.address(op), size);
                    self.product::<SIZE>(op, value, op.imm());
                }
                Kind::MulR => self.wide_product::<SIZE>(op, self.part(op.src, size)),
                Kind::MulM => {
                    let value = self.load(self.address(op), size);
                    self.wide_product::<SIZE>(op, value);
                }
                Kind::CmovR => self.conditional_move::<SIZE>(op, self.part(op.src, size)),
                Kind::CmovM => {
                    let value = self.load(self.address(op), size);
                    self.conditional_move::<SIZE>(op, value);
                }
                Kind::SetR => self.write(op.dst, 0, alu::condition(op.extra(), self.state.flags).into()),
                Kind::SetM => {
                    let value = alu::condition(op.extra(), self.state.flags).into();
                    self.store(self.address(op), 0, value)?;
                }
                Kind::PushR => self.push(self.register(op.src))?,
                Kind::PushI => self.push(op.imm())?,
                Kind::PushM => {
                    let value = self.load(self.address(op), 3);
                    self.push(value)?;
                }
                Kind::PopR => {
                    let value = self.load(self.state.registers[RSP], 3);
                    self.state.registers[RSP] = self.state.registers[RSP].wrapping_add(8);
                    self.write(op.dst, 3, value);
                }
                Kind::PopM => {
                    let before = self.state.registers[RSP];
                    let value = self.load(before, 3);
                    // An address that uses the stack pointer is computed after the pop.
                    self.state.registers[RSP] = before.wrapping_add(8);
                    let stored = self.store(self.address(op), 3, value);
                    if stored.is_err() {
                        self.state.registers[RSP] = before;
                    }
                    stored?;
                }
                Kind::PushFlags => self.push(self.state.rflags())?,
                Kind::PopFlags => {
                    let value = self.load(self.state.registers[RSP], 3);
                    if !self.state.pop_rflags(value) {
                        return Err(End::Instruction);
                    }
                    self.state.registers[RSP] = self.state.registers[RSP].wrapping_add(8);
                }
                Kind::Leave => {
                    let frame = self.state.registers[RBP];
                    let value = self.load(frame, 3);
                    self.state.registers[RSP] = frame.wrapping_add(8);
                    self.state.registers[RBP] = value;
                }
                Kind::XchgRR => {
                    let (a, b) = (self.part(op.dst, size), self.part(op.src, size));
                    self.write(op.dst, size, b);
                    self.write(op.src, size, a);
                }
                Kind::XchgMR => {
                    let address = self.address(op);
                    let value = self.load(address, size);
                    self.store(address, size, self.part(op.src, size))?;
                    self.write(op.src, size, value);
                }
                Kind::SpreadSign => {
                    let sign = sign_extend(self.part(0, size), size) as i64 >> 63;
                    self.write(2, size, sign as u64);
                }
                Kind::Widen => {
                    let half = self.part(0, size - 1);
                    self.write(0, size, sign_extend(half, size - 1));
                }
                Kind::Clc => self.state.flags &= !super::state::CARRY,
                Kind::Stc => self.state.flags |= super::state::CARRY,
                Kind::Cmc => self.state.flags ^= super::state::CARRY,
                Kind::Cld => self.state.set_backwards(false),
                Kind::Std => self.state.set_backwards(true),
                Kind::Lahf => {
                    let flags = self.state.flags >> 8 & 0xd5 | 2;
                    self.write(HIGH, 0, flags);
                }
                Kind::Sahf => self.state.flags = self.state.flags & 0xff | (self.part(HIGH, 0) & 0xd5) << 8,
                Kind::Movs | Kind::Stos | Kind::Lods | Kind::Scas | Kind::Cmps => strings::run(self, op)?,
                Kind::VectorMove => {
                    let from = self.state.vectors[op.src as usize % 32];
                    self.state.vectors[op.dst as usize % 32][..2].copy_from_slice(&from[..2]);
                }
                Kind::VectorLoad => {
                    let address = self.address(op);
                    if op.extra() != 0 && !address.is_multiple_of(16) {
                        return Err(End::Fault);
                    }
                    let mut both = [0; 16];
                    self.load_bytes(address, &mut both);
                    let both = u128::from_le_bytes(both);
                    self.state.vectors[op.dst as usize % 32][..2].copy_from_slice(&[both as u64, (both >> 64) as u64]);
                }
                Kind::VectorStore => {
                    let address = self.address(op);
                    if op.extra() != 0 && !address.is_multiple_of(16) {
                        return Err(End::Fault);
                    }
                    let from = &self.state.vectors[op.src as usize % 32];
                    let both = u128::from(from[0]) | u128::from(from[1]) << 64;
                    self.effects = self.effects.wrapping_add(1);
                    self.overlay
                        .store(address, &both.to_le_bytes())
                        .map_err(|_| End::OverlayFull)?;
                }
                Kind::ZeroUpper => {
                    let kept = if op.extra() == 0 { 2 } else { 0 };
                    for register in &mut self.state.vectors[..16] {
                        register[kept..].fill(0);
                    }
                }
                Kind::Jump => return self.branch(pc, next.wrapping_add(op.imm()), next, false),
                Kind::JumpR => return self.branch(pc, self.register(op.src), next, false),
                Kind::JumpM => {
                    let to = self.load(self.address(op), 3);
                    return self.branch(pc, to, next, false);
                }
                Kind::JumpIf => {
                    if alu::condition(op.extra(), self.state.flags) {
                        return self.branch(pc, next.wrapping_add(op.imm()), next, true);
                    }
                }
                Kind::Loop => {
                    let count = if op.extra() == 0 {
                        self.state.registers[RCX]
                    } else {
                        self.state.registers[RCX] = self.state.registers[RCX].wrapping_sub(1);
                        self.state.registers[RCX]
                    };
                    let zero = self.state.flags & super::state::ZERO != 0;
                    let taken = match op.extra() {
                        0 => count == 0,
                        1 => count != 0,
                        2 => count != 0 && zero,
                        _ => count != 0 && !zero,
                    };
                    if taken {
                        return self.branch(pc, next.wrapping_add(op.imm()), next, true);
                    }
                }
                Kind::Call => {
                    self.push(next)?;
                    return self.branch(pc, next.wrapping_add(op.imm()), next, false);
                }
                Kind::CallR => {
                    let to = self.register(op.src);
                    reachable(to)?;
                    self.push(next)?;
                    return self.branch(pc, to, next, false);
                }
                Kind::CallM => {
                    let to = self.load(self.address(op), 3);
                    reachable(to)?;
                    self.push(next)?;
                    return self.branch(pc, to, next, false);
                }
                Kind::Return => {
                    let stack = self.state.registers[RSP];
                    let to = self.load(stack, 3);
                    reachable(to)?;
                    self.state.registers[RSP] = stack.wrapping_add(8).wrapping_add(op.imm());
                    return self.branch(pc, to, next, false);
                }
                Kind::Thunk => self.run_thunk(op)?,
                Kind::Gather => gather::run(self, op)?,
                Kind::Save => save::run(self, op)?,
                Kind::Unknown => self.taint_result(op),
                Kind::SystemCall => return Err(End::SystemCall),
                Kind::Stop => return Err(End::Instruction),
            }
            self.state.pc = next;
            Ok(())
        }
    }

    #[inline(always)]
    fn arithmetic<const SIZE: u8>(&mut self, op: &Op, b: u64) {
        let (result, flags) = alu::binary(op.extra(), SIZE, self.part(op.dst, SIZE), b, self.state.flags);
        self.state.flags = flags;
        if !matches!(op.extra(), CMP | TEST) {
            self.write(op.dst, SIZE, result);
        }
    }

    unsafe fn arithmetic_in_memory<const SIZE: u8>(&mut self, op: &Op, b: u64) -> Step {
        let address = self.address(op);
        // SAFETY: Loads may fault (burst invariant).
        let a = unsafe { self.load(address, SIZE) };
        let (result, flags) = alu::binary(op.extra(), SIZE, a, b, self.state.flags);
        if !matches!(op.extra(), CMP | TEST) {
            self.store(address, SIZE, result)?;
        }
        self.state.flags = flags;
        Ok(())
    }

    fn shift<const SIZE: u8>(&mut self, op: &Op, count: u64) {
        let (result, flags) = alu::shift(op.extra(), SIZE, self.part(op.dst, SIZE), count, self.state.flags);
        self.state.flags = flags;
        self.write(op.dst, SIZE, result);
    }

    unsafe fn shift_in_memory<const SIZE: u8>(&mut self, op: &Op, count: u64) -> Step {
        let address = self.address(op);
        // SAFETY: Loads may fault (burst invariant).
        let a = unsafe { self.load(address, SIZE) };
        let (result, flags) = alu::shift(op.extra(), SIZE, a, count, self.state.flags);
        self.store(address, SIZE, result)?;
        self.state.flags = flags;
        Ok(())
    }

    fn product<const SIZE: u8>(&mut self, op: &Op, a: u64, b: u64) {
        let (result, flags) = alu::imul(SIZE, a, b, self.state.flags);
        self.state.flags = flags;
        self.write(op.dst, SIZE, result);
    }

    fn wide_product<const SIZE: u8>(&mut self, op: &Op, b: u64) {
        let size = SIZE;
        let (low, high, flags) = alu::multiply(size, op.extra() != 0, self.part(0, size), b, self.state.flags);
        self.state.flags = flags;
        if size == 0 {
            self.write(0, 1, low | high << 8);
        } else {
            self.write(0, size, low);
            self.write(2, size, high);
        }
    }

    fn conditional_move<const SIZE: u8>(&mut self, op: &Op, value: u64) {
        // With 4 bytes, the upper half becomes 0 even if the condition is false.
        let moved = if alu::condition(op.extra(), self.state.flags) {
            value
        } else {
            self.part(op.dst, SIZE)
        };
        self.write(op.dst, SIZE, moved);
    }

    #[inline(never)]
    unsafe fn run_thunk(&mut self, op: &Op) -> Step {
        let thunk = ThunkRef::unpack(op.imm());
        let mut address = 0;
        let size = usize::from(thunk.memory).min(64);
        let mut operand = core::ptr::null_mut();
        if size != 0 {
            address = self.address(op);
            // The same offset within a cache line, because instructions may require alignment.
            let at = 64 + address as usize % 64;
            if thunk.reads_memory {
                let mut bytes = [0; 64];
                // SAFETY: Loads may fault (burst invariant).
                unsafe { self.load_bytes(address, &mut bytes[..size]) };
                self.bounce.0[at..at + size].copy_from_slice(&bytes[..size]);
            }
            operand = self.bounce.0[at..].as_mut_ptr();
        }
        self.state.rflags = self.state.rflags() & 0x8d5 | 0x202;
        let divisor = thunk.divides.then(|| {
            let mut bytes = [0; 8];
            if size == 0 {
                bytes = self.part(op.src, op.size()).to_le_bytes();
            } else {
                let at = 64 + address as usize % 64;
                let size = size.min(8);
                bytes[..size].copy_from_slice(&self.bounce.0[at..at + size]);
            }
            u64::from_le_bytes(bytes)
        });
        let at = self.state.pc;
        let code = self.thunks.code(thunk.offset);
        let state: *mut super::State = &mut self.state;
        // SAFETY: Thunk code (burst invariant): `Thunks::make` emitted it for these two arguments; the operand is null
        // only where the thunk has no memory operand.
        unsafe {
            let code: unsafe extern "C" fn(*mut super::State, *mut u8) = core::mem::transmute(code);
            code(state, operand);
        }
        if let (Some(divisor), Some(Sink(sink))) = (divisor, self.sink) {
            // SAFETY: as in `branch`.
            unsafe { (*sink)(Observed::Division { at, divisor }) };
        }
        if thunk.writes_flags {
            self.state.set_status(self.state.rflags);
        }
        if thunk.writes_memory {
            let at = 64 + address as usize % 64;
            self.effects = self.effects.wrapping_add(1);
            let stored = self.overlay.store(address, &self.bounce.0[at..at + size]);
            stored.map_err(|_| End::OverlayFull)?;
        }
        self.effects = self.effects.wrapping_add(1);
        self.thunks_run += 1;
        Ok(())
    }
}

/// Checks that a branch target is canonical: otherwise the branch itself faults, not the instruction at the target.
fn reachable(to: u64) -> Step {
    let is_address = ((to << 16) as i64 >> 16) as u64 == to;
    if is_address { Ok(()) } else { Err(End::Fault) }
}

const _: () = assert!(NONE < RIP);
