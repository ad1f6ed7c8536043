//! The description of one instrumented module, which its counts refer to.
//!
//! The compiler plugin encodes it, the instrumented program copies it into its file as it is.

use crate::ball_larus::{Mode, Options, Storage};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::manifest::{self, Anchor};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"PLUNIT01";
const HEADER_LEN: usize = 64;
const ENTRY_LEN: usize = 32;

/// Identifies a unit: hash of its encoded description.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnitId(pub u64);

/// One instrumented function of a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitFunction {
    /// Its graph at the anchor.
    pub cfg: Cfg,
    /// Position of its first counter in the unit's array; for a hash table, of the two words the runtime keeps for it.
    pub offset: u64,
    /// How many counters it has ([`crate::ball_larus::Plan::counters`]).
    pub counters: u64,
    /// Consecutive paths counted together ([`crate::ball_larus::Plan::window`]).
    pub window: u8,
    /// Where the counters are.
    pub storage: Storage,
    /// In the edge-counting mode, the chord that each counter counts, by position in the path graph's list of edges.
    pub chords: Vec<u32>,
}

/// One instrumented module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unit {
    /// Where the graphs were taken.
    pub anchor: Anchor,
    /// What decides the numbering.
    pub options: Options,
    /// Words in one thread's array: counters, and two for each hash table.
    pub words: u64,
    /// The functions, in the order of their positions.
    pub functions: Vec<UnitFunction>,
}

/// Words of a unit's array that the runtime keeps for a function with a hash table.
pub const HASH_WORDS: u64 = 2;

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
    let id = UnitId(xxh3_64(&out));
    (out, id)
}
