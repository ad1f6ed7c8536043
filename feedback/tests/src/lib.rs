//! Graphs, activations and profiles that tests of the `feedback` packages share.
#![allow(missing_docs, reason = "helpers of tests are named by what they make")]

pub mod counts_support;
pub mod support;
