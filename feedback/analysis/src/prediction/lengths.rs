//! Whether a processor predicts which length a memory operation has.
//!
//! Code for the most frequent length begins with a comparison. Shares of lengths do not tell whether its branch is
//! predicted: two lengths in turn, or each from another caller, are easy. So the model predicts that branch, which the
//! recorded program does not have, for each execution. Each inline instance has a branch of its own.

use super::hash;
use super::tage::{BranchHistory, Direction, Tage};
use pleach_annotate::map::InlineInstanceIndex;
use pleach_collector::vector::ModuleId;
use rustc_hash::FxHashMap;

/// A memory operation of an inline instance: the call's position in the list of its function's calls.
pub(super) type Operation = (ModuleId, InlineInstanceIndex, u32);

/// Predictions of the comparisons with the most frequent lengths.
#[derive(Default)]
pub(super) struct LengthPredictions {
    operations: FxHashMap<Operation, Comparison>,
}

/// The comparison of one operation with its most frequent length.
#[derive(Default)]
pub(super) struct Comparison {
    /// Executions so far, by length.
    seen: FxHashMap<u64, u64>,
    /// The length that it compares with, one of the most frequent so far, and its executions.
    compared: (u64, u64),
    /// Weighted executions: mispredicted, predicted.
    pub weights: [f64; 2],
    /// Bursts that showed it.
    pub bursts: u64,
    last: Option<usize>,
}

impl Comparison {
    /// Whether a length is that of the comparison. Of two that are about as frequent, it keeps one: a comparison that
    /// changes is mispredicted.
    fn compare(&mut self, length: u64) -> bool {
        let count = self.seen.entry(length).or_default();
        *count += 1;
        let (compared, most) = self.compared;
        if compared == length || *count > most + most / 4 + 2 {
            self.compared = (length, *count);
        }
        self.compared.0 == length
    }
}

impl LengthPredictions {
    /// An execution in a burst, after `end` branches of a history.
    pub fn add(
        &mut self,
        operation: Operation,
        (burst, weight): (usize, f64),
        length: u64,
        tage: &mut Tage<Direction>,
        (history, end): (&BranchHistory, usize),
    ) {
        let comparison = self.operations.entry(operation).or_default();
        let is_most_frequent = comparison.compare(length);
        let predicted = tage.predicts(hash(&operation), history, end, is_most_frequent);
        comparison.weights[usize::from(predicted)] += weight;
        comparison.bursts += u64::from(comparison.last.replace(burst) != Some(burst));
    }

    pub fn into_operations(self) -> impl Iterator<Item = (Operation, Comparison)> {
        self.operations.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_collector::stream::mix;

    /// The share of mispredicted executions of an operation, whose lengths follow branches of its program.
    fn mispredicted(executions: impl Iterator<Item = (u64, u64)>) -> f64 {
        let operation = (ModuleId(0), InlineInstanceIndex(0), 3);
        let (mut tage, mut predictions) = (Tage::new(), LengthPredictions::default());
        let mut history = BranchHistory::default();
        for (number, (branch, length)) in executions.enumerate() {
            history.read([1, 2, branch, 4].into_iter());
            predictions.add(operation, (number, 1.0), length, &mut tage, (&history, 4));
        }
        let (_, comparison) = predictions.into_operations().next().expect("one operation");
        comparison.weights[0] / (comparison.weights[0] + comparison.weights[1])
    }

    #[test]
    fn lengths_of_callers_are_predicted_and_lengths_by_chance_are_not() {
        let by_chance: Vec<u64> = (1..4001).map(|number| mix(number) >> 63).collect();
        assert!(mispredicted(by_chance.iter().map(|&coin| (7, 2 + coin))) > 0.35);
        assert!(mispredicted(by_chance.iter().map(|&coin| (7 + coin, 2 + coin))) < 0.02);
        assert!(mispredicted((0..4000).map(|_| (7, 2))) < 0.01);
    }
}
