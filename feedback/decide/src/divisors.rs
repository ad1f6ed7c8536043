//! For which divisor a division gets code of its own.
//!
//! A comparison with the most frequent divisor chooses between a multiplication by its inverse, or a shift, and the
//! processor's division.

use crate::latencies::{ADDED_MISPREDICTION, COMPARISON};
use crate::support::wilson_low;
use pleach_profile::ValueCounts;

/// Cycles that a multiplication in place of a division saves, at least: recent processors divide 64 bits by small
/// operands in some twelve cycles, older ones in up to ninety, and a multiplication by an inverse takes five.
const SAVED: f64 = 7.0;

/// Share of executions from which on the comparison pays, even if each execution with another divisor is mispredicted.
const MIN_SHARE_AT_LOWER_END: f64 = (COMPARISON + ADDED_MISPREDICTION) / (SAVED + ADDED_MISPREDICTION);

/// The most frequent divisor, with its count, if it pays at the lower bound of its share. All divisions of a burst may
/// have the same cause, so that bursts are what is counted as evidence.
pub fn certain_divisor(divisions: &ValueCounts) -> Option<(u64, u64)> {
    let &(divisor, count) = divisions.values.first()?;
    let total = divisions.total();
    let share = if total > 0 { count as f64 / total as f64 } else { 0.0 };
    let pays = wilson_low(share, divisions.bursts as f64) >= MIN_SHARE_AT_LOWER_END;
    (pays && divisor != 0).then_some((divisor, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::id::BlockIndex;
    use pleach_profile::ValueSite;

    fn divisions(bursts: u64, values: &[(u64, u64)], others: u64) -> ValueCounts {
        ValueCounts {
            site: ValueSite::Divisor(BlockIndex(0)),
            bursts,
            values: values.to_vec(),
            others,
        }
    }

    #[test]
    fn few_bursts_decide_nothing() {
        assert_eq!(certain_divisor(&divisions(7, &[(97, 5000)], 0)), None);
        assert_eq!(certain_divisor(&divisions(8, &[(97, 5000)], 0)), Some((97, 5000)));
        assert_eq!(certain_divisor(&divisions(0, &[], 0)), None);
        assert_eq!(certain_divisor(&divisions(5, &[], 3)), None);
    }

    #[test]
    fn a_divisor_must_pay_for_its_comparison() {
        assert_eq!(
            certain_divisor(&divisions(1000, &[(97, 900), (11, 100)], 0)),
            Some((97, 900))
        );
        assert_eq!(certain_divisor(&divisions(1000, &[(97, 700), (11, 100)], 200)), None);
        // No division by zero is completed.
        assert_eq!(certain_divisor(&divisions(1000, &[(0, 900)], 0)), None);
    }
}
