//! The variant that counts edges only (figure 3 of the paper; Ball & Larus, *Optimally Profiling and Tracing Programs*,
//! TOPLAS 1994): counters on the chords of a spanning tree, and the other edges by Kirchhoff's law. Also converts the
//! counts of both modes to counts of the function's own blocks and edges.

use super::data::{End, Index, Op, Plan, Start};
use super::graph::{EdgeKind, PathGraph};
use super::numbering::Vertex;
use super::{place, tree};
use pleach_annotate::id::BlockIndex;
use std::collections::BTreeMap;

/// Counters that finished executions of the function cannot have produced.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Inconsistent {
    /// The number of counts differs from the number of counters.
    #[error("{counts} counts for {chords} counters")]
    Length {
        /// Number of counts.
        counts: usize,
        /// Number of counters.
        chords: usize,
    },
    /// The graph has no such edge.
    #[error("a counter for edge {0}, which does not exist")]
    NoSuchEdge(u32),
    /// The edges without counters do not form a spanning tree, or flow in and out of the function differ.
    #[error("the counters do not determine the other edges")]
    Undetermined,
    /// An edge's count would be negative or not fit in 64 bits.
    #[error("edge {edge} would have been taken {count} times")]
    Impossible {
        /// The edge, by [`super::graph::EdgeIndex`].
        edge: u32,
        /// Its count.
        count: i128,
    },
}

/// A number that no path of the function has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("number {number}, but the function's paths have only those below {numbers}")]
pub struct OutOfRange {
    /// The number.
    pub number: u64,
    /// One more than the highest number.
    pub numbers: u64,
}

/// Exact counts of a function's blocks and edges. They are comparable whether paths or edges were counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExactFlow {
    /// Calls of the function.
    pub entries: u64,
    /// By block: how often it was entered, resumptions by a second return included.
    pub blocks: Vec<u64>,
    /// Executions of each edge. Successor slots with the same target are one edge; every edge of the graph is listed.
    pub edges: BTreeMap<(BlockIndex, BlockIndex), u64>,
    /// By block: how often control left the function there, by a return or by a call that did not return.
    pub exits: Vec<u64>,
}

/// The plan for a graph that was made with [`Mode::Edges`](crate::Mode::Edges): counter i counts edge `chords[i]`.
/// `weights` estimates how often each edge is taken, by [`EdgeIndex`](crate::graph::EdgeIndex); missing weights are 0.
pub fn plan(graph: &PathGraph, weights: &[u64]) -> Plan {
    let tree = tree::spanning(graph, |edge| match graph.edges()[edge] {
        // An end in a call and a second return have counters of their own. Without these edges the graph is still
        // connected, because every block is reachable from the first.
        EdgeKind::End(_, End::Call) | EdgeKind::Start(Start::Inside, _) => None,
        // In a block with successors, this edge represents activations that never end, which no counter could count.
        EdgeKind::End(block, End::Exit) if graph.out(block.index()).len() > 1 => Some(u64::MAX),
        _ => Some(weights.get(edge).copied().unwrap_or(0).min(u64::MAX - 1)),
    });
    let mut counter = vec![None; graph.edges().len()];
    let mut chords = Vec::new();
    for edge in (0..graph.edges().len()).filter(|&e| !tree[e]) {
        counter[edge] = Some(Op::Count(Index::Const(chords.len() as u64)));
        chords.push(edge as u32);
    }
    let mut plan = place::assemble(graph, |edge| counter[edge]);
    plan.numbers = chords.len() as u64;
    plan.counters = plan.numbers;
    plan.chords = chords;
    plan
}

/// The counts of all edges, by [`EdgeIndex`](crate::graph::EdgeIndex), from those of a plan's [`Plan::chords`].
///
/// # Errors
/// Fails if no executions of the function could have produced these counts.
pub fn solve(graph: &PathGraph, chords: &[u32], counts: &[u64]) -> Result<Vec<u64>, Inconsistent> {
    if chords.len() != counts.len() {
        let (counts, chords) = (counts.len(), chords.len());
        return Err(Inconsistent::Length { counts, chords });
    }
    let mut known = vec![None; graph.edges().len()];
    for (&chord, &count) in chords.iter().zip(counts) {
        let edge = known.get_mut(chord as usize).ok_or(Inconsistent::NoSuchEdge(chord))?;
        *edge = Some(count);
    }
    Equations::new(graph, known).solve()
}

/// Flow conservation at each vertex: equations with the counts of the tree's edges as unknowns.
struct Equations {
    /// By edge: origin and target. The last is the edge from EXIT to ENTRY.
    ends: Vec<(Vertex, Vertex)>,
    counts: Vec<Option<u64>>,
    /// By vertex: inflow minus outflow over edges with known counts.
    excess: Vec<i128>,
    /// By vertex: number of its edges with unknown counts.
    unknown: Vec<usize>,
    /// By vertex: exclusive or of the positions of its unknown edges. If one remains, this is its position.
    remaining: Vec<usize>,
}

impl Equations {
    fn new(graph: &PathGraph, mut counts: Vec<Option<u64>>) -> Self {
        counts.push(None);
        let mut ends: Vec<_> = (0..graph.edges().len())
            .map(|e| (graph.source(e), graph.target(e)))
            .collect();
        ends.push((graph.exit(), graph.entry()));
        let mut this = Self {
            ends,
            counts,
            excess: vec![0; graph.vertices()],
            unknown: vec![0; graph.vertices()],
            remaining: vec![0; graph.vertices()],
        };
        for edge in 0..this.ends.len() {
            let (from, to) = this.ends[edge];
            match this.counts[edge] {
                Some(count) => this.flow(edge, count.into()),
                None => {
                    for vertex in [from, to] {
                        this.unknown[vertex] += 1;
                        this.remaining[vertex] ^= edge;
                    }
                }
            }
        }
        this
    }

    fn flow(&mut self, edge: usize, count: i128) {
        let (from, to) = self.ends[edge];
        self.excess[from] -= count;
        self.excess[to] += count;
    }

    /// Solves leaves of the tree first: the count of a leaf's one unknown edge balances its known edges.
    fn solve(mut self) -> Result<Vec<u64>, Inconsistent> {
        let mut leaves: Vec<Vertex> = (0..self.unknown.len()).filter(|&v| self.unknown[v] == 1).collect();
        while let Some(leaf) = leaves.pop() {
            if self.unknown[leaf] != 1 {
                continue;
            }
            let edge = self.remaining[leaf];
            let (from, to) = self.ends[edge];
            let count = if from == leaf {
                self.excess[leaf]
            } else {
                -self.excess[leaf]
            };
            let impossible = |_| Inconsistent::Impossible {
                edge: edge as u32,
                count,
            };
            self.counts[edge] = Some(u64::try_from(count).map_err(impossible)?);
            self.flow(edge, count);
            for vertex in [from, to] {
                self.unknown[vertex] -= 1;
                self.remaining[vertex] ^= edge;
            }
            leaves.push(if from == leaf { to } else { from });
        }
        if self.excess.iter().any(|&excess| excess != 0) {
            return Err(Inconsistent::Undetermined);
        }
        self.counts.pop();
        self.counts
            .into_iter()
            .collect::<Option<_>>()
            .ok_or(Inconsistent::Undetermined)
    }
}

/// The counts of all edges, by [`EdgeIndex`](crate::graph::EdgeIndex), from (path number, count) pairs. Sums saturate.
///
/// # Errors
/// Fails if no path has one of the numbers.
pub fn counts_of_paths(
    graph: &PathGraph,
    counts: impl IntoIterator<Item = (u64, u64)>,
) -> Result<Vec<u64>, OutOfRange> {
    let mut sums = vec![0_u64; graph.edges().len()];
    for (number, count) in counts {
        let numbers = graph.numbers();
        let edges = graph.edges_of(number).ok_or(OutOfRange { number, numbers })?;
        for edge in edges {
            let sum = &mut sums[edge.index()];
            *sum = sum.saturating_add(count);
        }
    }
    Ok(sums)
}

/// Counts of the function's own blocks and edges, from the counts of all of the graph's edges, by
/// [`EdgeIndex`](crate::graph::EdgeIndex) (see [`solve`] and [`counts_of_paths`]). Missing counts are 0; sums saturate.
pub fn flow(graph: &PathGraph, edge_counts: &[u64]) -> ExactFlow {
    let mut flow = ExactFlow {
        entries: 0,
        blocks: vec![0; graph.blocks()],
        edges: BTreeMap::new(),
        exits: vec![0; graph.blocks()],
    };
    for (edge, &kind) in graph.edges().iter().enumerate() {
        let count = edge_counts.get(edge).copied().unwrap_or(0);
        let add = |sum: &mut u64| *sum = sum.saturating_add(count);
        let from = match kind {
            EdgeKind::Start(Start::Entry, _) => {
                add(&mut flow.entries);
                continue;
            }
            // The edge that led there, or the call that returned twice, is counted at its origin.
            EdgeKind::Start(Start::Inside, _) => continue,
            EdgeKind::Flow(from, to) | EdgeKind::End(from, End::Back(to) | End::Cut(to)) => {
                add(flow.edges.entry((from, to)).or_default());
                from
            }
            EdgeKind::SelfLoop(block) => {
                add(flow.edges.entry((block, block)).or_default());
                block
            }
            EdgeKind::End(block, End::Exit | End::Call) => {
                add(&mut flow.exits[block.index()]);
                block
            }
        };
        add(&mut flow.blocks[from.index()]);
    }
    flow
}
