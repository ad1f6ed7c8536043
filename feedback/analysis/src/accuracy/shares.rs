//! Distributions over any kind of key, and measures of their agreement.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Shares of a whole, by key. Their sum is 1, or less if a part of the whole has no key.
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
    /// The shares of weights in their sum and `rest`, the weight without a key. Weights of one key are summed; weights
    /// that are not positive are omitted.
    pub fn new(weights: impl IntoIterator<Item = (K, f64)>, rest: f64) -> Self {
        let mut shares: BTreeMap<K, f64> = BTreeMap::new();
        for (key, weight) in weights.into_iter().filter(|(_, weight)| *weight > 0.0) {
            *shares.entry(key).or_default() += weight;
        }
        let total: f64 = shares.values().sum::<f64>() + rest.max(0.0);
        shares.values_mut().for_each(|share| *share /= total);
        Self { shares }
    }

    /// The share of a key; 0 if it has none.
    pub fn get(&self, key: &K) -> f64 {
        self.shares.get(key).copied().unwrap_or(0.0)
    }

    /// Keys and shares, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, f64)> {
        self.shares.iter().map(|(key, &share)| (key, share))
    }

    /// The number of keys with a share.
    pub fn len(&self) -> usize {
        self.shares.len()
    }

    /// Whether no key has a share.
    pub fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    /// The keys with a share of at least `least`, sorted.
    pub fn hot(&self, least: f64) -> Vec<&K> {
        let hot = self.iter().filter(|(_, share)| *share >= least);
        hot.map(|(key, _)| key).collect()
    }

    /// The `count` keys with the largest shares, or all if there are fewer. Among equal shares the smaller key comes
    /// first.
    pub fn top(&self, count: usize) -> Vec<&K> {
        let mut all: Vec<(&K, f64)> = self.iter().collect();
        // The sort is stable, and the map is sorted by key.
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

    /// Σ min over all keys: 1 for equal distributions, 0 for disjoint ones.
    pub fn overlap(&self, other: &Self) -> f64 {
        self.iter().map(|(key, share)| share.min(other.get(key))).sum()
    }
}

/// Wall accuracy: Σ F over keys both hot and estimated hot ÷ Σ F over hot keys. A key is hot with a share of at least
/// `least` in `actual`; the same number of keys with the largest shares in `estimated` are estimated hot. `None` if no
/// key is hot.
pub fn wall<K: Ord>(actual: &Shares<K>, estimated: &Shares<K>, least: f64) -> Option<f64> {
    let hot: BTreeSet<&K> = actual.hot(least).into_iter().collect();
    let flow = |keys: &mut dyn Iterator<Item = &K>| keys.map(|key| actual.get(key)).sum::<f64>();
    let all = flow(&mut hot.iter().copied());
    let found = flow(&mut estimated.top(hot.len()).into_iter().filter(|key| hot.contains(key)));
    // Sums in another order may differ in their last digit.
    (all > 0.0).then(|| (found / all).min(1.0))
}

/// Calibration: the share of the keys with at least `least` of `actual` whose share in `actual` lies in their interval.
/// A key without an interval counts as missed. `None` if no key is hot.
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
