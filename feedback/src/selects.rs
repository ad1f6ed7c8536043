//! Which unpredictable branches around memory accesses are worth doing without.
//!
//! Both ways are executed then, and selects say what the branch said: which values hold, and where what must not be accessed is accessed instead.
//! That costs instructions, and saves the mispredictions. How many those are, the profile says; of a branch that the programmer called
//! unpredictable it is taken to be [`UNPREDICTABLE`].

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

#[cfg(test)]
mod tests {
    use super::*;

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
