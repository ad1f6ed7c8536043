//! The manifest: a binary's own IR graphs (section `.pleach_cfg`).
//!
//! The section is a sequence of entries, one for each function and graph. Zero bytes pad each entry to a multiple of
//! eight, so that a compiler can write it as 64-bit words. Linkers concatenate the sections of several objects, so
//! entries have no order and may repeat. Integers are little-endian; `u` and `s` are unsigned and signed LEB128.
//!
//! ```text
//! entry     "PLCF", version: 1 byte, anchor: 1 byte, 2 zero bytes, payload length: 4 bytes,
//!           low 32 bits of the payload's XXH3: 4 bytes, payload
//! payload   GUID: 8, module of a local function (else 0): 4, module: 4, graph hash: 8,
//!           name: u and bytes, source file: u and bytes, u blocks, u calls
//! block     flags: 1 byte (bits 0–2 terminator, bit 3 exception-handling pad),
//!           u successors, each as s relative to this block, u instructions, s line relative to the block before
//! call      s block relative to the call before, flags: 1 byte (bits 0–1 callee: direct, indirect,
//!           inline assembly, memory; bit 2 may not return), GUID: 8 bytes for a direct call
//! ```

use crate::cfg::{Block, Call, Callee, Cfg, Terminator};
use crate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
use gimli::{EndianSlice, LittleEndian, Reader, leb128};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Name of the section.
pub const SECTION: &str = ".pleach_cfg";

const MAGIC: &[u8; 4] = b"PLCF";
const VERSION: u8 = 2;
const HEADER_LEN: usize = 16;
const ALIGNMENT: usize = 8;
/// Bounds the memory that a corrupt entry can make the decoder allocate; real functions have far fewer items.
const MAX_ITEMS: u64 = 1 << 24;

/// The place in LLVM's pipeline where IR is identified.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Anchor {
    /// PipelineEarlySimplification, before the inliner.
    #[default]
    Early = 0,
    /// OptimizerLast, the graph as code generation gets it.
    Late = 1,
}

impl Anchor {
    /// Decodes a stored discriminant.
    pub fn from_u8(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::Early),
            1 => Some(Self::Late),
            _ => None,
        }
    }

    /// The name used in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Late => "late",
        }
    }
}

/// One decoded entry of the manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Where the graph was taken.
    pub anchor: Anchor,
    /// Hash of the graph as stored; it equals `cfg.hash()`.
    pub hash: CfgHash,
    /// The graph.
    pub cfg: Cfg,
}

/// A malformed entry of the manifest.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("manifest section {SECTION}, offset {offset:#x}: {what}")]
pub struct ManifestError {
    /// Offset of the entry in the section, in bytes.
    pub offset: usize,
    /// The defect.
    pub what: &'static str,
}

/// Encodes one graph as an entry. Its length is a multiple of eight bytes.
pub fn encode(cfg: &Cfg, anchor: Anchor) -> Vec<u8> {
    let mut out = vec![0; HEADER_LEN];
    encode_payload(cfg, &mut out);
    let payload_len = (out.len() - HEADER_LEN) as u32;
    let check = xxh3_64(&out[HEADER_LEN..]) as u32;
    out[..4].copy_from_slice(MAGIC);
    out[4] = VERSION;
    out[5] = anchor as u8;
    out[8..12].copy_from_slice(&payload_len.to_le_bytes());
    out[12..16].copy_from_slice(&check.to_le_bytes());
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    out
}

/// Encodes one graph alone: the payload of its entry.
pub fn encode_graph(cfg: &Cfg) -> Vec<u8> {
    let mut out = Vec::new();
    encode_payload(cfg, &mut out);
    out
}

/// Decodes what [`encode_graph`] made. `None` if it is malformed, or if bytes are left over.
pub fn decode_graph(payload: &[u8]) -> Option<Cfg> {
    let mut input = Input::new(payload, LittleEndian);
    let (cfg, _) = decode_payload(&mut input).ok()??;
    input.is_empty().then_some(cfg)
}

fn push_unsigned(out: &mut Vec<u8>, value: u64) {
    leb128::write::unsigned(out, value).expect("writing to a vector cannot fail");
}

fn push_signed(out: &mut Vec<u8>, value: i64) {
    leb128::write::signed(out, value).expect("writing to a vector cannot fail");
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    push_unsigned(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn encode_payload(cfg: &Cfg, out: &mut Vec<u8>) {
    out.extend_from_slice(&cfg.id.guid.0.to_le_bytes());
    out.extend_from_slice(&cfg.id.module.0.to_le_bytes());
    out.extend_from_slice(&cfg.module.0.to_le_bytes());
    out.extend_from_slice(&cfg.hash().0.to_le_bytes());
    push_text(out, &cfg.name);
    push_text(out, &cfg.source_file);
    push_unsigned(out, cfg.blocks.len() as u64);
    let mut line = 0;
    for (index, block) in cfg.blocks.iter().enumerate() {
        out.push(block.terminator as u8 | u8::from(block.is_eh_pad) << 3);
        push_unsigned(out, block.successors.len() as u64);
        for successor in &block.successors {
            push_signed(out, i64::from(successor.0) - index as i64);
        }
        push_unsigned(out, u64::from(block.instructions));
        push_signed(out, i64::from(block.line) - line);
        line = i64::from(block.line);
    }
    push_unsigned(out, cfg.calls.len() as u64);
    let mut block = 0;
    for call in &cfg.calls {
        push_signed(out, i64::from(call.block.0) - block);
        block = i64::from(call.block.0);
        let kind = match call.callee {
            Callee::Direct(_) => 0,
            Callee::Indirect => 1,
            Callee::InlineAsm => 2,
            Callee::Memory => 3,
        };
        out.push(kind | u8::from(call.may_not_return) << 2);
        if let Callee::Direct(guid) = call.callee {
            out.extend_from_slice(&guid.0.to_le_bytes());
        }
    }
}

/// Decodes all entries of a section. Reports malformed entries and continues at the next intact one.
pub fn decode(section: &[u8]) -> (Vec<Entry>, Vec<ManifestError>) {
    let (mut entries, mut errors) = (Vec::new(), Vec::new());
    let mut offset = 0;
    while offset < section.len() {
        match decode_entry(&section[offset..]) {
            Ok((entry, len)) => {
                entries.push(entry);
                offset += len;
            }
            Err(what) => {
                errors.push(ManifestError { offset, what });
                offset += ALIGNMENT;
                while offset < section.len() && !section[offset..].starts_with(MAGIC) {
                    offset += ALIGNMENT;
                }
            }
        }
    }
    (entries, errors)
}

type Input<'a> = EndianSlice<'a, LittleEndian>;

fn decode_entry(bytes: &[u8]) -> Result<(Entry, usize), &'static str> {
    let header = bytes.get(..HEADER_LEN).ok_or("truncated header")?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if &header[..4] != MAGIC {
        return Err("no entry begins here");
    }
    if header[4] != VERSION {
        return Err("unknown version: the binary was annotated by another release of pleach");
    }
    let anchor = Anchor::from_u8(header[5]).ok_or("unknown anchor")?;
    let payload_len = word(8) as usize;
    let payload = bytes[HEADER_LEN..].get(..payload_len).ok_or("truncated entry")?;
    if xxh3_64(payload) as u32 != word(12) {
        return Err("checksum does not match");
    }
    let mut input = Input::new(payload, LittleEndian);
    let (cfg, hash) = decode_payload(&mut input)
        .map_err(|_| "malformed entry")?
        .ok_or("inconsistent graph")?;
    let len = (HEADER_LEN + payload_len).next_multiple_of(ALIGNMENT);
    Ok((Entry { anchor, hash, cfg }, len))
}

fn read_text(input: &mut Input<'_>) -> gimli::Result<String> {
    let len = input.read_uleb128()? as usize;
    let bytes = input.split(len)?;
    Ok(String::from_utf8_lossy(bytes.slice()).into_owned())
}

/// Returns `None` if the graph refers to blocks that it does not have, or if its hash differs from the stored one.
fn decode_payload(input: &mut Input<'_>) -> gimli::Result<Option<(Cfg, CfgHash)>> {
    let guid = FunctionGuid(input.read_u64()?);
    let local = ModuleHash(input.read_u32()?);
    let module = ModuleHash(input.read_u32()?);
    let hash = CfgHash(input.read_u64()?);
    let name = read_text(input)?;
    let source_file = read_text(input)?;
    let block_count = input.read_uleb128()?;
    if block_count > MAX_ITEMS.min(input.len() as u64) {
        return Ok(None);
    }
    let mut blocks = Vec::with_capacity(block_count as usize);
    let mut line = 0i64;
    for index in 0..block_count as i64 {
        let flags = input.read_u8()?;
        let successor_count = input.read_uleb128()?;
        if successor_count > MAX_ITEMS.min(input.len() as u64) {
            return Ok(None);
        }
        let mut successors = Vec::with_capacity(successor_count as usize);
        for _ in 0..successor_count {
            let target = index.wrapping_add(input.read_sleb128()?);
            if target < 0 || target >= block_count as i64 {
                return Ok(None);
            }
            successors.push(BlockIndex(target as u32));
        }
        let instructions = input.read_uleb128()? as u32;
        line = line.wrapping_add(input.read_sleb128()?);
        let Some(terminator) = Terminator::from_u8(flags & 7) else {
            return Ok(None);
        };
        blocks.push(Block {
            successors,
            terminator,
            is_eh_pad: flags & 8 != 0,
            instructions,
            line: line as u32,
        });
    }
    let call_count = input.read_uleb128()?;
    if call_count > MAX_ITEMS.min(input.len() as u64) {
        return Ok(None);
    }
    let mut calls = Vec::with_capacity(call_count as usize);
    let mut block = 0i64;
    for _ in 0..call_count {
        block = block.wrapping_add(input.read_sleb128()?);
        if !(0..block_count as i64).contains(&block) {
            return Ok(None);
        }
        let kind = input.read_u8()?;
        let callee = match kind & 3 {
            0 => Callee::Direct(FunctionGuid(input.read_u64()?)),
            1 => Callee::Indirect,
            2 => Callee::InlineAsm,
            _ => Callee::Memory,
        };
        calls.push(Call {
            block: BlockIndex(block as u32),
            callee,
            may_not_return: kind & 4 != 0,
        });
    }
    let cfg = Cfg {
        id: FunctionId { guid, module: local },
        module,
        name,
        source_file,
        blocks,
        calls,
    };
    Ok((cfg.hash() == hash).then_some((cfg, hash)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_block(count: u32) -> impl Strategy<Value = Block> {
        (
            proptest::collection::vec(0..count, 0..4),
            0u8..8,
            any::<bool>(),
            0u32..1000,
            0u32..100_000,
        )
            .prop_map(|(successors, terminator, is_eh_pad, instructions, line)| Block {
                successors: successors.into_iter().map(BlockIndex).collect(),
                terminator: Terminator::from_u8(terminator).expect("below 8"),
                is_eh_pad,
                instructions,
                line,
            })
    }

    fn any_call(count: u32) -> impl Strategy<Value = Call> {
        let callee = prop_oneof![
            any::<u64>().prop_map(|g| Callee::Direct(FunctionGuid(g))),
            Just(Callee::Indirect),
            Just(Callee::InlineAsm),
            Just(Callee::Memory)
        ];
        (0..count, callee, any::<bool>()).prop_map(|(block, callee, may_not_return)| Call {
            block: BlockIndex(block),
            callee,
            may_not_return,
        })
    }

    pub(crate) fn any_cfg() -> impl Strategy<Value = Cfg> {
        (1u32..40).prop_flat_map(|count| {
            (
                proptest::collection::vec(any_block(count), count as usize),
                proptest::collection::vec(any_call(count), 0..10),
                any::<(u64, u32, u32)>(),
                "[a-zA-Z_0-9.]{0,40}",
                "[a-z/.]{0,30}",
            )
                .prop_map(|(blocks, mut calls, (guid, local, module), name, source_file)| {
                    calls.sort_by_key(|c| (c.callee == Callee::Memory, c.block));
                    let id = FunctionId {
                        guid: FunctionGuid(guid),
                        module: ModuleHash(local),
                    };
                    Cfg {
                        id,
                        module: ModuleHash(module),
                        name,
                        source_file,
                        blocks,
                        calls,
                    }
                })
        })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(cfgs in proptest::collection::vec(any_cfg(), 0..5)) {
            let section: Vec<u8> = cfgs.iter().flat_map(|c| encode(c, Anchor::Late)).collect();
            let (entries, errors) = decode(&section);
            prop_assert!(errors.is_empty());
            prop_assert_eq!(entries.into_iter().map(|e| e.cfg).collect::<Vec<_>>(), cfgs);
        }

        #[test]
        fn a_graph_alone_is_read(cfg in any_cfg()) {
            let bytes = encode_graph(&cfg);
            prop_assert_eq!(decode_graph(&bytes[..bytes.len() - 1]), None);
            prop_assert_eq!(decode_graph(&[&bytes[..], &[0]].concat()), None);
            prop_assert_eq!(decode_graph(&bytes), Some(cfg));
        }

        #[test]
        fn a_flipped_bit_loses_one_entry_at_most(cfgs in proptest::collection::vec(any_cfg(), 3), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut section: Vec<u8> = cfgs.iter().flat_map(|c| encode(c, Anchor::Early)).collect();
            let at = at.index(section.len());
            section[at] ^= 1 << bit;
            let (entries, _) = decode(&section);
            prop_assert!(entries.len() >= 2);
            // Padding and the reserved header bytes carry nothing; everything that is returned is as written.
            prop_assert!(entries.iter().all(|e| cfgs.contains(&e.cfg)));
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut section = MAGIC.to_vec();
            section.extend(bytes);
            decode(&section);
        }
    }
}
