//! Decoded instructions.

/// Register numbers after the sixteen general ones.
pub(super) const NONE: u8 = 16;
/// The address of the next instruction, as a base.
pub(super) const RIP: u8 = 17;
pub(super) const FS: u8 = 18;
pub(super) const GS: u8 = 19;
/// Ah, ch, dh, bh: 20 to 23.
pub(super) const HIGH: u8 = 20;

/// The operation. Operands: R register, I immediate, M memory; the first is the destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Nop,
    MovRR,
    MovRI,
    /// The 64-bit immediate is in the next slot.
    MovWide,
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
    /// Copies the accumulator's sign to all bits of rdx.
    SpreadSign,
    /// Sign-extends the accumulator to twice its size.
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
    /// The processor runs it; `imm` is a `ThunkRef`.
    Thunk,
    /// Loads or stores elements at several addresses; `imm` is a `gather::Shape`.
    Gather,
    /// Saves registers to memory or restores them; `imm` is a thunk's offset.
    Save,
    /// Its result cannot be predicted; `extra` is a `taint::TaintSource`.
    Unknown,
    SystemCall,
    /// Not supported: ends the burst.
    Stop,
}

impl Kind {
    /// Whether it ends its block: it transfers control, ends the burst, or switches to tainted steps.
    pub(super) fn ends_block(self) -> bool {
        matches!(
            self,
            Self::Jump
                | Self::JumpR
                | Self::JumpM
                | Self::JumpIf
                | Self::Loop
                | Self::Call
                | Self::CallR
                | Self::CallM
                | Self::Return
                | Self::Unknown
                | Self::SystemCall
                | Self::Stop
        )
    }
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

/// One decoded instruction. Its address is the program counter's.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    imm: i32,
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
}

pub(super) const SEGMENT_FS: u8 = 4;
pub(super) const SEGMENT_GS: u8 = 8;
pub(super) const SHORT_ADDRESS: u8 = 16;

impl Op {
    pub(super) fn new(length: usize) -> Self {
        Self {
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
        }
    }

    /// The immediate, or how far a jump goes from the next instruction; sign-extended.
    #[inline(always)]
    pub(super) fn imm(&self) -> u64 {
        i64::from(self.imm) as u64
    }

    /// Sets the immediate. Only its low 32 bits are kept.
    pub(super) fn set_imm(&mut self, value: u64) {
        self.imm = value as i32;
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

/// A thunk and the properties of its instruction, packed into the immediate of an [`Op`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ThunkRef {
    /// Offset of its code, a multiple of 16 below 2^20.
    pub offset: u32,
    /// Bytes of its memory operand, 0 if it has none; up to 64.
    pub memory: u8,
    pub reads_memory: bool,
    pub writes_memory: bool,
    pub writes_flags: bool,
    /// It divides by its memory operand, or if it has none by the register `src`.
    pub divides: bool,
}

impl ThunkRef {
    pub(super) fn pack(self) -> u64 {
        let bit = |is: bool, at: u32| u64::from(is) << at;
        u64::from(self.offset >> 4)
            | u64::from(self.memory) << 16
            | bit(self.reads_memory, 24)
            | bit(self.writes_memory, 25)
            | bit(self.writes_flags, 26)
            | bit(self.divides, 27)
    }

    pub(super) fn unpack(packed: u64) -> Self {
        let bit = |at: u32| packed >> at & 1 != 0;
        Self {
            offset: (packed as u32 & 0xffff) << 4,
            memory: (packed >> 16) as u8,
            reads_memory: bit(24),
            writes_memory: bit(25),
            writes_flags: bit(26),
            divides: bit(27),
        }
    }
}
