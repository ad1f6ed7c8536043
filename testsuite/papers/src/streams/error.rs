//! The paper's measures (§5.3.1).

use pleach_collector::stream::Tuple;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

/// Which tuples count: those that an optimiser would use (§5.3.1).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Selection {
    /// Least executions of a `pc`.
    pub executions: u64,
    /// Least share of a tuple among its `pc`'s.
    pub invariance: f64,
    /// Least share of such tuples together.
    pub covered: f64,
}

impl Default for Selection {
    /// The paper's: 1000 executions, 10 %, 40 %.
    fn default() -> Self {
        Self {
            executions: 1000,
            invariance: 0.1,
            covered: 0.4,
        }
    }
}

fn by_pc<E: Tuple, S: BuildHasher>(profile: &HashMap<E, u64, S>) -> HashMap<u64, u64> {
    let mut sums = HashMap::new();
    for (event, count) in profile {
        *sums.entry(event.words().0).or_default() += count;
    }
    sums
}

/// Frequency-weighted mean of |I_i − I_p| over the selected tuples of the true profile, where I is a tuple's share
/// among its `pc`'s. `None` where nothing is selected.
pub fn invariance_error<E: Tuple + Copy + Eq + Hash, S: BuildHasher>(
    truth: &HashMap<E, u64, S>,
    estimate: &HashMap<E, u64, S>,
    selection: &Selection,
) -> Option<f64> {
    let (true_sums, estimated_sums) = (by_pc(truth), by_pc(estimate));
    let share = |count: u64, sum: u64| if sum == 0 { 0.0 } else { count as f64 / sum as f64 };
    let sum_of = |event: &E| true_sums.get(&event.words().0).copied().unwrap_or_default();
    let invariant: HashMap<E, u64> = truth
        .iter()
        .filter(|(event, count)| {
            let sum = sum_of(event);
            sum >= selection.executions && share(**count, sum) >= selection.invariance
        })
        .map(|(event, count)| (*event, *count))
        .collect();
    let covered = by_pc(&invariant);
    let (mut error, mut frequency) = (0.0, 0.0);
    for (event, count) in &invariant {
        let (pc, sum) = (event.words().0, sum_of(event));
        if share(covered[&pc], sum) < selection.covered {
            continue;
        }
        let estimated = estimate.get(event).copied().unwrap_or_default();
        let estimated = share(estimated, estimated_sums.get(&pc).copied().unwrap_or_default());
        error += *count as f64 * (share(*count, sum) - estimated).abs();
        frequency += *count as f64;
    }
    (frequency > 0.0).then(|| error / frequency)
}
