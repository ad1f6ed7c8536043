//! Identifiers, control-flow graphs as data, and the way back from machine addresses to them.
//!
//! This crate knows nothing of samples and nothing of LLVM: the compiler plugin writes what is read here.

pub mod binary;
pub mod cfg;
pub mod code;
pub mod id;
pub mod manifest;
pub mod map;
pub mod probe;
pub mod sources;
pub mod testing;
