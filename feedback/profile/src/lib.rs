//! The profile: data in memory, file format, merge and summary. The compiler plugin reads profiles with this package,
//! and the tools write them.
//!
//! In phase order:
//!
//! 1. `data`: a program's estimated counts, paths, predictions and coverage. This file re-exports them.
//!    [`events`]: paths that lead to events.
//! 2. `layout`, `record`, `estimates`, `predictions`, `sum_records`, `bytes`: the file format, from the header down to
//!    numbers. Each file begins with a description of its part, byte by byte.
//! 3. [`file`](mod@file): opens a profile file and looks functions up in it. All checks of a file's content are here
//!    and in the decoders that it calls, so a [`FunctionProfile`] that was read is consistent.
//! 4. [`write`](mod@write): encodes a profile. `pleach-store` writes the result to disk.
//! 5. `shape`: whether a record fits a graph.
//! 6. [`summary`]: LLVM's profile summary, which tells hot counts from cold ones.
//! 7. [`path_profile`]: which paths are hot.
//! 8. [`merge`](mod@merge): several profiles become one, from the exact sums of [`sums`].
//! 9. [`random_profile`](mod@random_profile): profiles of random activations, for tests of the compiler plugin.
//! 10. [`error`]: what can be wrong with a file, with advice.

mod bytes;
mod data;
pub mod error;
mod estimates;
pub mod events;
pub mod file;
mod layout;
pub mod merge;
pub mod path_profile;
mod predictions;
pub mod random_profile;
mod record;
mod shape;
mod sum_records;
pub mod summary;
pub mod sums;
pub mod write;

pub use data::{
    BranchPrediction, CallCrossingPath, CallTargets, Caller, Covered, EstimatedPath, Executions, FunctionProfile,
    PathWindow, Profile, Provenance, RecordedModule, ValueCounts, ValueSite,
};
pub use pleach_annotate::manifest::Anchor;
