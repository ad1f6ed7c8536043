//! How often branches are mispredicted.
//!
//! Weights tell which way a branch goes more often, not whether a processor foresees it: one that alternates is easy, one that depends
//! on data is not, at the same weights. What comes out of the history of taken branches, vectors tell: a model of a processor's predictor ([`tage`])
//! goes through all bursts, and each branch of the graph that it gets wrong counts as mispredicted. Where branch records of the
//! processor say what it foresaw itself, that counts instead.
//!
//! The model has seen less than a processor has when it gets to a branch, so that it errs on the side of mispredictions; bursts, not branches,
//! are taken to be independent: [`BranchPrediction::low`] is what remains certain.

mod decision;
mod tage;

use crate::decode::{Decoder, Event};
use crate::observe::Follower;
use crate::profile::BranchPrediction;
use crate::program::Program;
use crate::time_bias::Weights;
use decision::{Decision, Decisions};
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_annotate::map::NodeIndex;
use pleach_collector::vector::{Branch, Burst, ModuleId, Prediction, VectorSet};
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use tage::{History, Tage};

/// Predictions of each function's branches, in block order, in sampled executions.
pub type Predictions = BTreeMap<(FunctionId, CfgHash), Vec<BranchPrediction>>;

/// Predicts all branches of a recording; `weights` say how much each of its branches counts.
pub fn predict(program: &Program, vectors: &VectorSet, weights: &Weights) -> Predictions {
    let mut walk = Walk {
        program,
        followers: program.annotated().map(|(id, map)| (id, Follower::new(map))).collect(),
        decisions: Decisions::new(program),
        tage: Tage::new(),
        latest: None,
        tallies: FxHashMap::default(),
    };
    let mut decoder = Decoder::new(program);
    for (number, burst) in vectors.bursts.iter().enumerate() {
        let chain = Chain::new(burst.branches.clone(), Some(burst));
        decoder.burst(burst, &mut |position, event| {
            let weight = burst.count as f64 * weights.get(number, position);
            walk.event(&chain, number, position, event, weight);
        });
    }
    let windows = vectors.compressed.iter().flat_map(|compressed| &compressed.windows);
    for (number, window) in (vectors.bursts.len()..).zip(windows) {
        // Positions are counted from the lead, or what there is in its place.
        let Some(lead) = window.lead.or(window.branches.first().copied()) else {
            continue;
        };
        let branches = [lead].into_iter().chain(window.branches.iter().copied());
        let chain = Chain::new(branches.collect(), None);
        decoder.window(window, &mut |position, event, weight| {
            walk.event(&chain, number, position, event, weight as f64);
        });
    }
    walk.finish()
}

/// Branches that followed one another.
struct Chain<'b> {
    branches: Vec<Branch>,
    history: History,
    burst: Option<&'b Burst>,
}

impl<'b> Chain<'b> {
    fn new(branches: Vec<Branch>, burst: Option<&'b Burst>) -> Self {
        let history = History::of(branches.iter().map(hash));
        Self {
            branches,
            history,
            burst,
        }
    }

    /// What the processor said about a branch.
    fn told(&self, position: usize) -> Option<bool> {
        let facts = &self.burst?.hardware.as_ref()?.facts;
        match facts.get(position)?.prediction {
            Prediction::Unknown => None,
            Prediction::Predicted => Some(true),
            Prediction::Mispredicted => Some(false),
        }
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Sums over bursts, and over products of what bursts have, from which follows how much they vary.
#[derive(Clone, Copy, Default)]
struct Tally {
    watched: f64,
    mispredicted: f64,
    watched_squared: f64,
    mispredicted_squared: f64,
    product: f64,
    bursts: u32,
    /// What the latest burst has, which is not in the squares yet.
    burst: usize,
    of_burst: (f64, f64),
}

impl Tally {
    fn add(&mut self, burst: usize, weight: f64, predicted: bool) {
        if self.burst != burst {
            self.close();
            self.burst = burst;
        }
        let wrong = if predicted { 0.0 } else { weight };
        self.of_burst.0 += weight;
        self.of_burst.1 += wrong;
        self.watched += weight;
        self.mispredicted += wrong;
    }

    fn close(&mut self) {
        let (watched, mispredicted) = std::mem::take(&mut self.of_burst);
        self.watched_squared += watched * watched;
        self.mispredicted_squared += mispredicted * mispredicted;
        self.product += watched * mispredicted;
        self.bursts += u32::from(watched > 0.0);
    }

    /// The lower end of the 90 % interval of what is mispredicted: a ratio's, over bursts (Cochran, *Sampling Techniques*, 6.4).
    fn low(&self) -> f64 {
        if self.bursts < 2 {
            return 0.0;
        }
        let ratio = self.mispredicted / self.watched;
        let residuals = self.mispredicted_squared - 2.0 * ratio * self.product + ratio * ratio * self.watched_squared;
        let bursts = f64::from(self.bursts);
        let deviation = (residuals.max(0.0) * bursts / (bursts - 1.0)).sqrt();
        // Few bursts may agree by chance: one more is imagined that is wholly of one kind, as for paths.
        let imagined = self.watched * (ratio * (1.0 - ratio)).sqrt() / bursts;
        (self.mispredicted - 1.645 * deviation.hypot(imagined)).max(0.0)
    }
}

/// The lower end of the 90 % interval of a share of so many independent observations (Wilson 1927).
pub fn wilson_low(share: f64, observations: f64) -> f64 {
    const Z: f64 = 1.645;
    let (n, z2) = (observations, Z * Z);
    let spread = Z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    ((share + z2 / (2.0 * n) - spread) / (1.0 + z2 / n)).max(0.0)
}

struct Walk<'p> {
    program: &'p Program,
    followers: FxHashMap<ModuleId, Follower<'p>>,
    decisions: Decisions<'p>,
    tage: Tage,
    /// The latest decision, the burst that it was made in, and whether it was predicted.
    latest: Option<(usize, Decision, bool)>,
    tallies: FxHashMap<(ModuleId, NodeIndex, BlockIndex), Tally>,
}

impl Walk<'_> {
    fn event(&mut self, chain: &Chain<'_>, burst: usize, position: usize, event: Event, weight: f64) {
        let Event::Block {
            module,
            frame,
            node,
            block,
            address,
        } = event
        else {
            return;
        };
        let Some(follower) = self.followers.get_mut(&module) else {
            return;
        };
        let Some(from) = follower.pass(frame, node, block).map(|taken| taken.from) else {
            return;
        };
        if !follower.is_conditional(node, from) {
            return;
        }
        let Some(decision) = self.decisions.before(&chain.branches, position, address) else {
            return;
        };
        let predicted = self.predict(chain, burst, decision);
        let tally = self.tallies.entry((module, node, from)).or_default();
        tally.add(burst, weight, predicted);
    }

    /// Whether a decision is predicted. Several blocks may lie behind one: it is made once.
    fn predict(&mut self, chain: &Chain<'_>, burst: usize, decision: Decision) -> bool {
        if let Some((of, latest, predicted)) = self.latest
            && (of, latest) == (burst, decision)
        {
            return predicted;
        }
        let Decision { jump, taken, before } = decision;
        let predicted = self.tage.predicts(hash(&jump), &chain.history, before, taken);
        let told = taken.then(|| chain.told(before)).flatten();
        let predicted = told.unwrap_or(predicted);
        self.latest = Some((burst, decision, predicted));
        predicted
    }

    fn finish(self) -> Predictions {
        let mut sums: BTreeMap<_, BTreeMap<BlockIndex, BranchPrediction>> = BTreeMap::new();
        for ((module, node, block), mut tally) in self.tallies {
            let Some(map) = self.program.map(module) else { continue };
            let function = map.function_of(node);
            tally.close();
            let sum = sums.entry((function.cfg.id, function.hash)).or_default();
            let sum = sum.entry(block).or_insert(BranchPrediction::none(block));
            sum.add(&BranchPrediction {
                block,
                watched: tally.watched,
                mispredicted: tally.mispredicted,
                low: tally.low(),
            });
        }
        let in_order = |sums: BTreeMap<BlockIndex, BranchPrediction>| sums.into_values().collect();
        sums.into_iter().map(|(key, sums)| (key, in_order(sums))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts, each with how often a branch was predicted and how often it was not.
    fn tally(bursts: &[[u32; 2]]) -> Tally {
        let mut tally = Tally::default();
        for (burst, &[right, wrong]) in bursts.iter().enumerate() {
            (0..right).for_each(|_| tally.add(burst, 2.0, true));
            (0..wrong).for_each(|_| tally.add(burst, 2.0, false));
        }
        tally.close();
        tally
    }

    #[test]
    fn what_all_bursts_say_is_certain() {
        let same = tally(&[[60, 40]; 10]);
        assert_eq!((same.watched, same.mispredicted), (2000.0, 800.0));
        // Ten that agree say less than a thousand.
        assert!((same.low() - (0.4 - 1.645 * 0.24_f64.sqrt() / 10.0) * 2000.0).abs() < 1e-3);
        let many = tally(&[[60, 40]; 1000]);
        assert!(many.low() > 0.93 * many.mispredicted && many.low() < many.mispredicted);
    }

    #[test]
    fn what_one_burst_says_is_not() {
        assert_eq!(tally(&[[60, 40]]).low(), 0.0);
        assert_eq!(tally(&[[0, 0], [60, 40]]).low(), 0.0);
        // As often, on average, but by chance none at all.
        assert_eq!(tally(&[[20, 80], [100, 0]]).low(), 0.0);
        let varied = tally(&[[50, 50], [70, 30]].repeat(20));
        assert!(varied.low() > 0.9 * varied.mispredicted && varied.low() < varied.mispredicted);
    }
}
