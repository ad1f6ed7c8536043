//! How often each edge is taken, estimated or measured: what the spanning tree leaves uninstrumented (§3.3 of the paper).
//!
//! The estimate is in the spirit of Ball & Larus's heuristics (*Optimally Profiling and Tracing Programs*, TOPLAS 1994;
//! *Branch Prediction for Free*, PLDI 1993). A loop's header runs ten times for each time the loop is entered. A branch
//! divides evenly among its successor slots, but an edge that leaves the innermost loop gets a tenth of one that stays.
//! Nothing goes to blocks that begin with an exception-handling pad, never finish, go on unwinding or lead only to such
//! blocks, unless the branch has no other target.

use super::graph::{EdgeKind, PathGraph, Search};
use super::tree::Sets;
use super::{End, Start};
use pleach_annotate::cfg::{Cfg, Terminator};
use pleach_annotate::id::BlockIndex;
use rustc_hash::FxHashMap;

/// What the function's entry weighs: enough that halves of halves remain.
const ENTRY: u64 = 1 << 24;
/// How often a loop goes round, and how much likelier staying in it is than leaving.
const ROUNDS: u64 = 10;
/// No block weighs more, so that sums of edges do not overflow however deep loops nest.
const MOST: u64 = 1 << 50;

/// Estimates from the graph alone. By [`super::graph::EdgeIndex`]; an entry of the function weighs 2^24.
///
/// Ends in calls weigh nothing: the number is recorded at every visit of the block, whether or not its edge is a chord.
pub fn static_weights(cfg: &Cfg, graph: &PathGraph) -> Vec<u64> {
    let search = Search::new(cfg);
    let cold = cold_blocks(cfg, &search);
    let loops = Loops::new(&search);
    let mut blocks = vec![0_u64; cfg.blocks.len()];
    let mut arcs = vec![0_u64; search.arcs.len()];
    if let Some(first) = blocks.first_mut() {
        *first = ENTRY;
    }
    for &from in search.postorder.iter().rev() {
        if loops.is_header[from] {
            blocks[from] = blocks[from].saturating_mul(ROUNDS);
        }
        blocks[from] = blocks[from].min(MOST);
        let out = search.out(from);
        let mut shares: Vec<u64> = out
            .clone()
            .map(|arc| {
                let to = search.arcs[arc].to;
                let slots = u64::from(search.arcs[arc].slots);
                if cold[to] && !search.arcs[arc].back {
                    0
                } else if loops.leaves(from, to) {
                    slots
                } else {
                    slots * ROUNDS
                }
            })
            .collect();
        if shares.iter().all(|&share| share == 0) {
            shares = out.clone().map(|arc| search.arcs[arc].slots.into()).collect();
        }
        let all: u128 = shares.iter().map(|&share| u128::from(share)).sum();
        for (arc, share) in out.zip(shares) {
            // At most the block's own weight, which fits.
            arcs[arc] = (u128::from(blocks[from]) * u128::from(share) / all) as u64;
            if !search.arcs[arc].back {
                let sum = &mut blocks[search.arcs[arc].to];
                *sum = sum.saturating_add(arcs[arc]);
            }
        }
    }
    let edges: FxHashMap<_, _> = (search.postorder.iter())
        .flat_map(|&from| search.out(from).map(move |arc| (from, arc)))
        .map(|(from, arc)| ((from, search.arcs[arc].to), arcs[arc]))
        .collect();
    let edge = |from: BlockIndex, to: BlockIndex| edges.get(&(from.index(), to.index())).copied().unwrap_or(0);
    assign(graph, ENTRY, edge, |block| blocks[block.index()])
}

/// What was measured, by [`super::graph::EdgeIndex`]: how often the function was entered, and how often each edge was
/// taken, successor slots of one target together.
pub fn measured(graph: &PathGraph, entry: u64, edge: impl Fn(BlockIndex, BlockIndex) -> u64) -> Vec<u64> {
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

/// The edge of the function that an edge of the graph stands for.
fn edge_of_function(kind: EdgeKind) -> Option<(BlockIndex, BlockIndex)> {
    match kind {
        EdgeKind::Flow(from, to) | EdgeKind::End(from, End::Back(to) | End::Cut(to)) => Some((from, to)),
        EdgeKind::SelfLoop(block) => Some((block, block)),
        EdgeKind::Start(..) | EdgeKind::End(_, End::Exit | End::Call) => None,
    }
}

/// From weights of the function's edges and blocks to those of the graph's edges.
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

/// Blocks that nobody expects to run.
fn cold_blocks(cfg: &Cfg, search: &Search) -> Vec<bool> {
    let mut cold: Vec<bool> = cfg
        .blocks
        .iter()
        .map(|b| b.is_eh_pad || matches!(b.terminator, Terminator::Unreachable | Terminator::Resume))
        .collect();
    for &block in &search.postorder {
        let mut out = search.out(block).map(|arc| &search.arcs[arc]);
        cold[block] |= !search.out(block).is_empty() && out.all(|arc| !arc.back && cold[arc.to]);
    }
    cold
}

/// The function's loops, one for each target of back edges, and how they nest (Havlak, *Nesting of Reducible and
/// Irreducible Loops*, TOPLAS 1997). What enters an irreducible loop beside its header is not followed further.
struct Loops {
    is_header: Vec<bool>,
    /// By block: the header of the innermost loop that it is in without being its header.
    header: Vec<Option<usize>>,
    /// By block: how many loops it is in without being their header.
    depth: Vec<u32>,
}

impl Loops {
    fn new(search: &Search) -> Self {
        let blocks = search.entered.len();
        let (forward, forward_at) = search.incoming(|arc| !arc.back);
        let (back, back_at) = search.incoming(|arc| arc.back);
        let mut this = Self {
            is_header: vec![false; blocks],
            header: vec![None; blocks],
            depth: vec![0; blocks],
        };
        let mut sets = Sets::new(blocks);
        let mut seen_in = vec![None; blocks];
        // Inner loops first. Each becomes one with its header, so that outer loops pass over it.
        for &header in search.preorder.iter().rev() {
            let origins = &back[back_at[header]..back_at[header + 1]];
            this.is_header[header] = !origins.is_empty();
            seen_in[header] = Some(header);
            let mut body = Vec::new();
            let mut add = |block: usize, body: &mut Vec<usize>, sets: &mut Sets| {
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
                for &origin in &forward[forward_at[block]..forward_at[block + 1]] {
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
