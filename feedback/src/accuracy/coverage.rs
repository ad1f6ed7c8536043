//! What was executed at all, against exact coverage.

use super::Truth;
use super::truth::FunctionKey;
use crate::profile::Covered;
use std::collections::BTreeMap;

/// Blocks of all functions that were counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoverageFigures {
    /// Executed blocks.
    pub executed: u64,
    /// Blocks said to be covered.
    pub covered: u64,
    /// Blocks said to be covered that were executed.
    pub right: u64,
}

impl CoverageFigures {
    /// Share of the executed blocks that are said to be covered; `None` where nothing was executed.
    pub fn recall(&self) -> Option<f64> {
        (self.executed > 0).then(|| self.right as f64 / self.executed as f64)
    }

    /// Share of the blocks said to be covered that were not executed; 0 where none is said to be.
    pub fn false_positives(&self) -> f64 {
        (self.covered - self.right) as f64 / self.covered.max(1) as f64
    }
}

/// Compares coverage of functions with the truth. A block is said to be covered from `least` on: [`Covered::ByDominance`]
/// takes what is proved, [`Covered::PredictedByDominance`] everything. A function that `coverage` lacks has nothing covered.
pub fn compare(truth: &Truth, coverage: &BTreeMap<FunctionKey, Vec<Covered>>, least: Covered) -> CoverageFigures {
    let mut figures = CoverageFigures::default();
    for (key, function) in &truth.functions {
        let covered = coverage.get(key).map_or(&[][..], Vec::as_slice);
        for (block, &count) in function.blocks.iter().enumerate() {
            let is_covered = covered.get(block).is_some_and(|&c| c >= least);
            figures.executed += u64::from(count > 0);
            figures.covered += u64::from(is_covered);
            figures.right += u64::from(is_covered && count > 0);
        }
    }
    figures
}
