//! Bursts: short sequences of taken branches, recorded after a tick.
//!
//! A burst is made by shadow execution ([`shadow_burst`], on one of the [`engines`]) or by the trap flag
//! ([`stepped_burst`], with the state of [`stepper`]). [`verification`] compares the two. [`sampler`] is the state of
//! a thread, and stores what was recorded. [`timing`] measures how long the program takes for the branches of some
//! bursts; [`memory_operations`] says which calls' lengths are recorded.

pub mod engines;
pub mod memory_operations;
pub mod sampler;
pub mod shadow_burst;
pub mod stepped_burst;
pub mod stepper;
pub mod timing;
pub mod verification;
