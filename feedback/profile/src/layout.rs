//! Header and index of the profile file, byte by byte. Everything is little-endian and without padding. The file:
//!
//! ```text
//! header      520 bytes   see below; 544 with events
//! index       n × 44      sorted by (identifier, graph): GUID: 8 bytes, module: 4, graph hash: 8,
//!                         offset of the record from the first one: 8, length: 4, checksum: 8,
//!                         source file: 4 (low 32 bits of the XXH3 of its name; 0 without a graph)
//! records                 one per function and graph, in the index's order (see `record`)
//! provenance              JSON
//! events                  JSON, in versions 14 and 11
//! vectors                 vector file of the collector, optional
//! ```
//! The header, with offsets in bytes:
//!
//! ```text
//!   0   8 bytes    magic, "\x89PLEACH\n"
//!   8   u32        version: 14 with events, else 13 with exact sums of a merged profile, 12 without;
//!                11, 10 and 9 are the same without divisors
//!  12   u32        0x01020304: the byte order
//!  16   u8         anchor: 0 early, 1 late
//!  17   u8         1 if the file has vectors
//!  18   u8         with events: 1 if the file has exact sums of a merged profile
//!  19   5 bytes    zero
//!  24   f64        scale
//!  32   u64        sampled block entries of all functions
//!  40   f64        estimated executions of all paths of all functions
//!  48   4 × 24     index, records, provenance, vectors: u64 offset, u64 length, u64 checksum (0 for the records)
//! 144   6 × u64    summary: total count, maximum count, maximum internal count, maximum function count,
//!                  number of counts, number of functions
//! 192   16 × 20    cutoffs: u32 share in parts per million, u64 minimum count, u64 number of counts
//! 512   24         with events: u64 offset, u64 length, u64 checksum
//! 512   u64        checksum of all bytes before it; with events, at 536
//! ```
//! Checksums are XXH3. The header has those of index, provenance and vectors, and the index those of the records, so the
//! header's own checksum identifies the content of the whole file.

use super::summary::{CUTOFFS, Cutoff, ProfileSummary};
use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_annotate::manifest::Anchor;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The first bytes of a profile. As in PNG, they detect a file that was converted as text.
pub(super) const MAGIC: [u8; 8] = *b"\x89PLEACH\n";
/// Version of the format. Version 2 added paths, coverage and the flow of all paths; 3 windows of paths; 4 called
/// paths; 5 predictions of branches; 6 blocks that are proved not to have been executed, and counted executions; 7 their
/// upper bounds; 8 lengths of memory operations; 9 graphs; 10 exact sums of merged profiles; 11 events; 12 to 14
/// divisors, in files that would otherwise be of version 9 to 11.
pub(super) const VERSION: u32 = 14;
/// Version of merged profiles without events.
const VERSION_WITHOUT_EVENTS: u32 = 13;
/// Version of profiles of single recordings, which have no sums.
const VERSION_WITHOUT_SUMS: u32 = 12;
/// Difference to the version of the same file without divisors, which is still read.
const DIVISORS: u32 = 3;
/// Versions that are read.
const KNOWN: std::ops::RangeInclusive<u32> = VERSION_WITHOUT_SUMS - DIVISORS..=VERSION;
const BYTE_ORDER: u32 = 0x0102_0304;

/// A section of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Section {
    pub offset: u64,
    pub length: u64,
    /// XXH3 of the section; 0 for the records, which have their own checksums.
    pub checksum: u64,
}

/// The header.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Header {
    pub anchor: Anchor,
    pub scale: f64,
    /// Sampled block entries behind all functions.
    pub samples: u64,
    /// Estimated executions of all paths of all functions.
    pub path_flow: f64,
    pub has_vectors: bool,
    /// Whether records or provenance have exact sums.
    pub has_sums: bool,
    pub index: Section,
    pub records: Section,
    pub provenance: Section,
    pub events: Section,
    pub vectors: Section,
    pub summary: ProfileSummary,
}

/// Length of magic, version and byte order.
const PREFIX: usize = 16;
const FIXED: usize = PREFIX + 8 + 8 + 8 + 8 + 4 * 24;
const SUMMARY: usize = 6 * 8 + CUTOFFS.len() * 20;
/// Length of the shortest header with its checksum.
pub(super) const HEADER: usize = FIXED + SUMMARY + 8;
/// Length of a section's place in the header.
const SECTION: usize = 24;

/// Why a header was rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum HeaderError {
    Magic,
    Truncated,
    Version(u32),
    ByteOrder,
    Damaged(&'static str),
}

impl Header {
    /// Length of the file.
    pub fn file_length(&self) -> u64 {
        self.vectors.offset.saturating_add(self.vectors.length)
    }

    /// Length of the header of a file with or without events.
    pub fn length(has_events: bool) -> usize {
        if has_events { HEADER + SECTION } else { HEADER }
    }

    fn has_events(&self) -> bool {
        self.events.length > 0
    }

    fn version(&self) -> u32 {
        match (self.has_events(), self.has_sums) {
            (true, _) => VERSION,
            (false, true) => VERSION_WITHOUT_EVENTS,
            (false, false) => VERSION_WITHOUT_SUMS,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER);
        out.extend(MAGIC);
        out.extend(self.version().to_le_bytes());
        out.extend(BYTE_ORDER.to_le_bytes());
        let has_sums = u8::from(self.has_events() && self.has_sums);
        out.extend([self.anchor as u8, u8::from(self.has_vectors), has_sums, 0, 0, 0, 0, 0]);
        out.extend(self.scale.to_bits().to_le_bytes());
        out.extend(self.samples.to_le_bytes());
        out.extend(self.path_flow.to_bits().to_le_bytes());
        for section in [self.index, self.records, self.provenance, self.vectors] {
            for value in [section.offset, section.length, section.checksum] {
                out.extend(value.to_le_bytes());
            }
        }
        let s = &self.summary;
        let numbers = [
            s.total_count,
            s.max_count,
            s.max_internal_count,
            s.max_function_count,
            s.num_counts,
            s.num_functions,
        ];
        out.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        for cutoff in &s.cutoffs {
            out.extend(cutoff.ppm.to_le_bytes());
            out.extend(cutoff.min_count.to_le_bytes());
            out.extend(cutoff.num_counts.to_le_bytes());
        }
        if self.has_events() {
            let events = self.events;
            out.extend(
                [events.offset, events.length, events.checksum]
                    .map(u64::to_le_bytes)
                    .as_flattened(),
            );
        }
        out.extend(xxh3_64(&out).to_le_bytes());
        debug_assert_eq!(out.len(), Self::length(self.has_events()));
        out
    }

    /// Decodes the beginning of a file.
    pub fn decode(file: &[u8]) -> Result<Self, HeaderError> {
        let known = file.len().min(MAGIC.len());
        if file.is_empty() || file[..known] != MAGIC[..known] {
            return Err(HeaderError::Magic);
        }
        let prefix = file.get(..PREFIX).ok_or(HeaderError::Truncated)?;
        let mut reader = FieldReader {
            bytes: &prefix[MAGIC.len()..],
        };
        let (version, order) = (reader.u32(), reader.u32());
        if order == BYTE_ORDER.swap_bytes() && KNOWN.contains(&version.swap_bytes()) {
            return Err(HeaderError::ByteOrder);
        }
        if !KNOWN.contains(&version) {
            // If the header would be intact with a version of this build, only the version field is damaged.
            let is_intact = KNOWN.into_iter().any(|version| is_intact_with_version(file, version));
            let is_other_version = order == BYTE_ORDER && !is_intact;
            return Err(if is_other_version {
                HeaderError::Version(version)
            } else {
                HeaderError::Damaged("header")
            });
        }
        let written = with_divisors(version);
        let length = Self::length(written == VERSION);
        let header = file.get(..length).ok_or(HeaderError::Truncated)?;
        let (body, checksum) = header.split_at(length - 8);
        if xxh3_64(body).to_le_bytes() != checksum {
            return Err(HeaderError::Damaged("header"));
        }
        let mut header = Self::decode_body(FieldReader { bytes: &body[PREFIX..] })?;
        match written {
            VERSION => {
                let mut reader = FieldReader {
                    bytes: &body[FIXED + SUMMARY..],
                };
                header.events = Section {
                    offset: reader.u64(),
                    length: reader.u64(),
                    checksum: reader.u64(),
                };
                header.has_sums = body[PREFIX + 2] == 1;
            }
            _ => {
                header.events.offset = header.vectors.offset;
                header.has_sums = written == VERSION_WITHOUT_EVENTS;
            }
        }
        header.check(length)?;
        Ok(header)
    }

    fn decode_body(mut reader: FieldReader<'_>) -> Result<Self, HeaderError> {
        let flags = reader.take::<8>();
        let mut header = Self {
            anchor: Anchor::from_u8(flags[0]).ok_or(HeaderError::Damaged("unknown anchor"))?,
            has_vectors: flags[1] == 1,
            scale: f64::from_bits(reader.u64()),
            samples: reader.u64(),
            path_flow: f64::from_bits(reader.u64()),
            ..Self::default()
        };
        let mut section = || Section {
            offset: reader.u64(),
            length: reader.u64(),
            checksum: reader.u64(),
        };
        header.index = section();
        header.records = section();
        header.provenance = section();
        header.vectors = section();
        header.summary = ProfileSummary {
            total_count: reader.u64(),
            max_count: reader.u64(),
            max_internal_count: reader.u64(),
            max_function_count: reader.u64(),
            num_counts: reader.u64(),
            num_functions: reader.u64(),
            cutoffs: std::array::from_fn(|_| Cutoff {
                ppm: reader.u32(),
                min_count: reader.u64(),
                num_counts: reader.u64(),
            }),
        };
        Ok(header)
    }

    /// Checks that the sections follow each other without gaps and that the numbers are finite.
    fn check(&self, length: usize) -> Result<(), HeaderError> {
        let mut end = Some(length as u64);
        for section in [self.index, self.records, self.provenance, self.events, self.vectors] {
            if end != Some(section.offset) {
                return Err(HeaderError::Damaged("misplaced sections"));
            }
            end = section.offset.checked_add(section.length);
        }
        if end.is_none() || !self.index.length.is_multiple_of(ENTRY as u64) {
            return Err(HeaderError::Damaged("sections out of bounds"));
        }
        if !(self.scale.is_finite() && self.scale >= 0.0) {
            return Err(HeaderError::Damaged("impossible scale"));
        }
        if !(self.path_flow.is_finite() && self.path_flow >= 0.0) {
            return Err(HeaderError::Damaged("impossible flow of paths"));
        }
        Ok(())
    }
}

/// The version that a file of a known version would have now.
fn with_divisors(version: u32) -> u32 {
    if version < VERSION_WITHOUT_SUMS {
        version + DIVISORS
    } else {
        version
    }
}

/// Whether the header's checksum matches if the version field is replaced by `version`.
fn is_intact_with_version(file: &[u8], version: u32) -> bool {
    let length = Header::length(with_divisors(version) == VERSION);
    let Some(header) = file.get(..length) else { return false };
    let mut header = header.to_vec();
    header[MAGIC.len()..MAGIC.len() + 4].copy_from_slice(&version.to_le_bytes());
    xxh3_64(&header[..length - 8]).to_le_bytes() == header[length - 8..]
}

/// Length of an index entry, in bytes.
pub(super) const ENTRY: usize = 44;

/// An index entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct IndexEntry {
    pub id: FunctionId,
    pub cfg_hash: CfgHash,
    /// Offset of the record from the first one, in bytes.
    pub offset: u64,
    pub length: u32,
    /// See [`record_checksum`].
    pub checksum: u64,
    /// See [`source_hash`]; 0 if the record has no graph.
    pub source: u32,
}

impl IndexEntry {
    /// The key that the index is sorted by.
    pub fn key(&self) -> (FunctionId, CfgHash) {
        (self.id, self.cfg_hash)
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.id.guid.0.to_le_bytes());
        out.extend(self.id.module.0.to_le_bytes());
        out.extend(self.cfg_hash.0.to_le_bytes());
        out.extend(self.offset.to_le_bytes());
        out.extend(self.length.to_le_bytes());
        out.extend(self.checksum.to_le_bytes());
        out.extend(self.source.to_le_bytes());
    }

    pub fn decode(bytes: &[u8]) -> Self {
        let mut reader = FieldReader { bytes };
        Self {
            id: FunctionId {
                guid: FunctionGuid(reader.u64()),
                module: ModuleHash(reader.u32()),
            },
            cfg_hash: CfgHash(reader.u64()),
            offset: reader.u64(),
            length: reader.u32(),
            checksum: reader.u64(),
            source: reader.u32(),
        }
    }
}

/// Identifies a source file by its name, without its folder. Never 0.
pub(super) fn source_hash(name: &str) -> u32 {
    (xxh3_64(name.as_bytes()) as u32).max(1)
}

/// Checksum of a record. It covers the function's identifier and graph, so records cannot be swapped unnoticed.
pub(super) fn record_checksum(id: FunctionId, cfg_hash: CfgHash, record: &[u8]) -> u64 {
    let seed = id.guid.0 ^ cfg_hash.0.rotate_left(32) ^ u64::from(id.module.0).rotate_left(16);
    xxh3_64_with_seed(record, seed)
}

/// Reads fields of fixed size. Reads zeros beyond the end.
struct FieldReader<'b> {
    bytes: &'b [u8],
}

impl FieldReader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let n = N.min(self.bytes.len());
        out[..n].copy_from_slice(&self.bytes[..n]);
        self.bytes = &self.bytes[n..];
        out
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}
