//! Boundaries and control flow of x86-64 instructions, without tables to set up and without allocation.
//!
//! A sampler that lives in every process of a build needs an answer to two questions only: how long is this
//! instruction, and can it change control? A general decoder answers many more, and takes longer to initialise than
//! many of those processes run. The tests compare this one with `iced-x86` over whole libraries.

/// How an instruction transfers control, to the detail that single-stepping needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Control goes on to the next instruction.
    Plain = 0,
    /// A repeated string instruction: it traps once for each iteration.
    Repeat = 1,
    /// A conditional jump (`jcc`, `loop`, `jrcxz`) to a known target.
    Conditional = 2,
    /// A jump to a known target.
    Jump = 3,
    /// A call of a known target.
    Call = 4,
    /// A jump to a computed target.
    IndirectJump = 5,
    /// A call of a computed target.
    IndirectCall = 6,
    /// A near return.
    Return = 7,
    /// `syscall`.
    SystemCall = 8,
    /// Must not be single-stepped: it accesses the trap flag, delays or raises a trap, is privileged, or is unknown.
    Stop = 9,
}

impl Kind {
    /// Whether control never falls through to the next instruction.
    pub fn is_unconditional(self) -> bool {
        matches!(
            self,
            Self::Jump | Self::Call | Self::IndirectJump | Self::IndirectCall | Self::Return
        )
    }

    /// Whether it can be the source of a taken branch.
    pub fn is_branch(self) -> bool {
        self.is_unconditional() || self == Self::Conditional
    }
}

/// One instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// Length in bytes, 0 if the kind is [`Kind::Stop`] and the length unknown.
    pub length: u8,
    /// How it transfers control.
    pub kind: Kind,
    /// Target of a direct jump or call, else 0.
    pub target: u64,
}

impl Instruction {
    const UNKNOWN: Self = Self {
        length: 0,
        kind: Kind::Stop,
        target: 0,
    };
}

/// Longest instruction, in bytes.
pub const MAX_LENGTH: usize = 15;

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.at += count;
        (self.at <= self.bytes.len()).then_some(())
    }

    /// Reads a ModRM byte and skips the SIB byte and displacement that it implies.
    fn modrm(&mut self) -> Option<u8> {
        let modrm = self.next()?;
        let (mode, rm) = (modrm >> 6, modrm & 7);
        if mode == 3 {
            return Some(modrm);
        }
        let base = if rm == 4 { self.next()? & 7 } else { rm };
        match mode {
            0 if base == 5 => self.skip(4)?,
            1 => self.skip(1)?,
            2 => self.skip(4)?,
            _ => {}
        }
        Some(modrm)
    }

    fn relative(&mut self, size: usize, ip: u64) -> Option<u64> {
        let mut raw = [0u8; 4];
        for slot in raw.iter_mut().take(size) {
            *slot = self.next()?;
        }
        let value = u32::from_le_bytes(raw);
        let offset = if size == 1 {
            value as u8 as i8 as i64
        } else {
            value as i32 as i64
        };
        Some(ip.wrapping_add(self.at as u64).wrapping_add(offset as u64))
    }
}

/// Decodes the instruction at run-time address `ip`.
///
/// `None`: it may be longer than `bytes`; with [`MAX_LENGTH`] bytes given the answer is never `None`.
pub fn decode(bytes: &[u8], ip: u64) -> Option<Instruction> {
    let bytes = &bytes[..bytes.len().min(MAX_LENGTH)];
    let mut cursor = Cursor { bytes, at: 0 };
    match decode_at(&mut cursor, ip) {
        Some((kind, target)) => Some(Instruction {
            length: cursor.at as u8,
            kind,
            target,
        }),
        None if bytes.len() == MAX_LENGTH => Some(Instruction::UNKNOWN),
        None => None,
    }
}

/// Legacy prefixes that matter here.
#[derive(Default)]
struct Prefixes {
    operand_size: bool,
    address_size: bool,
    repeat: bool,
    f3: bool,
    rex_w: bool,
}

impl Prefixes {
    /// Bytes of an immediate of operand size, at most 32 bits.
    fn immediate(&self) -> usize {
        if self.operand_size && !self.rex_w { 2 } else { 4 }
    }

    /// A 16-bit branch on some processors, not on others.
    fn ambiguous_branch(&self) -> bool {
        self.operand_size && !self.rex_w
    }
}

fn decode_at(c: &mut Cursor, ip: u64) -> Option<(Kind, u64)> {
    let mut p = Prefixes::default();
    let opcode = loop {
        match c.next()? {
            0x66 => p.operand_size = true,
            0x67 => p.address_size = true,
            0xf2 => p.repeat = true,
            0xf3 => (p.repeat, p.f3) = (true, true),
            0xf0 | 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 => {}
            rex @ 0x40..=0x4f => {
                p.rex_w = rex & 8 != 0;
                // A REX prefix counts only directly before the opcode.
                match c.next()? {
                    0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3 => return stop(),
                    opcode => break opcode,
                }
            }
            opcode => break opcode,
        }
    };
    match opcode {
        0x0f => two_byte(c, ip, &p),
        0xc4 | 0xc5 | 0x62 => vector(c, opcode),
        _ => one_byte(c, ip, &p, opcode),
    }
}

fn stop() -> Option<(Kind, u64)> {
    Some((Kind::Stop, 0))
}

fn one_byte(c: &mut Cursor, ip: u64, p: &Prefixes, opcode: u8) -> Option<(Kind, u64)> {
    match opcode {
        0x00..=0x3f => match opcode & 7 {
            0..=3 => drop(c.modrm()?),
            4 => c.skip(1)?,
            5 => c.skip(p.immediate())?,
            _ => return stop(),
        },
        0x50..=0x5f | 0x90..=0x99 | 0x9b | 0x9e | 0x9f | 0xc9 | 0xd7 | 0xf5 | 0xf8 | 0xf9 | 0xfc | 0xfd => {}
        0x63 | 0x84..=0x8d | 0xd0..=0xd3 | 0xd8..=0xdf => drop(c.modrm()?),
        // Writing SS holds traps back for an instruction.
        0x8e if c.modrm()? >> 3 & 7 == 2 => return stop(),
        0x8e => {}
        // Otherwise an XOP prefix.
        0x8f if c.modrm()? >> 3 & 7 != 0 => return stop(),
        0x8f => {}
        0x68 | 0xa9 => c.skip(p.immediate())?,
        0x69 | 0x81 => {
            c.modrm()?;
            c.skip(p.immediate())?;
        }
        0x6a | 0xa8 | 0xb0..=0xb7 => c.skip(1)?,
        0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 => {
            c.modrm()?;
            c.skip(1)?;
        }
        0xc6 | 0xc7 => {
            // Anything but reg 0 is a transaction.
            if c.modrm()? >> 3 & 7 != 0 {
                return stop();
            }
            c.skip(if opcode == 0xc6 { 1 } else { p.immediate() })?;
        }
        0xa0..=0xa3 => c.skip(if p.address_size { 4 } else { 8 })?,
        0xa4..=0xa7 | 0xaa..=0xaf if p.repeat => return Some((Kind::Repeat, 0)),
        0xa4..=0xa7 | 0xaa..=0xaf => {}
        0xb8..=0xbf => c.skip(if p.rex_w { 8 } else { p.immediate() })?,
        0xc8 => c.skip(3)?,
        0xf6 | 0xf7 => {
            if c.modrm()? >> 3 & 7 < 2 {
                c.skip(if opcode == 0xf6 { 1 } else { p.immediate() })?;
            }
        }
        0xfe if c.modrm()? >> 3 & 7 > 1 => return stop(),
        0xfe => {}
        0xff => match c.modrm()? >> 3 & 7 {
            0 | 1 | 6 => {}
            2 if !p.ambiguous_branch() => return Some((Kind::IndirectCall, 0)),
            4 if !p.ambiguous_branch() => return Some((Kind::IndirectJump, 0)),
            _ => return stop(),
        },
        0x70..=0x7f | 0xe0..=0xe3 => return Some((Kind::Conditional, c.relative(1, ip)?)),
        0xeb => return Some((Kind::Jump, c.relative(1, ip)?)),
        _ if p.ambiguous_branch() => return stop(),
        0xe8 => return Some((Kind::Call, c.relative(4, ip)?)),
        0xe9 => return Some((Kind::Jump, c.relative(4, ip)?)),
        0xc2 => {
            c.skip(2)?;
            return Some((Kind::Return, 0));
        }
        0xc3 => return Some((Kind::Return, 0)),
        _ => return stop(),
    }
    Some((Kind::Plain, 0))
}

fn two_byte(c: &mut Cursor, ip: u64, p: &Prefixes) -> Option<(Kind, u64)> {
    let opcode = c.next()?;
    match opcode {
        0x05 => return Some((Kind::SystemCall, 0)),
        0x31 | 0x77 | 0xa0 | 0xa1 | 0xa2 | 0xa8 | 0xa9 | 0xc8..=0xcf => {}
        0x01 => match c.modrm()? {
            // xgetbv, xtest, rdpkru, wrpkru, rdtscp
            0xd0 | 0xd6 | 0xee | 0xef | 0xf9 => {}
            _ => return stop(),
        },
        0x0f | 0x3a | 0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => {
            if opcode == 0x3a {
                c.next()?;
            }
            c.modrm()?;
            c.skip(1)?;
        }
        0x38 => {
            c.next()?;
            c.modrm()?;
        }
        0x80..=0x8f if p.ambiguous_branch() => return stop(),
        0x80..=0x8f => return Some((Kind::Conditional, c.relative(4, ip)?)),
        0xae => {
            let modrm = c.modrm()?;
            // wrfsbase and wrgsbase move the thread pointer.
            if p.f3 && modrm >> 6 == 3 && matches!(modrm >> 3 & 7, 2 | 3) {
                return stop();
            }
        }
        0x00
        | 0x04..=0x0c
        | 0x0e
        | 0x20..=0x27
        | 0x30..=0x37
        | 0x39..=0x3f
        | 0x78..=0x7b
        | 0xa6
        | 0xa7
        | 0xaa
        | 0xb2
        | 0xb4
        | 0xb5
        | 0xb9
        | 0xff => return stop(),
        _ => drop(c.modrm()?),
    }
    Some((Kind::Plain, 0))
}

/// VEX and EVEX encodings: never control flow.
fn vector(c: &mut Cursor, escape: u8) -> Option<(Kind, u64)> {
    let map = match escape {
        0xc5 => {
            c.next()?;
            1
        }
        0xc4 => {
            let map = c.next()? & 0x1f;
            c.next()?;
            map
        }
        _ => {
            let map = c.next()? & 7;
            c.skip(2)?;
            map
        }
    };
    let opcode = c.next()?;
    match (map, opcode) {
        (1, 0x77) if escape != 0x62 => {}
        (3, _) | (1, 0x70..=0x73 | 0xc2 | 0xc4..=0xc6) => {
            c.modrm()?;
            c.skip(1)?;
        }
        (1 | 2, _) => drop(c.modrm()?),
        (5 | 6, _) if escape == 0x62 => drop(c.modrm()?),
        _ => return stop(),
    }
    Some((Kind::Plain, 0))
}
