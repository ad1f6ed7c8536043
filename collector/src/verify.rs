//! The comparison of shadow execution with real execution.

use iced_x86::{Code, Decoder, DecoderOptions, InstructionInfoFactory, OpAccess, RflagsBits};
use pleach_shadow::Handling;
use pleach_wire::shard::{Disagreement, REGISTERS};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The reason for a disagreement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Only flags differ that the instruction leaves undefined.
    UndefinedFlags,
    /// The instruction reads memory to which other threads, other processes or the kernel (its clock) may store.
    SharedMemory,
    /// The instruction reads memory in a program with signal handlers, one of which may have stored there.
    Signal,
    /// No known reason: a defect of shadow execution.
    Bug,
}

impl Class {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::UndefinedFlags => "undefined-flags",
            Self::SharedMemory => "shared-memory",
            Self::Signal => "signal",
            Self::Bug => "bug",
        }
    }
}

/// The result of a comparison.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Verified {
    /// Instructions compared, register by register.
    pub instructions: u64,
    /// Disagreements by class.
    pub disagreements: BTreeMap<String, u64>,
    /// Descriptions of the first defects.
    pub bugs: Vec<String>,
    /// Opcodes that ran, by how they were handled.
    pub opcodes: BTreeMap<String, BTreeSet<String>>,
}

/// Maximum of defects that are described.
const MAX_DESCRIBED: usize = 20;

impl Verified {
    /// Adds the comparison of one process; `threads` is its number of threads.
    pub fn add(&mut self, instructions: u64, disagreements: &[Disagreement], threads: u32) {
        self.instructions += instructions;
        for found in disagreements {
            let class = classify(found, threads > 1);
            *self.disagreements.entry(class.name().to_owned()).or_default() += 1;
            if class == Class::Bug && self.bugs.len() < MAX_DESCRIBED {
                self.bugs.push(describe(found));
            }
        }
    }

    /// Adds opcodes, as numbers with a bit for each [`Handling`].
    pub fn add_opcodes(&mut self, opcodes: &[(u16, u8)]) {
        for (number, ways) in opcodes {
            let Ok(code) = Code::try_from(usize::from(*number)) else {
                continue;
            };
            for way in Handling::ALL.into_iter().filter(|way| ways & *way as u8 != 0) {
                let met = self.opcodes.entry(way.name().to_owned()).or_default();
                met.insert(format!("{code:?}"));
            }
        }
    }

    /// Adds the result of another recording.
    pub fn join(&mut self, other: Self) {
        self.instructions += other.instructions;
        for (class, count) in other.disagreements {
            *self.disagreements.entry(class).or_default() += count;
        }
        self.bugs.extend(other.bugs);
        self.bugs.truncate(MAX_DESCRIBED);
        for (way, met) in other.opcodes {
            self.opcodes.entry(way).or_default().extend(met);
        }
    }
}

/// The instruction; `None` if its bytes cannot be decoded.
fn instruction(found: &Disagreement) -> Option<iced_x86::Instruction> {
    let code = found.code.get(..found.length.into())?;
    let decoded = Decoder::with_ip(64, code, found.from, DecoderOptions::NONE).decode();
    (decoded.code() != Code::INVALID).then_some(decoded)
}

/// The probable reason for a disagreement.
pub fn classify(found: &Disagreement, has_threads: bool) -> Class {
    let Some(instruction) = instruction(found) else {
        return Class::Bug;
    };
    let differing = (found.shadow[REGISTERS - 2] ^ found.real[REGISTERS - 2]) as u32;
    let undefined = instruction.rflags_undefined();
    let bits = [
        (RflagsBits::CF, 0),
        (RflagsBits::PF, 2),
        (RflagsBits::AF, 4),
        (RflagsBits::ZF, 6),
        (RflagsBits::SF, 7),
        (RflagsBits::OF, 11),
    ];
    let may_differ = |(bit, at): &(u32, u32)| if undefined & bit != 0 { 1 << at } else { 0 };
    let excused: u32 = bits.iter().map(may_differ).sum();
    if found.only_flags && differing & !excused & 0x8d5 == 0 {
        return Class::UndefinedFlags;
    }
    let mut info = InstructionInfoFactory::new();
    let reads = |access| {
        matches!(
            access,
            OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    let loads = info.info(&instruction).used_memory().iter().any(|m| reads(m.access()));
    match loads {
        true if has_threads || found.shared_memory => Class::SharedMemory,
        true if found.handlers => Class::Signal,
        _ => Class::Bug,
    }
}

fn describe(found: &Disagreement) -> String {
    const NAMES: [&str; REGISTERS] = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
        "flags", "rip",
    ];
    let mut text = format!("{:#x}: ", found.from);
    match instruction(found) {
        Some(instruction) => drop(write!(text, "{:?}", instruction.code())),
        None => text.push_str("(undecodable)"),
    }
    for byte in found.code.iter().take(found.length.into()) {
        let _ = write!(text, " {byte:02x}");
    }
    for (i, name) in NAMES.iter().enumerate() {
        if found.shadow[i] != found.real[i] {
            let (before, shadow, real) = (found.before[i], found.shadow[i], found.real[i]);
            let _ = write!(text, "; {name} was {before:#x}, ahead {shadow:#x}, really {real:#x}");
        }
    }
    for i in (0..35).filter(|i| found.others >> i & 1 != 0) {
        let _ = match i {
            32 => write!(text, "; opmasks"),
            33 => write!(text, "; x87"),
            34 => write!(text, "; mxcsr"),
            _ => write!(text, "; vector {i}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &[u8], only_flags: bool, differing: u64) -> Disagreement {
        let mut found = Disagreement {
            from: 0x1000,
            length: code.len() as u8,
            only_flags,
            ..Disagreement::default()
        };
        found.code[..code.len()].copy_from_slice(code);
        found.real[REGISTERS - 2] = differing;
        found
    }

    #[test]
    fn only_what_is_undefined_is_excused() {
        // imul eax, ecx: the sign flag is undefined, the carry is not.
        let imul = [0x0f, 0xaf, 0xc1];
        assert_eq!(classify(&found(&imul, true, 0x80), false), Class::UndefinedFlags);
        assert_eq!(classify(&found(&imul, true, 0x81), false), Class::Bug);
        assert_eq!(classify(&found(&imul, false, 0), true), Class::Bug);
        // mov eax, [rdi]
        let load = [0x8b, 0x07];
        assert_eq!(classify(&found(&load, false, 0), true), Class::SharedMemory);
        assert_eq!(classify(&found(&load, false, 0), false), Class::Bug);
        let mut excused = found(&load, false, 0);
        excused.handlers = true;
        assert_eq!(classify(&excused, false), Class::Signal);
        excused.shared_memory = true;
        assert_eq!(classify(&excused, false), Class::SharedMemory);
        assert_eq!(classify(&found(&[], false, 0), true), Class::Bug);
    }

    #[test]
    fn opcodes_are_named() {
        let mut verified = Verified::default();
        verified.add_opcodes(&[(Code::Cpuid as u16, 4), (Code::Syscall as u16, 8), (u16::MAX, 1)]);
        verified.add_opcodes(&[(Code::Nopw as u16, 1 | 2)]);
        let names: Vec<String> = verified
            .opcodes
            .iter()
            .map(|(way, met)| format!("{way}: {met:?}"))
            .collect();
        assert_eq!(
            names,
            [
                r#"ends the burst: {"Syscall"}"#,
                r#"interpreted: {"Nopw"}"#,
                r#"marked: {"Cpuid"}"#,
                r#"native: {"Nopw"}"#
            ]
        );
    }

    #[test]
    fn bugs_are_described() {
        let mut verified = Verified::default();
        let mut bug = found(&[0x8b, 0x07], false, 0);
        (bug.shadow[0], bug.real[0]) = (1, 2);
        verified.add(10, &[bug], 1);
        assert_eq!(verified.instructions, 10);
        assert_eq!(verified.disagreements["bug"], 1);
        assert_eq!(
            verified.bugs,
            ["0x1000: Mov_r32_rm32 8b 07; rax was 0x0, ahead 0x1, really 0x2"]
        );
    }
}
