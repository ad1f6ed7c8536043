//! How long shadow bursts are.
//!
//! A shadow burst costs little more than its tick, so a few long bursts record the most branches. But the branches of one
//! burst are not independent, so that bursts are kept short enough for a minimum rate. A program with many instructions
//! between two taken branches gets shorter ones, from all its threads and processes on what the first ones have learned.
//!
//! That length follows the number of instructions, not the time that they took: most of that may be the decoding of code
//! that is new to a process, and it depends on the machine's load. Where decoding ends bursts before their length, their
//! thread makes them shorter by their cost, until they are not cut any more.

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
/// The longest bursts are kept if they have at most this times the instructions that the budget allows.
const TOLERANCE: f64 = 2.0;

fn allowed_ns(overhead: f64) -> f64 {
    (overhead * DISTANCE_NS).max(LEAST_COST_NS)
}

/// Taken branches of bursts, at most `longest`, of a program with so many instructions a taken branch. `overhead`: the
/// budget as a share of CPU time.
pub fn affordable_length(instructions_a_branch: f64, longest: u64, overhead: f64) -> u64 {
    let affordable = allowed_ns(overhead) / INSTRUCTION_NS / instructions_a_branch.max(1.0);
    if affordable * TOLERANCE >= longest as f64 {
        return longest;
    }
    (affordable as u64).clamp(SHORTEST.min(longest), longest)
}

/// Taken branches of the next burst after one that was to have `branches` and was cut, if such bursts cost `cost_ns`.
pub fn length_after_cut(branches: u64, longest: u64, cost_ns: f64, overhead: f64) -> u64 {
    let affordable = allowed_ns(overhead) / cost_ns.max(1.0);
    let next = branches as f64 * affordable.clamp(0.5, 2.0);
    (next as u64).clamp(SHORTEST.min(longest), longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_instructions_a_branch_make_bursts_short() {
        let at_one_percent = |instructions| affordable_length(instructions, 1000, 0.01);
        assert_eq!([0.0, 1.0, 6.0, 10.0].map(at_one_percent), [1000; 4]);
        assert_eq!(
            [12.0, 20.0, 40.0, 72.0, 500.0].map(at_one_percent),
            [416, 250, 125, 69, 64]
        );
    }

    #[test]
    fn a_small_budget_means_fewer_bursts_not_ticks() {
        assert_eq!(affordable_length(6.0, 1000, 0.001), 1000);
        assert_eq!(affordable_length(40.0, 1000, 0.001), 75);
        assert_eq!(affordable_length(60.0, 1000, 0.05), 416);
    }

    #[test]
    fn cut_bursts_get_shorter_while_they_cost_too_much() {
        assert_eq!(length_after_cut(1000, 1000, 2e6, 0.01), 500);
        assert_eq!(length_after_cut(1000, 1000, 500e3, 0.01), 500);
        assert_eq!(length_after_cut(500, 1000, 100e3, 0.01), 1000);
        assert_eq!(length_after_cut(100, 1000, 2e6, 0.01), 64);
    }

    #[test]
    fn a_short_length_that_was_asked_for_is_kept() {
        assert_eq!(affordable_length(500.0, 10, 0.01), 10);
        assert_eq!(length_after_cut(10, 10, f64::NAN, 0.01), 10);
        assert_eq!(length_after_cut(10, 10, 1e9, 0.01), 10);
    }
}
