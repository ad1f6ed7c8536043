//! Whether a processor predicts where a switch goes.
//!
//! A switch becomes a jump through a table, or comparisons. The weights of its successors do not tell whether that jump
//! is predicted: cases in turn are easy. So the model predicts the successor of each execution, as if by one jump.

use super::hash;
use super::selects::BranchKey;
use super::tage::{BranchHistory, Tage, Target};
use rustc_hash::FxHashMap;

/// Predictions of switches, by inline instance and block.
#[derive(Default)]
pub(super) struct SwitchPredictions {
    switches: FxHashMap<BranchKey, Switch>,
}

/// The executions of one switch.
#[derive(Default)]
pub(super) struct Switch {
    /// Weighted executions: mispredicted, predicted.
    pub weights: [f64; 2],
    /// Bursts that showed it.
    pub bursts: u64,
    last: Option<usize>,
}

impl SwitchPredictions {
    /// An execution in a burst, after `end` branches of a history, that went to a successor.
    pub fn add(
        &mut self,
        switch: BranchKey,
        (burst, weight): (usize, f64),
        successor: u32,
        tage: &mut Tage<Target>,
        (history, end): (&BranchHistory, usize),
    ) {
        let predicted = tage.predicts(hash(&switch), history, end, successor);
        let switch = self.switches.entry(switch).or_default();
        switch.weights[usize::from(predicted)] += weight;
        switch.bursts += u64::from(switch.last.replace(burst) != Some(burst));
    }

    pub fn into_switches(self) -> impl Iterator<Item = (BranchKey, Switch)> {
        self.switches.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::id::BlockIndex;
    use pleach_annotate::map::InlineInstanceIndex;
    use pleach_collector::stream::mix;
    use pleach_collector::vector::ModuleId;

    #[test]
    fn instances_have_predictions_of_their_own_and_bursts_are_counted_once() {
        let key = |instance| (ModuleId(0), InlineInstanceIndex(instance), BlockIndex(4));
        let (mut tage, mut predictions) = (Tage::new(), SwitchPredictions::default());
        let mut history = BranchHistory::default();
        for execution in 0..4000u64 {
            history.read([1, 2, 3].into_iter());
            let at = (execution as usize / 2, 0.5);
            predictions.add(key(0), at, 5, &mut tage, (&history, 3));
            predictions.add(key(1), at, (mix(execution) >> 62) as u32, &mut tage, (&history, 3));
        }
        let mut found: Vec<_> = predictions.into_switches().collect();
        found.sort_by_key(|((_, instance, _), _)| instance.0);
        let [(_, steady), (_, by_chance)] = &found[..] else {
            panic!("two instances");
        };
        assert_eq!((steady.bursts, by_chance.bursts), (2000, 2000));
        assert_eq!(steady.weights.iter().sum::<f64>(), 2000.0);
        assert!(steady.weights[0] < 10.0 && by_chance.weights[0] > 1200.0);
    }
}
