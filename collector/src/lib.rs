//! Engines that produce branch vectors, and the files that hold them.
//!
//! This crate knows nothing of IR and nothing of paths.

pub mod vector;
