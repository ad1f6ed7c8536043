//! Decoded instructions.

/// Names of registers behind the sixteen general ones.
pub(super) const NONE: u8 = 16;
/// The address of the next instruction, as a base.
pub(super) const RIP: u8 = 17;
pub(super) const FS: u8 = 18;
pub(super) const GS: u8 = 19;
/// Ah, ch, dh, bh: 20 to 23.
pub(super) const HIGH: u8 = 20;

/// What to do. Operands: R register, I immediate, M memory; the first is the destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Nop,
    MovRR,
    MovRI,
    Load,
    Store,
    StoreI,
    // `extra` is the source's size.
    ZeroExtendR,
    ZeroExtendM,
    SignExtendR,
    SignExtendM,
    Lea,
    // `extra` is a `Binary`.
    AluRR,
    AluRI,
    AluRM,
    AluMR,
    AluMI,
    // `extra` is a `Unary`.
    UnaryR,
    UnaryM,
    // `extra` is a `Shift`; by an immediate, or by cl.
    ShiftRI,
    ShiftRC,
    ShiftMI,
    ShiftMC,
    ImulRR,
    ImulRM,
    ImulRRI,
    ImulRMI,
    // `extra`: signed.
    MulR,
    MulM,
    // `extra` is a condition.
    CmovR,
    CmovM,
    SetR,
    SetM,
    PushR,
    PushI,
    PushM,
    PopR,
    PopM,
    PushFlags,
    PopFlags,
    Leave,
    XchgRR,
    XchgMR,
    /// Sign of the accumulator into rdx.
    SpreadSign,
    /// The accumulator to twice its size.
    Widen,
    Clc,
    Stc,
    Cmc,
    Cld,
    Std,
    Lahf,
    Sahf,
    // String instructions; `extra` is a `Repeat`.
    Movs,
    Stos,
    Lods,
    Scas,
    Cmps,
    // 16 bytes of a vector, the rest unchanged.
    VectorMove,
    VectorLoad,
    VectorStore,
    /// All but the lowest 16 bytes of vectors 0–15 become 0; `extra`: those too.
    ZeroUpper,
    Jump,
    JumpR,
    JumpM,
    /// `extra` is a condition.
    JumpIf,
    /// `extra`: 0 jrcxz, 1 loop, 2 loope, 3 loopne.
    Loop,
    Call,
    CallR,
    CallM,
    Return,
    /// By the processor; `imm` is a `ThunkRef`.
    Thunk,
    /// Elements at several addresses; `imm` says more.
    Gather,
    /// Registers to memory or back; `imm` is a thunk's offset.
    Save,
    /// Its outcome cannot be known; `extra` is a `taint::Source`.
    Unknown,
    SystemCall,
    /// It cannot be followed.
    Stop,
}

/// `rep` prefixes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Repeat {
    Once,
    /// While rcx is not 0; for comparisons, also while equal.
    Equal,
    /// For comparisons, while not equal.
    NotEqual,
}

/// One decoded instruction: half a cache line.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    /// 0: none.
    pub address: u64,
    pub imm: u64,
    pub disp: i32,
    pub kind: Kind,
    pub length: u8,
    /// Bits 0–1: logarithm of the operand's size. Others: `extra`.
    sizes: u8,
    pub dst: u8,
    pub src: u8,
    pub base: u8,
    pub index: u8,
    /// Bits 0–1: logarithm of the scale. Bit 2: fs. Bit 3: gs. Bit 4: 32-bit address.
    pub scale: u8,
    /// Burst in which its bytes were compared with memory.
    pub generation: u16,
    /// Of its bytes.
    pub check: u16,
}

const _: () = assert!(size_of::<Op>() == 32);

pub(super) const SEGMENT_FS: u8 = 4;
pub(super) const SEGMENT_GS: u8 = 8;
pub(super) const SHORT_ADDRESS: u8 = 16;

impl Op {
    pub(super) fn new(address: u64, length: usize) -> Self {
        Self {
            address,
            imm: 0,
            disp: 0,
            kind: Kind::Stop,
            length: length as u8,
            sizes: 0,
            dst: NONE,
            src: NONE,
            base: NONE,
            index: NONE,
            scale: 0,
            generation: 0,
            check: 0,
        }
    }

    pub(super) fn next(&self) -> u64 {
        self.address.wrapping_add(self.length.into())
    }

    /// Whether it has a memory operand.
    pub(super) fn has_address(&self) -> bool {
        self.base != NONE || self.index != NONE || self.disp != 0
    }

    /// Logarithm of the operand's size.
    pub(super) fn size(&self) -> u8 {
        self.sizes & 3
    }

    pub(super) fn extra(&self) -> u8 {
        self.sizes >> 2
    }

    pub(super) fn set_size(&mut self, bytes: usize) {
        self.sizes = self.sizes & !3 | bytes.trailing_zeros() as u8 & 3;
    }

    pub(super) fn set_extra(&mut self, extra: u8) {
        self.sizes = self.sizes & 3 | extra << 2;
    }
}

/// A thunk, and what it needs: packed into an instruction's immediate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ThunkRef {
    /// Offset of its code.
    pub offset: u32,
    /// Bytes of its memory operand, 0 if it has none.
    pub memory: u8,
    pub reads_memory: bool,
    pub writes_memory: bool,
    pub writes_flags: bool,
}

impl ThunkRef {
    pub(super) fn pack(self) -> u64 {
        let bit = |is: bool, at: u32| u64::from(is) << at;
        u64::from(self.offset)
            | u64::from(self.memory) << 32
            | bit(self.reads_memory, 40)
            | bit(self.writes_memory, 41)
            | bit(self.writes_flags, 42)
    }

    pub(super) fn unpack(packed: u64) -> Self {
        let bit = |at: u32| packed >> at & 1 != 0;
        Self {
            offset: packed as u32,
            memory: (packed >> 32) as u8,
            reads_memory: bit(40),
            writes_memory: bit(41),
            writes_flags: bit(42),
        }
    }
}
