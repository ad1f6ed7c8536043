//! LLVM's map of basic blocks, the section `.llvm_bb_addr_map` of programs built with `-fbasic-block-address-map`.
//!
//! Version 5 (LLVM 22): for each function version (1 byte), features (2 bytes), ranges of blocks. A range has a base
//! address (8 bytes), a number of blocks, and for each block its identifier, its offset from the end of the one before,
//! the ends of its calls if there are any, its size and its kind; numbers are LEB128.

use pleach_annotate::probe::Address;
use std::ops::Range;

/// The version that is read.
const VERSION: u8 = 5;
/// Features: blocks lie in several ranges; the ends of calls follow the offset.
const SEVERAL_RANGES: u16 = 1 << 3;
const CALL_ENDS: u16 = 1 << 5;

/// Why the map cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapError {
    /// Another version of LLVM wrote it.
    #[error("its basic-block address map has version {0}, not {VERSION}: build it with clang 22")]
    Version(u8),
    /// It has what other options add.
    #[error(
        "its basic-block address map has features (0x{0:x}) that are not read: build it without -fpgo-analysis-map or similar"
    )]
    Features(u16),
    /// It was cut off, or has impossible numbers.
    #[error("its basic-block address map is damaged at byte {0}")]
    Malformed(usize),
}

/// A block of machine code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// As clang's `-fbasic-block-sections=list=` names it.
    pub id: u32,
    /// Its code.
    pub code: Range<u64>,
}

/// The blocks of a function, entry first, in the order of their addresses within a range.
pub type Blocks = Vec<Block>;

/// Decodes the section: the blocks of each function. Functions without blocks are left out.
///
/// # Errors
/// Another version wrote it, it has features that are not read, or it is damaged.
pub fn decode(section: &[u8]) -> Result<Vec<Blocks>, MapError> {
    let mut reader = Reader { section, at: 0 };
    let mut functions = Vec::new();
    while reader.at < section.len() {
        let version = reader.bytes::<1>()?[0];
        if version != VERSION {
            return Err(MapError::Version(version));
        }
        let features = u16::from_le_bytes(reader.bytes()?);
        if features & !(SEVERAL_RANGES | CALL_ENDS) != 0 {
            return Err(MapError::Features(features));
        }
        let ranges = if features & SEVERAL_RANGES != 0 {
            reader.number()?
        } else {
            1
        };
        let mut blocks = Vec::new();
        for _ in 0..ranges {
            let mut end = u64::from_le_bytes(reader.bytes()?);
            for _ in 0..reader.number()? {
                let id = u32::try_from(reader.number()?).map_err(|_| reader.error())?;
                let start = end.checked_add(reader.number()?).ok_or_else(|| reader.error())?;
                // Ends of calls, each relative to the one before; the rest of the block follows the last.
                let mut size = 0_u64;
                if features & CALL_ENDS != 0 {
                    for _ in 0..reader.number()? {
                        size = size.checked_add(reader.number()?).ok_or_else(|| reader.error())?;
                    }
                }
                size = size.checked_add(reader.number()?).ok_or_else(|| reader.error())?;
                end = start.checked_add(size).ok_or_else(|| reader.error())?;
                reader.number()?;
                blocks.push(Block { id, code: start..end });
            }
        }
        if !blocks.is_empty() {
            functions.push(blocks);
        }
    }
    Ok(functions)
}

/// Where a function begins.
pub fn entry(blocks: &Blocks) -> Address {
    Address(blocks.first().map_or(0, |block| block.code.start))
}

struct Reader<'a> {
    section: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn error(&self) -> MapError {
        MapError::Malformed(self.at)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], MapError> {
        let taken = self.section.get(self.at..).and_then(|rest| rest.first_chunk());
        let taken = *taken.ok_or_else(|| self.error())?;
        self.at += N;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, MapError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.bytes()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                break;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As clang 22 wrote it, moved to 0x1000.
    const SECTION: [u8; 36] = [
        5, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 6, 0, 0, 7, 8, 3, 0, 3, 1, 1, 0, 4, 8, 2, 0, 2, 8, 4, 0, 0xd, 8, 5, 0, 1, 1,
    ];

    #[test]
    fn blocks_follow_one_another() {
        let functions = decode(&SECTION).expect("readable");
        assert_eq!(functions.len(), 1);
        let ids: Vec<u32> = functions[0].iter().map(|block| block.id).collect();
        assert_eq!(ids, [0, 3, 1, 2, 4, 5]);
        assert_eq!(functions[0][1].code, 0x1007..0x100a);
        assert_eq!(entry(&functions[0]), Address(0x1000));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let mut other = SECTION;
        other[0] = 4;
        assert_eq!(decode(&other), Err(MapError::Version(4)));
        other = SECTION;
        other[1] = 2;
        assert_eq!(decode(&other), Err(MapError::Features(2)));
        for length in 1..SECTION.len() {
            assert!(
                matches!(decode(&SECTION[..length]), Err(MapError::Malformed(_))),
                "{length}"
            );
        }
        assert_eq!(decode(&[]), Ok(Vec::new()));
    }
}
