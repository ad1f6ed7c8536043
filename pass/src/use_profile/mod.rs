//! Applies a profile to a module: counts, branch weights, hints to the inliner, and metadata for people.

pub mod apply;
pub mod loops;
pub mod path_metadata;
pub mod recursion;
pub mod second;
pub mod source;
pub mod stale;
pub mod unsampled;
mod values;
