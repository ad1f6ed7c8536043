//! Superblocks: single-entry, multi-exit traces made by tail duplication.

pub mod check;
