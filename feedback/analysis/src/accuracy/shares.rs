//! Distributions over any kind of key, and what is between two of them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Shares of a whole, by key. They sum up to 1, or to less where part of the whole has no key.
#[derive(Clone, PartialEq, Debug)]
pub struct Shares<K> {
    shares: BTreeMap<K, f64>,
}

impl<K: Ord> Default for Shares<K> {
    fn default() -> Self {
        Self {
            shares: BTreeMap::new(),
        }
    }
}

impl<K: Ord> Shares<K> {
    /// Shares of weights in their sum and `rest`, which is weight without a key. Weights of one key are summed; those that
    /// are not above 0 are left out.
    pub fn new(weights: impl IntoIterator<Item = (K, f64)>, rest: f64) -> Self {
        let mut shares: BTreeMap<K, f64> = BTreeMap::new();
        for (key, weight) in weights.into_iter().filter(|(_, weight)| *weight > 0.0) {
            *shares.entry(key).or_default() += weight;
        }
        let total: f64 = shares.values().sum::<f64>() + rest.max(0.0);
        shares.values_mut().for_each(|share| *share /= total);
        Self { shares }
    }

    /// The share of a key; 0 where it has none.
    pub fn get(&self, key: &K) -> f64 {
        self.shares.get(key).copied().unwrap_or(0.0)
    }

    /// Keys and shares, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, f64)> {
        self.shares.iter().map(|(key, &share)| (key, share))
    }

    /// How many keys have a share.
    pub fn len(&self) -> usize {
        self.shares.len()
    }

    /// Whether nothing has a share.
    pub fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    /// The keys that have at least a share of `least`, by key.
    pub fn hot(&self, least: f64) -> Vec<&K> {
        let hot = self.iter().filter(|(_, share)| *share >= least);
        hot.map(|(key, _)| key).collect()
    }

    /// The `count` keys with the largest shares; of equals the smaller key comes first. Fewer where there are not so many.
    pub fn top(&self, count: usize) -> Vec<&K> {
        let mut all: Vec<(&K, f64)> = self.iter().collect();
        // Stable, and the map is in the order of keys.
        all.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal));
        all.into_iter().take(count).map(|(key, _)| key).collect()
    }

    /// Shares of classes of keys.
    pub fn grouped<C: Ord>(&self, class: impl Fn(&K) -> C) -> Shares<C> {
        let mut shares: BTreeMap<C, f64> = BTreeMap::new();
        for (key, share) in self.iter() {
            *shares.entry(class(key)).or_default() += share;
        }
        Shares { shares }
    }

    /// Σ min over all keys: 1 where two distributions are the same, 0 where they have nothing in common.
    pub fn overlap(&self, other: &Self) -> f64 {
        self.iter().map(|(key, share)| share.min(other.get(key))).sum()
    }
}

/// Wall accuracy: Σ F over keys both hot and estimated hot ÷ Σ F over hot keys. Hot are those with at least `least` of
/// `actual`, estimated hot as many of those that `estimated` has most of. `None` where nothing is hot.
pub fn wall<K: Ord>(actual: &Shares<K>, estimated: &Shares<K>, least: f64) -> Option<f64> {
    let hot: BTreeSet<&K> = actual.hot(least).into_iter().collect();
    let flow = |keys: &mut dyn Iterator<Item = &K>| keys.map(|key| actual.get(key)).sum::<f64>();
    let all = flow(&mut hot.iter().copied());
    let found = flow(&mut estimated.top(hot.len()).into_iter().filter(|key| hot.contains(key)));
    // Sums in another order may differ in their last digit.
    (all > 0.0).then(|| (found / all).min(1.0))
}

/// Calibration: the share of keys with at least `least` of `actual` whose share in `actual` lies in their interval. A key
/// without an interval counts as missed. `None` where nothing is hot.
pub fn calibration<K: Ord>(actual: &Shares<K>, intervals: &BTreeMap<K, (f64, f64)>, least: f64) -> Option<f64> {
    let hot = actual.hot(least);
    let inside = |key: &&K| {
        let share = actual.get(key);
        intervals
            .get(key)
            .is_some_and(|&(low, high)| low <= share && share <= high)
    };
    let held = hot.iter().filter(|key| inside(key)).count();
    (!hot.is_empty()).then(|| held as f64 / hot.len() as f64)
}
