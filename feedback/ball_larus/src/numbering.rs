//! Values on edges so that the sum along each path from ENTRY to EXIT is another number, 0…N−1 (§3.2 of the paper,
//! figure 5), and the edges that are cut so that N stays small (§5).

use super::graph::{Arc, EdgeKind, PathGraph, Search};
use super::{Mode, Options};

/// One more than what any function's number of numbers may be: windows of one path then fit in 62 bits.
const MOST_NUMBERS: u64 = 1 << 61;

/// What each edge adds to a path's number.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbering {
    /// N.
    pub paths: u64,
    /// By block: how many paths lead from it to EXIT.
    pub paths_from: Vec<u64>,
    /// By edge, self loops left out: `Val`.
    pub values: Vec<u64>,
    /// The edges again, those that leave one vertex ordered by value.
    pub order: Vec<u32>,
}

impl Numbering {
    /// Numbers a graph's paths. Where edges are counted there is no number, and every value is 0.
    ///
    /// The edge with the most paths behind it gets 0, so that the increments stay small (§5: smaller constants, and
    /// none at all where most paths go).
    pub fn new(graph: &PathGraph, search: &Search, mode: Mode) -> Self {
        let edges = graph.acyclic();
        let mut this = Self {
            paths: 0,
            paths_from: vec![0; graph.blocks()],
            values: vec![0; edges],
            order: (0..edges as u32).collect(),
        };
        if mode == Mode::Paths {
            for &block in &search.postorder {
                this.paths_from[block] = this.assign(graph, block);
            }
            this.paths = this.assign(graph, graph.entry());
        }
        this
    }

    /// Gives a vertex's edges their values, once all their targets have theirs. The number of paths from the vertex.
    fn assign(&mut self, graph: &PathGraph, vertex: usize) -> u64 {
        let Self {
            paths_from,
            values,
            order,
            ..
        } = self;
        let paths = |edge: u32| match graph.edges()[edge as usize] {
            EdgeKind::End(..) => 1,
            _ => paths_from[graph.target(edge as usize)],
        };
        let order = &mut order[graph.out(vertex)];
        // Stable: equals stay in the order of edges.
        order.sort_by_key(|&edge| std::cmp::Reverse(paths(edge)));
        let mut sum = 0;
        for &edge in &*order {
            values[edge as usize] = sum;
            sum += paths(edge);
        }
        sum
    }
}

/// What becomes of one of the function's edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It stays.
    Flow,
    /// Paths end at it since it closes a cycle.
    Back,
    /// Paths end at it since there would be too many.
    Cut,
    /// It is counted by itself.
    Alone,
    /// It is never taken.
    Unreachable,
}

/// What becomes of each of [`Search::arcs`]. By block, `leaves` says whether a path may end in one of its calls.
pub(super) fn fates(search: &Search, options: &Options, leaves: &[bool]) -> Vec<Fate> {
    let mut fates = vec![Fate::Unreachable; search.arcs.len()];
    for &from in &search.postorder {
        for arc in search.out(from) {
            let Arc { to, back, .. } = search.arcs[arc];
            fates[arc] = if options.mode == Mode::Edges || !back {
                Fate::Flow
            } else if to == from && options.iterations <= 1 && search.out(from).len() > 1 {
                Fate::Alone
            } else {
                // Also a block's only edge, if it leads back to the block: something has to lead to EXIT.
                Fate::Back
            };
        }
    }
    if options.mode == Mode::Paths {
        cut(search, &mut fates, leaves, options.max_paths);
    }
    fates
}

/// Cuts the edges of blocks from which more than `max_paths` paths would lead, in reverse topological order.
///
/// From such a block as many paths remain as it has edges: more than `max_paths` only where it has more edges. Blocks
/// that cutting would leave with as many paths as before keep their edges. Since as many paths begin as there are
/// blocks, at most, `max_paths` is lowered where N could otherwise exceed 61 bits.
fn cut(search: &Search, fates: &mut [Fate], leaves: &[bool], max_paths: u64) {
    let blocks = leaves.len() as u64;
    let limit = max_paths.min(MOST_NUMBERS / (blocks + 1)).max(1);
    let mut paths_from = vec![0_u64; leaves.len()];
    for &block in &search.postorder {
        let out = search.out(block);
        let ends = u64::from(out.is_empty() || leaves[block]);
        let (mut edges, mut paths) = (ends, ends);
        for arc in out.clone() {
            let behind = match fates[arc] {
                Fate::Flow => paths_from[search.arcs[arc].to],
                Fate::Back => 1,
                Fate::Cut | Fate::Alone | Fate::Unreachable => continue,
            };
            edges += 1;
            // Each addend is below 2^61 and so is their number times the limit.
            paths += behind;
        }
        if paths > limit && paths > edges {
            for fate in &mut fates[out] {
                if *fate == Fate::Flow {
                    *fate = Fate::Cut;
                }
            }
            paths = edges;
        }
        paths_from[block] = paths;
    }
}
