//! Partial paths (feedback/ALGORITHMS.md, Decode): the observed parts of the paths that activations took.
//!
//! An activation's blocks are split where acyclic paths end (back edges, cut edges, exits), as Ball and Larus define
//! them. A partial path that lies inside one burst is a whole path. Partial paths at a burst's ends, and around unknown
//! code, lack a beginning or an end. A shadow call stack separates activations, so that a partial path continues after
//! a call.
//!
//! The phases, one a file: [`inline_instance`] finds the sequences between observed blocks; [`walk`] splits the blocks
//! of one activation; [`frames`] separates activations; [`store`] sums equal observations in all
//! [`replicates`](crate::replicates); [`collect`] does this for all bursts of a recording. The result is the
//! [`evidence`].

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
