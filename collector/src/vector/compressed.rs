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
    /// n: into how many substreams windows were split.
    pub strata: u32,
    /// N: no window has more branches.
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
    /// When the first burst began, in nanoseconds of `CLOCK_MONOTONIC`.
    pub first_ns: u64,
    /// When the last one did.
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
    /// Bursts by what produced them.
    pub engines: BTreeMap<Engine, u64>,
    /// Bursts by why they ended.
    pub end_reasons: BTreeMap<EndReason, u64>,
}

/// Consecutive taken branches of a burst, and how many such windows they stand for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Window {
    /// Position in [`Compressed::epochs`].
    pub epoch: u32,
    /// Position in [`super::VectorSet::processes`], of one process that took this way.
    pub process: u32,
    /// The branch before the first one. It belongs to another window, and only says how control came here.
    pub lead: Option<Branch>,
    /// The taken branches, oldest first.
    pub branches: Vec<Branch>,
    /// How far control went from the last branch's target.
    pub end: Option<CodeAddress>,
    /// The burst ended here, before `end`. Otherwise `end` ran: it is the next branch.
    pub last: bool,
    /// How many equal windows this one stands for.
    pub weight: u64,
    /// As [`super::Burst::proved`], of every burst that it stands for.
    pub proved: bool,
}
