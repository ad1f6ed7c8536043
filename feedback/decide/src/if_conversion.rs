//! Branches or selects: which unpredictable branches around memory accesses are if-converted, and which selects become
//! branches.
//!
//! If-conversion executes both arms. Selects choose the values, and redirect accesses of the arm that is not taken to a
//! harmless address. This costs instructions and saves mispredictions. The profile has the misprediction rate; a branch
//! that the programmer marked unpredictable is assumed to have the rate [`UNPREDICTABLE`].

use crate::weights::UNPREDICTABLE;

/// Cycles that a misprediction costs: LLVM's value for x86 processors.
const MISPREDICTION_CYCLES: f64 = 14.0;
/// Cycles that a select takes.
const SELECT_CYCLES: f64 = 1.0;
/// Instructions per cycle without stalls.
pub const ISSUE_WIDTH: f64 = 4.0;

/// A branch whose arms rejoin without calls. Costs are in instructions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arms {
    /// Instructions of each arm once its inner branches are if-converted too.
    pub executed: [f64; 2],
    /// Instructions that each arm executes on average with its inner branches.
    pub needed: [f64; 2],
    /// Selects that replace the branch.
    pub selects: f64,
    /// Memory accesses that the arms have in common: one access replaces both.
    pub shared: f64,
    /// Probability of the first arm.
    pub probability: f64,
    /// Lower bound of the misprediction rate, if the profile has one.
    pub rate: Option<f64>,
    /// Cycles from the results of unpredictable branches, this one in the previous iteration or others, to the condition,
    /// if it depends on any; infinite: it may depend on more than could be followed.
    pub chain: Option<f64>,
    /// Cycles that each arm takes to compute its values.
    pub results: [f64; 2],
}

/// Whether executing both arms is worth it: what it gains at the recorded misprediction rate must be at least what it
/// loses on other input, by which the branch is predictable.
///
/// Where the condition waits for the result of an unpredictable branch, as in the decoder of a range coder, selects make
/// a chain of them: each execution waits for the condition, and then for the slower arm, whose loads are guarded. A branch
/// waits for its condition only where it is mispredicted.
pub fn if_conversion_is_profitable(arms: &Arms) -> bool {
    if arms.chain.is_some_and(f64::is_infinite) {
        return false;
    }
    let rate = arms.rate.unwrap_or(UNPREDICTABLE);
    let [first, second] = arms.needed;
    let branch = 1.0;
    let before = first * arms.probability + second * (1.0 - arms.probability) + branch;
    let after = arms.executed.iter().sum::<f64>() + arms.selects - arms.shared;
    let [one, other] = arms.results;
    let slower = one.max(other) - (one * arms.probability + other * (1.0 - arms.probability));
    let select = arms.chain.map_or(0.0, |waiting| waiting + SELECT_CYCLES + slower);
    let lost = (after - before) / ISSUE_WIDTH + select;
    let saved = rate * (arms.chain.unwrap_or(0.0) + MISPREDICTION_CYCLES);
    saved - lost >= lost
}

/// Two tests in a row, the second of which is only made if the first one succeeds. Costs are in instructions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tests {
    /// Instructions of the second test.
    pub size: f64,
    /// Selects that guard its loads, and that choose values.
    pub selects: f64,
    /// Probability that the first test succeeds.
    pub first_succeeds: f64,
    /// Probability that the second one does then.
    pub second_succeeds: f64,
    /// Lower bound of the first test's misprediction rate.
    pub rate: f64,
    /// The first test of the next iteration depends on the values that the tests choose.
    pub is_loop_carried: bool,
    /// Cycles that the second test takes to compute its values.
    pub results: f64,
}

/// Whether making both tests, and branching once, is worth it. The branch that remains may be mispredicted as often as
/// it goes the rarer way. As for [`if_conversion_is_profitable`], what is lost on predictable input counts twice.
///
/// Where the next iteration depends on what the tests choose, it waits for the second one's values, guarded loads among
/// them, each time. That it also waits for the first one's condition is left out: in a search tree, whose tests load
/// nothing more, joined tests are faster.
pub fn joining_is_profitable(tests: &Tests) -> bool {
    let both = tests.first_succeeds * tests.second_succeeds;
    let (conjunction, branch) = (1.0, 1.0);
    let after = tests.size + tests.selects + conjunction;
    let before = tests.first_succeeds * (tests.size + branch);
    let select = if tests.is_loop_carried {
        SELECT_CYCLES + tests.results * (1.0 - tests.first_succeeds)
    } else {
        0.0
    };
    let lost = (after - before) / ISSUE_WIDTH + select;
    let saved = (tests.rate - both.min(1.0 - both)) * MISPREDICTION_CYCLES;
    saved > 0.0 && saved - lost >= lost
}

/// Issue slots that each execution of a branch of typical arms saves as selects, at this misprediction rate: such arms
/// break even at the rate [`UNPREDICTABLE`].
pub fn typical_if_conversion_gain(rate: f64) -> f64 {
    (rate - UNPREDICTABLE) * MISPREDICTION_CYCLES * ISSUE_WIDTH
}

/// Issue slots that an average block of a program takes: five instructions at two per cycle.
pub const SLOTS_PER_BLOCK: f64 = 5.0 / 2.0 * ISSUE_WIDTH;

/// Minimum gain of a function's if-conversions, as a share of the program's time. Selects live longer than the branches'
/// values did; in a large function that it is inlined into, what register allocation then spills costs some thousandths
/// of the program.
const MIN_GAIN: f64 = 0.002;

/// Whether a function's unpredictable branches are worth converting. `slots`: the issue slots that all of them save;
/// `executions`: of all blocks of the program.
pub fn function_is_worth_converting(slots: f64, executions: f64) -> bool {
    slots >= MIN_GAIN * SLOTS_PER_BLOCK * executions
}

/// Iterations up to which a search whose direction is unpredictable has selects. Each iteration waits for a load that the
/// last one chose; after a branch, it begins before that, and half of the time in the right place. That is worth more than
/// the mispredictions where loads miss the caches. A search of n iterations is one of some 2^n elements: 16 thousand, at
/// 16 bytes 256 KiB, which most second-level caches hold, and other input may have more.
pub const MAX_SEARCH_ITERATIONS: u32 = 14;

/// Whether a select on a loop-carried chain is faster as a branch. Cycles from the start of an iteration: `condition`,
/// until the select's condition is known; `waiting`, until the next iteration can start; `predicted`, the same if the
/// select did not wait for its condition.
///
/// What else the next iteration depends on, beside the select or after it, is in both: in a generator of random numbers
/// most of the chain is, and the branch saves nothing. If a branch is mispredicted, the iteration also waits for the
/// condition and pays the misprediction. A recorded program that has a select there has no misprediction rate for it, so
/// a rate of one half is assumed.
pub fn branch_is_profitable(condition: f64, waiting: f64, predicted: f64) -> bool {
    const ASSUMED_RATE: f64 = 0.5;
    predicted + ASSUMED_RATE * (condition + MISPREDICTION_CYCLES) < waiting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_pays_for_a_call_on_the_chain_but_not_for_a_load() {
        let (load, compare, call, select) = (5.0, 1.0, 20.0, 1.0);
        // The next iteration begins with the select, whose operands are known after `values` cycles.
        let pays =
            |condition: f64, values: f64| branch_is_profitable(condition, condition.max(values) + select, values);
        assert!(!pays(load + compare, 0.0));
        assert!(!pays(2.0 * load + compare, 0.0));
        assert!(pays(3.0 * load + compare, 0.0));
        // A search tree whose keys a function compares.
        assert!(pays(load + call + compare, 1.0));
        assert!(!pays(load + call + compare, load + call));
        // A sum that takes as long as the condition, to which the select adds.
        let (sum, add) = (40.0, 1.0);
        assert!(!branch_is_profitable(
            sum + compare,
            sum + compare + select + add,
            sum + add
        ));
    }

    #[test]
    fn a_function_must_gain_a_share_of_the_program() {
        // A branch that one block in twenty ends with, half of whose executions are mispredicted, saves 7 % of the time.
        let slots = |share: f64| share * 1e6 * typical_if_conversion_gain(0.5);
        assert!(function_is_worth_converting(slots(0.05), 1e6));
        assert!(!function_is_worth_converting(slots(0.001), 1e6));
        assert!(!function_is_worth_converting(
            1e6 * typical_if_conversion_gain(UNPREDICTABLE),
            1e6
        ));
    }

    #[test]
    fn a_chain_of_selects_pays_only_where_most_of_it_is_mispredicted() {
        // A bit of a range coder: the tree's node selects the probability, which decides the bit and the next node.
        let bit = |rate, chain| Arms {
            executed: [4.0, 6.0],
            needed: [4.0, 6.0],
            selects: 4.0,
            shared: 1.0,
            probability: 0.5,
            rate: Some(rate),
            chain,
            results: [0.0; 2],
        };
        let (load, multiply, compare) = (5.0, 4.0, 1.0);
        let range_coder = Some(load + multiply + compare);
        assert!(if_conversion_is_profitable(&bit(0.3, None)));
        assert!(!if_conversion_is_profitable(&bit(0.5, range_coder)));
        // A merge: the smaller element decides which one is loaded next. Sorted input is predictable.
        let merge = |rate| Arms {
            executed: [1.0, 1.0],
            needed: [1.0, 1.0],
            ..bit(rate, Some(load + compare))
        };
        assert!(!if_conversion_is_profitable(&merge(0.5)));
        assert!(if_conversion_is_profitable(&merge(0.8)));
        // As before, but one side is loaded, and a branch loads it half of the time.
        let list = Arms {
            results: [load, 0.0],
            ..merge(0.8)
        };
        assert!(!if_conversion_is_profitable(&list));
    }

    #[test]
    fn a_misprediction_in_four_is_worth_seven_instructions() {
        let arms = |arms, selects, shared, probability| Arms {
            executed: arms,
            needed: arms,
            selects,
            shared,
            probability,
            rate: None,
            chain: None,
            results: [0.0; 2],
        };
        // `if (c) *p += x`: guarded loads and a guarded store.
        assert!(if_conversion_is_profitable(&arms([5.0, 0.0], 3.0, 0.0, 0.4)));
        assert!(if_conversion_is_profitable(&arms([10.0, 0.0], 3.0, 0.0, 0.5)));
        assert!(!if_conversion_is_profitable(&arms([10.0, 0.0], 3.0, 0.0, 0.4)));
        assert!(if_conversion_is_profitable(&arms([7.0, 7.0], 4.0, 3.0, 0.5)));
        assert!(!if_conversion_is_profitable(&arms([7.0, 7.0], 4.0, 0.0, 0.5)));
        let often = Arms {
            rate: Some(0.5),
            ..arms([20.0, 0.0], 4.0, 0.0, 0.5)
        };
        assert!(if_conversion_is_profitable(&often));
        assert!(!if_conversion_is_profitable(&Arms { rate: None, ..often }));
        // An inner branch skips half of the arm's code: the average counts.
        let inner = |needed| Arms {
            needed: [needed, 0.0],
            ..arms([9.0, 0.0], 3.0, 0.0, 0.5)
        };
        assert!(if_conversion_is_profitable(&inner(9.0)));
        assert!(!if_conversion_is_profitable(&inner(5.0)));
    }

    #[test]
    fn tests_are_joined_if_both_rarely_succeed() {
        let tests = Tests {
            size: 4.0,
            selects: 2.0,
            first_succeeds: 0.5,
            second_succeeds: 0.2,
            rate: 0.49,
            is_loop_carried: false,
            results: 0.0,
        };
        assert!(joining_is_profitable(&tests));
        // Whether both succeed is as uncertain as the first.
        assert!(!joining_is_profitable(&Tests {
            second_succeeds: 0.9,
            ..tests
        }));
        assert!(!joining_is_profitable(&Tests { rate: 0.2, ..tests }));
        assert!(!joining_is_profitable(&Tests { size: 40.0, ..tests }));
        // An automaton: where a state has no way on, another is tried, and the next input waits for both.
        let automaton = Tests {
            is_loop_carried: true,
            results: 11.0,
            ..tests
        };
        assert!(!joining_is_profitable(&automaton));
        let tree = Tests {
            results: 1.0,
            ..automaton
        };
        assert!(joining_is_profitable(&tree));
        // A rate that is not known.
        assert!(!joining_is_profitable(&Tests {
            rate: 0.0,
            second_succeeds: 0.0,
            size: 0.0,
            selects: 0.0,
            ..tests
        }));
    }

    #[test]
    fn what_is_lost_on_predictable_input_weighs_as_much_as_what_is_gained() {
        // The relaxation of a search in a graph: half of its edges, in any order, are not saturated.
        let relaxation = |rate| Arms {
            executed: [17.0, 0.0],
            needed: [6.0, 0.0],
            selects: 5.0,
            shared: 0.0,
            probability: 0.5,
            rate: Some(rate),
            chain: None,
            results: [0.0; 2],
        };
        assert!(!if_conversion_is_profitable(&relaxation(0.5)));
        assert!(if_conversion_is_profitable(&relaxation(0.75)));
    }
}
