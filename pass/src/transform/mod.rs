//! Transformations of IR that need a profile.

pub mod if_conversion;
pub mod markers;
pub mod placement;
pub mod select_to_branch;
pub mod superblocks;
