//! From branch vectors to profiles, and the decisions that rest on them.

pub mod accuracy;
pub mod analyse;
pub mod ball_larus;
pub mod coldness;
pub mod counts;
pub mod coverage;
pub mod credit;
pub mod decode;
pub mod evaluate;
pub mod inference;
pub mod iterations;
pub mod merge;
pub mod observe;
pub mod partial;
pub mod path_profile;
pub mod placement;
pub mod prediction;
pub mod profile;
pub mod program;
pub mod random_profile;
pub mod regions;
mod replace;
pub mod report;
pub mod selects;
pub mod superblock;
pub mod support;
#[cfg(test)]
mod testing;
pub mod time_bias;
pub mod weights;
