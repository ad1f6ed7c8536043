//! Branches or selects: which unpredictable branches around memory accesses are worth doing without, and which selects are worth a branch.
//!
//! Without a branch, both ways are executed, and selects say what the branch said: which values hold, and where what must not be accessed is
//! accessed instead. That costs instructions, and saves the mispredictions. How many those are, the profile says; of a branch that the
//! programmer called unpredictable it is taken to be [`UNPREDICTABLE`].

use crate::weights::UNPREDICTABLE;

/// Cycles that a misprediction takes: what LLVM assumes of x86 processors.
const MISPREDICTION: f64 = 14.0;
/// Instructions that a processor executes in a cycle where nothing holds it up.
const WIDTH: f64 = 4.0;

/// A branch whose ways meet again behind code without calls. Numbers are of instructions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arms {
    /// On each way, without the branches that it has itself.
    pub executed: [f64; 2],
    /// On each way, as many as are executed with them.
    pub needed: [f64; 2],
    /// Selects in place of the branch.
    pub selects: f64,
    /// Accesses that both ways make, and one does for.
    pub shared: f64,
    /// Probability of the first way.
    pub probability: f64,
    /// Share of executions that is mispredicted at least, where a profile says it.
    pub rate: Option<f64>,
}

/// Whether it is faster to execute both ways.
pub fn pays(arms: &Arms) -> bool {
    let [first, second] = arms.needed;
    let branch = 1.0;
    let now = first * arms.probability + second * (1.0 - arms.probability) + branch;
    let then = arms.executed.iter().sum::<f64>() + arms.selects - arms.shared;
    then - now <= arms.rate.unwrap_or(UNPREDICTABLE) * MISPREDICTION * WIDTH
}

/// Whether selects in place of a branch pay that is mispredicted at this rate, at least, where its condition comes out of what the branch decided the
/// time before: so many cycles later, and in fewer cycles the values do that are chosen from (0 where that is not known).
///
/// A branch guesses, so that only the values wait for each other. Selects make each turn wait for the condition as well, which costs at most
/// the difference, each time.
pub fn pays_in_chain(rate: f64, condition: f64, values: f64) -> bool {
    let longer = 1.0 + condition.max(values) - values;
    longer <= rate * MISPREDICTION
}

/// Whether selects should be branches that decide what a loop works on in its next turn, by a condition that comes out of what this turn works
/// on, so many cycles later, and in fewer cycles the values do that are selected from.
///
/// Selects make each turn wait for the condition. A branch makes it wait for the values only, but where it is mispredicted: for the condition,
/// and then for instructions. What a branch would do there was not recorded where the recorded program has a select as well, so that it must pay
/// even if every other execution is mispredicted.
pub fn is_waited_for(condition: f64, values: f64) -> bool {
    let select = 1.0 + condition.max(values);
    let branch = values + 0.5 * (condition + MISPREDICTION);
    branch < select
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_wait_for_calls_not_for_a_load() {
        let (load, compare, call) = (5.0, 1.0, 20.0);
        assert!(!is_waited_for(load + compare, 0.0));
        assert!(!is_waited_for(2.0 * load + compare, 0.0));
        assert!(is_waited_for(3.0 * load + compare, 0.0));
        // A search tree, whose keys a function compares.
        assert!(is_waited_for(load + call + compare, 1.0));
        assert!(!is_waited_for(load + call + compare, load + call));
    }

    #[test]
    fn a_chain_is_lengthened_only_for_more_mispredictions_than_that() {
        // A range coder: its range, a shift, a product and a comparison, all in memory.
        let coder = 5.0 + 1.0 + 4.0 + 1.0;
        assert!(!pays_in_chain(0.25, coder, 0.0) && !pays_in_chain(0.5, coder, 0.0));
        // A binary search chooses between bounds that are there already.
        assert!(pays_in_chain(0.5, 8.0, 2.0));
        assert!(!pays_in_chain(0.25, 8.0, 2.0));
        // Values that take as long as the condition leave only the select.
        assert!(pays_in_chain(0.25, 6.0, 6.0));
    }

    #[test]
    fn a_misprediction_in_four_is_worth_fourteen_instructions() {
        let arms = |ways, selects, shared, probability| Arms {
            executed: ways,
            needed: ways,
            selects,
            shared,
            probability,
            rate: None,
        };
        // `if (c) *p += x`: guarded loads and a guarded store.
        assert!(pays(&arms([5.0, 0.0], 3.0, 0.0, 0.4)));
        assert!(pays(&arms([20.0, 0.0], 5.0, 0.0, 0.5)));
        assert!(!pays(&arms([20.0, 0.0], 5.0, 0.0, 0.4)));
        assert!(pays(&arms([14.0, 14.0], 4.0, 3.0, 0.5)));
        assert!(!pays(&arms([14.0, 14.0], 4.0, 0.0, 0.5)));
        let often = Arms {
            rate: Some(0.5),
            ..arms([40.0, 0.0], 9.0, 0.0, 0.5)
        };
        assert!(pays(&often));
        assert!(!pays(&Arms { rate: None, ..often }));
        // A branch on the way keeps half of its code from being executed: that counts.
        let inner = |needed| Arms {
            needed: [needed, 0.0],
            ..arms([18.0, 0.0], 5.0, 0.0, 0.5)
        };
        assert!(pays(&inner(18.0)));
        assert!(!pays(&inner(10.0)));
    }
}
