//! How often each edge is taken, estimated or measured. The spanning tree leaves the heaviest edges without
//! instrumentation (§3.3 of the paper).
//!
//! The estimate follows Ball & Larus's heuristics (*Optimally Profiling and Tracing Programs*, TOPLAS 1994; *Branch
//! Prediction for Free*, PLDI 1993). A loop's header runs ten times for each entry of the loop. A block's weight is
//! divided evenly among its successor slots, but an edge that leaves the innermost loop gets a tenth of one that stays.
//! Edges to cold blocks get nothing, unless the branch has no other target. A block is cold if it begins with an
//! exception-handling pad, ends in `unreachable` or `resume`, or leads only to cold blocks.

use super::data::{End, Start};
use super::graph::{EdgeKind, PathGraph};
use super::search::DepthFirstSearch;
use super::tree::DisjointSets;
use pleach_annotate::cfg::{Cfg, Terminator};
use pleach_annotate::id::BlockIndex;
use rustc_hash::FxHashMap;

/// Weight of the function's entry: large enough to be divided at many branches.
const ENTRY_WEIGHT: u64 = 1 << 24;
/// Assumed iterations of a loop, and the ratio of the probabilities of staying in it and of leaving it.
const LOOP_ITERATIONS: u64 = 10;
/// Upper bound of a block's weight, so that sums of edges do not overflow at any nesting of loops.
const MAX_BLOCK_WEIGHT: u64 = 1 << 50;

/// Weights estimated from the graph only, by [`EdgeIndex`](crate::graph::EdgeIndex). An entry of the function weighs
/// 2^24.
///
/// Ends in calls have weight 0: their number is recorded at every visit of the block, whether or not the edge is a
/// chord.
pub fn static_weights(cfg: &Cfg, graph: &PathGraph) -> Vec<u64> {
    let search = DepthFirstSearch::new(cfg);
    let cold = cold_blocks(cfg, &search);
    let loops = Loops::new(&search);
    let mut blocks = vec![0_u64; cfg.blocks.len()];
    let mut edge_weights = vec![0_u64; search.edges.len()];
    if let Some(first) = blocks.first_mut() {
        *first = ENTRY_WEIGHT;
    }
    for &from in search.postorder.iter().rev() {
        if loops.is_header[from] {
            blocks[from] = blocks[from].saturating_mul(LOOP_ITERATIONS);
        }
        blocks[from] = blocks[from].min(MAX_BLOCK_WEIGHT);
        let out = search.out(from);
        let mut shares: Vec<u64> = out
            .clone()
            .map(|edge| {
                let to = search.edges[edge].to;
                let slots = u64::from(search.edges[edge].slots);
                if cold[to] && !search.edges[edge].back {
                    0
                } else if loops.leaves(from, to) {
                    slots
                } else {
                    slots * LOOP_ITERATIONS
                }
            })
            .collect();
        if shares.iter().all(|&share| share == 0) {
            shares = out.clone().map(|edge| search.edges[edge].slots.into()).collect();
        }
        let all: u128 = shares.iter().map(|&share| u128::from(share)).sum();
        for (edge, share) in out.zip(shares) {
            // Fits, because it is at most the block's weight.
            edge_weights[edge] = (u128::from(blocks[from]) * u128::from(share) / all) as u64;
            if !search.edges[edge].back {
                let sum = &mut blocks[search.edges[edge].to];
                *sum = sum.saturating_add(edge_weights[edge]);
            }
        }
    }
    let edges: FxHashMap<_, _> = (search.postorder.iter())
        .flat_map(|&from| search.out(from).map(move |edge| (from, edge)))
        .map(|(from, edge)| ((from, search.edges[edge].to), edge_weights[edge]))
        .collect();
    let edge = |from: BlockIndex, to: BlockIndex| edges.get(&(from.index(), to.index())).copied().unwrap_or(0);
    assign(graph, ENTRY_WEIGHT, edge, |block| blocks[block.index()])
}

/// Weights from measured counts, by [`EdgeIndex`](crate::graph::EdgeIndex). `entry` is the number of calls of the
/// function. `edge` is the count of an edge between two blocks; successor slots with the same target are one edge.
pub fn measured_weights(graph: &PathGraph, entry: u64, edge: impl Fn(BlockIndex, BlockIndex) -> u64) -> Vec<u64> {
    let mut blocks = vec![0_u64; graph.blocks()];
    if let Some(first) = blocks.first_mut() {
        *first = entry;
    }
    for &kind in graph.edges() {
        if let Some((from, to)) = edge_of_function(kind) {
            let sum = &mut blocks[to.index()];
            *sum = sum.saturating_add(edge(from, to));
        }
    }
    assign(graph, entry, edge, |block| blocks[block.index()])
}

/// The edge of the function that an edge of the graph represents.
fn edge_of_function(kind: EdgeKind) -> Option<(BlockIndex, BlockIndex)> {
    match kind {
        EdgeKind::Flow(from, to) | EdgeKind::End(from, End::Back(to) | End::Cut(to)) => Some((from, to)),
        EdgeKind::SelfLoop(block) => Some((block, block)),
        EdgeKind::Start(..) | EdgeKind::End(_, End::Exit | End::Call) => None,
    }
}

/// Converts weights of the function's edges and blocks to weights of the graph's edges.
fn assign(
    graph: &PathGraph,
    entry: u64,
    edge: impl Fn(BlockIndex, BlockIndex) -> u64,
    block: impl Fn(BlockIndex) -> u64,
) -> Vec<u64> {
    let mut inside = vec![0_u64; graph.blocks()];
    let mut weights = vec![0; graph.edges().len()];
    for (weight, &kind) in weights.iter_mut().zip(graph.edges()) {
        *weight = match kind {
            EdgeKind::Start(Start::Entry, _) => entry,
            EdgeKind::End(last, End::Exit) => block(last),
            _ => edge_of_function(kind).map_or(0, |(from, to)| edge(from, to)),
        };
        if let EdgeKind::End(_, End::Back(to) | End::Cut(to)) = kind {
            inside[to.index()] = inside[to.index()].saturating_add(*weight);
        }
    }
    for (weight, &kind) in weights.iter_mut().zip(graph.edges()) {
        if let EdgeKind::Start(Start::Inside, first) = kind {
            *weight = inside[first.index()];
        }
    }
    weights
}

/// Blocks that are assumed to run rarely.
fn cold_blocks(cfg: &Cfg, search: &DepthFirstSearch) -> Vec<bool> {
    let mut cold: Vec<bool> = cfg
        .blocks
        .iter()
        .map(|b| b.is_eh_pad || matches!(b.terminator, Terminator::Unreachable | Terminator::Resume))
        .collect();
    for &block in &search.postorder {
        let mut out = search.out(block).map(|edge| &search.edges[edge]);
        cold[block] |= !search.out(block).is_empty() && out.all(|edge| !edge.back && cold[edge.to]);
    }
    cold
}

/// The function's loops, one for each target of back edges, and how they nest (Havlak, *Nesting of Reducible and
/// Irreducible Loops*, TOPLAS 1997). Edges that enter an irreducible loop beside its header are ignored.
struct Loops {
    is_header: Vec<bool>,
    /// By block: the header of the innermost loop that contains it and has another header.
    header: Vec<Option<usize>>,
    /// By block: number of loops that contain it and have another header.
    depth: Vec<u32>,
}

impl Loops {
    fn new(search: &DepthFirstSearch) -> Self {
        let blocks = search.entered.len();
        let forward = search.predecessors(|edge| !edge.back);
        let back = search.predecessors(|edge| edge.back);
        let mut this = Self {
            is_header: vec![false; blocks],
            header: vec![None; blocks],
            depth: vec![0; blocks],
        };
        let mut sets = DisjointSets::new(blocks);
        let mut seen_in = vec![None; blocks];
        // Inner loops first. Each is merged with its header, so that outer loops treat it as one block.
        for &header in search.preorder.iter().rev() {
            let origins = back.of_block(header);
            this.is_header[header] = !origins.is_empty();
            seen_in[header] = Some(header);
            let mut body = Vec::new();
            let mut add = |block: usize, body: &mut Vec<usize>, sets: &mut DisjointSets| {
                let block = sets.find(block);
                let below =
                    search.entered[header] <= search.entered[block] && search.left[block] <= search.left[header];
                if below && seen_in[block].replace(header) != Some(header) {
                    body.push(block);
                }
            };
            for &origin in origins {
                add(origin, &mut body, &mut sets);
            }
            let mut next = 0;
            while let Some(&block) = body.get(next) {
                next += 1;
                for &origin in forward.of_block(block) {
                    add(origin, &mut body, &mut sets);
                }
            }
            for block in body {
                this.header[block] = Some(header);
                sets.put_into(block, header);
            }
        }
        // A header is entered before the blocks of its loop.
        for &block in &search.preorder {
            this.depth[block] = this.header[block].map_or(0, |header| this.depth[header] + 1);
        }
        this
    }

    /// Whether an edge leaves the innermost loop of its origin.
    fn leaves(&self, from: usize, to: usize) -> bool {
        let innermost = if self.is_header[from] {
            Some(from)
        } else {
            self.header[from]
        };
        let Some(innermost) = innermost else { return false };
        let mut at = to;
        while self.depth[at] > self.depth[innermost] {
            let Some(header) = self.header[at] else { break };
            at = header;
        }
        at != innermost
    }
}
