//! What breakpoints showed ([`pleach_wire::coverage`]).

use super::ModuleId;
pub use pleach_wire::coverage::Failure;

/// What is known about code that runs from its first instruction to its last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum SegmentState {
    /// Nothing.
    #[default]
    Unknown = 0,
    /// It was not executed: breakpoints were armed from the start of all processes to their ends.
    NotExecuted = 1,
    /// It was executed, because code that it dominates was.
    Implied = 2,
    /// It was executed: its breakpoint was hit.
    Hit = 3,
}

impl SegmentState {
    /// Decodes a stored discriminant.
    pub fn from_u8(value: u8) -> Option<Self> {
        [Self::Unknown, Self::NotExecuted, Self::Implied, Self::Hit]
            .into_iter()
            .find(|state| *state as u8 == value)
    }
}

/// Code that runs from its first instruction to its last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentCoverage {
    /// Offset in the file of its first byte.
    pub start: u64,
    /// Offset one past its last byte.
    pub end: u64,
    /// What is known.
    pub state: SegmentState,
    /// Executions that were counted: a lower bound. 0 where the segment has no breakpoint of its own.
    pub hits: u32,
    /// The upper bound of a two-sided 90 % interval of its executions, if it was armed again after its first hit.
    pub at_most: Option<u64>,
    /// When its breakpoint was hit first, in nanoseconds of `CLOCK_MONOTONIC`, as the times of bursts are.
    pub first_hit_ns: Option<u64>,
}

/// Coverage of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleCoverage {
    /// The module.
    pub module: ModuleId,
    /// Processes that had it.
    pub processes: u64,
    /// Breakpoints that were hit.
    pub traps: u64,
    /// No code was left midway in any process: all ended by themselves, with one thread and without handlers of faults.
    pub completed: bool,
    /// Numbers of processes in which it was not observed all the time, by the reason.
    pub failures: Vec<(Failure, u64)>,
    /// Its code with probes, in the order of the file. Code outside was not observed.
    pub segments: Vec<SegmentCoverage>,
}
