//! Which opcodes were met, and how each was handled.

use super::Engine;
use super::op::Kind;

/// Capacity in opcodes; the decoder has fewer.
const CODES: usize = 5200;
/// In a cell: not yet reported.
const NEW: u8 = 0x80;

/// How instructions of an opcode were handled. One opcode may be handled in several ways, depending on its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Handling {
    /// Interpreted.
    Interpreted = 1,
    /// Run by the processor on the shadow's registers.
    Native = 2,
    /// Its result is tainted.
    Marked = 4,
    /// The burst ends before it.
    Ends = 8,
}

impl Handling {
    /// All ways.
    pub const ALL: [Self; 4] = [Self::Interpreted, Self::Native, Self::Marked, Self::Ends];

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interpreted => "interpreted",
            Self::Native => "native",
            Self::Marked => "marked",
            Self::Ends => "ends the burst",
        }
    }

    fn from_kind(kind: Kind) -> Self {
        match kind {
            Kind::Thunk | Kind::Save => Self::Native,
            Kind::Unknown => Self::Marked,
            Kind::SystemCall | Kind::Stop => Self::Ends,
            _ => Self::Interpreted,
        }
    }
}

/// A set of ways for each opcode; all zeroes is the empty one.
#[derive(Debug)]
pub(super) struct Opcodes {
    ways: [u8; CODES],
}

impl Opcodes {
    /// Records how an instruction was handled.
    pub(super) fn record(&mut self, code: iced_x86::Code, kind: Kind) {
        if let Some(ways) = self.ways.get_mut(code as usize) {
            let way = Handling::from_kind(kind) as u8;
            if *ways & way == 0 {
                *ways |= way | NEW;
            }
        }
    }
}

impl Engine {
    /// Calls `tell` with each opcode that was handled in a new way since the last call: its number (an
    /// `iced_x86::Code`), and one bit for each [`Handling`]. Stops when `tell` returns false.
    pub fn tell_opcodes(&mut self, tell: &mut dyn FnMut(u16, u8) -> bool) {
        for (code, ways) in self.opcodes.ways.iter_mut().enumerate() {
            if *ways & NEW != 0 {
                if !tell(code as u16, *ways & !NEW) {
                    return;
                }
                *ways &= !NEW;
            }
        }
    }
}
