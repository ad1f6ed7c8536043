//! What a burst shows of its phase: the shares of its branch traces, and its behaviour.
//!
//! A trace is four consecutive taken branches, as the paper's trace buffer holds them (section 3.1). A burst is cut into
//! traces one after the other, so that each branch counts once. Shares of a burst add up to 1: ticks sample CPU time, so
//! each burst stands for the same CPU time, however long it is.

use pleach_collector::stream::mix;
use pleach_collector::vector::{Branch, Burst, CodeAddress, Prediction};

/// Taken branches of a trace (section 3.1: the last four).
pub const TRACE_LENGTH: usize = 4;
/// Maximum of traces that are kept of a burst. Of longer bursts, traces at equal distances are kept.
pub const MAX_TRACES: usize = 256;

/// A branch trace of a burst.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TraceShare {
    /// Hash of the branches, and of the event at which they were recorded.
    pub trace: u32,
    /// Hash of the address of the first branch.
    pub start: u32,
    /// Share of the burst's traces, 0…1.
    pub share: f32,
}

/// What a burst shows of its phase.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Signature {
    /// Nanoseconds of `CLOCK_MONOTONIC` when the burst began.
    pub time_ns: u64,
    /// Its traces in the order of their hashes. Their shares add up to 1, unless the burst shows no code at all.
    pub traces: Box<[TraceShare]>,
    /// Time per taken branch, if it was measured: in nanoseconds, or in cycles for branch records.
    pub time_per_branch: Option<f32>,
    /// Share of mispredicted branches, if the hardware says it, 0…1.
    pub mispredicted: Option<f32>,
}

impl Signature {
    /// The signature of a burst. Addresses must mean the same in all bursts that are compared.
    pub fn from_burst(burst: &Burst) -> Self {
        let event = burst
            .hardware
            .as_ref()
            .map_or(0, |hardware| u64::from(hardware.event.0) + 1);
        let traces = burst.branches.chunks(TRACE_LENGTH);
        let step = traces.len().div_ceil(MAX_TRACES).max(1);
        let hashed = traces
            .step_by(step)
            .map(|branches| (hash_trace(event, branches), hash_address(branches[0].from)));
        let mut hashed: Vec<(u32, u32)> = hashed.collect();
        if hashed.is_empty() {
            // No branch was taken: the interrupted code is all there is.
            hashed.extend(burst.start.map(|start| (hash_address(start), hash_address(start))));
        }
        Self {
            time_ns: burst.time_ns,
            traces: shares(hashed),
            time_per_branch: time_per_branch(burst),
            mispredicted: mispredicted(burst),
        }
    }
}

/// Counts equal traces.
fn shares(mut hashed: Vec<(u32, u32)>) -> Box<[TraceShare]> {
    hashed.sort_unstable();
    let all = hashed.len() as f32;
    let same = hashed.chunk_by(|a, b| a.0 == b.0);
    same.map(|same| TraceShare {
        trace: same[0].0,
        start: same[0].1,
        share: same.len() as f32 / all,
    })
    .collect()
}

fn hash_address(address: CodeAddress) -> u32 {
    mix(address.offset ^ u64::from(address.module.0) << 48) as u32
}

fn hash_trace(event: u64, branches: &[Branch]) -> u32 {
    let mut hash = event;
    for branch in branches {
        for address in [branch.from, branch.to] {
            let place = address.offset ^ u64::from(address.module.0) << 48;
            hash = mix(hash.rotate_left(17) ^ place);
        }
    }
    hash as u32
}

fn time_per_branch(burst: &Burst) -> Option<f32> {
    if let Some(clock) = burst.timing {
        return Some(clock.nanoseconds / clock.branches);
    }
    let facts = burst.hardware.as_ref()?.facts.iter();
    let known = facts.filter(|fact| fact.cycles > 0).map(|fact| f32::from(fact.cycles));
    let (number, sum) = known.fold((0.0, 0.0), |(number, sum), cycles| (number + 1.0, sum + cycles));
    (number > 0.0).then(|| sum / number)
}

fn mispredicted(burst: &Burst) -> Option<f32> {
    let facts = burst.hardware.as_ref()?.facts.iter();
    let known = facts.filter(|fact| fact.prediction != Prediction::Unknown);
    let (number, wrong) = known.fold((0.0, 0.0), |(number, wrong), fact| {
        let is_wrong = fact.prediction == Prediction::Mispredicted;
        (number + 1.0, wrong + f32::from(u8::from(is_wrong)))
    });
    (number > 0.0).then(|| wrong / number)
}
