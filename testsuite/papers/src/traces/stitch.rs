//! Joins traces that overlap into longer ones (section 3.1: "stitch partially overlapping traces together").
//!
//! The branches of a selected trace are followed by those of the selected trace that begins at its last branch, and so
//! on: until no trace begins there, a start comes again, or [`MAX_BRANCHES`] are reached. A sample is covered if its
//! branches follow one another in a joined trace, wherever in it.

use super::models::Selected;
use super::sample::{Recording, StartId, TraceId};
use pleach_collector::vector::Branch;
use pleach_phases::signature::TRACE_LENGTH;
use rustc_hash::FxHashSet;

/// Maximum of branches of a joined trace.
pub const MAX_BRANCHES: usize = 64;

/// What joined traces contain.
#[derive(Clone, Debug, Default)]
pub struct Stitched(FxHashSet<TraceId>);

impl Stitched {
    /// Joins the selected traces.
    pub fn new(recording: &Recording, selected: &Selected) -> Self {
        let mut contained = FxHashSet::default();
        for (&start, &trace) in selected {
            let joined = join(recording, selected, start, trace);
            for branches in joined.windows(TRACE_LENGTH) {
                let id = branches.try_into().ok().and_then(|branches| recording.id(branches));
                contained.extend(id);
            }
        }
        Self(contained)
    }

    /// Whether a sample's trace lies in a joined one.
    pub fn contains(&self, trace: TraceId) -> bool {
        self.0.contains(&trace)
    }
}

fn join(recording: &Recording, selected: &Selected, start: StartId, trace: TraceId) -> Vec<Branch> {
    let mut joined = recording.traces[trace.0 as usize].to_vec();
    let mut met = FxHashSet::from_iter([start]);
    while joined.len() < MAX_BRANCHES {
        let last = joined[joined.len() - 1];
        let Some(next) = recording.start(last.from) else { break };
        let Some(trace) = selected.get(&next) else { break };
        let branches = recording.traces[trace.0 as usize];
        // The branch that both have must lead to the same place.
        if branches[0] != last || !met.insert(next) {
            break;
        }
        joined.extend_from_slice(&branches[1..]);
    }
    joined
}
