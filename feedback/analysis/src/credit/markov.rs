//! A function's paths as a Markov chain over its blocks: the information of an edge profile. It completes partial paths
//! that no whole path explains, and is the baseline of edge profiles.

use super::{Candidates, Credited, EdgeProbabilities};
use crate::partial_path::PartialPath;
use crate::partial_paths::FunctionEvidence;
use crate::partial_paths::inline_instance::Graph;
use crate::replicates::{REPLICATES, Times};
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::graph::EdgeKind;
use pleach_ball_larus::{Path, Start};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Prior count of the edges of a block, distributed evenly over them (Krichevsky–Trofimov).
const UNSEEN: f64 = 0.5;
/// Maximum number of paths that the baseline lists for one function.
const MAX_PATHS: usize = 4096;
/// Minimum of estimated executions of a listed path.
const MIN_EXECUTIONS: f64 = 0.5;

/// Probabilities of the edges of the path graph.
pub(super) struct Markov<'a> {
    graph: &'a Graph,
    /// By edge of the path graph: observed executions.
    pub times: Vec<f64>,
    /// By edge: −ln of its probability, given where it begins.
    cost: Vec<f64>,
    /// By block: the edges that lead to it.
    into: Vec<Vec<u32>>,
    /// By block: −ln of the probability of the likeliest path to EXIT, and its first edge.
    to_exit: Vec<(f64, u32)>,
    /// By block: −ln of the probability of the likeliest path from ENTRY, and its last edge.
    from_entry: Vec<(f64, u32)>,
}

impl<'a> Markov<'a> {
    /// Counts the edges of all partial paths. `flow`: how probable alternatives are; they count alike without.
    pub fn new(function: &'a FunctionEvidence, flow: Option<&EdgeProbabilities>) -> Self {
        let graph = &function.graph;
        let mut times = vec![0.0; graph.paths.edges().len()];
        for observation in &function.observations {
            let probability =
                |partial_paths: &Vec<_>| flow.map_or(1.0, |flow| f64::from(flow.of_partial_paths(partial_paths)));
            let all: f64 = observation.alternatives.iter().map(probability).sum();
            for alternative in &observation.alternatives {
                let share = f64::from(observation.times[0]) * probability(alternative) / all;
                for partial_path in alternative {
                    for_edges(graph, partial_path, |edge| times[edge] += share);
                }
            }
        }
        let blocks = graph.paths.blocks();
        let mut this = Self {
            graph,
            cost: vec![f64::INFINITY; times.len()],
            times,
            into: vec![Vec::new(); blocks],
            to_exit: vec![(f64::INFINITY, 0); blocks],
            from_entry: vec![(f64::INFINITY, 0); blocks],
        };
        this.compute_costs();
        this.search();
        this
    }

    fn compute_costs(&mut self) {
        let edges = self.graph.paths.edges();
        for vertex in 0..=self.graph.paths.blocks() {
            let out = self.graph.paths.out(vertex);
            let (sum, count) = (self.times[out.clone()].iter().sum::<f64>(), out.len() as f64);
            for edge in out {
                let probability = (self.times[edge] + UNSEEN / count) / (sum + UNSEEN);
                self.cost[edge] = -probability.ln();
                if let EdgeKind::Start(_, to) | EdgeKind::Flow(_, to) = edges[edge] {
                    self.into[to.index()].push(edge as u32);
                }
            }
        }
    }

    fn search(&mut self) {
        let paths = &self.graph.paths;
        let order = paths.topological();
        for &block in order.iter().rev() {
            let best = paths.out(block.index()).map(|edge| {
                let rest = match paths.edges()[edge] {
                    EdgeKind::Flow(_, to) => self.to_exit[to.index()].0,
                    _ => 0.0,
                };
                (self.cost[edge] + rest, edge as u32)
            });
            self.to_exit[block.index()] = best.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0));
        }
        for &block in order {
            let best = self.into[block.index()].iter().map(|&edge| {
                let before = match paths.edges()[edge as usize] {
                    EdgeKind::Flow(from, _) => self.from_entry[from.index()].0,
                    _ => 0.0,
                };
                (self.cost[edge as usize] + before, edge)
            });
            self.from_entry[block.index()] = best.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0));
        }
    }

    /// The likeliest path that contains a partial path; `None` for partial paths that the graph does not have.
    pub fn complete(&self, partial_path: &PartialPath) -> Option<Path> {
        let edges = self.graph.paths.edges();
        let mut blocks = partial_path.blocks.clone();
        let start = match partial_path.start {
            Some(start) => start,
            None => {
                let mut before = Vec::new();
                let mut at = partial_path.blocks[0];
                let start = loop {
                    let (cost, edge) = self.from_entry[at.index()];
                    if !cost.is_finite() {
                        return None;
                    }
                    match edges[edge as usize] {
                        EdgeKind::Flow(from, _) => {
                            before.push(from);
                            at = from;
                        }
                        EdgeKind::Start(start, _) => break start,
                        _ => return None,
                    }
                };
                before.reverse();
                before.append(&mut blocks);
                blocks = before;
                start
            }
        };
        let end = match partial_path.end {
            Some(end) => end,
            None => loop {
                let (cost, edge) = self.to_exit[blocks[blocks.len() - 1].index()];
                if !cost.is_finite() {
                    return None;
                }
                match edges[edge as usize] {
                    EdgeKind::Flow(_, to) => blocks.push(to),
                    EdgeKind::End(_, end) => break end,
                    _ => return None,
                }
            },
        };
        let path = Path { start, blocks, end };
        self.graph.paths.number_of(&path).is_some().then_some(path)
    }

    /// Probability of a path, given that a path begins. 0 for a self loop that is counted apart.
    pub fn probability(&self, path: &Path) -> f64 {
        let mut cost = 0.0;
        let partial_path = PartialPath {
            start: Some(path.start),
            blocks: path.blocks.clone(),
            end: Some(path.end),
        };
        let acyclic = self.graph.paths.acyclic();
        for_edges(self.graph, &partial_path, |edge| {
            cost += if edge < acyclic { self.cost[edge] } else { f64::INFINITY };
        });
        (-cost).exp()
    }

    /// The likeliest paths in their order, with their probabilities, down to a least one.
    pub fn likeliest(&self, least: f64) -> Vec<(Path, f64)> {
        let (paths, mut found, mut heap) = (&self.graph.paths, Vec::new(), BinaryHeap::new());
        let least = -least.ln();
        for edge in paths.out(paths.blocks()) {
            if let EdgeKind::Start(start, block) = paths.edges()[edge] {
                heap.push(Partial::new(self, self.cost[edge], start, vec![block]));
            }
        }
        while let Some(Partial {
            bound,
            cost,
            start,
            blocks,
            end,
        }) = heap.pop()
        {
            if bound > least || found.len() == MAX_PATHS || heap.len() > 64 * MAX_PATHS {
                break;
            }
            if let Some(end) = end {
                found.push((Path { start, blocks, end }, (-cost).exp()));
                continue;
            }
            for edge in paths.out(blocks[blocks.len() - 1].index()) {
                let cost = cost + self.cost[edge];
                match paths.edges()[edge] {
                    EdgeKind::Flow(_, to) => {
                        let blocks = blocks.iter().copied().chain([to]).collect();
                        heap.push(Partial::new(self, cost, start, blocks));
                    }
                    EdgeKind::End(_, end) => heap.push(Partial {
                        bound: cost,
                        cost,
                        start,
                        blocks: blocks.clone(),
                        end: Some(end),
                    }),
                    _ => {}
                }
            }
        }
        found
    }
}

/// The first part of a path, ordered by the likeliest path that it is a part of.
struct Partial {
    bound: f64,
    cost: f64,
    start: Start,
    blocks: Vec<BlockIndex>,
    end: Option<pleach_ball_larus::End>,
}

impl Partial {
    fn new(markov: &Markov<'_>, cost: f64, start: Start, blocks: Vec<BlockIndex>) -> Self {
        let last = blocks[blocks.len() - 1];
        Self {
            bound: cost + markov.to_exit[last.index()].0,
            cost,
            start,
            blocks,
            end: None,
        }
    }
}

impl PartialEq for Partial {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Partial {}

impl PartialOrd for Partial {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Partial {
    /// The likeliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        let order = other.bound.total_cmp(&self.bound);
        order.then_with(|| (&other.blocks, other.end).cmp(&(&self.blocks, self.end)))
    }
}

/// The edges of a partial path, by position in the path graph.
fn for_edges(graph: &Graph, partial_path: &PartialPath, mut with: impl FnMut(usize)) {
    let mut found = |kind| {
        if let Some(edge) = graph.paths.find(kind) {
            with(edge.index());
        }
    };
    let (first, last) = (
        partial_path.blocks[0],
        partial_path.blocks[partial_path.blocks.len() - 1],
    );
    if let (1, Some(pleach_ball_larus::End::Back(to))) = (partial_path.blocks.len(), partial_path.end)
        && graph.is_counted_self_loop(first, to)
    {
        found(EdgeKind::SelfLoop(first));
        return;
    }
    if let Some(start) = partial_path.start {
        found(EdgeKind::Start(start, first));
    }
    for pair in partial_path.blocks.windows(2) {
        found(EdgeKind::Flow(pair[0], pair[1]));
    }
    if let Some(end) = partial_path.end {
        found(EdgeKind::End(last, end));
    }
}

/// Counts of the likeliest paths, as if every edge was taken independently of what came before.
pub(super) fn credit(function: &FunctionEvidence) -> Credited {
    let markov = Markov::new(function, None);
    let paths = &function.graph.paths;
    // Paths begin as often as they end; either may have been out of sight.
    let (mut starts, mut ends) = (0.0, 0.0);
    for (edge, kind) in paths.edges().iter().enumerate() {
        match kind {
            EdgeKind::Start(..) => starts += markov.times[edge],
            EdgeKind::End(..) => ends += markov.times[edge],
            _ => {}
        }
    }
    let begun = f64::max(starts, ends);
    let all = |count: f64| [count as f32; REPLICATES + 1];
    let (mut candidates, mut counts): (Candidates, Vec<Times>) = Default::default();
    for (path, probability) in markov.likeliest(MIN_EXECUTIONS / begun.max(MIN_EXECUTIONS)) {
        candidates.add(path);
        counts.push(all(begun * probability));
    }
    for (edge, kind) in paths.edges().iter().enumerate() {
        if let EdgeKind::SelfLoop(_) = kind
            && markov.times[edge] > 0.0
            && let Some(path) = paths.path(paths.paths() + (edge - paths.acyclic()) as u64)
        {
            candidates.add(path);
            counts.push(all(markov.times[edge]));
        }
    }
    let listed: f64 = counts.iter().map(|times| f64::from(times[0])).sum();
    let loops: f64 = markov.times[paths.acyclic()..].iter().sum();
    Credited {
        candidates,
        counts,
        unlisted: all((begun + loops - listed).max(0.0)),
        bounds: Default::default(),
    }
}
