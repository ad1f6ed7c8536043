//! Superblock formation: which blocks to duplicate along which paths, by pure functions.
//!
//! A superblock is a trace with a single entry: other predecessors of its blocks keep the originals (Hwu et al., *The
//! Superblock*, 1993). A trace is chosen where its next step is predictable from how control got there, not merely from
//! the bias of each branch (Young and Smith, *Static Correlated Branch Prediction*, 1999): only such traces gain what
//! no layout of single blocks can.
//!
//! The current graph differs from the recorded graph: functions are inlined, branches folded, loops rotated. Markers in
//! the current blocks name the recorded blocks. They first correct the branch weights ([`branch_weights`]). Blocks that
//! LLVM should remain free to merge get no marker ([`arms`]).
//!
//! The phases, one a file, on a [`Subject`] and under [`SuperblockOptions`]:
//! 1. [`history`]: how often each step follows a history of markers, from a function's recorded paths; `contexts` finds
//!    the places in them that agree with a history;
//! 2. [`walks`]: the hot acyclic walks through the current graph, with counts by that history, backed off to edge
//!    weights;
//! 3. [`select`]: grows traces from hot joins, and takes greedily those whose gain exceeds the cost of their code;
//! 4. [`duplicated`]: the graph with its copies and edge counts;
//! 5. [`layout`]: which edges fall through, the cost model of the gains.
//!
//! The result is a [`Formation`]. A graph whose nodes map to the input's blocks, slot by slot, computes the same as the
//! input; [`check`] verifies the mapping independently.

pub mod arms;
pub mod branch_weights;
pub mod check;
mod contexts;
pub mod duplicated;
pub mod history;
pub mod layout;
mod options;
pub mod select;
mod subject;
pub mod walks;

pub use options::SuperblockOptions;
pub use select::{Candidates, Formation, form};
pub use subject::{Folding, Marker, Subject};
