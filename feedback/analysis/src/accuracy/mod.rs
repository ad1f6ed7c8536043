//! The accuracy of estimates, as pure functions over exact and estimated distributions.
//!
//! *Flow* F(p) is a path's share of all executions of acyclic paths, of all functions that are both annotated and
//! counted ([`truth`]). The measures ([`shares`]) do not depend on paths: region paths, and classes of paths that no
//! branch distinguishes, are other keys.
//!
//! | measure | meaning |
//! |---|---|
//! | Wall accuracy | share of the flow of the H hottest paths (F ≥ [`HOT`]) that the H paths estimated hottest have |
//! | overlap | Σ min(estimated share, exact share) |
//! | overlap ceiling | the same between two estimates of independent recordings of the same length |
//! | calibration | share of the hottest paths whose exact share lies in the interval that the estimate gives |
//!
//! [`decoded`] measures how much of the vectors the address maps explain.

pub mod decoded;
pub mod regions;
pub mod shares;
pub mod spread;
pub mod truth;

pub use shares::Shares;
pub use spread::Spread;
pub use truth::{PathKey, Truth};

/// Minimum share of the flow of a hot path: 0.125 %.
pub const HOT: f64 = 0.00125;
