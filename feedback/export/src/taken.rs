//! The distinct branches of a recording, and the code between two of them.

use pleach_collector::vector::{Branch, CodeAddress, Prediction, VectorSet};
use rustc_hash::FxHashMap;

/// Executions of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Executed {
    /// Times that it was mispredicted, where the hardware says so.
    pub mispredicted: u64,
    /// Times that it was executed.
    pub count: u64,
}

/// Distinct branches, and distinct pieces of code between two of them, with their executions.
#[derive(Default)]
pub(crate) struct Taken {
    /// Branches.
    pub(crate) branches: FxHashMap<Branch, Executed>,
    /// From the target of a branch to the next one that was taken, or to where the burst ended.
    pub(crate) fall_throughs: FxHashMap<(CodeAddress, CodeAddress), u64>,
}

impl Taken {
    /// Those of all bursts, or of what they were compressed to.
    pub(crate) fn of(vectors: &VectorSet) -> Self {
        let mut taken = Self::default();
        for burst in &vectors.bursts {
            let facts = burst.hardware.as_ref().map_or(&[][..], |hardware| &hardware.facts);
            let is_mispredicted = |at: usize| {
                facts
                    .get(at)
                    .is_some_and(|facts| facts.prediction == Prediction::Mispredicted)
            };
            taken.add(&burst.branches, burst.end, burst.count, is_mispredicted);
        }
        for window in vectors.compressed.iter().flat_map(|compressed| &compressed.windows) {
            taken.add(&window.branches, window.end, window.weight, |_| false);
        }
        taken
    }

    fn add(
        &mut self,
        branches: &[Branch],
        end: Option<CodeAddress>,
        count: u64,
        is_mispredicted: impl Fn(usize) -> bool,
    ) {
        for (at, branch) in branches.iter().enumerate() {
            let executed = self.branches.entry(*branch).or_default();
            executed.count += count;
            executed.mispredicted += if is_mispredicted(at) { count } else { 0 };
            if let Some(end) = branches.get(at + 1).map(|next| next.from).or(end) {
                *self.fall_throughs.entry((branch.to, end)).or_default() += count;
            }
        }
    }
}
