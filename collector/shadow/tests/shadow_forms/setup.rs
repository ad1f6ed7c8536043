//! Registers and memory for one run of an instruction: random, but such that its operands are where memory is.

use crate::native::{CODE, CODE_SIZE, HIGH, LOW, Layout, SCRATCH};
use crate::random::Random;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpKind, Register,
    UsedMemory,
};
use pleach_shadow::State;

/// Where instructions and operands may be, whose neighbourhood the others take.
const MIDDLE: u64 = SCRATCH as u64 / 2;

/// One run.
pub struct Setup {
    pub ins: Instruction,
    pub state: State,
    pub gs: u64,
    pub region: u64,
    /// It may fault.
    pub outside: bool,
}

/// Position of a general register in the encoding.
pub fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    full.is_gpr().then(|| full.number())
}

/// The instruction at its place, its absolute or relative operand in scratch memory.
fn relocate(bytes: &mut [u8], at: u64, random: &mut Random) -> (Instruction, bool) {
    let decode = |bytes: &[u8]| {
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let ins = decoder.decode();
        (ins, decoder.get_constant_offsets(&ins))
    };
    let (ins, offsets) = decode(bytes);
    let has_memory = (0..ins.op_count()).any(|i| ins.op_kind(i) == OpKind::Memory);
    let absolute = has_memory && ins.memory_base() == Register::None && ins.memory_index() == Register::None;
    let segment = matches!(ins.memory_segment(), Register::FS | Register::GS);
    let relative = has_memory && ins.is_ip_rel_memory_operand();
    if !(relative || absolute && !segment) {
        return (ins, ins.memory_base().is_gpr32() || ins.memory_index().is_gpr32());
    }
    let target = LOW + place(random, size_of(&ins), false);
    let value = if relative {
        target.wrapping_sub(ins.next_ip())
    } else {
        target
    };
    let (from, size) = (offsets.displacement_offset(), offsets.displacement_size());
    if size >= 4 {
        bytes[from..from + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
    (decode(bytes).0, true)
}

fn size_of(ins: &Instruction) -> u64 {
    match ins.memory_size() {
        MemorySize::Xsave | MemorySize::Xsave64 => 4096,
        size => (size.size() as u64).max(1),
    }
}

/// An offset into the scratch memory for an operand.
fn place(random: &mut Random, size: u64, locked: bool) -> u64 {
    let near = MIDDLE - 1024 + random.below(2048);
    if locked {
        // Not across lines, which some kernels punish.
        return near & !15;
    }
    match random.below(16) {
        0..=8 => near & !63,
        9 | 10 => near & !15,
        11..=13 => near,
        14 => MIDDLE - random.below(size + 1),
        _ => SCRATCH as u64 - size,
    }
}

impl Setup {
    /// `tame`: nothing that is likely to fault.
    pub fn make(
        bytes: &mut [u8],
        at: u64,
        tame: bool,
        layout: &Layout,
        factory: &mut InstructionInfoFactory,
        random: &mut Random,
        memory: &mut [u64],
    ) -> Self {
        let (ins, low) = relocate(bytes, at, random);
        let region = if low || random.one_in(4) { LOW } else { HIGH };
        let mut setup = Self {
            ins,
            state: registers(tame, random),
            gs: region + MIDDLE + 8 * random.below(64),
            region,
            outside: false,
        };
        layout.restrict(&mut setup.state);
        setup.state.set_pc(at);
        setup.state.set_bases(region + MIDDLE + 8 * random.below(64), setup.gs);
        let used: Vec<UsedMemory> = factory.info(&ins).used_memory().to_vec();
        setup.operands(&used, tame, random, memory);
        layout.restrict(&mut setup.state);
        setup
    }

    fn operands(&mut self, used: &[UsedMemory], tame: bool, random: &mut Random, memory: &mut [u64]) {
        let ins = self.ins;
        let locked = ins.has_lock_prefix() || ins.mnemonic() == Mnemonic::Xchg;
        self.state.general_mut()[4] = self.region + ((MIDDLE - 512 + random.below(1024)) & !7);
        if !tame && random.one_in(8) {
            self.state.general_mut()[4] -= random.below(8);
        }
        self.before(used, random);
        // The explicit operand last: its registers are what matters.
        let has_memory = (0..ins.op_count()).any(|i| ins.op_kind(i) == OpKind::Memory);
        let explicit = |m: &UsedMemory| {
            has_memory
                && m.base() == ins.memory_base()
                && m.index() == ins.memory_index()
                && (m.displacement() == ins.memory_displacement64() || m.base() == Register::RSP)
                && m.memory_size() == ins.memory_size()
        };
        let mut ordered: Vec<&UsedMemory> = used.iter().collect();
        ordered.sort_by_key(|m| explicit(m));
        let mut places = vec![self.state.general()[4]];
        for m in ordered {
            let size = match m.memory_size() {
                MemorySize::Xsave | MemorySize::Xsave64 | MemorySize::Unknown => size_of(&ins),
                size => size.size() as u64,
            };
            let mut offset = place(random, size.max(1), locked);
            if tame {
                offset &= !63;
            } else if random.one_in(24) && !locked {
                // Into the page behind, or the one before.
                offset = if random.one_in(4) {
                    u64::MAX - size / 2
                } else {
                    SCRATCH as u64 - random.below(size.max(1))
                };
                self.outside = true;
            }
            if m.base() == Register::RSP && !explicit(m) {
                continue;
            }
            if places.len() > 1 && random.one_in(3) {
                // Operands that overlap.
                offset = places[1]
                    .wrapping_sub(self.region)
                    .wrapping_add(random.below(40))
                    .wrapping_sub(20);
            }
            places.push(self.aim(m, self.region.wrapping_add(offset), random));
        }
        for &place in &places {
            let first = (place.wrapping_sub(self.region) / 8).saturating_sub(16) as usize;
            if first < memory.len() {
                let end = memory.len().min(first + 64);
                for line in memory[first..end].chunks_mut(8) {
                    random.fill(line);
                }
            }
        }
        self.after(&places, tame, random, memory);
    }

    /// Makes an operand's address be `target`, or near it; returns what it is.
    fn aim(&mut self, m: &UsedMemory, target: u64, random: &mut Random) -> u64 {
        let displacement = m.displacement();
        let segment = match m.segment() {
            Register::FS => Some(self.state.fs_base()),
            Register::GS => Some(self.gs),
            _ => None,
        };
        let (base, index) = (number(m.base()), number(m.index()));
        let scale = u64::from(m.scale());
        let mut rest = target.wrapping_sub(displacement);
        if base.is_none() && index.is_none() && !m.index().is_vector_register() {
            // A thread-local variable, unless its address is 64 bits long.
            match m.segment() {
                _ if rest >= 1 << 46 => return displacement,
                Register::FS => self.state.set_bases(rest, self.gs),
                Register::GS => {
                    self.gs = rest;
                    self.state.set_bases(self.state.fs_base(), rest);
                }
                _ => return displacement,
            }
            return target;
        }
        if segment.is_some() {
            let offset = random.next() >> 20;
            let value = rest.wrapping_sub(offset) & 0x7fff_ffff_ffff;
            if m.segment() == Register::FS {
                self.state.set_bases(value, self.gs);
            } else {
                self.gs = value;
                self.state.set_bases(self.state.fs_base(), value);
            }
            rest = rest.wrapping_sub(value);
        }
        let short = m.base().is_gpr32() || m.index().is_gpr32();
        let keep = |value: u64, random: &mut Random| {
            // The upper half does not count.
            if short {
                value & 0xffff_ffff | random.next() << 32
            } else {
                value
            }
        };
        let general = self.state.general_mut();
        match (base, index) {
            (Some(base), Some(index)) if base == index => {
                let value = (rest as i64).div_euclid(1 + scale as i64) as u64;
                general[base] = keep(value, random);
                target.wrapping_sub(rest).wrapping_add(value.wrapping_mul(1 + scale))
            }
            (Some(base), Some(index)) => {
                let step = if index == 4 { general[4] } else { random.word() };
                // Tables are not that large, but addresses wrap.
                let step = if base != 4 && random.one_in(3) {
                    step
                } else {
                    step as i16 as u64
                };
                if index != 4 {
                    general[index] = step;
                }
                general[base] = keep(rest.wrapping_sub(general[index].wrapping_mul(scale)), random);
                target
            }
            (Some(base), None) => {
                if m.index().is_vector_register() {
                    let vector = m.index().number();
                    for word in &mut self.state.vectors_mut()[vector] {
                        let small = |random: &mut Random| random.below(128) as i64 - 64;
                        *word = if m.vsib_size() == 4 {
                            u64::from(small(random) as u32) | (small(random) as u64) << 32
                        } else {
                            small(random) as u64
                        };
                    }
                }
                self.state.general_mut()[base] = keep(rest, random);
                target
            }
            (None, Some(index)) => {
                let value = (rest as i64).div_euclid(scale as i64) as u64;
                general[index] = keep(value, random);
                target.wrapping_sub(rest).wrapping_add(value.wrapping_mul(scale))
            }
            (None, None) => target,
        }
    }

    /// Values that do not depend on addresses.
    fn before(&mut self, used: &[UsedMemory], random: &mut Random) {
        let ins = self.ins;
        let general = self.state.general_mut();
        match ins.mnemonic() {
            Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc if !used.is_empty() => {
                if let Some(register) = number(ins.op1_register()).filter(|_| ins.op1_kind() == OpKind::Register) {
                    general[register] = (random.below(4096) as i64 - 2048) as u64;
                }
            }
            Mnemonic::Div | Mnemonic::Idiv if !random.one_in(4) => {
                general[2] = 0;
                general[0] &= [0xff, 0x7fff, 0x7fff_ffff, u64::MAX >> 1][random.below(4) as usize];
                if ins.mnemonic() == Mnemonic::Idiv && random.one_in(2) {
                    general[0] = (general[0] as i32).wrapping_neg() as u64;
                    general[2] = u64::MAX;
                }
            }
            Mnemonic::Jrcxz | Mnemonic::Jecxz | Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne => {
                general[1] = random.below(3) | (random.below(2) << 32);
            }
            Mnemonic::Xgetbv => general[1] = 0,
            _ => {}
        }
        if ins.has_rep_prefix() || ins.has_repne_prefix() {
            let most = if random.one_in(2) { 40 } else { 4 };
            general[1] = random.below(most);
        }
    }

    /// Values that do, and what memory has to hold.
    fn after(&mut self, places: &[u64], tame: bool, random: &mut Random, memory: &mut [u64]) {
        let ins = self.ins;
        let region = self.region;
        let offset = |place: u64| place.wrapping_sub(region);
        let inside = |place: u64, size: u64| offset(place) < SCRATCH as u64 && offset(place) + size <= SCRATCH as u64;
        // SAFETY: the memory as bytes.
        let bytes = unsafe { core::slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<u8>(), SCRATCH) };
        let mut put = |place: u64, value: &[u8]| {
            if inside(place, value.len() as u64) {
                bytes[offset(place) as usize..][..value.len()].copy_from_slice(value);
            }
        };
        let operand = places[places.len() - 1];
        let branches = [
            FlowControl::IndirectBranch,
            FlowControl::IndirectCall,
            FlowControl::Return,
        ];
        if branches.contains(&ins.flow_control()) && (tame || !random.one_in(8)) {
            let target = CODE + random.below(CODE_SIZE as u64);
            for &place in places {
                put(place, &target.to_le_bytes());
            }
            let register = number(ins.op0_register());
            if let Some(register) = register.filter(|_| ins.op_count() > 0 && ins.op0_kind() == OpKind::Register) {
                self.state.general_mut()[register] = target;
            }
        }
        match ins.mnemonic() {
            Mnemonic::Ldmxcsr | Mnemonic::Vldmxcsr if tame || !random.one_in(8) => {
                put(operand, &(0x1f80 | random.next() as u32 & 0x603f).to_le_bytes());
            }
            Mnemonic::Fldcw if tame || !random.one_in(4) => {
                put(operand, &(0x37f | random.next() as u16 & 0xc00).to_le_bytes());
            }
            Mnemonic::Fldenv | Mnemonic::Frstor if tame || !random.one_in(4) => {
                put(operand, &0x37fu16.to_le_bytes());
                put(operand + 4, &(random.next() as u16 & 0x7f3f).to_le_bytes());
            }
            Mnemonic::Fxrstor | Mnemonic::Fxrstor64 if tame || !random.one_in(8) => {
                put(operand, self.state.x87());
                put(operand + 24, &0x1f80u32.to_le_bytes());
            }
            Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b if random.one_in(2) => {
                let general = *self.state.general();
                if ins.op0_kind() == OpKind::Memory {
                    put(operand, &general[0].to_le_bytes());
                    match ins.mnemonic() {
                        Mnemonic::Cmpxchg16b => put(operand + 8, &general[2].to_le_bytes()),
                        Mnemonic::Cmpxchg8b => put(operand + 4, &(general[2] as u32).to_le_bytes()),
                        _ => {}
                    }
                } else if let Some(register) = number(ins.op0_register()).filter(|&r| r != 0) {
                    self.state.general_mut()[register] = general[0];
                }
            }
            _ => {}
        }
        if ins.is_string_instruction() && random.one_in(2) {
            // Comparisons that go on for a while.
            let value = self.state.general()[0] as u8;
            let other = random.below(300);
            for &place in &places[1..] {
                put(place, &[value; 256]);
                put(place + other, &[!value]);
            }
            self.state.general_mut()[0] = u64::from_le_bytes([value; 8]);
        }
    }
}

fn registers(tame: bool, random: &mut Random) -> State {
    const STATUS: u64 = 0x8d5;
    let mut state = State::new();
    for register in state.general_mut() {
        *register = random.word();
    }
    state.set_rflags(0x202 | random.next() & STATUS);
    for vector in state.vectors_mut() {
        random.fill(vector);
    }
    for mask in state.masks_mut() {
        let value = random.next();
        *mask = match random.below(6) {
            0 => u64::MAX,
            1 => 0,
            2 => value & random.next() & random.next(),
            3 => u64::MAX >> (value % 64),
            _ => value,
        };
    }
    let mut mxcsr = 0x1f80 | (random.below(4) as u32) << 13;
    if !tame {
        if random.one_in(3) {
            mxcsr |= random.next() as u32 & 0x3f;
        }
        if random.one_in(8) {
            // Denormals are zero, and flushed.
            mxcsr |= random.next() as u32 & 0x8040;
        }
        if random.one_in(16) {
            mxcsr &= !(random.next() as u32 & 0x1f80);
        }
    }
    state.set_mxcsr(mxcsr);
    let mut x87 = [0; 160];
    let precision = [0x300, 0x300, 0x200, 0][random.below(4) as usize];
    let mut control = 0x7f | precision | random.next() as u16 & 0xc00;
    if !tame && random.one_in(24) {
        control &= !(random.next() as u16 & 0x3f);
    }
    let mut status = random.next() as u16 & 0x7f00;
    if random.one_in(4) {
        status |= random.next() as u16 & 0x7f;
    }
    if status & !control & 0x3f != 0 {
        // What the processor itself would say.
        status |= 0x8080;
    } else {
        status &= !0x80;
    }
    x87[..2].copy_from_slice(&control.to_le_bytes());
    x87[2..4].copy_from_slice(&status.to_le_bytes());
    x87[4] = match random.below(4) {
        0 => 0,
        1 => random.next() as u8,
        _ => 0xff,
    };
    for i in 0..8 {
        x87[32 + 16 * i..42 + 16 * i].copy_from_slice(&random.x87());
    }
    x87[24..28].copy_from_slice(&mxcsr.to_le_bytes());
    state.set_x87(&x87);
    state
}
