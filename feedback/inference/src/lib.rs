//! Ragged evidence → counts that a function can have had.
//!
//! Samples are noisy, and the optimiser loses or merges probes: the observed counts of a function rarely conserve flow.
//! This module finds counts that do, close to the evidence, as a minimum-cost flow in the manner of *profi* (He,
//! Mestre, Pupyrev, Wang, Yu: Profile Inference Revisited, POPL 2022; LLVM's `SampleProfileInference`).
//!
//! # Constraints
//! For every block, entries = (entry flow, for block 0) + Σ flow of incoming edges = Σ flow of outgoing edges + exit
//! flow. Exit flow is possible
//! - where a block has no successors (returns, resumes, unreachable);
//! - at calls that may not return, and terminators that may leave the function implicitly: a *leak*, dear, because it
//!   is rare but possible (`exit` in the middle of `main`);
//! - at one block of every loop without exits, nearly free, because all flow that enters it ends there.
//!
//! # Objective
//! The likeliest flow, where observed counts are Poisson-distributed: the cost of flow `f` where `x` samples were seen
//! is half the Poisson deviance, `κf − x + x ln(x/κf)`, approximated by a convex piecewise-linear function ([`cost`]).
//! Unlike the flat per-unit costs of profi it lets large counts give way to each other in proportion to their
//! uncertainty, and costs one per sample to contradict an observed zero. `κ` is 1 for blocks. For edges it is the
//! *completeness* of transitions out of the block: entries are often observed without their incoming edge, so that
//! observed transitions count from below ([`observed`]).
//!
//! Unknown counts — blocks without a probe in the binary, transitions that could not be told — cost next to nothing:
//! enough to prefer short paths and to avoid exception handling and traps, too little to outweigh any sample.
//!
//! # After the flow
//! Blocks with flow that is not connected to the entry get connected by half a sample along the likeliest path
//! ([`connect`], profi §4.3). Where flow passes through unknown alternatives, it is spread evenly over them instead of
//! taking one arbitrary path: exactly where nothing tells them apart (profi §4.4), and as evenly as the known counts
//! behind them allow elsewhere, by solving again with a slight preference for even shares ([`balance`]).

mod balance;
mod connect;
mod cost;
mod flow;
mod graph;
mod observed;
mod problem;
mod simplex;

use flow::Flow;
use graph::Graph;
use observed::Observed;
use pleach_annotate::cfg::Cfg;
use problem::Problem;

/// The evidence about a function, in samples. Weighted samples make fractions.
///
/// Missing values (a list that is too short), negative values and NaN count as unknown.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Evidence {
    /// Entries of each block, in block order; `None` where the block left no probe in the binary: unknown, not zero.
    pub blocks: Vec<Option<f64>>,
    /// Observed transitions by successor slot, in block order. Slots of one block with the same target cannot be told
    /// apart: the evidence is in the first of them, `None` in the others (several values are added up). `None` in the
    /// first: unknown.
    pub edges: Vec<Option<f64>>,
    /// Calls of the function, where they were counted apart from the entry block.
    pub entry: Option<f64>,
}

/// Counts that conserve flow, in executions: samples × scale.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowCounts {
    /// Entries of each block: Σ of its incoming edges, and [`Self::entry`] for block 0.
    pub blocks: Vec<u64>,
    /// Transitions by successor slot, in block order. Slots of one block with the same target share evenly.
    pub edges: Vec<u64>,
    /// Calls of the function.
    pub entry: u64,
    /// For each block, entries that left the function there: `blocks[b]` − Σ of its outgoing edges. All entries of a
    /// block without successors; elsewhere a leak, nearly always 0.
    pub exits: Vec<u64>,
    /// Blocks whose count rests on no evidence of their own.
    pub inferred_blocks: Vec<bool>,
    /// Successor slots whose count rests on no evidence of their own.
    pub inferred_edges: Vec<bool>,
}

/// Infers a function's counts from what was observed of it.
///
/// `scale` is the number of executions that one sample stands for; it is also the resolution: counts are whole
/// executions. A scale that is not positive counts as 1. Without any positive evidence all counts are 0.
pub fn infer(cfg: &Cfg, evidence: &Evidence, scale: f64) -> FlowCounts {
    let graph = Graph::new(cfg);
    let observed = Observed::new(&graph, evidence, scale);
    if !observed.any_positive() {
        return Flow::zero(&graph).into_counts(&graph, &observed);
    }
    let (problem, mut flow) = likeliest(&graph, &observed);
    connect::connect(&graph, &problem, &mut flow, observed.half_sample());
    balance::spread(&graph, &observed, &mut flow);
    debug_assert!(flow.is_consistent(&graph));
    flow.into_counts(&graph, &observed)
}

/// Rounds towards even shares: each starts from the flow of the last. More rounds hardly change the result.
const SHARE_ROUNDS: usize = 2;

/// The flow of least cost; among unknown alternatives, one that is near an even distribution.
fn likeliest(graph: &Graph, observed: &Observed) -> (Problem, Flow) {
    let mut problem = Problem::new(graph, observed);
    let mut flow = problem.flow(graph);
    for _ in 0..SHARE_ROUNDS {
        let shares = balance::even_shares(graph, observed, &flow);
        if shares.iter().all(Option::is_none) {
            break;
        }
        problem.near(graph, observed, &shares);
        flow = problem.flow(graph);
    }
    (problem, flow)
}

#[cfg(test)]
mod tests;
