//! What produces bursts, and why they end.

/// What produced a burst.
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
    /// The next instruction enters the kernel in a way that cannot be followed.
    SystemCall = 1,
    /// The next instruction cannot be followed (`pushf`, `popf`, `int3`, undecodable …).
    Instruction = 2,
    /// A signal was delivered to the program.
    Signal = 3,
    /// The thread or process ended.
    Exit = 4,
    /// The way on depends on something that only running the program tells (the time, for instance).
    Unknown = 5,
    /// The next instruction reads memory that is not there, or fails otherwise.
    Fault = 6,
    /// More memory was written than could be kept.
    Memory = 7,
    /// It waits for another thread.
    Spin = 8,
    /// More code was met for the first time than may be decoded at once.
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
