//! Paths, options and plans: the data that the phases exchange.

use pleach_annotate::id::{BlockIndex, CallIndex};
use serde::{Deserialize, Serialize};

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Acyclic paths.
    #[default]
    Paths,
    /// Chord edges of a spanning tree, from which all edges follow.
    Edges,
}

/// Options of path numbering. Counts must be read with the options that the program was instrumented with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NumberingOptions {
    /// What is counted.
    pub mode: Mode,
    /// Number of consecutive paths of an activation that are counted together, 1 to 4; 1 counts acyclic paths.
    pub iterations: u8,
    /// A block from which more paths than this would start has its outgoing edges cut like back edges.
    pub max_paths: u64,
    /// A function with more counters than this stores them in a hash table.
    pub hash_above: u64,
}

impl Default for NumberingOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Paths,
            iterations: 1,
            max_paths: 100_000_000,
            hash_above: 1 << 16,
        }
    }
}

/// How a path begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// At the function's entry.
    Entry,
    /// Inside the function: after a back edge or a cut edge, or where a call returned for the second time.
    Inside,
}

/// How a path ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "how", content = "to")]
pub enum End {
    /// In a block without successors: at a return, or at a call that never returns.
    Exit,
    /// By a back edge to this block.
    Back(BlockIndex),
    /// By an edge to this block that was cut because too many paths would pass it.
    Cut(BlockIndex),
    /// In a call of its last block that did not return.
    Call,
}

/// An acyclic path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Path {
    /// How it begins.
    pub start: Start,
    /// The blocks it passes, at least one.
    pub blocks: Vec<BlockIndex>,
    /// How it ends.
    pub end: End,
}

/// A path's number, as an instrumented program computes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Index {
    /// A constant.
    Const(u64),
    /// The path register plus this increment, in wrapping arithmetic.
    Register(i64),
}

/// One operation of the instrumentation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Op {
    /// Set the path register.
    Set(i64),
    /// Add to the path register, in wrapping arithmetic.
    Add(i64),
    /// Count a path that ends here.
    Count(Index),
}

/// Where a function's counters are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// In an array, by number.
    Array,
    /// In a hash table, keyed by number.
    Hash,
}

/// The instrumentation of one function: which operations to insert where, so that its paths (or edges) are counted.
/// Operations at the same place are in execution order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// On entry of the function.
    pub entry: Vec<Op>,
    /// On the edges between these blocks, ordered by (from, to) and without duplicates. Edges that are not listed need
    /// no instrumentation.
    pub edges: Vec<(BlockIndex, BlockIndex, Vec<Op>)>,
    /// At the beginning of blocks without successors, before their first call.
    pub exits: Vec<(BlockIndex, Vec<Op>)>,
    /// The number to record at the beginning of a block that has successors and a call that may not return.
    pub records: Vec<(BlockIndex, Index)>,
    /// After a call that returned for the second time ([`returns_twice`](crate::returns_twice)).
    pub resumes: Vec<(CallIndex, Vec<Op>)>,
    /// Number of path numbers: N paths, and the self loops that have counters of their own.
    pub numbers: u64,
    /// Number of consecutive paths counted together in this function: at most [`NumberingOptions::iterations`], fewer
    /// if the keys of windows would not fit in 62 bits.
    pub window: u8,
    /// Number of counters: `numbers`, or with a window w > 1, (numbers + 1)^w.
    pub counters: u64,
    /// Where they are.
    pub storage: Storage,
    /// When counting edges: the graph's edge that each counter counts, by [`EdgeIndex`](crate::graph::EdgeIndex).
    pub chords: Vec<u32>,
}
