//! Values on edges whose sum along a path from ENTRY to EXIT is the path's number, 0…N−1 (§3.2 of the paper, figure 5),
//! and the choice of edges to cut so that N stays small (§5).

use super::data::{Mode, NumberingOptions};
use super::search::{DepthFirstSearch, MergedEdge};
use std::ops::Range;

/// Every function has fewer path numbers than this, so that keys of windows of one path fit in 62 bits.
const MAX_NUMBERS: u64 = 1 << 61;

/// A block, ENTRY or EXIT: blocks by index, then ENTRY, then EXIT.
pub(super) type Vertex = usize;

/// The acyclic part of a path graph.
pub(super) struct AcyclicEdges<'s> {
    /// Reachable blocks, each after the targets of its edges.
    pub postorder: &'s [usize],
    /// Number of blocks.
    pub blocks: usize,
    /// The vertex ENTRY.
    pub entry: Vertex,
    /// By edge: its target.
    pub targets: Vec<Vertex>,
}

/// The values that edges add to path numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbering {
    /// N.
    pub paths: u64,
    /// By block: number of paths from it to EXIT.
    pub paths_from: Vec<u64>,
    /// By edge, self loops left out: `Val`.
    pub values: Vec<u64>,
    /// Positions of edges; those that leave the same vertex are ordered by value.
    pub order: Vec<u32>,
}

impl Numbering {
    /// Numbers a graph's paths. When edges are counted, there are no numbers and all values are 0.
    ///
    /// `out` gives the edges that leave a vertex. Among them, the edge with the most paths after it gets value 0, so
    /// that increments are small, and absent where most paths go (§5).
    pub fn new(graph: &AcyclicEdges<'_>, out: impl Fn(Vertex) -> Range<usize>, mode: Mode) -> Self {
        let edges = graph.targets.len();
        let mut this = Self {
            paths: 0,
            paths_from: vec![0; graph.blocks],
            values: vec![0; edges],
            order: (0..edges as u32).collect(),
        };
        if mode == Mode::Paths {
            for &block in graph.postorder {
                this.paths_from[block] = this.assign(graph, out(block));
            }
            this.paths = this.assign(graph, out(graph.entry));
        }
        this
    }

    /// Assigns values to the edges that leave a vertex, once their targets are numbered. Returns the number of paths
    /// from the vertex.
    fn assign(&mut self, graph: &AcyclicEdges<'_>, out: Range<usize>) -> u64 {
        let Self {
            paths_from,
            values,
            order,
            ..
        } = self;
        // Only EXIT has no entry in `paths_from`.
        let paths = |edge: u32| paths_from.get(graph.targets[edge as usize]).copied().unwrap_or(1);
        let order = &mut order[out];
        // Stable, so that edges with equally many paths keep their order.
        order.sort_by_key(|&edge| std::cmp::Reverse(paths(edge)));
        let mut sum = 0;
        for &edge in &*order {
            values[edge as usize] = sum;
            sum += paths(edge);
        }
        sum
    }
}

/// The role of one of the function's edges in the path graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EdgeRole {
    /// Paths pass it.
    Flow,
    /// Paths end at it because it closes a cycle.
    Back,
    /// Paths end at it because there would be too many otherwise.
    Cut,
    /// It leads back to its own block and has a counter of its own.
    SelfLoop,
    /// Its origin is unreachable.
    Unreachable,
}

/// The role of each of [`DepthFirstSearch::edges`]. `leaves` says of each block whether a path may end in one of its
/// calls.
pub(super) fn edge_roles(search: &DepthFirstSearch, options: &NumberingOptions, leaves: &[bool]) -> Vec<EdgeRole> {
    let mut roles = vec![EdgeRole::Unreachable; search.edges.len()];
    for &from in &search.postorder {
        for edge in search.out(from) {
            let MergedEdge { to, back, .. } = search.edges[edge];
            roles[edge] = if options.mode == Mode::Edges || !back {
                EdgeRole::Flow
            } else if to == from && options.iterations <= 1 && search.out(from).len() > 1 {
                EdgeRole::SelfLoop
            } else {
                // A block's only edge is no self loop, because the block needs an edge to EXIT.
                EdgeRole::Back
            };
        }
    }
    if options.mode == Mode::Paths {
        cut(search, &mut roles, leaves, options.max_paths);
    }
    roles
}

/// Cuts the edges of blocks with more than `max_paths` paths to EXIT, in reverse topological order.
///
/// After the cut, a block has one path for each of its edges. A block that cutting would leave with as many paths as
/// before keeps its edges. Paths begin at no more places than there are blocks; `max_paths` is lowered if N could
/// otherwise exceed 61 bits.
fn cut(search: &DepthFirstSearch, roles: &mut [EdgeRole], leaves: &[bool], max_paths: u64) {
    let blocks = leaves.len() as u64;
    let limit = max_paths.min(MAX_NUMBERS / (blocks + 1)).max(1);
    let mut paths_from = vec![0_u64; leaves.len()];
    for &block in &search.postorder {
        let out = search.out(block);
        let ends = u64::from(out.is_empty() || leaves[block]);
        let (mut edges, mut paths) = (ends, ends);
        for edge in out.clone() {
            let behind = match roles[edge] {
                EdgeRole::Flow => paths_from[search.edges[edge].to],
                EdgeRole::Back => 1,
                EdgeRole::Cut | EdgeRole::SelfLoop | EdgeRole::Unreachable => continue,
            };
            edges += 1;
            // Cannot overflow: each addend is below 2^61, and so is the number of blocks times the limit.
            paths += behind;
        }
        if paths > limit && paths > edges {
            for role in &mut roles[out] {
                if *role == EdgeRole::Flow {
                    *role = EdgeRole::Cut;
                }
            }
            paths = edges;
        }
        paths_from[block] = paths;
    }
}
