//! Partial paths (feedback/ALGORITHMS.md, Decode): what bursts show of the paths that activations of a function took.
//!
//! An activation's blocks are split where acyclic paths end (back edges, cut edges, exits), as Ball and Larus define
//! them. A partial path that lies wholly inside a burst is a whole path. Those at a burst's ends, and around unknown code,
//! lack a beginning or an end. A shadow call stack keeps activations apart, so that partial paths continue after calls,
//! however much other code ran in between.
//!
//! The phases, one a file: [`inline_instance`] finds the ways between blocks that were seen, [`walk`] splits what one activation passed,
//! [`frames`] tells activations apart, [`store`] sums up equal observations in all
//! [`replicates`](crate::replicates), and [`collect_partial_paths`] does so for all bursts of a recording.

pub mod callers;
pub mod collect;
mod evidence;
mod frames;
pub mod inline_instance;
mod module_instances;
mod store;
mod walk;

pub use collect::{PartialPathCollector, PartialPathOptions, collect_partial_paths};
pub use evidence::{Evidence, FunctionEvidence, Observation};
