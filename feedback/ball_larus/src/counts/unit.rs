//! The description of one instrumented module, which its counts refer to.
//!
//! The compiler plugin encodes it; the instrumented program copies it into its file unchanged.

use crate::data::{Mode, NumberingOptions, Storage};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::manifest::{self, Anchor, ManifestError};
use serde::{Deserialize, Serialize};
use std::fmt;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"PLUNIT01";
const HEADER_LEN: usize = 64;
const ENTRY_LEN: usize = 32;

/// Identifier of a unit: XXH3 of its encoded description.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnitId(pub u64);

impl UnitId {
    /// The identifier of an encoded description.
    pub fn from_description(description: &[u8]) -> Self {
        Self(xxh3_64(description))
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// One instrumented function of a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitFunction {
    /// Its graph at the anchor.
    pub cfg: Cfg,
    /// Position of its first counter in the unit's array, or of the words that the runtime reserves for its hash table.
    pub offset: u64,
    /// Number of counters ([`crate::Plan::counters`]).
    pub counters: u64,
    /// Number of consecutive paths counted together ([`crate::Plan::window`]).
    pub window: u8,
    /// Where the counters are.
    pub storage: Storage,
    /// When counting edges: the chord that each counter counts, by position in the path graph's list of edges.
    pub chords: Vec<u32>,
}

impl UnitFunction {
    /// Number of words of the unit's array that belong to this function.
    fn words(&self) -> u64 {
        match self.storage {
            Storage::Array => self.counters,
            Storage::Hash => HASH_WORDS,
        }
    }
}

/// One instrumented module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unit {
    /// The anchor of the graphs.
    pub anchor: Anchor,
    /// Options of the numbering.
    pub options: NumberingOptions,
    /// Number of 64-bit words in one thread's array: counters, and [`HASH_WORDS`] for each hash table.
    pub words: u64,
    /// The functions. Counts refer to them by position.
    pub functions: Vec<UnitFunction>,
}

/// Number of words of a unit's array that the runtime reserves for a function with a hash table.
pub const HASH_WORDS: u64 = 3;

/// Encodes a description. Its length is a multiple of eight bytes.
pub fn encode(unit: &Unit) -> (Vec<u8>, UnitId) {
    let mut body = Vec::new();
    for function in &unit.functions {
        let entry = manifest::encode(&function.cfg, unit.anchor);
        body.extend_from_slice(&function.offset.to_le_bytes());
        body.extend_from_slice(&function.counters.to_le_bytes());
        body.push(function.window);
        body.push(function.storage as u8);
        body.extend_from_slice(&[0; 2]);
        body.extend_from_slice(&(entry.len() as u32).to_le_bytes());
        body.extend_from_slice(&(function.chords.len() as u32).to_le_bytes());
        body.extend_from_slice(&[0; 4]);
        debug_assert_eq!(body.len() % 8, ENTRY_LEN % 8);
        body.extend_from_slice(&entry);
        for chord in &function.chords {
            body.extend_from_slice(&chord.to_le_bytes());
        }
        body.resize(body.len().next_multiple_of(8), 0);
    }
    let mut out = Vec::with_capacity(HEADER_LEN + body.len());
    out.extend_from_slice(MAGIC);
    out.push(match unit.options.mode {
        Mode::Paths => 0,
        Mode::Edges => 1,
    });
    out.push(unit.anchor as u8);
    out.push(unit.options.iterations);
    out.resize(16, 0);
    for word in [
        unit.options.max_paths,
        unit.options.hash_above,
        unit.words,
        unit.functions.len() as u64,
        body.len() as u64,
        xxh3_64(&body),
    ] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    debug_assert_eq!(out.len(), HEADER_LEN);
    out.extend_from_slice(&body);
    let id = UnitId::from_description(&out);
    (out, id)
}

/// Why a description could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// It begins with another magic number.
    #[error("it does not begin like a description")]
    Magic,
    /// Its length differs from the one in its header.
    #[error("{found} bytes where {expected} were written")]
    Length {
        /// Length, in bytes.
        found: u64,
        /// Length according to the header, in bytes.
        expected: u64,
    },
    /// Its checksum does not match its content.
    #[error("its checksum does not match")]
    Checksum,
    /// A field has an impossible value.
    #[error("{0}")]
    Invalid(&'static str),
    /// A function is malformed.
    #[error("function {position}: {what}")]
    Function {
        /// Its position.
        position: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A function's graph cannot be read.
    #[error("function {position}: {error}")]
    Graph {
        /// Its position.
        position: u64,
        /// What is wrong.
        error: ManifestError,
    },
}

/// Decodes a description.
///
/// Its checksum covers the functions only. The header is intact if [`UnitId::from_description`] equals the identifier
/// that counts refer to.
pub fn decode(description: &[u8]) -> Result<Unit, UnitError> {
    let length = |expected: u64| UnitError::Length {
        found: description.len() as u64,
        expected,
    };
    if !description.starts_with(MAGIC) {
        return Err(UnitError::Magic);
    }
    let (header, body) = description
        .split_at_checked(HEADER_LEN)
        .ok_or_else(|| length(HEADER_LEN as u64))?;
    let [mode, anchor, iterations, reserved @ ..] = &header[8..16] else {
        return Err(length(HEADER_LEN as u64));
    };
    let [max_paths, hash_above, words, functions, body_len, check] =
        [16, 24, 32, 40, 48, 56].map(|at| read_u64(header, at));
    if body.len() as u64 != body_len {
        return Err(length(body_len.saturating_add(HEADER_LEN as u64)));
    }
    if xxh3_64(body) != check {
        return Err(UnitError::Checksum);
    }
    let mode = match mode {
        0 => Mode::Paths,
        1 => Mode::Edges,
        _ => return Err(UnitError::Invalid("unknown counting mode")),
    };
    if reserved.iter().any(|&byte| byte != 0) {
        return Err(UnitError::Invalid("its reserved bytes are not zero"));
    }
    let options = NumberingOptions {
        mode,
        iterations: *iterations,
        max_paths,
        hash_above,
    };
    let anchor = Anchor::from_u8(*anchor).ok_or(UnitError::Invalid("unknown anchor"))?;
    let mut rest = body;
    // Not allocated ahead, because a corrupt header may claim any number of functions.
    let mut decoded = Vec::new();
    for position in 0..functions {
        let (function, len) = decode_function(rest, position, anchor)?;
        check_function(&function, &options, words).map_err(|what| UnitError::Function { position, what })?;
        decoded.push(function);
        rest = &rest[len..];
    }
    if !rest.is_empty() {
        return Err(UnitError::Invalid("it has more functions than its header says"));
    }
    if let Some(position) = overlapping(&decoded) {
        let what = "its counters overlap another function's";
        return Err(UnitError::Function { position, what });
    }
    Ok(Unit {
        anchor,
        options,
        words,
        functions: decoded,
    })
}

/// Decodes the function at the beginning of `bytes`. Returns it with its encoded length.
fn decode_function(bytes: &[u8], position: u64, anchor: Anchor) -> Result<(UnitFunction, usize), UnitError> {
    let wrong = |what| UnitError::Function { position, what };
    let (header, rest) = bytes.split_at_checked(ENTRY_LEN).ok_or_else(|| wrong("truncated"))?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]) as usize;
    let (entry_len, chord_count) = (word(20), word(24));
    let (entry, rest) = rest
        .split_at_checked(entry_len)
        .ok_or_else(|| wrong("truncated graph"))?;
    let chords_len = chord_count.checked_mul(4).ok_or_else(|| wrong("too many chords"))?;
    let chords = rest.get(..chords_len).ok_or_else(|| wrong("truncated chords"))?;
    let len = (ENTRY_LEN + entry_len + chords_len).next_multiple_of(8);
    if len > bytes.len() {
        return Err(wrong("truncated"));
    }
    let (mut entries, mut errors) = manifest::decode(entry);
    if let Some(error) = errors.pop() {
        return Err(UnitError::Graph { position, error });
    }
    let (Some(graph), true) = (entries.pop(), entries.is_empty()) else {
        return Err(wrong("it does not have exactly one graph"));
    };
    if graph.anchor != anchor {
        return Err(wrong("its graph was taken at the other anchor"));
    }
    let function = UnitFunction {
        cfg: graph.cfg,
        offset: read_u64(header, 0),
        counters: read_u64(header, 8),
        window: header[16],
        storage: match header[17] {
            0 => Storage::Array,
            1 => Storage::Hash,
            _ => return Err(wrong("unknown storage")),
        },
        chords: chords
            .chunks_exact(4)
            .map(|chord| u32::from_le_bytes([chord[0], chord[1], chord[2], chord[3]]))
            .collect(),
    };
    Ok((function, len))
}

/// Checks that a function's counters lie within the unit's array and match its options.
fn check_function(function: &UnitFunction, options: &NumberingOptions, words: u64) -> Result<(), &'static str> {
    if function.window == 0 || function.window > options.iterations.max(1) {
        return Err("its windows are longer than those of the unit, or empty");
    }
    if function
        .offset
        .checked_add(function.words())
        .is_none_or(|end| end > words)
    {
        return Err("its counters lie outside of the unit's");
    }
    if options.mode == Mode::Edges && function.chords.len() as u64 != function.counters {
        return Err("it does not have one counter for each chord");
    }
    Ok(())
}

/// The first function whose counters overlap another's: those counts would be read twice.
fn overlapping(functions: &[UnitFunction]) -> Option<u64> {
    let mut order: Vec<usize> = (0..functions.len()).collect();
    order.sort_by_key(|&position| functions[position].offset);
    let mut end = 0;
    let overlap = order.into_iter().find(|&position| {
        let (offset, used) = (functions[position].offset, functions[position].words());
        let overlaps = used > 0 && offset < end;
        end = end.max(offset.saturating_add(used));
        overlaps
    });
    overlap.map(|position| position as u64)
}

/// Reads a word. `bytes` must contain it.
pub(super) fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
