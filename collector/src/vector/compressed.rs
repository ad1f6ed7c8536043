//! Compressed bursts: a weighted sample of their windows.

use super::{Branch, CodeAddress, EndReason, Engine};
use std::collections::BTreeMap;

/// Bursts that were cut into windows and sampled by [`crate::stream::Compressor`].
///
/// The error of a weight w follows from `rate`, r: the window was sampled w ÷ r times. A window with its own substream
/// has an error of less than r. Otherwise, for independent windows, the variance is at most that of random sampling, (r
/// − 1) w. Windows of one burst are not independent; epochs have the number of bursts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Compressed {
    /// r: each weight is a multiple of it.
    pub rate: u64,
    /// n: number of substreams into which windows were split.
    pub strata: u32,
    /// N: maximum of branches of a window.
    pub branches: u32,
    /// Spans of time, oldest first.
    pub epochs: Vec<Epoch>,
    /// In the order of their epochs; no two of an epoch are the same.
    pub windows: Vec<Window>,
}

/// A span of time in which r did not change. Its figures are exact counts, not samples.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Epoch {
    /// r at that time. Its windows were sampled again whenever r grew.
    pub rate: u64,
    /// Start of the first burst, in nanoseconds of `CLOCK_MONOTONIC`.
    pub first_ns: u64,
    /// Start of the last burst, in nanoseconds of `CLOCK_MONOTONIC`.
    pub last_ns: u64,
    /// Bursts.
    pub bursts: u64,
    /// Bursts without a taken branch, which have no window.
    pub empty_bursts: u64,
    /// Taken branches.
    pub branches: u64,
    /// Windows that all bursts were cut into.
    pub windows: u64,
    /// Instructions.
    pub instructions: u64,
    /// Bursts by engine.
    pub engines: BTreeMap<Engine, u64>,
    /// Bursts by the reason for which they ended.
    pub end_reasons: BTreeMap<EndReason, u64>,
}

/// Consecutive taken branches of a burst, and the number of equal windows that they represent.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Window {
    /// Position in [`Compressed::epochs`].
    pub epoch: u32,
    /// Position in [`super::VectorSet::processes`] of one process that executed the window.
    pub process: u32,
    /// The branch before the first one. It belongs to another window, and is context only.
    pub lead: Option<Branch>,
    /// The taken branches, oldest first.
    pub branches: Vec<Branch>,
    /// The address up to which code ran after the last branch.
    pub end: Option<CodeAddress>,
    /// The burst ended here, before `end`. Otherwise `end` ran: it is the next branch.
    pub last: bool,
    /// Number of equal windows that this one represents.
    pub weight: u64,
    /// As [`super::Burst::proved`], for every window that this one represents.
    pub proved: bool,
}
