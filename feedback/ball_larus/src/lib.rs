//! Exact path profiling (Ball & Larus, *Efficient Path Profiling*, MICRO-29, 1996) as pure functions over a [`Cfg`],
//! and the counts that an instrumented program writes.
//!
//! The phases, one a file:
//! 1. [`returns`]: which calls always return, so that no path needs to end in them;
//! 2. `search`: depth-first search: block order and back edges;
//! 3. [`numbering`]: which edges paths end at, and values on edges whose sum along a path is the path's number, 0…N−1
//!    (§3.2 of the paper);
//! 4. [`graph`]: the graph with back edges cut and dummy edges in their place, so that every path leads from ENTRY to
//!    EXIT;
//! 5. [`weights`]: how often each edge is taken, estimated or measured (§3.3);
//! 6. [`tree`]: the maximum-weight spanning tree, and the increments of the remaining edges, the chords (§3.3);
//! 7. [`place`]: initialisation and counting merged with the increments (§3.4, figure 9): the [`Plan`];
//! 8. [`regenerate`]: from a number back to its path (§3.5), and from windows of k numbers to k-iteration paths;
//! 9. [`edges`]: the variant that counts edges only, and the solution of its equations.
//!
//! [`counts`] reads, sums and writes the files of instrumented programs. [`dominance`] computes which blocks an
//! executed block implies. `data` has the types that the phases exchange; this file re-exports them.
//!
//! Beyond the paper, activations that end early keep their counts. A block with a call that may not return gets an edge
//! to EXIT, so that the path up to that call has a number too ([`End::Call`]). The instrumented program writes that
//! number into its frame before the call ([`Plan::records`]); the runtime counts it if the call does not return. A
//! block without successors needs no such edge: its path is complete, and counted, once the block is entered.
//!
//! The graph merges successor slots of a block that have the same target, because a path is a sequence of blocks.

mod calls;
mod containing;
pub mod counts;
mod data;
pub mod dominance;
pub mod edges;
pub mod graph;
pub mod numbering;
pub mod place;
pub mod regenerate;
pub mod returns;
mod search;
pub mod tree;
pub mod weights;

pub use calls::{may_not_return, returns_twice};
pub use data::{End, Index, Mode, NumberingOptions, Op, Path, Plan, Start, Storage};
use pleach_annotate::cfg::Cfg;

/// The instrumentation plan of a function. `weights` estimates how often each of the graph's edges is taken, by
/// [`graph::EdgeIndex`].
pub fn plan(cfg: &Cfg, options: &NumberingOptions, weights: impl FnOnce(&graph::PathGraph) -> Vec<u64>) -> Plan {
    let graph = graph::PathGraph::new(cfg, options);
    let weights = weights(&graph);
    match options.mode {
        Mode::Paths => place::paths(&graph, options, &weights),
        Mode::Edges => edges::plan(&graph, &weights),
    }
}
