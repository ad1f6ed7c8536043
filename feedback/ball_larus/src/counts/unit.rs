//! The description of one instrumented module, which its counts refer to.
//!
//! The compiler plugin encodes it, the instrumented program copies it into its file as it is.

use crate::{Mode, Options, Storage};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::manifest::{self, Anchor, ManifestError};
use serde::{Deserialize, Serialize};
use std::fmt;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"PLUNIT01";
const HEADER_LEN: usize = 64;
const ENTRY_LEN: usize = 32;

/// Identifies a unit: hash of its encoded description.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnitId(pub u64);

impl UnitId {
    /// The identity of an encoded description.
    pub fn of(description: &[u8]) -> Self {
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
    /// Position of its first counter in the unit's array; for a hash table, of the words that the runtime keeps for it.
    pub offset: u64,
    /// How many counters it has ([`crate::Plan::counters`]).
    pub counters: u64,
    /// Consecutive paths counted together ([`crate::Plan::window`]).
    pub window: u8,
    /// Where the counters are.
    pub storage: Storage,
    /// In the edge-counting mode, the chord that each counter counts, by position in the path graph's list of edges.
    pub chords: Vec<u32>,
}

impl UnitFunction {
    /// Words of the unit's array that are its own.
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
    /// Where the graphs were taken.
    pub anchor: Anchor,
    /// What decides the numbering.
    pub options: Options,
    /// Words in one thread's array: counters, and [`HASH_WORDS`] for each hash table.
    pub words: u64,
    /// The functions, in the order of their positions.
    pub functions: Vec<UnitFunction>,
}

/// Words of a unit's array that the runtime keeps for a function with a hash table.
pub const HASH_WORDS: u64 = 3;

/// Encodes a description; the length is a multiple of eight.
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
    let id = UnitId::of(&out);
    (out, id)
}

/// Why a description could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// It begins with something else.
    #[error("it does not begin like a description")]
    Magic,
    /// There are more or fewer bytes than it says.
    #[error("{found} bytes where {expected} were written")]
    Length {
        /// Bytes there are.
        found: u64,
        /// Bytes there should be.
        expected: u64,
    },
    /// Its content is not what was written.
    #[error("its checksum does not match")]
    Checksum,
    /// Something that no description says.
    #[error("{0}")]
    Senseless(&'static str),
    /// A function makes no sense.
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
/// Its checksum covers the functions only; what comes before them is as it was written where [`UnitId::of`] is the
/// identity that counts refer to.
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
        _ => return Err(UnitError::Senseless("unknown mode of counting")),
    };
    if reserved.iter().any(|&byte| byte != 0) {
        return Err(UnitError::Senseless("something where nothing should be"));
    }
    let options = Options {
        mode,
        iterations: *iterations,
        max_paths,
        hash_above,
    };
    let anchor = Anchor::from_u8(*anchor).ok_or(UnitError::Senseless("unknown anchor"))?;
    let mut rest = body;
    // Not allocated ahead: the number is not known to be right.
    let mut decoded = Vec::new();
    for position in 0..functions {
        let (function, len) = decode_function(rest, position, anchor)?;
        check_function(&function, &options, words).map_err(|what| UnitError::Function { position, what })?;
        decoded.push(function);
        rest = &rest[len..];
    }
    if !rest.is_empty() {
        return Err(UnitError::Senseless("more functions than it says"));
    }
    if let Some(position) = overlapping(&decoded) {
        let what = "its counters are another function's too";
        return Err(UnitError::Function { position, what });
    }
    Ok(Unit {
        anchor,
        options,
        words,
        functions: decoded,
    })
}

/// The function that begins here, and how many bytes it takes.
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
        return Err(wrong("not one graph"));
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

/// Whether a function's counters can be where it says.
fn check_function(function: &UnitFunction, options: &Options, words: u64) -> Result<(), &'static str> {
    if function.window == 0 || function.window > options.iterations.max(1) {
        return Err("its windows are longer than those of the unit, or empty");
    }
    if function
        .offset
        .checked_add(function.words())
        .is_none_or(|end| end > words)
    {
        return Err("its counters are outside of the unit's");
    }
    if options.mode == Mode::Edges && function.chords.len() as u64 != function.counters {
        return Err("not one counter for each chord");
    }
    Ok(())
}

/// The first function that has counters of another one. Each would be read as often as functions claim it.
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

/// The caller knows that it is there.
fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
