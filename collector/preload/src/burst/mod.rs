//! Bursts: short sequences of taken branches, recorded after a tick.

pub mod sampler;
pub mod shadow_burst;
pub mod stepped_burst;
pub mod timing;
pub mod verification;
