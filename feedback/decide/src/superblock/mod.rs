//! Superblock formation: which blocks to duplicate along which paths, as pure functions over data.
//!
//! A superblock is a trace with one entry: what else enters its blocks goes to copies of them (Hwu et al., *The Superblock*, 1993).
//! Chosen are traces whose next step is predictable from how control got there, not merely from the bias of each branch
//! (Young and Smith, *Static Correlated Branch Prediction*, 1999), because only those gain what a layout of single blocks cannot.
//!
//! The graph that is optimised need not be the one that paths were recorded of: functions are inlined, branches folded, loops rotated.
//! What remains of the recorded blocks are markers in the current blocks, which first put the branch weights right ([`recorded`]).
//! Blocks that the optimiser had better be free to merge have none ([`arms`]).
//! The phases, one a file:
//! 1. [`history`]: how often each step follows a given history of markers, from a function's recorded paths;
//! 2. [`walks`]: the hot acyclic walks through the current graph, with counts by that history, backed off to the edge weights;
//! 3. [`select`]: grows traces from hot joins, and takes those whose gain is worth their code, greedily;
//! 4. [`unfolded`]: the graph with its copies, and how often each of its edges is taken;
//! 5. [`layout`]: which edges fall through, the model that gains are counted in.
//!
//! The result is a [`Formation`]: any graph whose nodes map to the input's blocks, slot by slot, computes the same.
//! [`check`] finds that out independently.

pub mod arms;
pub mod check;
pub mod history;
pub mod layout;
pub mod recorded;
pub mod select;
pub mod unfolded;
pub mod walks;

use history::History;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
pub use select::{Formation, form};

/// What limits superblocks, and what they must be worth.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// A trace grows as long as the next step has this probability, given the way to it.
    pub predictable: f64,
    /// Executions, as a share of [`Subject::total`], that an instruction must save to be worth a copied instruction.
    pub price: f64,
    /// Moves that a superblock costs each time that the most executed block of its trace is executed, copied or not: values that had one
    /// register may need another where copies join. Nearly all of these moves are coalesced.
    pub moves: f64,
    /// The same in innermost loops that do the same in each turn ([`Subject::tight`]), and where those that do not go back
    /// ([`Subject::dispatching`]): there all that is live is in registers.
    pub tight_moves: f64,
    /// A function may grow by this factor of its instructions.
    pub function_growth: f64,
    /// Instructions that one superblock may copy.
    pub trace_limit: u32,
    /// Standard deviations of sampling error that gains are discounted by.
    pub confidence: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            predictable: 0.7,
            price: 1e-5,
            moves: 0.1,
            tight_moves: 0.5,
            function_growth: 1.3,
            trace_limit: 200,
            // One-sided, 90 %.
            confidence: 1.2816,
        }
    }
}

impl Options {
    /// All thresholds off: whatever can be duplicated is, within the limits of size. For tests of correctness.
    pub fn aggressive() -> Self {
        Self {
            predictable: 0.0,
            price: 0.0,
            moves: 0.0,
            tight_moves: 0.0,
            function_growth: 4.0,
            trace_limit: 200,
            confidence: 0.0,
        }
    }
}

/// A marker in a block of the current graph: here a block of a recorded graph is executed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Marker {
    /// Which activation: the function itself or one of those inlined into it, an index into [`Subject::histories`].
    pub context: usize,
    /// The recorded block.
    pub block: BlockIndex,
}

/// A function as it is when superblocks are formed.
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
    /// Whether a block is in an innermost loop that does the same in each turn.
    pub tight: &'a [bool],
    /// Whether a block is the header of a loop that does one of many things in each turn, as interpreters and state machines do.
    pub dispatching: &'a [bool],
    /// Markers of each block, in execution order.
    pub markers: &'a [Vec<Marker>],
    /// Histories of the contexts that markers are of.
    pub histories: &'a [History],
    /// The function that each context is an activation of, as [`history::of_caller`] tells them apart.
    pub functions: &'a [usize],
    /// Executions of all blocks of the program, in the unit of `counts`.
    pub total: f64,
}

/// What copying saves beyond jumps: the instructions that fold once a block is entered from one side only.
pub trait Folding {
    /// Given a trace, whose first block stays and whose others are copied: the number of instructions that fold in each of the others.
    fn saved(&self, trace: &[BlockIndex]) -> Vec<u32>;
}

/// Nothing folds.
impl Folding for () {
    fn saved(&self, trace: &[BlockIndex]) -> Vec<u32> {
        vec![0; trace.len().saturating_sub(1)]
    }
}
