//! Which cases of a switch are compared with before its jump through a table.
//!
//! LLVM makes a jump through a table of four cases and more. A processor predicts where it goes by the history of
//! branches; where that does not tell, it predicts the latest target, which is right with probability Σp². Comparisons
//! that end at the most frequent case are predicted with probability max p, and a predicted one takes less time than
//! the jump. With more cases, comparisons take longer than they save. So all orders of comparisons with the most frequent
//! cases are considered.

use crate::latencies::{ADDED_MISPREDICTION, COMPARISON};
use crate::support::wilson_interval;
use pleach_profile::ValueCounts;

/// Adjacent cases of a switch with the same destination.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CaseRange {
    /// The first value and the last one.
    pub values: (i64, i64),
    /// The block that they go to.
    pub destination: u32,
    /// Executions of the switch that go there by these values.
    pub weight: f64,
}

/// A switch.
#[derive(Clone, PartialEq, Debug)]
pub struct Switch {
    /// All cases that do not go to the default destination, by their values.
    pub ranges: Vec<CaseRange>,
    /// The default destination and the executions that go there; none if no other value is possible.
    pub default: Option<(u32, f64)>,
    /// The interval of the share of executions of which a predictor does not tell the destination. `None` if the
    /// optimiser made the switch of comparisons, or joined it with some: nothing is known.
    pub mispredicted: Option<(f64, f64)>,
}

/// Comparisons that are worth making before what is left of a switch.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparisons {
    /// Positions in [`Switch::ranges`], in order of execution.
    pub ranges: Vec<usize>,
    /// Cycles that they save, on average, in an execution of the switch, at the less favourable end of the interval.
    pub saved: f64,
}

/// LLVM's minimum of ranges for a table.
pub const MIN_RANGES_OF_TABLE: usize = 4;
/// LLVM's minimum of a table's entries that have a case of their own, in percent.
const MIN_DENSITY: u64 = 10;
/// A range with a greater share is compared with first by LLVM itself.
const PEELED_SHARE: f64 = 0.66;
/// LLVM tests bits of a word in place of a table for at most so many destinations with at least so many comparisons.
const BIT_TESTS: [(usize, usize); 3] = [(1, 3), (2, 5), (3, 6)];
/// Values of a switch by bits.
const WORD_BITS: u64 = 64;
/// Cycles of a predicted jump through a table: its bounds check, the load of its target, and the jump, which is taken.
/// A loop of four cases that is predicted takes a cycle more with the jump than with 2¼ comparisons on average (measured
/// on Sapphire Rapids).
const TABLE: f64 = 3.5;
/// Minimum of saved cycles: less is within what the costs above are known to.
const MIN_SAVED: f64 = 0.5;
/// Minimum share of executions of a range that is compared with.
const MIN_SHARE: f64 = 0.002;
/// Maximum of ranges that are compared with: the jump then takes as long as all of them.
const MAX_COMPARED: usize = 6;

/// The comparisons that pay, if any do.
pub fn comparisons_before_table(switch: &Switch) -> Option<Comparisons> {
    let all: Vec<usize> = (0..switch.ranges.len()).collect();
    let (low, high) = (
        Costs::new(switch, |(low, _)| low)?,
        Costs::new(switch, |(_, high)| high)?,
    );
    if !low.is_table(&all) {
        return None;
    }
    let mut compared: Vec<usize> = all.clone();
    compared.sort_by(|&a, &b| low.share(b).total_cmp(&low.share(a)));
    compared.truncate(MAX_COMPARED);
    compared.retain(|&range| low.share(range) > MIN_SHARE);
    let ranges = Orders::new(&low, &all, &compared).best();
    let saved = |costs: &Costs<'_>| costs.remainder(&all) - costs.in_order(&ranges, &all);
    // Comparisons of the source may well be predicted; then they may lose no more than the costs are known to.
    if switch.mispredicted.is_none() && saved(&low.predicted()) < -MIN_SAVED {
        return None;
    }
    let saved = saved(&low).min(saved(&high));
    (saved >= MIN_SAVED && !ranges.is_empty()).then_some(Comparisons { ranges, saved })
}

/// The interval of the share of a switch's executions that is mispredicted: bursts are what is independent. Of what was
/// not observed, nothing is known.
pub fn mispredicted(prediction: Option<&ValueCounts>) -> (f64, f64) {
    let Some(prediction) = prediction.filter(|prediction| prediction.total() > 0) else {
        return (0.0, 1.0);
    };
    let share = prediction.count_of(0) as f64 / prediction.total() as f64;
    wilson_interval(share, prediction.bursts as f64)
}

/// The average cycles from a switch to the destination.
struct Costs<'s> {
    switch: &'s Switch,
    executions: f64,
    /// Cycles that an outcome costs which nothing tells in advance.
    misprediction: f64,
}

impl<'s> Costs<'s> {
    /// At one end of the interval of mispredictions. `None` if the switch is never executed.
    fn new(switch: &'s Switch, end: impl Fn((f64, f64)) -> f64) -> Option<Self> {
        let weights = switch.ranges.iter().map(|range| range.weight);
        let executions = weights.sum::<f64>() + switch.default.map_or(0.0, |(_, weight)| weight);
        let mut costs = Self {
            switch,
            executions,
            misprediction: ADDED_MISPREDICTION,
        };
        let all: Vec<usize> = (0..switch.ranges.len()).collect();
        // Without help from history, the model that was observed predicts the most frequent destination.
        let by_chance = 1.0 - costs.most_frequent(&all);
        if let Some(mispredicted) = switch.mispredicted
            && by_chance > 0.0
        {
            costs.misprediction *= (end(mispredicted) / by_chance).min(1.0);
        }
        (executions > 0.0).then_some(costs)
    }

    /// The same if history told every outcome.
    fn predicted(&self) -> Self {
        Self {
            misprediction: 0.0,
            ..*self
        }
    }

    fn share(&self, range: usize) -> f64 {
        self.switch.ranges[range].weight / self.executions
    }

    /// The share of executions that reach what is left of the switch.
    fn reach(&self, left: &[usize]) -> f64 {
        let default = self.switch.default.map_or(0.0, |(_, weight)| weight);
        left.iter().map(|&range| self.share(range)).sum::<f64>() + default / self.executions
    }

    /// The shares of the destinations among the executions that reach what is left.
    fn destinations(&self, left: &[usize]) -> Vec<f64> {
        let reach = self.reach(left);
        if reach <= 0.0 {
            return vec![1.0];
        }
        let default = self.switch.default.map(|(to, weight)| (to, weight / self.executions));
        let ranges = left
            .iter()
            .map(|&range| (self.switch.ranges[range].destination, self.share(range)));
        let mut shares: Vec<(u32, f64)> = ranges.chain(default).collect();
        shares.sort_by_key(|&(destination, _)| destination);
        let of_one = |of: &[(u32, f64)]| of.iter().map(|(_, share)| share).sum::<f64>() / reach;
        shares.chunk_by(|a, b| a.0 == b.0).map(of_one).collect()
    }

    /// The share of the most frequent destination.
    fn most_frequent(&self, left: &[usize]) -> f64 {
        self.destinations(left).into_iter().fold(0.0, f64::max)
    }

    /// The probability that two independent executions of what is left go to the same destination.
    fn repeated(&self, left: &[usize]) -> f64 {
        self.destinations(left).into_iter().map(|share| share * share).sum()
    }

    /// A comparison with a range that holds for this share of the executions that reach it.
    fn comparison(&self, range: usize, share: f64) -> f64 {
        let (first, last) = self.switch.ranges[range].values;
        let comparisons = if first == last { 1.0 } else { 2.0 };
        comparisons * COMPARISON + self.misprediction * share.min(1.0 - share)
    }

    /// Whether LLVM makes a table of what is left.
    fn is_table(&self, left: &[usize]) -> bool {
        let ranges = || left.iter().map(|&range| self.switch.ranges[range]);
        let (Some(first), Some(last)) = (ranges().map(|r| r.values.0).min(), ranges().map(|r| r.values.1).max()) else {
            return false;
        };
        let entries = first.abs_diff(last).saturating_add(1);
        let cases = ranges().map(|range| range.values.0.abs_diff(range.values.1).saturating_add(1));
        let cases = cases.fold(0, u64::saturating_add);
        left.len() >= MIN_RANGES_OF_TABLE
            && cases.saturating_mul(100) >= entries.saturating_mul(MIN_DENSITY)
            && !self.is_bit_tests(left, entries)
    }

    fn is_bit_tests(&self, left: &[usize], entries: u64) -> bool {
        let ranges = || left.iter().map(|&range| self.switch.ranges[range]);
        let mut destinations: Vec<u32> = ranges().map(|range| range.destination).collect();
        destinations.sort_unstable();
        destinations.dedup();
        let comparisons = ranges().map(|range| if range.values.0 == range.values.1 { 1 } else { 2 });
        let comparisons: usize = comparisons.sum();
        entries <= WORD_BITS
            && BIT_TESTS
                .iter()
                .any(|&(of, least)| destinations.len() == of && comparisons >= least)
    }

    /// What LLVM makes of what is left of the switch.
    fn remainder(&self, left: &[usize]) -> f64 {
        let Some(&first) = left.iter().max_by(|&&a, &&b| self.share(a).total_cmp(&self.share(b))) else {
            return 0.0;
        };
        let share = self.share_of_left(first, left);
        // The last possible case is not compared with.
        if left.len() == 1 && self.switch.default.is_none() {
            return 0.0;
        }
        let peels = left.len() < MIN_RANGES_OF_TABLE || share > PEELED_SHARE;
        if peels {
            let rest: Vec<usize> = left.iter().copied().filter(|&range| range != first).collect();
            return self.comparison(first, share) + (1.0 - share) * self.remainder(&rest);
        }
        TABLE + self.misprediction * (1.0 - self.repeated(left))
    }

    /// Comparisons with these ranges, and what is left then.
    fn in_order(&self, ranges: &[usize], all: &[usize]) -> f64 {
        let (mut left, mut cost, mut reached) = (all.to_vec(), 0.0, 1.0);
        for &range in ranges {
            let share = self.share_of_left(range, &left);
            cost += reached * self.comparison(range, share);
            reached *= 1.0 - share;
            left.retain(|&other| other != range);
        }
        cost + reached * self.remainder(&left)
    }

    /// The share of a range among the executions that reach what is left.
    fn share_of_left(&self, range: usize, left: &[usize]) -> f64 {
        let reach = self.reach(left);
        if reach > 0.0 { self.share(range) / reach } else { 0.0 }
    }
}

/// The best comparisons before each subset of the ranges.
struct Orders<'c> {
    compared: &'c [usize],
    /// By subset, as bits of positions in `compared`: the cost, and the position compared with first.
    best: Vec<(f64, Option<usize>)>,
}

impl<'c> Orders<'c> {
    fn new(costs: &Costs<'_>, all: &[usize], compared: &'c [usize]) -> Self {
        let mut best: Vec<(f64, Option<usize>)> = Vec::with_capacity(1 << compared.len());
        for subset in 0..1usize << compared.len() {
            let is_left = |range: &usize| {
                let position = compared.iter().position(|other| other == range);
                position.is_none_or(|position| subset >> position & 1 == 1)
            };
            let left: Vec<usize> = all.iter().copied().filter(is_left).collect();
            let mut cheapest = (costs.remainder(&left), None);
            for (position, &range) in compared.iter().enumerate() {
                if subset >> position & 1 == 0 {
                    continue;
                }
                let share = costs.share_of_left(range, &left);
                let (otherwise, _) = best[subset & !(1 << position)];
                let cost = costs.comparison(range, share) + (1.0 - share) * otherwise;
                // Rounding must not decide between what LLVM does anyway and the same by comparisons.
                if cost < cheapest.0 - 1e-9 {
                    cheapest = (cost, Some(position));
                }
            }
            best.push(cheapest);
        }
        Self { compared, best }
    }

    /// The ranges of the whole switch to compare with.
    fn best(&self) -> Vec<usize> {
        let mut subset = self.best.len() - 1;
        let mut ranges = Vec::new();
        while let (_, Some(position)) = self.best[subset] {
            ranges.push(self.compared[position]);
            subset &= !(1 << position);
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::id::BlockIndex;
    use pleach_profile::ValueSite;
    use proptest::prelude::*;

    /// A switch of single cases, each with a destination of its own.
    fn switch(values: &[i64], weights: &[f64], default: Option<f64>, mispredicted: Option<(f64, f64)>) -> Switch {
        let ranges = values.iter().zip(weights).enumerate();
        Switch {
            ranges: ranges
                .map(|(position, (&value, &weight))| CaseRange {
                    values: (value, value),
                    destination: position as u32,
                    weight,
                })
                .collect(),
            default: default.map(|weight| (u32::MAX, weight)),
            mispredicted,
        }
    }

    fn order(switch: &Switch) -> Option<Vec<usize>> {
        comparisons_before_table(switch).map(|comparisons| comparisons.ranges)
    }

    /// A scanner's switch on characters, most of which are others.
    const CHARACTERS: [i64; 4] = [37, 42, 47, 45];

    #[test]
    fn a_frequent_default_is_reached_by_comparisons() {
        let scanner = switch(&CHARACTERS, &[5.0, 9.0, 10.0, 0.0], Some(76.0), None);
        let comparisons = comparisons_before_table(&scanner).expect("comparisons");
        // What is left has three cases, which LLVM compares with.
        assert_eq!(comparisons.ranges, [2]);
        assert!((2.0..4.0).contains(&comparisons.saved), "{comparisons:?}");
    }

    /// A scanner's comparisons with five characters take longer than a table where they are predicted: measured on
    /// periodic text, .2 ns of .55.
    #[test]
    fn comparisons_of_the_source_may_be_predicted() {
        let characters = [33, 37, 42, 45, 47];
        let scanner = |weights: &[f64]| order(&switch(&characters, weights, Some(80.0), None));
        assert_eq!(scanner(&[4.0; 5]), None);
    }

    #[test]
    fn what_is_predicted_stays_a_table() {
        let values = [0, 1, 2, 3, 4, 5, 6];
        let predicted = switch(&values, &[10.0; 7], None, Some((0.006, 0.01)));
        assert_eq!(order(&predicted), None);
        // Comparisons take less time than a table where they are few, even if both are predicted.
        let weights = [43.0, 23.0, 21.0, 8.0, 5.0];
        let few = |low, high| order(&switch(&values[..5], &weights, None, Some((low, high))));
        assert_eq!(few(0.006, 0.01), Some(vec![0, 1]));
        // Where nothing tells the next case, the most frequent one is the last one.
        assert_eq!(few(0.57, 0.6), Some(vec![1, 2, 3]));
        // Neither order pays at both ends.
        assert_eq!(few(0.0, 1.0), None);
    }

    #[test]
    fn many_equal_cases_stay_a_table() {
        let values: Vec<i64> = (0..20).collect();
        assert_eq!(order(&switch(&values, &[5.0; 20], Some(0.0), None)), None);
    }

    #[test]
    fn what_llvm_does_otherwise_is_left_alone() {
        // Comparisons: three cases; too sparse for a table.
        assert_eq!(order(&switch(&[1, 2, 3], &[30.0, 9.0, 8.0], Some(53.0), None)), None);
        let sparse = switch(&[1, 1000, 2000, 3000], &[10.0, 9.0, 8.0, 7.0], Some(66.0), None);
        assert_eq!(order(&sparse), None);
        // Bit tests: two destinations.
        let mut bits = switch(&[1, 3, 5, 7, 9], &[10.0, 9.0, 8.0, 7.0, 6.0], Some(60.0), None);
        for (position, range) in bits.ranges.iter_mut().enumerate() {
            range.destination = position as u32 % 2;
        }
        assert_eq!(order(&bits), None);
        // A case that LLVM compares with before the table.
        let peeled = switch(&[1, 2, 3, 4], &[69.0, 5.0, 4.0, 1.0], Some(21.0), None);
        assert_eq!(order(&peeled), None);
        assert_eq!(order(&switch(&[1, 2, 3, 4], &[0.0; 4], Some(0.0), None)), None);
    }

    #[test]
    fn of_what_was_not_observed_nothing_is_known() {
        let prediction = |bursts, predicted, mispredicted| ValueCounts {
            site: ValueSite::SwitchPrediction(BlockIndex(0)),
            bursts,
            values: vec![(1, predicted), (0, mispredicted)],
            others: 0,
        };
        assert_eq!(mispredicted(None), (0.0, 1.0));
        assert_eq!(mispredicted(Some(&prediction(0, 0, 0))), (0.0, 1.0));
        let (low, high) = mispredicted(Some(&prediction(2, 50, 50)));
        assert!(low < 0.2 && high > 0.8);
        let (low, high) = mispredicted(Some(&prediction(400, 50, 50)));
        assert!(low > 0.45 && high < 0.55);
    }

    proptest! {
        #[test]
        fn comparisons_are_different_ranges_and_save_time(
            cases in prop::collection::btree_map(-40i64..40, (0u32..6, 0f64..100.0), 0..12),
            default in prop::option::of(0f64..100.0),
            mispredicted in prop::option::of((0f64..1.0, 0f64..1.0)),
        ) {
            let ranges = cases.iter().map(|(&value, &(destination, weight))| CaseRange {
                values: (value, value), destination, weight,
            });
            let default = default.map(|weight| (9, weight));
            let mispredicted = mispredicted.map(|(a, b): (f64, f64)| (a.min(b), a.max(b)));
            let switch = Switch { ranges: ranges.collect(), default, mispredicted };
            if let Some(Comparisons { mut ranges, saved }) = comparisons_before_table(&switch) {
                prop_assert!(saved >= MIN_SAVED);
                prop_assert!(ranges.iter().all(|&range| range < switch.ranges.len()));
                prop_assert!(!ranges.is_empty() && ranges.len() <= MAX_COMPARED);
                let all = ranges.len();
                ranges.sort_unstable();
                ranges.dedup();
                prop_assert_eq!(ranges.len(), all);
            }
        }
    }
}
