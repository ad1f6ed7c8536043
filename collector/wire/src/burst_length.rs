//! How long shadow bursts are.
//!
//! A shadow burst costs little more than its tick, so a few long bursts record the most branches. But the branches of one
//! burst are not independent, so that bursts are kept short enough for a minimum rate. A program with many instructions
//! between two taken branches gets shorter ones.

/// CPU time between two bursts if the budget allows only shorter bursts. Ten seconds then give 400 bursts, enough for
/// superblocks and for splitting.
const DISTANCE_NS: f64 = 25_000_000.0;
/// Least cost of a burst that is aimed at, several times that of its tick: cheaper bursts would be ticks for the most part,
/// which matters with small budgets.
const LEAST_COST_NS: f64 = 150_000.0;
/// Shortest burst, in taken branches.
const SHORTEST: u64 = 64;
/// Bursts that cost between the inverse of this and this times what the budget allows are left as they are: the cost of
/// single bursts varies.
const TOLERANCE: f64 = 2.0;

/// Taken branches that the next burst should have, at most `longest`, if bursts of `branches` cost `cost_ns`.
/// `overhead`: the budget as a share of CPU time. `was_cut`: the last burst ended before it had as many branches, so that
/// longer ones would be cut as well.
pub fn affordable_length(branches: u64, longest: u64, cost_ns: f64, overhead: f64, was_cut: bool) -> u64 {
    let affordable = (overhead * DISTANCE_NS).max(LEAST_COST_NS) / cost_ns.max(1.0);
    if !was_cut && (1.0 / TOLERANCE..=TOLERANCE).contains(&affordable) {
        return branches;
    }
    let next = branches as f64 * affordable.clamp(1.0 / TOLERANCE, TOLERANCE);
    (next as u64).clamp(SHORTEST.min(longest), longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the length ends up in a program of so many instructions a taken branch, from a length.
    fn settled(instructions: f64, from: u64, longest: u64) -> u64 {
        let mut branches = from;
        for _ in 0..20 {
            // 64 instructions for each branch, as `Limits::of_sample` has it; 50 ns each.
            let most = branches as f64 * 64.0;
            let executed = (branches as f64 * instructions).min(most);
            branches = affordable_length(branches, longest, executed * 50.0, 0.01, executed == most);
        }
        branches
    }

    #[test]
    fn dear_branches_make_bursts_short() {
        assert_eq!(settled(5.0, 1000, 1000), 1000);
        // 250 microseconds a burst: 400 in ten seconds at 1 %; half as many at least.
        for instructions in [12.0, 20.0, 40.0, 72.0, 500.0] {
            let branches = settled(instructions, 1000, 1000) as f64;
            let cost = branches * f64::min(instructions, 64.0) * 50.0;
            assert!((125e3..=500e3).contains(&cost), "{instructions}: {branches}");
        }
    }

    #[test]
    fn a_small_budget_means_fewer_bursts_not_ticks() {
        assert_eq!(affordable_length(1000, 1000, 250e3, 0.001, false), 1000);
        assert_eq!(affordable_length(1000, 1000, 2e6, 0.001, false), 500);
        assert_eq!(affordable_length(120, 1000, 240e3, 0.001, false), 120);
    }

    #[test]
    fn bursts_grow_again_where_branches_are_cheap() {
        // Up to twice the tolerance below what the budget allows.
        assert!(settled(5.0, 100, 1000) >= 500);
        assert_eq!(settled(1.0, 100, 1000), 1000);
    }

    #[test]
    fn a_short_length_that_was_asked_for_is_kept() {
        assert_eq!(settled(500.0, 10, 10), 10);
        assert_eq!(affordable_length(10, 10, f64::NAN, 0.01, true), 10);
        assert_eq!(affordable_length(10, 10, 0.0, 0.01, true), 10);
    }
}
