//! How often edges were seen, and which of those never seen are cold with confidence (cold-edge elimination, as in
//! Targeted and Practical Path Profiling).

use pleach_analysis::regions::split::{Leave, Portion};
use pleach_annotate::id::BlockIndex;
use std::collections::BTreeMap;

/// When an edge that was never seen is taken to be cold: when the upper bound of the one-sided interval for its share
/// of its block's departures is below `share`.
///
/// An edge with share s is missed by n independent departures with probability (1 − s)^n, so the upper bound at
/// confidence 1 − `error` is 1 − `error`^(1/n). With the default, n ≥ 45. An edge that was seen is never cold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cold {
    /// Share of the departures from its block that a cold edge stays below. Targeted Path Profiling has 5 %.
    pub share: f64,
    /// Probability that an edge with a larger share is taken to be cold.
    pub error: f64,
    /// Departures that are worth one independent observation: those of one burst are alike.
    pub clustering: f64,
}

impl Default for Cold {
    fn default() -> Self {
        Self {
            share: 0.05,
            error: 0.1,
            clustering: 1.0,
        }
    }
}

/// The observed executions of each edge of a function.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EdgeEvidence {
    /// By origin and way on.
    taken: BTreeMap<(BlockIndex, Leave), f64>,
    /// By block: how often it was seen how control went on.
    departures: BTreeMap<BlockIndex, f64>,
    /// By block: how often it was passed.
    passes: BTreeMap<BlockIndex, f64>,
    /// By block: how often it was seen to be the last of its region's.
    ended: BTreeMap<BlockIndex, f64>,
}

impl EdgeEvidence {
    /// The executions that the portions of a function's partial paths show, with their weights.
    pub fn of<'p>(portions: impl IntoIterator<Item = (&'p Portion, f64)>) -> Self {
        let mut this = Self::default();
        for (portion, weight) in portions {
            for &block in &portion.blocks {
                *this.passes.entry(block).or_default() += weight;
            }
            for pair in portion.blocks.windows(2) {
                this.note(pair[0], Leave::To(pair[1]), weight);
            }
            if let (Some(&last), Some(leave)) = (portion.blocks.last(), portion.leave) {
                this.note(last, leave, weight);
                *this.ended.entry(last).or_default() += weight;
            }
        }
        this
    }

    fn note(&mut self, from: BlockIndex, way: Leave, weight: f64) {
        *self.taken.entry((from, way)).or_default() += weight;
        *self.departures.entry(from).or_default() += weight;
    }

    /// The observed executions of an edge.
    pub fn taken(&self, from: BlockIndex, to: BlockIndex) -> f64 {
        self.taken.get(&(from, Leave::To(to))).copied().unwrap_or(0.0)
    }

    /// The observed executions of a block.
    pub fn passes(&self, block: BlockIndex) -> f64 {
        self.passes.get(&block).copied().unwrap_or(0.0)
    }

    /// Number of times that a block was the last of a region path.
    pub fn ended(&self, block: BlockIndex) -> f64 {
        self.ended.get(&block).copied().unwrap_or(0.0)
    }

    /// Upper bound of the interval for the share of an edge that none of a block's departures took; 1 where none was
    /// seen.
    pub fn upper_share(&self, from: BlockIndex, cold: &Cold) -> f64 {
        let departures = self.departures.get(&from).copied().unwrap_or(0.0) / cold.clustering;
        if departures > 0.0 {
            1.0 - cold.error.powf(1.0 / departures)
        } else {
            1.0
        }
    }

    /// Whether an edge is cold.
    pub fn is_cold(&self, from: BlockIndex, to: BlockIndex, cold: &Cold) -> bool {
        self.taken(from, to) == 0.0 && self.upper_share(from, cold) < cold.share
    }
}
