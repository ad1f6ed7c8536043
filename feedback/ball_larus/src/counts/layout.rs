//! Headers and blocks of a count file; see [the file's description](super).

use super::unit::{UnitId, read_u64};

pub const MAGIC: &[u8; 8] = b"PLEACHC1";
pub const SEGMENT_MAGIC: &[u8; 8] = b"PLSEGMT1";
const BLOCK_MAGIC: &[u8; 4] = b"PLBK";
pub const VERSION: u32 = 1;
/// Length of the file's header and alignment of segments, in bytes, where pages have 4 KiB.
pub const PAGE: usize = 4096;
/// The same for architectures with larger pages.
pub const MAX_PAGE: usize = 65536;
/// Length of a segment's header, in bytes.
pub const SEGMENT_HEADER: usize = 64;
/// Length of a block's header and alignment of blocks, in bytes.
pub const BLOCK_HEADER: usize = 64;
/// Length of a hash table's pair, in bytes.
pub const PAIR: usize = 16;

/// Kind of a block's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockKind {
    Unit = 1,
    Counters = 2,
    Table = 3,
}

impl BlockKind {
    pub fn from_u32(kind: u32) -> Option<Self> {
        match kind {
            1 => Some(Self::Unit),
            2 => Some(Self::Counters),
            3 => Some(Self::Table),
            _ => None,
        }
    }

    /// Length of one of the items that [`BlockHeader::size`] counts, in bytes.
    fn item_length(self) -> u64 {
        match self {
            Self::Unit => 1,
            Self::Counters => 8,
            Self::Table => PAIR as u64,
        }
    }

    /// Length of a block with its header, in bytes.
    pub fn length(self, size: u64) -> Option<u64> {
        let length = size.checked_mul(self.item_length())?.checked_add(BLOCK_HEADER as u64)?;
        length.checked_next_multiple_of(BLOCK_HEADER as u64)
    }
}

/// Header of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHeader {
    pub length: u64,
    pub used: u64,
}

impl SegmentHeader {
    /// Decodes a header; `None` if no segment begins here.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..SEGMENT_HEADER)?;
        header.starts_with(SEGMENT_MAGIC).then(|| Self {
            length: read_u64(header, 8),
            used: read_u64(header, 16),
        })
    }

    pub fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0; SEGMENT_HEADER];
        bytes[..8].copy_from_slice(SEGMENT_MAGIC);
        bytes[8..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.used.to_le_bytes());
        bytes
    }
}

/// Header of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHeader {
    /// A [`BlockKind`], or an unknown number.
    pub kind: u32,
    pub length: u64,
    pub unit: UnitId,
    pub function: u64,
    pub size: u64,
}

impl BlockHeader {
    pub fn new(kind: BlockKind, unit: UnitId, size: u64) -> Self {
        Self {
            kind: kind as u32,
            length: kind.length(size).unwrap_or(u64::MAX),
            unit,
            function: 0,
            size,
        }
    }

    /// Decodes a header; `None` if no block begins here.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..BLOCK_HEADER)?;
        header.starts_with(BLOCK_MAGIC).then(|| Self {
            kind: u32::from_le_bytes([header[4], header[5], header[6], header[7]]),
            length: read_u64(header, 8),
            unit: UnitId(read_u64(header, 16)),
            function: read_u64(header, 24),
            size: read_u64(header, 32),
        })
    }

    pub fn encode(&self) -> [u8; BLOCK_HEADER] {
        let mut bytes = [0; BLOCK_HEADER];
        bytes[..4].copy_from_slice(BLOCK_MAGIC);
        bytes[4..8].copy_from_slice(&self.kind.to_le_bytes());
        let words = [self.length, self.unit.0, self.function, self.size];
        for (to, word) in bytes[8..40].chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Whether length and size agree. For unknown kinds, whether the length is possible.
    pub fn is_consistent(&self) -> bool {
        match BlockKind::from_u32(self.kind) {
            Some(kind) => kind.length(self.size) == Some(self.length),
            None => self.length >= BLOCK_HEADER as u64 && self.length.is_multiple_of(BLOCK_HEADER as u64),
        }
    }
}

/// A whole block of a file.
#[derive(Clone, Copy, Debug)]
pub struct FileBlock {
    /// Offset of its header in the file.
    pub offset: usize,
    pub header: BlockHeader,
    /// The segment's header counts the block as in use. The program may still have been writing a block beyond that.
    pub in_use: bool,
}

impl FileBlock {
    /// The bytes after the header, padding included.
    pub fn content<'f>(&self, file: &'f [u8]) -> &'f [u8] {
        &file[self.offset + BLOCK_HEADER..self.offset + self.header.length as usize]
    }
}
