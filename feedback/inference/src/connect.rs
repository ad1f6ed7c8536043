//! Connects stray flow to the entry and to an exit.
//!
//! A loop whose entry was never sampled may keep its flow as a circulation of its own. Control did enter it: the
//! likeliest path from the entry to it and from it to an exit gets a small flow (profi §4.3).

use super::flow::Flow;
use super::graph::{BlockId, EdgeId, Exit, Graph};
use super::problem::Problem;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// More than any path costs.
const LAST_RESORT: i64 = 1 << 56;

/// Adds `amount` along a path through every part of the graph that has flow but no connection to the entry.
pub(super) fn connect(graph: &Graph, problem: &Problem, flow: &mut Flow, amount: i64) {
    let mut connected = vec![false; graph.blocks];
    if flow.entry > 0 {
        mark(graph, flow, 0, &mut connected);
    }
    let stray = |flow: &Flow, connected: &[bool]| {
        let blocks = (0..graph.blocks).filter(|&b| !connected[b] && graph.reachable[b]);
        blocks.filter(|&b| flow.leaving(graph, b) > 0).collect::<Vec<_>>()
    };
    let mut strays = stray(flow, &connected);
    if strays.is_empty() {
        return;
    }
    let from_entry = tree(
        graph,
        &[(0, 0)],
        |block| graph.out(block).map(|e| (e, graph.edges[e].to)).collect(),
        problem,
    );
    // Branch weights cannot tell that calls do not come back, and the optimiser does not believe that traps are run.
    let is_told = |b: BlockId| graph.exits[b] == Exit::Natural && !graph.unlikely[b];
    let exits: Vec<(BlockId, i64)> = (0..graph.blocks)
        .filter_map(|b| problem.exit_cost(b).map(|cost| (b, cost)))
        .map(|(b, cost)| (b, if is_told(b) { cost } else { cost + LAST_RESORT }))
        .collect();
    let to_exit = tree(
        graph,
        &exits,
        |block| {
            graph
                .incoming(block)
                .iter()
                .map(|&e| (e, graph.edges[e].from))
                .collect()
        },
        problem,
    );
    // The nearest first: what lies on its path gets connected with it.
    strays.sort_by_key(|&b| (from_entry[b].cost, b));
    for block in strays {
        if connected[block] {
            continue;
        }
        flow.entry += amount;
        let mut at = block;
        while let Some(edge) = from_entry[at].edge {
            flow.edges[edge] += amount;
            at = graph.edges[edge].from;
        }
        at = block;
        while let Some(edge) = to_exit[at].edge {
            flow.edges[edge] += amount;
            at = graph.edges[edge].to;
        }
        flow.exits[at] += amount;
        mark_path(graph, flow, block, &from_entry, &mut connected);
    }
}

/// How a shortest path gets to a block.
#[derive(Clone, Copy)]
struct Step {
    cost: i64,
    /// The edge between the block and the one before it on the path; `None` at the path's beginning.
    edge: Option<EdgeId>,
}

/// Shortest paths from any of the starts (Dijkstra).
fn tree(
    graph: &Graph,
    starts: &[(BlockId, i64)],
    neighbours: impl Fn(BlockId) -> Vec<(EdgeId, BlockId)>,
    problem: &Problem,
) -> Vec<Step> {
    let mut steps = vec![
        Step {
            cost: i64::MAX,
            edge: None
        };
        graph.blocks
    ];
    let mut heap = BinaryHeap::new();
    for &(block, cost) in starts {
        steps[block].cost = cost;
        heap.push(Reverse((cost, block)));
    }
    while let Some(Reverse((cost, block))) = heap.pop() {
        if cost > steps[block].cost {
            continue;
        }
        for (edge, next) in neighbours(block) {
            // Every step costs something, so that of equal paths the shortest is taken.
            let through = cost + problem.edge_cost(graph, edge) + 1;
            if graph.reachable[next] && through < steps[next].cost {
                steps[next] = Step {
                    cost: through,
                    edge: Some(edge),
                };
                heap.push(Reverse((through, next)));
            }
        }
    }
    steps
}

/// Marks what flow connects to a block, downstream.
fn mark(graph: &Graph, flow: &Flow, start: BlockId, connected: &mut [bool]) {
    if std::mem::replace(&mut connected[start], true) {
        return;
    }
    let mut stack = vec![start];
    while let Some(block) = stack.pop() {
        for edge in graph.out(block).filter(|&e| flow.edges[e] > 0) {
            let to = graph.edges[edge].to;
            if !std::mem::replace(&mut connected[to], true) {
                stack.push(to);
            }
        }
    }
}

/// Marks what a new path to a block connects.
fn mark_path(graph: &Graph, flow: &Flow, block: BlockId, from_entry: &[Step], connected: &mut [bool]) {
    let mut at = block;
    mark(graph, flow, at, connected);
    while let Some(edge) = from_entry[at].edge {
        at = graph.edges[edge].from;
        mark(graph, flow, at, connected);
    }
}
