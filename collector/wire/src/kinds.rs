//! The engines that produce bursts, and the reasons for which bursts end.

/// The engine that produced a burst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Engine {
    /// Trap-flag single-stepping of the real program.
    Step = 0,
    /// Shadow execution ahead of the program.
    RunAhead = 1,
    /// Branch-record hardware.
    Lbr = 2,
    /// Imported from a file of `perf record -b`.
    Perf = 3,
}

impl Engine {
    /// Decodes a stored discriminant.
    pub fn from_u8(value: u8) -> Option<Self> {
        [Self::Step, Self::RunAhead, Self::Lbr, Self::Perf]
            .into_iter()
            .find(|engine| *engine as u8 == value)
    }

    /// The name used in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::RunAhead => "run-ahead",
            Self::Lbr => "lbr",
            Self::Perf => "perf.data",
        }
    }
}

/// Why a burst ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum EndReason {
    /// The burst reached its length.
    Budget = 0,
    /// The next instruction is a system call that the engine does not follow.
    SystemCall = 1,
    /// The engine does not support the next instruction (`pushf`, `popf`, `int3`, undecodable …).
    Instruction = 2,
    /// A signal was delivered to the program.
    Signal = 3,
    /// The thread or process ended.
    Exit = 4,
    /// Control flow depends on a value that cannot be predicted (the time, for instance).
    Unknown = 5,
    /// The next instruction faults: it reads unmapped memory, for instance.
    Fault = 6,
    /// The burst stored more bytes than the overlay holds.
    Memory = 7,
    /// The program waits for another thread.
    Spin = 8,
    /// The limit of newly decoded instructions was reached.
    Decoding = 9,
}

impl EndReason {
    const ALL: [Self; 10] = [
        Self::Budget,
        Self::SystemCall,
        Self::Instruction,
        Self::Signal,
        Self::Exit,
        Self::Unknown,
        Self::Fault,
        Self::Memory,
        Self::Spin,
        Self::Decoding,
    ];

    /// Decodes a stored discriminant.
    pub fn from_u8(value: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == value)
    }

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::SystemCall => "system-call",
            Self::Instruction => "instruction",
            Self::Signal => "signal",
            Self::Exit => "exit",
            Self::Unknown => "unknown",
            Self::Fault => "fault",
            Self::Memory => "memory",
            Self::Spin => "spin",
            Self::Decoding => "decoding",
        }
    }
}
