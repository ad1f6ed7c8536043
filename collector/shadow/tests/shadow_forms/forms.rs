//! Encoding forms that occur in libraries, with some of the instructions that have them.

use crate::random::Random;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What makes a form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    pub code: Code,
    /// A character an operand.
    kinds: [u8; 5],
    /// `lock`, `repe`, `repne`.
    prefixes: [bool; 3],
    segment: Register,
    /// `{k}`, `{z}`, broadcast, rounding, 32-bit address.
    extras: [bool; 5],
}

impl Key {
    fn from_instruction(ins: &Instruction) -> Self {
        let mut kinds = [b' '; 5];
        for (i, kind) in kinds.iter_mut().enumerate().take(ins.op_count() as usize) {
            *kind = match ins.op_kind(i as u32) {
                OpKind::Register => match ins.op_register(i as u32) {
                    Register::AH | Register::BH | Register::CH | Register::DH => b'h',
                    register if register.is_segment_register() => b's',
                    _ => b'r',
                },
                OpKind::Memory if ins.is_vsib() => b'v',
                OpKind::Memory if ins.is_ip_rel_memory_operand() => b'p',
                OpKind::Memory => b'm',
                OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => b'b',
                OpKind::FarBranch16 | OpKind::FarBranch32 => b'f',
                kind if (OpKind::Immediate8..=OpKind::Immediate32to64).contains(&kind) => b'i',
                _ => b'x',
            };
        }
        let segment = match ins.segment_prefix() {
            segment @ (Register::FS | Register::GS) => segment,
            _ => Register::None,
        };
        Self {
            code: ins.code(),
            kinds,
            prefixes: [ins.has_lock_prefix(), ins.has_repe_prefix(), ins.has_repne_prefix()],
            segment,
            extras: [
                ins.has_op_mask(),
                ins.zeroing_masking(),
                ins.is_broadcast(),
                ins.rounding_control() as u32 != 0 || ins.suppress_all_exceptions(),
                ins.memory_base().is_gpr32() || ins.memory_index().is_gpr32(),
            ],
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = |names: &[&str], set: &[bool]| -> String {
            let held = names.iter().zip(set).filter(|(_, set)| **set);
            held.map(|(name, _)| format!(" {name}")).collect()
        };
        let operands: Vec<String> = self.kinds.iter().map(|&kind| char::from(kind).to_string()).collect();
        write!(f, "{:?} {}", self.code, operands.concat().trim_end())?;
        write!(f, "{}", named(&["lock", "rep", "repne"], &self.prefixes))?;
        if self.segment != Register::None {
            write!(f, " {:?}", self.segment)?;
        }
        write!(f, "{}", named(&["{k}", "{z}", "{b}", "{er}", "a32"], &self.extras))
    }
}

/// Properties by which the instructions kept of a form should differ.
fn signature(ins: &Instruction) -> u32 {
    let (base, index) = (ins.memory_base().full_register(), ins.memory_index().full_register());
    let registers: Vec<Register> = (0..ins.op_count())
        .filter(|&i| ins.op_kind(i) == OpKind::Register)
        .map(|i| ins.op_register(i).full_register())
        .collect();
    let mut distinct = registers.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let bits = [
        registers.contains(&Register::RSP),
        registers.iter().any(|r| r.is_gpr() && r.number() >= 8),
        registers.iter().any(|r| r.is_vector_register() && r.number() >= 8),
        registers.iter().any(|r| r.is_vector_register() && r.number() >= 16),
        distinct.len() < registers.len(),
        registers.contains(&base),
        index != Register::None,
        index != Register::None && registers.contains(&index),
        index == base,
        base == Register::None,
        base == Register::RSP,
        matches!(base, Register::RBP | Register::R13),
        base.is_gpr() && base.number() >= 8,
        ins.memory_displ_size() > 1,
        ins.memory_displ_size() == 1,
        index.number() >= 8,
    ];
    bits.iter().fold(0, |sum, &bit| sum << 1 | u32::from(bit))
}

/// What vendors do differently.
fn is_special(ins: &Instruction, code: &[u8]) -> bool {
    let amd = Decoder::with_ip(64, code, 0, DecoderOptions::AMD).decode();
    let repeated = ins.has_rep_prefix() || ins.has_repne_prefix();
    matches!(ins.mnemonic(), Mnemonic::Loope | Mnemonic::Loopne) && repeated
        || ins.code() == Code::Movsxd_r16_rm16
        || (amd.code(), amd.len()) != (ins.code(), ins.len())
}

/// Instructions by form, up to `max_each` for each form.
pub struct Forms {
    pub found: BTreeMap<Key, Vec<Vec<u8>>>,
    signatures: BTreeSet<(Key, u32)>,
    max_each: usize,
    pub instructions: u64,
}

impl Forms {
    pub fn new(max_each: usize) -> Self {
        Self {
            found: BTreeMap::new(),
            signatures: BTreeSet::new(),
            max_each,
            instructions: 0,
        }
    }

    /// One function, up to what does not decode.
    fn sweep(&mut self, code: &[u8], address: u64) {
        let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
        let mut ins = Instruction::default();
        while decoder.can_decode() {
            let at = decoder.position();
            decoder.decode_out(&mut ins);
            if ins.is_invalid() {
                break;
            }
            self.instructions += 1;
            let key = Key::from_instruction(&ins);
            let kept = self.found.entry(key).or_default();
            // The first instruction of each signature, up to the maximum.
            if kept.len() < self.max_each && self.signatures.insert((key, signature(&ins))) {
                kept.push(code[at..at + ins.len()].to_vec());
            }
        }
    }

    /// Instructions that are a bit or two away from those found: other registers, sizes, prefixes, opcodes.
    pub fn mutate(&mut self, tries: usize, random: &mut Random) {
        let seeds: Vec<Vec<u8>> = self.found.values().flatten().cloned().collect();
        for seed in &seeds {
            for _ in 0..tries {
                // Behind it what the changed opcode may need as an operand.
                let mut code = seed.clone();
                code.resize(15, 0x11);
                for _ in 0..1 + random.below(2) {
                    let bit = random.below(8 * seed.len().min(7) as u64) as usize;
                    code[bit / 8] ^= 1 << (bit % 8);
                }
                let ins = Decoder::with_ip(64, &code, 0, DecoderOptions::NONE).decode();
                if !ins.is_invalid() && !is_special(&ins, &code) {
                    self.sweep(&code[..ins.len()], 0);
                }
            }
        }
    }

    /// Every `step`th function of a library, those of assembly included if they have unwind information.
    pub fn add(&mut self, path: &Path, step: usize) -> Option<()> {
        let file = std::fs::File::open(path).ok()?;
        // SAFETY: installed libraries are replaced, not changed.
        let map = unsafe { memmap2::Mmap::map(&file) }.ok()?;
        let elf = object::File::parse(&*map).ok()?;
        let mut functions: Vec<Range<u64>> = elf
            .symbols()
            .chain(elf.dynamic_symbols())
            .filter(|symbol| symbol.size() > 0)
            .map(|symbol| symbol.address()..symbol.address() + symbol.size())
            .chain(unwound(&elf))
            .collect();
        functions.sort_unstable_by_key(|range| (range.start, range.end));
        functions.dedup_by_key(|range| range.start);
        for section in elf.sections() {
            let executable = section.kind() == SectionKind::Text;
            let Some(bytes) = section.data().ok().filter(|_| executable) else {
                continue;
            };
            let (start, end) = (section.address(), section.address() + section.size());
            let first = functions.partition_point(|range| range.start < start);
            let last = functions.partition_point(|range| range.start < end);
            if section.name().is_ok_and(|name| name.starts_with(".plt")) {
                self.sweep(bytes, start);
                continue;
            }
            for (i, function) in functions[first..last].iter().enumerate().step_by(step) {
                let next = functions[first..last].get(i + 1).map_or(end, |next| next.start);
                let stop = function.end.min(next).min(end);
                let code = bytes.get((function.start - start) as usize..(stop - start) as usize)?;
                self.sweep(code, function.start);
            }
        }
        Some(())
    }
}

/// Extents of functions by `.eh_frame_hdr` and `.eh_frame`, with the encodings that linkers use.
fn unwound<'data>(elf: &object::File<'data>) -> Vec<Range<u64>> {
    let section = |name| {
        let section = elf.section_by_name(name)?;
        Some((section.address(), section.data().ok()?))
    };
    let find = || -> Option<Vec<Range<u64>>> {
        let ((header, table), (frames, entries)) = (section(".eh_frame_hdr")?, section(".eh_frame")?);
        let word = |bytes: &[u8], at: usize| Some(i32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        // Version 1, pcrel sdata4, udata4, datarel sdata4.
        if table.get(..4)? != [1, 0x1b, 3, 0x3b] {
            return None;
        }
        let count = word(table, 8)? as usize;
        let range = |i: usize| -> Option<Range<u64>> {
            let start = header.wrapping_add_signed(word(table, 12 + 8 * i)?.into());
            let entry = header
                .wrapping_add_signed(word(table, 16 + 8 * i)?.into())
                .checked_sub(frames)?;
            let size = word(entries, entry as usize + 12)?;
            Some(start..start + u64::try_from(size).ok()?)
        };
        Some((0..count).filter_map(range).collect())
    };
    find().unwrap_or_default()
}

/// Libraries with the step in which to take their functions.
pub fn libraries(all: bool) -> Vec<(PathBuf, usize)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mapped: BTreeSet<&str> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .collect();
    let directories: BTreeSet<&Path> = mapped
        .iter()
        .filter(|path| path.contains("/libc.so"))
        .filter_map(|path| Path::new(path).parent())
        .chain(["/lib64", "/usr/lib64", "/usr/lib", "/usr/lib/x86_64-linux-gnu"].map(Path::new))
        .collect();
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut take = |path: &Path, step: usize| {
        let path = path.canonicalize().unwrap_or_default();
        if path.is_file() && seen.insert(path.clone()) {
            found.push((path, step));
        }
    };
    const NAMES: [&str; 9] = [
        "libc.so.6",
        "libm.so.6",
        "libmvec.so.1",
        "ld-linux-x86-64.so.2",
        "libgcc_s.so.1",
        "libstdc++.so.6",
        "libz.so.1",
        "libzstd.so.1",
        "libcrypto.so.3",
    ];
    for name in NAMES {
        for directory in &directories {
            take(&directory.join(name), 1);
        }
    }
    for path in glob("/usr/lib", "llvm-").iter().rev() {
        for library in glob(path.join("lib").to_str().unwrap_or_default(), "libLLVM")
            .iter()
            .take(1)
        {
            take(library, if all { 1 } else { 50 });
        }
    }
    found
}

/// What a directory has of that begin, in order.
fn glob(directory: &str, begin: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(begin)))
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() || path.to_str().is_some_and(|path| path.contains(".so")))
        .collect();
    paths.sort();
    paths
}
