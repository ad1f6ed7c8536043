//! Taint: marks values that cannot be predicted (the time, random numbers, the number of the processor) and values
//! computed from them. The burst continues until a tainted value decides a branch, an address or a division.
//!
//! Few bursts contain tainted values. Only while one exists does the decoder describe each instruction's operands.

use super::Engine;
use super::op::{NONE, Op};
use iced_x86::{FlowControl, Instruction, Mnemonic as M, OpAccess, Register, RflagsBits};

/// Maximum of instructions that a burst runs while a value is tainted: each costs about as much as twenty others.
pub(super) const MAX_TAINTED_INSTRUCTIONS: u32 = 4096;

/// The source of an unpredictable value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum TaintSource {
    Time,
    TimeAndProcessor,
    Features,
    Random,
    Processor,
    Enabled,
}

impl TaintSource {
    pub(super) fn from_mnemonic(mnemonic: M) -> Self {
        match mnemonic {
            M::Rdtsc => Self::Time,
            M::Rdtscp => Self::TimeAndProcessor,
            M::Cpuid => Self::Features,
            M::Rdpid => Self::Processor,
            M::Xgetbv => Self::Enabled,
            _ => Self::Random,
        }
    }

    /// The registers that the source writes, one bit each, without an explicit operand. `extra` is the source's number.
    fn registers(extra: u8) -> u16 {
        const TIME: u8 = TaintSource::Time as u8;
        const TIME_AND_PROCESSOR: u8 = TaintSource::TimeAndProcessor as u8;
        const FEATURES: u8 = TaintSource::Features as u8;
        const ENABLED: u8 = TaintSource::Enabled as u8;
        match extra {
            TIME | ENABLED => 0b101,
            TIME_AND_PROCESSOR => 0b111,
            FEATURES => 0b1111,
            _ => 0,
        }
    }
}

/// The tainted registers. The overlay knows the tainted bytes of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taint {
    /// General registers, one bit each in the order of the encoding.
    pub general: u16,
    /// Status flags, as in RFLAGS.
    pub flags: u32,
    /// Vector registers, one bit each: their lowest 16 bytes, and their remaining bytes.
    pub vectors: [u32; 2],
    /// Opmask registers.
    pub masks: u8,
    /// The x87 registers, control and status.
    pub x87: bool,
    /// Control and status of SSE.
    pub mxcsr: bool,
    /// Some bytes of memory are tainted.
    memory: bool,
}

impl Taint {
    /// No register.
    pub const NONE: Self = Self {
        general: 0,
        flags: 0,
        vectors: [0; 2],
        masks: 0,
        x87: false,
        mxcsr: false,
        memory: false,
    };

    /// Whether any register or byte of memory is tainted.
    fn is_any(&self) -> bool {
        *self != Self::NONE
    }

    /// Whether any vector, opmask, x87 register or MXCSR is tainted.
    pub fn has_others(&self) -> bool {
        self.vectors != [0; 2] || self.masks != 0 || self.x87 || self.mxcsr
    }
}

const FLAGS: [(u32, u32); 6] = [
    (RflagsBits::CF, 1),
    (RflagsBits::PF, 4),
    (RflagsBits::AF, 0x10),
    (RflagsBits::ZF, 0x40),
    (RflagsBits::SF, 0x80),
    (RflagsBits::OF, 0x800),
];

/// Status flags of the decoder (`RflagsBits`) as bits of RFLAGS.
fn in_rflags(bits: u32) -> u32 {
    let set = FLAGS.iter().filter(|(bit, _)| bits & bit != 0);
    set.map(|(_, flag)| flag).sum()
}

fn reads(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

fn writes(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

fn is_certain(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::ReadWrite)
}

/// The effect of an instruction on taint, determined before it runs.
#[derive(Clone, Copy)]
pub(super) struct Effect {
    /// It reads a tainted value.
    input: bool,
    /// Registers that it may write, and registers that it always overwrites.
    written: Taint,
    cleared: Taint,
    /// Address and size of each store in bytes, and whether the store always happens.
    stores: [(u64, u64, bool); 2],
}

impl Taint {
    /// The set of one register.
    fn from_register(register: Register) -> Self {
        let mut set = Self::NONE;
        if register.is_gpr() {
            set.general = 1 << register.full_register().number();
        } else if register.is_vector_register() {
            set.vectors = [
                1 << register.number(),
                u32::from(register.size() > 16) << register.number(),
            ];
        } else if register.is_k() {
            set.masks = 1 << register.number();
        } else if register.is_st() || register.is_mm() {
            set.x87 = true;
        }
        set
    }

    fn intersects(&self, other: &Self) -> bool {
        self.general & other.general != 0
            || self.flags & other.flags != 0
            || self.vectors[0] & other.vectors[0] != 0
            || self.vectors[1] & other.vectors[1] != 0
            || self.masks & other.masks != 0
            || self.x87 & other.x87
            || self.mxcsr & other.mxcsr
    }

    fn add(&mut self, other: &Self) {
        self.general |= other.general;
        self.flags |= other.flags;
        self.vectors[0] |= other.vectors[0];
        self.vectors[1] |= other.vectors[1];
        self.masks |= other.masks;
        self.x87 |= other.x87;
        self.mxcsr |= other.mxcsr;
    }

    fn remove(&mut self, other: &Self) {
        self.general &= !other.general;
        self.flags &= !other.flags;
        self.vectors[0] &= !other.vectors[0];
        self.vectors[1] &= !other.vectors[1];
        self.masks &= !other.masks;
        self.x87 &= !other.x87;
        self.mxcsr &= !other.mxcsr;
    }
}

impl Engine {
    /// The registers that are tainted after the last instruction.
    pub fn taint(&self) -> &Taint {
        &self.taint
    }

    /// Taints registers whose values cannot be predicted, after [`Engine::begin`].
    pub fn mark(&mut self, taint: &Taint) {
        self.taint.add(taint);
        self.is_tainted = self.taint.is_any();
    }

    /// Whether the burst stored a tainted value in any of these bytes.
    pub fn is_unknown(&mut self, address: u64, size: u64) -> bool {
        self.overlay.is_tainted(address, size)
    }

    /// Taints bytes that were just stored.
    pub(super) fn taint_stored(&mut self, address: u64, size: u64) {
        self.overlay.taint(address, size);
        self.taint.memory = true;
        self.is_tainted = true;
    }

    /// Runs an instruction whose result cannot be predicted: its result registers become 0 and tainted.
    pub(super) fn taint_result(&mut self, op: &Op) {
        let mut registers = TaintSource::registers(op.extra());
        if op.dst < NONE {
            registers |= 1 << op.dst;
        }
        let size = if op.dst < NONE { op.size() } else { 2 };
        for register in (0..16).filter(|r| registers >> r & 1 != 0) {
            self.write(register, size, 0);
        }
        self.taint.general |= registers;
        if op.extra() == TaintSource::Random as u8 {
            // The carry flag reports success; the other flags are 0.
            self.state.flags = 0;
            self.taint.flags = 1;
        }
        self.is_tainted = true;
    }

    /// The effect of an instruction on taint. `None` if a tainted value decides its branch, its address, or whether it
    /// faults. `is_own`: it saves registers, or restores those that the burst has saved.
    pub(super) fn effect(&mut self, instruction: &Instruction, is_own: bool) -> Option<Effect> {
        let taint = self.taint;
        let mut effect = Effect {
            input: false,
            written: Taint::NONE,
            cleared: Taint::NONE,
            stores: [(0, 0, false); 2],
        };
        let mut cleared = Taint::NONE;
        // The decoder does not describe the memory operands of these instructions.
        let is_hard = instruction.is_vsib() || instruction.is_save_restore_instruction();
        let repeats =
            instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix());
        if is_hard && (taint.has_others() || taint.memory && !is_own) || repeats && (taint.memory || taint.general != 0)
        {
            return None;
        }
        let is_legacy = instruction.encoding() == iced_x86::EncodingKind::Legacy;
        let mut has_vectors = false;
        let described = self.info.info(instruction);
        for used in described.used_registers() {
            let set = Taint::from_register(used.register());
            has_vectors |= set.vectors[0] != 0;
            effect.input |= reads(used.access()) && taint.intersects(&set);
            if !writes(used.access()) {
                continue;
            }
            effect.written.add(&set);
            // Writes to parts of general registers keep the rest, and so do vector instructions without VEX.
            let is_whole = used.register().size() >= 4 && !(set.x87 || is_legacy && set.vectors[1] != 0);
            if is_certain(used.access()) && is_whole {
                cleared.add(&set);
            }
        }
        let mut stores = 0;
        for used in described.used_memory() {
            if is_hard {
                break;
            }
            let by = |register: Register| register.is_gpr() && taint.intersects(&Taint::from_register(register));
            if by(used.base()) || by(used.index()) {
                return None;
            }
            let state = &self.state;
            let address = used.virtual_address(0, |register, _, _| {
                Some(match register {
                    Register::FS => state.registers[super::op::FS as usize],
                    Register::GS => state.registers[super::op::GS as usize],
                    register if register.is_segment_register() => 0,
                    register => {
                        let value = state.registers[register.full_register().number() % 16];
                        if register.size() == 4 {
                            value & 0xffff_ffff
                        } else {
                            value
                        }
                    }
                })
            })?;
            let size = used.memory_size().size() as u64;
            if !(1..=64).contains(&size) && !repeats {
                return None;
            }
            if reads(used.access()) && taint.memory {
                effect.input |= self.overlay.is_tainted(address, size.clamp(1, 64));
            }
            if writes(used.access()) {
                *effect.stores.get_mut(stores)? = (address, size.clamp(1, 64), is_certain(used.access()) && !repeats);
                stores += 1;
            }
        }
        effect.input |= taint.flags & in_rflags(instruction.rflags_read()) != 0;
        let modified = in_rflags(instruction.rflags_modified());
        effect.written.flags = modified;
        // Shifts and repeats with a count of 0 keep the flags.
        let counts = instruction.op_count() > 1 && instruction.op_register(instruction.op_count() - 1) == Register::CL
            || repeats;
        if !counts {
            // Undefined flags may be unchanged.
            cleared.flags = modified & !in_rflags(instruction.rflags_undefined());
        }
        match instruction.mnemonic() {
            M::Stmxcsr | M::Vstmxcsr => effect.input |= taint.mxcsr,
            M::Ldmxcsr | M::Vldmxcsr => {
                effect.written.mxcsr = true;
                cleared.mxcsr = true;
            }
            // Floating-point instructions may set exception flags there.
            _ => effect.written.mxcsr = has_vectors,
        }
        let decides = instruction.flow_control() != FlowControl::Next
            || matches!(instruction.mnemonic(), M::Div | M::Idiv)
            || is_hard
            || repeats;
        if effect.input && decides {
            return None;
        }
        effect.cleared = cleared;
        Some(effect)
    }

    /// Taints values computed from tainted ones, and untaints other overwritten values.
    pub(super) fn apply(&mut self, effect: &Effect) {
        if effect.input {
            self.taint.add(&effect.written);
        } else {
            self.taint.remove(&effect.cleared);
        }
        for (address, size, is_certain) in effect.stores {
            if size != 0 && effect.input {
                self.overlay.taint(address, size);
                self.taint.memory = true;
            } else if size != 0 && is_certain && self.taint.memory {
                self.taint.memory = self.overlay.untaint(address, size);
            }
        }
        self.is_tainted = self.taint.is_any();
    }
}
