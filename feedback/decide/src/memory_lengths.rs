//! For which lengths a memory operation gets code of its own.
//!
//! LLVM's pass (`PGOMemOPSizeOpt`) compares the length with each of these, and copies or compares that many bytes by a
//! few instructions, without a call. Where the length is another, the comparison is wasted, and the branch may be
//! mispredicted.

use crate::latencies::{ADDED_MISPREDICTION, COMPARISON};
use crate::support::{wilson_interval, wilson_low};
use pleach_profile::ValueCounts;

/// Minimum share of a length among the executions that reach its comparison, as in LLVM.
const MIN_SHARE: f64 = 0.4;

/// Cycles that code for one length saves: a call of the C library's routine for a few bytes takes some fifteen
/// instructions, a jump through the linkage table among them, and what it stores or returns is waited for.
const SAVED: f64 = 10.0;

/// The lengths, with their counts, most frequent first, whose comparisons pay at the unfavourable ends of the intervals
/// of their shares and of the share of `prediction` that is mispredicted ([`ValueSite::LengthPrediction`]). All
/// comparisons are taken to be mispredicted as often as the first; where nothing is known about it, each execution with
/// another length is. All executions of the operation in a burst may have the same cause, so that bursts are what is
/// counted as evidence.
///
/// [`ValueSite::LengthPrediction`]: pleach_profile::ValueSite::LengthPrediction
pub fn certain_lengths<'a>(operation: &'a ValueCounts, prediction: Option<&ValueCounts>) -> &'a [(u64, u64)] {
    let mut rest = operation.total() as f64;
    let mut certain = 0;
    let mispredicted = prediction.map_or(1.0, most_mispredicted);
    for &(_, count) in &operation.values {
        let count = count as f64;
        let share = if rest > 0.0 { count / rest } else { 0.0 };
        let low = wilson_low(share, operation.bursts as f64);
        if share < MIN_SHARE || low * SAVED <= COMPARISON + mispredicted.min(1.0 - low) * ADDED_MISPREDICTION {
            break;
        }
        rest -= count;
        certain += 1;
    }
    operation.values.get(..certain).unwrap_or_default()
}

/// The share of mispredicted executions, at the upper end of its interval.
fn most_mispredicted(prediction: &ValueCounts) -> f64 {
    let (wrong, total) = (prediction.count_of(0), prediction.total());
    if total == 0 {
        return 1.0;
    }
    wilson_interval(wrong as f64 / total as f64, prediction.bursts as f64).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_profile::ValueSite;

    fn operation(bursts: u64, lengths: &[(u64, u64)], others: u64) -> ValueCounts {
        ValueCounts {
            site: ValueSite::Length(0),
            bursts,
            values: lengths.to_vec(),
            others,
        }
    }

    /// Executions whose comparison was predicted, and others.
    fn prediction(bursts: u64, predicted: u64, mispredicted: u64) -> ValueCounts {
        ValueCounts {
            site: ValueSite::LengthPrediction(0),
            bursts,
            values: vec![(1, predicted), (0, mispredicted)],
            others: 0,
        }
    }

    #[test]
    fn few_bursts_decide_nothing() {
        assert!(certain_lengths(&operation(5, &[(8, 5000)], 0), None).is_empty());
        assert_eq!(certain_lengths(&operation(6, &[(8, 5000)], 0), None), [(8, 5000)]);
        assert_eq!(certain_lengths(&operation(0, &[], 0), None), []);
        assert_eq!(operation(2, &[(8, 5000)], 0).total_with_one_more_burst(), 7500);
    }

    #[test]
    fn shares_count_among_what_remains() {
        let lengths = [(1, 900), (4, 90), (7, 3)];
        assert_eq!(certain_lengths(&operation(1000, &lengths, 7), None), &lengths[..2]);
        assert_eq!(certain_lengths(&operation(100, &lengths, 117), None), &lengths[..1]);
        assert_eq!(certain_lengths(&operation(1000, &lengths, 900), None), []);
    }

    #[test]
    fn lengths_of_which_none_dominates_must_be_predicted() {
        let measured = [(3, 48), (2, 47), (4, 5)];
        let (operation, rare) = (operation(200, &measured, 0), operation(100_000, &[(1, 399)], 601));
        let certain = |predicted, mispredicted| {
            certain_lengths(&operation, Some(&prediction(200, predicted, mispredicted))).len()
        };
        assert_eq!(certain_lengths(&operation, None), []);
        assert_eq!([certain(60, 40), certain(80, 20), certain(99, 1)], [0, 0, 3]);
        // However well it is predicted.
        assert_eq!(certain_lengths(&rare, Some(&prediction(100_000, 1000, 0))), []);
        let few = prediction(3, 100, 0);
        assert_eq!(certain_lengths(&operation, Some(&few)), []);
    }
}
