//! The input of superblock formation: a function with its counts, markers and recorded paths.

use super::history::PathHistory;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;

/// A marker in a block of the current graph: executing it means executing a block of a recorded graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Marker {
    /// The inline instance: the function itself or a function inlined into it, as index into [`Subject::histories`].
    pub instance: usize,
    /// The recorded block.
    pub block: BlockIndex,
}

/// The function in which superblocks are formed.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its graph.
    pub cfg: &'a Cfg,
    /// Executions of each block.
    pub counts: &'a [f64],
    /// Probability of each successor slot, in the order of [`Cfg::edge_bases`].
    pub probabilities: &'a [f64],
    /// Whether a block may be copied.
    pub clonable: &'a [bool],
    /// Whether a block is in an innermost loop whose iterations mostly take the same path.
    pub tight: &'a [bool],
    /// Whether a block is the header of a dispatch loop: each iteration executes one of many cases, as in an
    /// interpreter.
    pub dispatching: &'a [bool],
    /// Markers of each block, in execution order.
    pub markers: &'a [Vec<Marker>],
    /// The histories of the inline instances, in the order of [`Marker::instance`].
    pub histories: &'a [PathHistory],
    /// The function of each inline instance, numbered as for [`caller_block`](super::history::caller_block).
    pub functions: &'a [usize],
    /// Executions of all blocks of the program, in the unit of `counts`.
    pub total: f64,
}

/// Savings beyond jumps: instructions that fold once a block has a single predecessor.
pub trait Folding {
    /// The number of instructions that fold in each copied block of a trace. The trace's first block is not copied.
    fn saved(&self, trace: &[BlockIndex]) -> Vec<u32>;
}

/// No instruction folds.
impl Folding for () {
    fn saved(&self, trace: &[BlockIndex]) -> Vec<u32> {
        vec![0; trace.len().saturating_sub(1)]
    }
}
