//! Where what is in a count file: see [the file's description](super).

use super::unit::UnitId;

pub const MAGIC: &[u8; 8] = b"PLEACHC1";
pub const SEGMENT_MAGIC: &[u8; 8] = b"PLSEGMT1";
const BLOCK_MAGIC: &[u8; 4] = b"PLBK";
pub const VERSION: u32 = 1;
/// Length of the file's header, and what segments begin at multiples of.
pub const PAGE: usize = 4096;
pub const SEGMENT_HEADER: usize = 64;
/// Length of a block's header, and what blocks begin at multiples of.
pub const BLOCK_HEADER: usize = 64;
/// Length of a hash table's pair.
pub const PAIR: usize = 16;

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Unit = 1,
    Counters = 2,
    Table = 3,
}

impl Kind {
    pub fn from_u32(kind: u32) -> Option<Self> {
        match kind {
            1 => Some(Self::Unit),
            2 => Some(Self::Counters),
            3 => Some(Self::Table),
            _ => None,
        }
    }

    /// Bytes of one of the items that `size` counts.
    fn item(self) -> u64 {
        match self {
            Self::Unit => 1,
            Self::Counters => 8,
            Self::Table => PAIR as u64,
        }
    }

    /// Length of a block with its header.
    pub fn length(self, size: u64) -> Option<u64> {
        let length = size.checked_mul(self.item())?.checked_add(BLOCK_HEADER as u64)?;
        length.checked_next_multiple_of(BLOCK_HEADER as u64)
    }
}

/// The beginning of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHeader {
    pub length: u64,
    pub used: u64,
}

impl SegmentHeader {
    /// `None` where no segment begins.
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

/// The beginning of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHeader {
    /// A [`Kind`], or a number without meaning.
    pub kind: u32,
    pub length: u64,
    pub unit: UnitId,
    pub function: u64,
    pub size: u64,
}

impl BlockHeader {
    pub fn new(kind: Kind, unit: UnitId, size: u64) -> Self {
        Self {
            kind: kind as u32,
            length: kind.length(size).unwrap_or(u64::MAX),
            unit,
            function: 0,
            size,
        }
    }

    /// `None` where no block begins.
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

    /// Whether its length is what its content needs. Nothing is known about the content of unknown kinds.
    pub fn is_consistent(&self) -> bool {
        match Kind::from_u32(self.kind) {
            Some(kind) => kind.length(self.size) == Some(self.length),
            None => self.length >= BLOCK_HEADER as u64 && self.length.is_multiple_of(BLOCK_HEADER as u64),
        }
    }
}

/// The caller knows that it is there.
pub fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
