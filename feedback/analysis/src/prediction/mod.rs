//! Misprediction rates of branches.
//!
//! Weights give the more frequent direction of a branch, but not whether a processor predicts it: a branch that
//! alternates is easy and a branch that depends on data is hard, with the same weights. Whether the history of taken
//! branches determines a branch follows from the vectors. A model of a processor's predictor ([`tage`]) runs over all
//! bursts, and each branch of the graph that it gets wrong counts as mispredicted. Where branch records of the
//! processor hold its own predictions, those count instead. A branch that became selects has no blocks in machine code,
//! but may have a conditional jump ([`selects`]).
//!
//! The executions of which the direction is known may be mostly of one direction: of the other, the optimiser may have
//! left no probe. Each direction therefore counts with its inferred executions ([`Directions`]).
//!
//! The model has a shorter history than a processor at the same branch, so it overestimates mispredictions. Bursts, not
//! branches, are independent: [`BranchPrediction::low`] is the lower bound of the interval over bursts.

mod decision;
mod lengths;
mod selects;
mod switches;
mod tage;

use crate::decode::{Event, Position};
use crate::probe_walker::{ByModule, Choices, ProbeWalker};
use crate::program::Program;
use crate::replay::{Observer, Replay, ReplayUnit, Run};
use crate::time_bias::Weights;
use decision::{Decision, Decisions};
use lengths::LengthPredictions;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_annotate::map::InlineInstanceIndex;
use pleach_collector::vector::{Branch, ModuleId, Prediction, VectorSet};
use pleach_profile::{BranchPrediction, ValueSite};
use rustc_hash::{FxHashMap, FxHasher};
use selects::{BranchKey, Groups, Place, Reached};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use switches::SwitchPredictions;
use tage::{BranchHistory, Direction, Tage, Target};

/// Predictions of each function's branches, in block order, in sampled executions.
pub type Predictions = BTreeMap<(FunctionId, CfgHash), Vec<BranchPrediction>>;

/// By function and call of a memory operation, whether the most frequent length is predicted: bursts, and weighted
/// executions, mispredicted and predicted.
pub type PredictedLengths = BTreeMap<(FunctionId, CfgHash), BTreeMap<u32, (u64, [f64; 2])>>;

/// By function and block that ends in a switch, whether it is predicted where the switch goes: bursts, and weighted
/// executions, mispredicted and predicted.
pub type PredictedSwitches = BTreeMap<(FunctionId, CfgHash), BTreeMap<BlockIndex, (u64, [f64; 2])>>;

/// Predicts all branches of a recording. `weights`: the weight of each branch.
pub fn predict(program: &Program, vectors: &VectorSet, weights: &Weights) -> Predictions {
    let mut predictor = Predictor::new(program, weights);
    Replay::new(program).recording(vectors, &mut predictor);
    predictor.finish(&EdgeExecutions::default())
}

/// Consecutive branches.
#[derive(Default)]
struct Chain {
    branches: Vec<Branch>,
    history: BranchHistory,
}

impl Chain {
    /// Reads the branches of a burst, or of a window behind its lead. A window without a lead repeats its first branch.
    fn read(&mut self, source: ReplayUnit<'_>) {
        self.branches.clear();
        if let ReplayUnit::Window(window) = source {
            self.branches.extend(window.lead.or(window.branches.first().copied()));
        }
        self.branches.extend_from_slice(source.branches());
        self.history.read(self.branches.iter().map(hash));
    }
}

/// The processor's own prediction of a branch, if it was recorded.
fn hardware_prediction(source: ReplayUnit<'_>, position: usize) -> Option<bool> {
    let ReplayUnit::Burst(burst) = source else { return None };
    let facts = &burst.hardware.as_ref()?.facts;
    match facts.get(position)?.prediction {
        Prediction::Unknown => None,
        Prediction::Predicted => Some(true),
        Prediction::Mispredicted => Some(false),
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Sampled executions of the edges of inline instances, as inferred: the successor slots of block 0, then of block 1, …
pub type EdgeExecutions = FxHashMap<(ModuleId, InlineInstanceIndex), Vec<f64>>;

/// Share of a branch's watched executions that have a direction if all have, but for rounding.
const ALL_DIRECTED: f64 = 0.999;

/// Executions of a branch by direction: of each, those watched and those of them that were mispredicted.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Directions([[f64; 2]; 2]);

impl Directions {
    fn add(&mut self, direction: usize, weight: f64, predicted: bool) {
        let [watched, mispredicted] = &mut self.0[direction];
        *watched += weight;
        *mispredicted += if predicted { 0.0 } else { weight };
    }

    /// Executions and mispredictions if each direction is executed as often as inferred, and mispredicted as often as
    /// where it was watched: post-stratification (Cochran, *Sampling Techniques*, 5A.9). Where a direction was never
    /// watched, nothing shows that it is mispredicted.
    fn stratified(&self, executions: [f64; 2]) -> [f64; 2] {
        let strata = self.0.iter().zip(executions);
        let mispredicted = strata.map(|([watched, mispredicted], executions)| match *watched > 0.0 {
            // Rounding must not make it more than all.
            true => (mispredicted * executions / watched).min(executions),
            false => 0.0,
        });
        [executions[0] + executions[1], mispredicted.sum()]
    }
}

/// Sums and sums of products over bursts, which give the variance between bursts.
#[derive(Clone, Copy, Default)]
struct Tally {
    watched: f64,
    mispredicted: f64,
    watched_squared: f64,
    mispredicted_squared: f64,
    product: f64,
    bursts: u32,
    /// Of the latest burst, whose products are not summed yet.
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

    /// The prediction, given how often each direction was executed, if that is known.
    fn prediction(&self, block: BlockIndex, directions: Directions, executions: Option<[f64; 2]>) -> BranchPrediction {
        let known = executions.filter(|executions| executions[0] + executions[1] > 0.0);
        let seen: f64 = directions.0.iter().map(|[watched, _]| watched).sum();
        let [watched, mispredicted] = match known {
            Some(executions) if seen >= ALL_DIRECTED * self.watched => directions.stratified(executions),
            // What is of no known direction is of a jump that code generation made of selects: of both. Executions
            // without such a jump are no evidence of mispredictions.
            Some(executions) => [self.watched.max(executions.iter().sum()), self.mispredicted],
            None => [self.watched, self.mispredicted],
        };
        let scale = if self.mispredicted > 0.0 {
            mispredicted / self.mispredicted
        } else {
            0.0
        };
        BranchPrediction {
            block,
            watched,
            mispredicted,
            low: (self.low() * scale).min(mispredicted),
        }
    }

    /// The lower bound of the 90 % interval of mispredictions: a ratio estimate over bursts (Cochran, *Sampling
    /// Techniques*, 6.4).
    fn low(&self) -> f64 {
        if self.bursts < 2 {
            return 0.0;
        }
        let ratio = self.mispredicted / self.watched;
        let residuals = self.mispredicted_squared - 2.0 * ratio * self.product + ratio * ratio * self.watched_squared;
        let bursts = f64::from(self.bursts);
        let deviation = (residuals.max(0.0) * bursts / (bursts - 1.0)).sqrt();
        // Few bursts may agree by chance: one more is assumed whose executions all have the same outcome, as for paths.
        let assumed = self.watched * (ratio * (1.0 - ratio)).sqrt() / bursts;
        (self.mispredicted - 1.645 * deviation.hypot(assumed)).max(0.0)
    }
}

/// Predicts branches in a replay.
pub struct Predictor<'p> {
    program: &'p Program,
    weights: &'p Weights,
    walkers: ByModule<ProbeWalker<'p>>,
    groups: Groups,
    decisions: Decisions<'p>,
    tage: Tage<Direction>,
    targets: Tage<Target>,
    /// Of the current burst.
    chain: Chain,
    /// The latest decision, the burst that it was made in, and whether it was predicted.
    latest: Option<(usize, Decision, bool)>,
    tallies: FxHashMap<BranchKey, (Tally, Directions)>,
    lengths: LengthPredictions,
    switches: SwitchPredictions,
}

impl Observer for Predictor<'_> {
    fn begin(&mut self, run: Run<'_>) {
        self.chain.read(run.source);
        self.groups.begin();
    }

    fn event(&mut self, run: Run<'_>, position: Position, event: Event) {
        let Some(weight) = run.weight(position, self.weights) else {
            return;
        };
        // A window's chain begins with its lead.
        let position = match (run.source, position) {
            (ReplayUnit::Window(_), Position::Branch(branch)) => branch + 1,
            (_, Position::Branch(branch)) => branch,
            (_, Position::Lead | Position::Interrupted) => 0,
        };
        if let Event::Value {
            module,
            instance,
            site: ValueSite::Length(call),
            value,
        } = event
        {
            let history = (&self.chain.history, position);
            self.lengths.add(
                (module, instance, call),
                (run.number, weight),
                value,
                &mut self.tage,
                history,
            );
            return;
        }
        let Event::Block {
            module,
            frame,
            instance,
            block,
            address,
        } = event
        else {
            return;
        };
        let Some(walker) = self.walkers.get_mut(module) else {
            return;
        };
        let last = walker.last(frame, instance, block);
        if let Some(switch) = last.filter(|&last| walker.is_switch(instance, last))
            && let Some((choice, _)) = self.decisions.last_choice(&self.chain.branches, position, address)
        {
            self.switches.add(
                (module, instance, switch),
                (run.number, weight),
                block.0,
                &mut self.targets,
                (&self.chain.history, choice.before),
            );
        }
        let step = walker.pass(frame, instance, block);
        let step = step.and_then(|taken| Some((taken.from, *taken.edges.first()?)));
        let reached = match last {
            None => Reached::Decided(0),
            Some(last) => match walker.choices(instance, last, block) {
                Choices::Certain(branches) => Reached::Decided(branches),
                Choices::Between(branch) => Reached::Chosen((module, instance, branch)),
                Choices::Unknown => Reached::Unknown,
            },
        };
        let step = step.filter(|&(from, _)| walker.is_conditional(instance, from));
        let step = step.map(|(from, edge)| (from, edge.wrapping_sub(walker.graph(instance).bases[from.index()])));
        if let Some(candidate) = self.groups.pass(Place { position, address }, reached)
            && let Some(jumps) = self
                .decisions
                .between(&self.chain.branches, candidate.from, candidate.to)
            && jumps.len() == candidate.decided + 1
        {
            let predicted = self.predict(run, jumps[0]);
            let (tally, _) = self.tallies.entry(candidate.branch).or_default();
            tally.add(run.number, weight, predicted);
        }
        let Some((from, slot @ 0..=1)) = step else { return };
        let Some(decision) = self.decisions.before(&self.chain.branches, position, address) else {
            return;
        };
        let predicted = self.predict(run, decision);
        let (tally, directions) = self.tallies.entry((module, instance, from)).or_default();
        tally.add(run.number, weight, predicted);
        directions.add(slot as usize, weight, predicted);
    }
}

impl<'p> Predictor<'p> {
    /// A predictor without history.
    pub fn new(program: &'p Program, weights: &'p Weights) -> Self {
        Self {
            program,
            weights,
            walkers: ByModule::new(program, ProbeWalker::new),
            groups: Groups::default(),
            decisions: Decisions::new(program),
            tage: Tage::new(),
            targets: Tage::new(),
            chain: Chain::default(),
            latest: None,
            tallies: FxHashMap::default(),
            lengths: LengthPredictions::default(),
            switches: SwitchPredictions::default(),
        }
    }

    /// Whether a decision is predicted. It is predicted once, even if several blocks follow it.
    fn predict(&mut self, run: Run<'_>, decision: Decision) -> bool {
        if let Some((of, latest, predicted)) = self.latest
            && (of, latest) == (run.number, decision)
        {
            return predicted;
        }
        let Decision { jump, taken, before } = decision;
        let predicted = self.tage.predicts(hash(&jump), &self.chain.history, before, taken);
        let told = taken.then(|| hardware_prediction(run.source, before)).flatten();
        let predicted = told.unwrap_or(predicted);
        self.latest = Some((run.number, decision, predicted));
        predicted
    }

    /// Whether the most frequent lengths of memory operations are predicted.
    pub fn lengths(&mut self) -> PredictedLengths {
        let mut sums = PredictedLengths::new();
        for ((module, instance, call), comparison) in std::mem::take(&mut self.lengths).into_operations() {
            let Some(map) = self.program.map(module) else { continue };
            let function = map.function_of(instance);
            let calls = sums.entry((function.cfg.id, function.hash)).or_default();
            let (bursts, weights) = calls.entry(call).or_default();
            // A burst may show several instances.
            *bursts = comparison.bursts.max(*bursts);
            weights
                .iter_mut()
                .zip(comparison.weights)
                .for_each(|(sum, weight)| *sum += weight);
        }
        sums
    }

    /// Whether it is predicted where switches go.
    pub fn switches(&mut self) -> PredictedSwitches {
        let mut sums = PredictedSwitches::new();
        for ((module, instance, block), switch) in std::mem::take(&mut self.switches).into_switches() {
            let Some(map) = self.program.map(module) else { continue };
            let function = map.function_of(instance);
            let switches = sums.entry((function.cfg.id, function.hash)).or_default();
            let (bursts, weights) = switches.entry(block).or_default();
            // A burst may show several instances.
            *bursts = switch.bursts.max(*bursts);
            weights
                .iter_mut()
                .zip(switch.weights)
                .for_each(|(sum, weight)| *sum += weight);
        }
        sums
    }

    /// Predictions of all branches.
    pub fn finish(self, executions: &EdgeExecutions) -> Predictions {
        let mut sums: BTreeMap<_, BTreeMap<BlockIndex, BranchPrediction>> = BTreeMap::new();
        for ((module, instance, block), (mut tally, directions)) in self.tallies {
            let Some(map) = self.program.map(module) else { continue };
            let function = map.function_of(instance);
            tally.close();
            let sum = sums.entry((function.cfg.id, function.hash)).or_default();
            let sum = sum.entry(block).or_insert(BranchPrediction::none(block));
            let base = function.cfg.edge_bases()[block.index()] as usize;
            let edges = executions.get(&(module, instance));
            let edges = edges.and_then(|edges| edges.get(base..base + 2)?.try_into().ok());
            sum.add(&tally.prediction(block, directions, edges));
        }
        let in_order = |sums: BTreeMap<BlockIndex, BranchPrediction>| sums.into_values().collect();
        sums.into_iter().map(|(key, sums)| (key, in_order(sums))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn a_direction_that_is_never_watched_counts_with_its_executions() {
        let mut tally = Tally::default();
        let mut directions = Directions::default();
        for burst in 0..100 {
            tally.add(burst, 1.0, false);
            directions.add(1, 1.0, false);
        }
        tally.close();
        let block = BlockIndex(3);
        let prediction = tally.prediction(block, directions, Some([900.0, 100.0]));
        assert_eq!((prediction.watched, prediction.mispredicted), (1000.0, 100.0));
        assert!(prediction.low <= 100.0);
        // Without inferred counts, what was watched is all that is known.
        let prediction = tally.prediction(block, directions, None);
        assert_eq!((prediction.watched, prediction.mispredicted), (100.0, 100.0));
    }

    #[test]
    fn executions_that_were_not_watched_count_as_predicted() {
        let mut tally = Tally::default();
        (0..100).for_each(|burst| tally.add(burst, 1.0, false));
        tally.close();
        let prediction = |executions| tally.prediction(BlockIndex(3), Directions::default(), executions);
        let (few, all) = (prediction(Some([600.0, 400.0])), prediction(Some([60.0, 40.0])));
        assert_eq!((few.watched, few.mispredicted), (1000.0, 100.0));
        assert_eq!((all.watched, all.mispredicted), (100.0, 100.0));
    }

    #[test]
    fn directions_count_as_often_as_they_are_executed() {
        let mut directions = Directions::default();
        (0..10).for_each(|i| directions.add(0, 1.0, i > 0));
        (0..30).for_each(|i| directions.add(1, 1.0, i > 14));
        assert_eq!(directions.stratified([10.0, 30.0]), [40.0, 16.0]);
        assert_eq!(directions.stratified([90.0, 30.0]), [120.0, 24.0]);
    }

    proptest! {
        #[test]
        fn no_more_is_mispredicted_than_executed(
            watched in prop::collection::vec((0usize..3, 0usize..2, 0.001f64..1e6, prop::bool::weighted(0.2)), 1..40),
            executions in prop::option::of([0.0f64..1e9, 0.0f64..1e9]),
        ) {
            let mut tally = Tally::default();
            let mut directions = Directions::default();
            for (burst, direction, weight, predicted) in watched {
                tally.add(burst, weight, predicted);
                directions.add(direction, weight, predicted);
            }
            tally.close();
            let prediction = tally.prediction(BlockIndex(0), directions, executions);
            prop_assert!(prediction.mispredicted <= prediction.watched, "{prediction:?}");
            prop_assert!((0.0..=prediction.mispredicted).contains(&prediction.low), "{prediction:?}");
        }
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
