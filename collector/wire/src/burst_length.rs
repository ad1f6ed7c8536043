//! How long shadow bursts are.
//!
//! A shadow burst costs little more than its tick, so a few long bursts record the most branches. But the branches of one
//! burst are not independent, so that bursts are kept short enough for a minimum rate. A program with many instructions
//! between two taken branches gets shorter ones.
//!
//! The length follows the number of instructions, not the time that they took: most of that may be the decoding of code
//! that is new to a process, which shorter bursts do not save, and it depends on the machine's load.

/// CPU time between two bursts if the budget allows only shorter bursts. Ten seconds then give 400 bursts, enough for
/// superblocks and for splitting.
const DISTANCE_NS: f64 = 25_000_000.0;
/// Shadow execution of an instruction that was decoded before.
pub const INSTRUCTION_NS: f64 = 50.0;
/// Least cost of a burst that is aimed at, several times that of its tick: cheaper bursts would be ticks for the most part,
/// which matters with small budgets.
const LEAST_COST_NS: f64 = 150_000.0;
/// Shortest burst, in taken branches.
const SHORTEST: u64 = 64;
/// Bursts of between the inverse of this and this times the instructions that the budget allows are left as they are:
/// bursts vary.
const TOLERANCE: f64 = 2.0;

/// Taken branches that the next burst should have, at most `longest`, where bursts of at most `branches` have so many
/// `instructions`. `overhead`: the budget as a share of CPU time.
pub fn affordable_length(branches: u64, longest: u64, instructions: f64, overhead: f64) -> u64 {
    let allowed = (overhead * DISTANCE_NS).max(LEAST_COST_NS) / INSTRUCTION_NS;
    let affordable = allowed / instructions.max(1.0);
    if (1.0 / TOLERANCE..=TOLERANCE).contains(&affordable) {
        return branches.min(longest);
    }
    let next = branches as f64 * affordable.clamp(1.0 / TOLERANCE, TOLERANCE);
    (next as u64).clamp(SHORTEST.min(longest), longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the length ends up, and the instructions of a burst then, in a program of so many instructions a taken branch.
    fn settled(instructions: f64, from: u64, longest: u64, overhead: f64) -> (u64, f64) {
        // As many as `Limits::of_sample` has.
        let executed = |branches: u64| branches as f64 * instructions.min(64.0);
        let next = |branches, _| affordable_length(branches, longest, executed(branches), overhead);
        let branches = (0..20).fold(from, next);
        (branches, executed(branches))
    }

    #[test]
    fn many_instructions_a_branch_make_bursts_short() {
        assert_eq!(settled(6.0, 1000, 1000, 0.01).0, 1000);
        // 250 microseconds a burst give 400 in ten seconds at 1 %; at least half as many.
        for instructions in [12.0, 20.0, 40.0, 72.0, 500.0] {
            let (branches, executed) = settled(instructions, 1000, 1000, 0.01);
            let cost = executed * INSTRUCTION_NS;
            assert!((125e3..=500e3).contains(&cost), "{instructions}: {branches}");
        }
    }

    #[test]
    fn a_small_budget_means_fewer_bursts_not_ticks() {
        assert_eq!(settled(6.0, 1000, 1000, 0.001).0, 1000);
        assert_eq!(settled(40.0, 1000, 1000, 0.001).0, 125);
        assert_eq!(settled(40.0, 1000, 1000, 0.05).0, 1000);
    }

    #[test]
    fn bursts_grow_again_where_few_instructions_are_between_branches() {
        // Up to twice the tolerance below what the budget allows.
        assert!(settled(5.0, 100, 1000, 0.01).0 >= 500);
        assert_eq!(settled(1.0, 100, 1000, 0.01).0, 1000);
    }

    #[test]
    fn a_short_length_that_was_asked_for_is_kept() {
        assert_eq!(settled(500.0, 10, 10, 0.01).0, 10);
        assert_eq!(affordable_length(10, 10, f64::NAN, 0.01), 10);
        assert_eq!(affordable_length(10, 10, 0.0, 0.01), 10);
    }
}
