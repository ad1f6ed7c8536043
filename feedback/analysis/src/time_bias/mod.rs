//! Weights that remove the bias of timer ticks to slow code (feedback/ALGORITHMS.md, Time bias).
//!
//! Ticks are spread over CPU time, so bursts begin in slow code more often than in fast code with the same executions.
//! A burst also ends early at a system call: every burst that comes near sees the code before one; only bursts that
//! begin there see the code after it. Transitions inside bursts are not biased: from a given state, the program
//! continues in the same way whether or not a tick came before. So they are the kernel `P` of a Markov chain over the
//! last `m` taken branches, and the states' true shares are its stationary distribution. State `s` gets the weight `n_s
//! / visits_s`.
//!
//! A stationary distribution depends on how often the program goes from one part to another. Where bursts rarely
//! observed that (phases that run one after the other), the result would be noise or would not exist. So the chain
//! restarts with a small probability at the observed visits: `n = (1 − ε) n P + ε visits`. This is the distribution of
//! bursts that each continue, by the kernel, for `1/ε` more branches on average. It is unique, and phases that no burst
//! joins keep their shares: bursts do not show the speed of a phase as a whole. [`burst_timing`] uses measured speeds
//! ([`measured`]), and [`phase`] widens intervals for unknown ones.

mod burst_timing;
mod chain;
mod measured;
mod phase;
mod stationary;

use crate::replicates::Times;
use chain::Chain;
use measured::Measured;
use pleach_collector::vector::{Burst, Engine, VectorSet};

/// Parameters of the Markov chain.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Model {
    /// Number of taken branches that make a state, at least 1.
    pub order: usize,
    /// Probability of a restart at each branch, in 0…1: 1 leaves all weights at 1.
    pub restart: f64,
    /// Prior visits of each state at weight 1.
    pub prior_visits: f64,
}

impl Default for Model {
    /// States of one branch, and bursts that go on for their usual length once more. Much longer ones would rest on
    /// changes from one part of the program to another that few bursts saw.
    ///
    /// On four small programs (phases, system calls, cache misses, an interpreter) restarts from 10⁻³ to 10⁻⁶ gave
    /// overlaps within 0.014 of each other and a second branch of history within 0.002; with 10⁻³ none was worse than
    /// without weights by more than 0.003.
    fn default() -> Self {
        Self {
            order: 1,
            restart: 1e-3,
            // A state seen once keeps a weight above 0.8: it never turns from "seen" to "cold".
            prior_visits: 4.0,
        }
    }
}

/// A weight for each branch of each burst.
#[derive(Clone, Debug)]
pub struct Weights {
    /// By burst and branch; empty where all weigh 1.
    states: Vec<Vec<u32>>,
    /// By state.
    weights: Vec<f64>,
    /// By burst, of the recording and in each replicate; empty where all weigh 1.
    bursts: Vec<Times>,
}

impl Weights {
    /// Weights of 1.
    pub fn equal() -> Self {
        Self {
            states: Vec::new(),
            weights: Vec::new(),
            bursts: Vec::new(),
        }
    }

    /// Weights for bursts that ticks began. Branch records that were read at events of another kind than time have
    /// weights of 1, and so have those without cycles.
    pub fn from_vectors(vectors: &VectorSet, model: &Model) -> Self {
        let measured = Measured::new(vectors);
        let by_speed = Self {
            bursts: burst_timing::weights(&vectors.bursts, measured.precision(), |burst| measured.time(burst)),
            ..Self::equal()
        };
        let by_time = |engine| matches!(engine, Engine::Step | Engine::RunAhead);
        if !vectors.bursts.iter().all(|burst| by_time(burst.engine)) {
            return by_speed;
        }
        let chain = Chain::from_bursts(&vectors.bursts, model.order);
        let shares = stationary::solve(&chain, model.restart);
        let (all, seen): (f64, f64) = (shares.iter().sum(), chain.visits.iter().sum());
        // Expected visits of the state among the same number of branches.
        let expected = |share: f64| if all > 0.0 { share / all * seen } else { 0.0 };
        let weights = chain.visits.iter().zip(&shares);
        let weights = weights
            .map(|(&visits, &share)| (expected(share) + model.prior_visits) / (visits + model.prior_visits))
            .collect();
        Self {
            states: chain.states,
            weights,
            ..by_speed
        }
    }

    /// Whether the time of branches was measured, and weighs bursts.
    pub fn has_speeds(&self) -> bool {
        !self.bursts.is_empty()
    }

    /// The same weights, with each burst multiplied by its factor: 1 on average, by the position in `bursts`.
    pub fn with_factors(mut self, bursts: &[Burst], factors: &[f64]) -> Self {
        let weighted = bursts.iter().zip(factors).enumerate();
        self.bursts = weighted
            .map(|(number, (burst, factor))| self.of_burst(number, burst).map(|weight| weight * *factor as f32))
            .collect();
        self
    }

    /// The weight of a burst's branch, and of the fall-through range that follows it; 1 on average over all branches.
    pub fn get(&self, burst: usize, branch: usize) -> f64 {
        self.bursts.get(burst).map_or(1.0, |times| f64::from(times[0])) * self.within(burst, branch)
    }

    /// The weight of a burst as a whole, of the recording and in each replicate. If no burst was timed, replicates
    /// differ by the assumed speed of its phase.
    pub fn of_burst(&self, number: usize, burst: &Burst) -> Times {
        let timed = self.bursts.get(number).copied();
        timed.unwrap_or_else(|| phase::factors(burst.engine, &burst.branches))
    }

    /// The weight of a burst's branch beside that of the burst.
    pub fn within(&self, burst: usize, branch: usize) -> f64 {
        let state = self.states.get(burst).and_then(|states| states.get(branch));
        state
            .and_then(|&state| self.weights.get(state as usize))
            .map_or(1.0, |&w| w)
    }
}
