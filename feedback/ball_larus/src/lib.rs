//! Exact path profiles: what an instrumented program does so that every acyclic path is counted (Ball & Larus,
//! *Efficient Path Profiling*, MICRO-29, 1996), as pure functions over a [`Cfg`].
//!
//! The phases, one a file:
//! 1. [`graph`]: the graph with back edges cut and dummy edges in their place, so that every path is one from ENTRY to EXIT;
//! 2. [`numbering`]: values on edges whose sum along a path is the path's number, 0…N−1 (§3.2 of the paper);
//! 3. [`tree`]: the maximum-weight spanning tree, and what the remaining edges (chords) add (event counting, §3.3);
//! 4. [`place`]: initialisation and counting merged with the increments (§3.4, figure 9): the [`Plan`];
//! 5. [`regenerate`]: from a number back to its path (§3.5), from windows of k numbers to k-iteration paths;
//! 6. [`edges`]: the variant that counts edges only, and the solution of its equations.
//!
//! [`counts`] is the file that an instrumented program writes, and its sums. [`dominance`] says which blocks another implies.
//!
//! [`returns`] finds out before all this which calls always come back.
//!
//! Beyond the paper, activations that end early keep their counts: a block that calls something which may not return gets
//! an edge to EXIT, so that the path up to such a call has a number too ([`End::Call`]). The instrumented program writes that number
//! into its frame before the call ([`Plan::records`]), and the runtime counts it where the call does not come back.
//! A block without successors needs none: its path is complete once the block is entered, and is counted there.
//!
//! The graph merges several successor slots of one block that name the same successor: a path is a sequence of blocks.

mod containing;
pub mod counts;
pub mod dominance;
pub mod edges;
pub mod graph;
pub mod numbering;
pub mod place;
pub mod regenerate;
pub mod returns;
pub mod tree;
pub mod weights;

use pleach_annotate::cfg::Cfg;
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

/// What decides the numbering. The reader of counts must use what the instrumented program used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Options {
    /// What is counted.
    pub mode: Mode,
    /// Consecutive paths of an activation that are counted together, 1 to 4: 1 counts acyclic paths.
    pub iterations: u8,
    /// A block from which more paths than this would start has its outgoing edges cut like back edges.
    pub max_paths: u64,
    /// A function with more counters than this has them in a hash table.
    pub hash_above: u64,
}

impl Default for Options {
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
    /// In the middle: after a back edge or a cut edge, or where a call returned for the second time.
    Inside,
}

/// How a path ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "how", content = "to")]
pub enum End {
    /// In a block without successors: a return, or a call that never returns.
    Exit,
    /// By a back edge to this block.
    Back(BlockIndex),
    /// By an edge that was cut because the paths through it would be too many.
    Cut(BlockIndex),
    /// In a call of its last block that did not come back to it.
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
    /// This number.
    Const(u64),
    /// The path register plus this, in wrapping arithmetic.
    Register(i64),
}

/// One step of instrumentation.
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
    /// In a hash table, by number.
    Hash,
}

/// What to do where, so that a function's paths (or edges) are counted. Ops of one place are in execution order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// On entry of the function.
    pub entry: Vec<Op>,
    /// On the edges between these blocks, in order of (from, to); an edge that is not listed needs nothing. No edge is listed twice.
    pub edges: Vec<(BlockIndex, BlockIndex, Vec<Op>)>,
    /// At the beginning of blocks without successors, before their first call.
    pub exits: Vec<(BlockIndex, Vec<Op>)>,
    /// The number to record at the beginning of a block that has successors and makes a call that may not return.
    pub records: Vec<(BlockIndex, Index)>,
    /// After a call that returned for the second time ([`returns_twice`]).
    pub resumes: Vec<(CallIndex, Vec<Op>)>,
    /// How many numbers there are: N paths and, where they are counted apart, self loops.
    pub numbers: u64,
    /// Consecutive paths counted together in this function: at most [`Options::iterations`], fewer where the windows'
    /// numbers would not fit in 62 bits.
    pub window: u8,
    /// How many counters there are: `numbers`, or with a window w > 1, (numbers + 1)^w.
    pub counters: u64,
    /// Where they are.
    pub storage: Storage,
    /// When counting edges: the graph's edge that each counter counts, by [`graph::EdgeIndex`].
    pub chords: Vec<u32>,
}

/// Whether control may leave the function by this call and not come back to it.
///
/// Inline assembly is taken to return: it would otherwise cost every function that uses it.
pub fn may_not_return(call: &pleach_annotate::cfg::Call) -> bool {
    call.may_not_return && call.callee != pleach_annotate::cfg::Callee::InlineAsm
}

/// Whether a call is one of those that return a second time, and then not with 0: the parent's return from `vfork`, and
/// `setjmp`'s when somebody jumps back to it. The path that begins there counts the call's block again.
pub fn returns_twice(call: &pleach_annotate::cfg::Call) -> bool {
    use pleach_annotate::{cfg::Callee, id::FunctionGuid};
    const NAMES: [&str; 5] = ["setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "vfork"];
    match call.callee {
        Callee::Direct(guid) => NAMES.iter().any(|name| FunctionGuid::of_name(name) == guid),
        _ => false,
    }
}

/// The plan for a function. `weights` estimates how often each of the graph's edges is taken, by [`graph::EdgeIndex`].
pub fn plan(cfg: &Cfg, options: &Options, weights: impl FnOnce(&graph::PathGraph) -> Vec<u64>) -> Plan {
    let graph = graph::PathGraph::new(cfg, options);
    let weights = weights(&graph);
    match options.mode {
        Mode::Paths => place::paths(&graph, options, &weights),
        Mode::Edges => edges::plan(&graph, &weights),
    }
}
