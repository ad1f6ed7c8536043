//! For which lengths a memory operation gets code of its own.
//!
//! LLVM's pass (`PGOMemOPSizeOpt`) compares the length with each that has two fifths of the executions or more, and
//! copies or compares that many bytes by a few instructions, without a call. Where the length is another, the comparison
//! is wasted.

use crate::support::wilson_low;
use pleach_profile::ValueCounts;

/// Minimum share of a length among the executions that reach its comparison, as in LLVM.
const MIN_SHARE: f64 = 0.4;

/// Share at which a comparison surely pays. A call of the C library's routine for a few bytes takes some fifteen
/// instructions, the code for one length three, and a comparison two, which the other lengths execute in vain: a sixth
/// would do. The rest is for comparisons that are mispredicted.
const MIN_SHARE_AT_LOWER_END: f64 = 0.3;

/// The lengths, with their counts, most frequent first, whose shares are large enough, and pay at the lower bound of
/// their intervals. All executions of the operation in a burst may have the same cause, so that bursts are what is
/// counted as evidence.
pub fn certain_lengths(operation: &ValueCounts) -> &[(u64, u64)] {
    let mut rest = operation.total() as f64;
    let mut certain = 0;
    for &(_, count) in &operation.values {
        let count = count as f64;
        let share = if rest > 0.0 { count / rest } else { 0.0 };
        if share < MIN_SHARE || wilson_low(share, operation.bursts as f64) < MIN_SHARE_AT_LOWER_END {
            break;
        }
        rest -= count;
        certain += 1;
    }
    operation.values.get(..certain).unwrap_or_default()
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

    #[test]
    fn one_burst_decides_nothing() {
        assert!(certain_lengths(&operation(1, &[(8, 5000)], 0)).is_empty());
        assert_eq!(certain_lengths(&operation(2, &[(8, 5000)], 0)), [(8, 5000)]);
        assert_eq!(certain_lengths(&operation(0, &[], 0)), []);
        assert_eq!(operation(2, &[(8, 5000)], 0).total_with_one_more_burst(), 7500);
    }

    #[test]
    fn shares_count_among_what_remains() {
        let lengths = [(1, 700), (4, 200), (7, 30)];
        assert_eq!(certain_lengths(&operation(100, &lengths, 50)), &lengths[..2]);
        assert_eq!(certain_lengths(&operation(100, &lengths, 900)), []);
        assert_eq!(certain_lengths(&operation(4, &lengths, 50)), &lengths[..2]);
        assert_eq!(certain_lengths(&operation(3, &[(1, 400), (2, 300)], 250)), []);
        assert_eq!(
            certain_lengths(&operation(233, &[(1, 415), (3, 287)], 298)),
            &[(1, 415), (3, 287)]
        );
        // However often it was seen.
        assert_eq!(certain_lengths(&operation(100_000, &[(1, 399)], 601)), []);
    }
}
