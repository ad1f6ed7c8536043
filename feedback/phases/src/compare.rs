//! Two samples of bursts → the share of time that differs, and how likely chance is to explain that.
//!
//! Each sample has two halves. On one half, the traces that are more frequent in the later sample are found (Scheffé's
//! set: of all sets of traces, the one whose shares differ most). On the other half, the share of time in these traces
//! is one number for each burst, and [`bound`](crate::bound) compares the two means. So no burst tests what it
//! suggested, and the difference is an unbiased estimate that is at most the total-variation distance of the two
//! phases: the share of time that is spent otherwise. The halves then change places. A burst is one observation,
//! however many branches it has: the branches of a burst depend on one another.
//!
//! The same is done with each behaviour: whether a burst is slower, or mispredicts more, than most bursts of the
//! suggesting half.

use crate::batch::Batch;
use crate::bound::log_probability;
use crate::signature::Signature;
use rustc_hash::{FxHashMap, FxHashSet};

/// Bound of the probability that an interval of a program that does not change is taken for another phase: one in 10⁹
/// intervals.
pub const FALSE_CHANGE: f64 = 1e-9;
/// Least share of time that must differ. Smaller differences are no phase, however certain.
pub const MIN_DIFFERENCE: f64 = 0.1;
/// Least difference of the shares of bursts that are slower (or mispredict more) than most.
pub const MIN_BEHAVIOUR: f64 = 0.3;
/// Least number of bursts with a measured behaviour in each half of each sample.
const MIN_MEASURED: usize = 8;
/// Tests of an interval: traces, time per branch and mispredictions, on two halves each, over up to four windows
/// ([`crate::detector`]).
const TESTS: f64 = 24.0;

/// Why two samples differ (section 4.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cause {
    /// Most of it begins at branches that the earlier sample does not have.
    OtherCode,
    /// Branches that were executed before now lead elsewhere.
    Direction,
    /// The traces are known; others dominate.
    Dominance,
    /// The same code takes another time, or is mispredicted at another rate.
    Behaviour,
}

impl Cause {
    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OtherCode => "other code",
            Self::Direction => "direction",
            Self::Dominance => "dominance",
            Self::Behaviour => "behaviour",
        }
    }
}

/// A sample of bursts: some batches.
#[derive(Clone, Debug, Default)]
pub struct Sample<'a>(Vec<&'a Batch>);

impl<'a> Sample<'a> {
    /// All bursts of these batches.
    pub fn new(batches: impl IntoIterator<Item = &'a Batch>) -> Self {
        let batches = batches.into_iter().filter(|batch| !batch.is_empty());
        Self(batches.collect())
    }

    /// Its bursts.
    pub fn bursts(&self) -> impl Iterator<Item = &'a Signature> {
        self.0.iter().flat_map(|batch| batch.bursts())
    }

    /// Number of bursts.
    pub fn len(&self) -> usize {
        self.0.iter().map(|batch| batch.len()).sum()
    }

    /// Whether there is no burst.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of bursts of a half, 0 or 1.
    fn half_len(&self, half: usize) -> usize {
        self.0.iter().map(|batch| batch.half(half).bursts.len()).sum()
    }

    /// The bursts of a half.
    fn half(&self, half: usize) -> impl Iterator<Item = &'a Signature> {
        self.0.iter().flat_map(move |batch| &batch.half(half).bursts)
    }

    /// The share of time in a trace, in a half.
    fn share(&self, half: usize, trace: u32) -> f64 {
        let sums = self.0.iter().map(|batch| batch.half(half).sum(trace));
        sums.sum::<f64>() / self.half_len(half).max(1) as f64
    }

    /// Number of bursts of a half whose behaviour was measured.
    fn measured(&self, half: usize) -> usize {
        self.0.iter().map(|batch| batch.half(half).measured).sum()
    }
}

/// How a later sample differs from an earlier one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Comparison {
    /// Share of time in the traces that became more frequent: in the earlier sample.
    pub before: f64,
    /// The same in the later sample. The difference is unbiased, and negative as often as positive if nothing changed.
    pub after: f64,
    /// Difference of the shares of bursts above the usual time per branch or rate of mispredictions; 0 if unknown.
    pub behaviour: f64,
    /// Logarithm of a bound of the probability of the larger difference, if one phase made both samples; 0 unless a
    /// difference is large enough.
    pub log_probability: f64,
    /// Whether the behaviour, not the traces, is what differs.
    pub is_behaviour: bool,
}

impl Comparison {
    /// Compares two samples of bursts. The order of bursts within a sample does not matter.
    pub fn new(earlier: &Sample<'_>, later: &Sample<'_>) -> Self {
        let mut found = Self {
            before: 0.0,
            after: 0.0,
            behaviour: 0.0,
            log_probability: 0.0,
            is_behaviour: false,
        };
        if earlier.is_empty() || later.is_empty() {
            return found;
        }
        let risen = [0, 1].map(|learn| Risen::new(earlier, later, &[learn]));
        for (learn, risen) in risen.iter().enumerate() {
            let share =
                |sample: &Sample<'_>| -> f64 { risen.0.iter().map(|trace| sample.share(1 - learn, *trace)).sum() };
            found.before += share(earlier) / 2.0;
            found.after += share(later) / 2.0;
        }
        if found.difference() >= MIN_DIFFERENCE {
            let folds = [0, 1].map(|learn| {
                let scores = |sample: &Sample<'_>| -> Vec<f64> {
                    sample
                        .half(1 - learn)
                        .map(|burst| risen[learn].share_of(burst))
                        .collect()
                };
                (scores(earlier), scores(later))
            });
            found.log_probability = best(&folds);
        }
        let measures: [fn(&Signature) -> Option<f32>; 2] = [|burst| burst.time_per_branch, |burst| burst.mispredicted];
        for measure in measures {
            let Some(folds) = behaviour(earlier, later, measure) else {
                continue;
            };
            let difference = folds.iter().map(|(a, b)| mean(b) - mean(a)).sum::<f64>() / 2.0;
            if difference > found.behaviour {
                found.behaviour = difference;
            }
            if difference < MIN_BEHAVIOUR {
                continue;
            }
            let log_probability = best(&folds);
            if log_probability < found.log_probability {
                found.is_behaviour = found.difference() < MIN_DIFFERENCE || !found.is_significant();
                found.log_probability = log_probability;
            }
        }
        found
    }

    /// The share of time that differs.
    pub fn difference(&self) -> f64 {
        self.after - self.before
    }

    /// Whether the later sample is of another phase.
    pub fn is_significant(&self) -> bool {
        self.is_significant_among(1)
    }

    /// The same of the place, chosen from so many, at which the two samples differ most.
    pub fn is_significant_among(&self, places: usize) -> bool {
        self.log_probability + TESTS.ln() + (places.max(1) as f64).ln() <= FALSE_CHANGE.ln()
    }
}

/// The smaller of two halves' bounds.
fn best(folds: &[(Vec<f64>, Vec<f64>); 2]) -> f64 {
    let bounds = folds.iter().map(|(a, b)| log_probability(b, a));
    bounds.fold(0.0, f64::min)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The traces that are more frequent in a later sample.
pub struct Risen(FxHashSet<u32>);

impl Risen {
    /// Finds them in some halves of both samples.
    fn new(earlier: &Sample<'_>, later: &Sample<'_>, halves: &[usize]) -> Self {
        let known = halves
            .iter()
            .flat_map(|&half| later.0.iter().flat_map(move |batch| batch.half(half).sums()));
        let mut sums = FxHashMap::<u32, f64>::default();
        for (trace, sum) in known {
            *sums.entry(trace).or_default() += sum;
        }
        let number: usize = halves.iter().map(|&half| later.half_len(half)).sum();
        let before = |trace| halves.iter().map(|&half| earlier.share(half, trace)).sum::<f64>() / halves.len() as f64;
        let risen = sums
            .into_iter()
            .filter(|&(trace, sum)| sum / number as f64 > before(trace));
        Self(risen.map(|(trace, _)| trace).collect())
    }

    /// Those of two whole samples, for what is no test: where a change was, and why.
    pub fn of_samples(earlier: &Sample<'_>, later: &Sample<'_>) -> Self {
        Self::new(earlier, later, &[0, 1])
    }

    /// The share of a burst's time in them.
    pub fn share_of(&self, burst: &Signature) -> f64 {
        let risen = burst.traces.iter().filter(|trace| self.0.contains(&trace.trace));
        risen.map(|trace| f64::from(trace.share)).sum()
    }
}

/// Why a later sample differs: what most of the difference is.
pub fn cause(earlier: &Sample<'_>, later: &Sample<'_>, comparison: &Comparison) -> Cause {
    if comparison.is_behaviour {
        return Cause::Behaviour;
    }
    let traces: FxHashMap<u32, u32> = later
        .bursts()
        .flat_map(|burst| &burst.traces)
        .map(|t| (t.trace, t.start))
        .collect();
    let starts: FxHashSet<u32> = earlier
        .bursts()
        .flat_map(|burst| &burst.traces)
        .map(|t| t.start)
        .collect();
    let share = |sample: &Sample<'_>, trace: u32| (sample.share(0, trace) + sample.share(1, trace)) / 2.0;
    let mut excess = [0.0_f64; 3];
    for trace in Risen::of_samples(earlier, later).0 {
        let before = share(earlier, trace);
        let kind = match (starts.contains(&traces[&trace]), before > 0.0) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 2,
        };
        excess[kind] += share(later, trace) - before;
    }
    let [other_code, direction, dominance] = excess;
    if other_code >= direction && other_code >= dominance {
        Cause::OtherCode
    } else if direction >= dominance {
        Cause::Direction
    } else {
        Cause::Dominance
    }
}

/// For each half: whether bursts are on the side of the other half's median to which behaviour moved, as 0 or 1.
#[allow(clippy::type_complexity)]
fn behaviour(
    earlier: &Sample<'_>,
    later: &Sample<'_>,
    measure: fn(&Signature) -> Option<f32>,
) -> Option<[(Vec<f64>, Vec<f64>); 2]> {
    let possible = [0, 1].map(|half| earlier.measured(half).min(later.measured(half)));
    if possible.iter().any(|number| *number < MIN_MEASURED) {
        return None;
    }
    let measured = |sample: &Sample<'_>, half: usize| -> Vec<f32> {
        let bursts = sample.half(half);
        bursts.filter_map(measure).filter(|x| x.is_finite()).collect()
    };
    let all = [0, 1].map(|half| (measured(earlier, half), measured(later, half)));
    if all.iter().any(|(a, b)| a.len().min(b.len()) < MIN_MEASURED) {
        return None;
    }
    Some([0, 1].map(|learn| {
        let (before, after) = &all[learn];
        let mut pooled: Vec<f32> = before.iter().chain(after).copied().collect();
        pooled.sort_by(f32::total_cmp);
        let median = pooled[pooled.len() / 2];
        let above = |values: &[f32]| values.iter().filter(|x| **x >= median).count() as f64 / values.len() as f64;
        let is_up = above(after) >= above(before);
        let (before, after) = &all[1 - learn];
        let scores = |values: &[f32]| -> Vec<f64> {
            let scores = values.iter().map(|x| f64::from(u8::from((*x >= median) == is_up)));
            scores.collect()
        };
        (scores(before), scores(after))
    }))
}
