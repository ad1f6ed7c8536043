//! Which edges carry instrumentation, and the increment of each (§3.3 of the paper; Ball, *Efficiently Counting Program
//! Events with Support for On-line Queries*, TOPLAS 1994).

use super::data::End;
use super::graph::{EdgeIndex, EdgeKind, PathGraph};

/// The edges of a spanning tree of maximum weight, by [`EdgeIndex`]; all other edges are chords.
///
/// The tree also has an edge from EXIT to ENTRY, which the graph does not list. `weight` is the gain of leaving an edge
/// without instrumentation. Edges without a weight are chords; the others must connect the graph. Among edges of equal
/// weight the first ones are chosen, and ends in calls last, because their number is recorded in either case.
pub fn spanning(graph: &PathGraph, weight: impl Fn(usize) -> Option<u64>) -> Vec<bool> {
    let mut candidates: Vec<(std::cmp::Reverse<u64>, bool, u32)> = (0..graph.acyclic())
        .filter_map(|edge| {
            let call = matches!(graph.edges()[edge], EdgeKind::End(_, End::Call));
            Some((std::cmp::Reverse(weight(edge)?), call, edge as u32))
        })
        .collect();
    candidates.sort_unstable();
    let mut sets = DisjointSets::new(graph.vertices());
    sets.join(graph.exit(), graph.entry());
    let mut tree = vec![false; graph.edges().len()];
    for (_, _, edge) in candidates {
        let edge = edge as usize;
        tree[edge] = sets.join(graph.source(edge), graph.target(edge));
    }
    tree
}

/// The increments of the chords: their sum along every path from ENTRY to EXIT is the path's number. Edges of the tree
/// and self loops have 0. Arithmetic wraps.
///
/// A chord's increment is the sum of the values around the cycle that it closes with the tree, negated for edges
/// against the direction of the cycle. This equals the chord's value plus the difference of its ends' distances from
/// the root, where the distance sums values along the tree in the same way.
pub fn increments(graph: &PathGraph, tree: &[bool]) -> Vec<i64> {
    let value = |edge: usize| graph.value(EdgeIndex(edge as u32)) as i64;
    let mut neighbours = vec![Vec::new(); graph.vertices()];
    for edge in (0..graph.acyclic()).filter(|&e| tree[e]) {
        let (from, to) = (graph.source(edge), graph.target(edge));
        neighbours[from].push((to, value(edge)));
        neighbours[to].push((from, value(edge).wrapping_neg()));
    }
    // The edge from EXIT to ENTRY has value 0.
    neighbours[graph.exit()].push((graph.entry(), 0));
    neighbours[graph.entry()].push((graph.exit(), 0));
    let mut distance = vec![None; graph.vertices()];
    distance[graph.entry()] = Some(0_i64);
    let mut stack = vec![graph.entry()];
    while let Some(vertex) = stack.pop() {
        let base = distance[vertex].unwrap_or(0);
        for &(to, step) in &neighbours[vertex] {
            if distance[to].is_none() {
                distance[to] = Some(base.wrapping_add(step));
                stack.push(to);
            }
        }
    }
    let at = |vertex: usize| distance[vertex].unwrap_or(0);
    let increment = |edge: usize| {
        value(edge)
            .wrapping_add(at(graph.source(edge)))
            .wrapping_sub(at(graph.target(edge)))
    };
    let chord = |edge: usize| edge < graph.acyclic() && !tree[edge];
    (0..graph.edges().len())
        .map(|edge| if chord(edge) { increment(edge) } else { 0 })
        .collect()
}

/// Disjoint sets of vertices. Unlike `petgraph`'s `UnionFind`, the caller chooses the representative.
pub(super) struct DisjointSets(Vec<usize>);

impl DisjointSets {
    pub fn new(vertices: usize) -> Self {
        Self((0..vertices).collect())
    }

    /// The representative of a vertex's set.
    pub fn find(&mut self, mut vertex: usize) -> usize {
        while self.0[vertex] != vertex {
            self.0[vertex] = self.0[self.0[vertex]];
            vertex = self.0[vertex];
        }
        vertex
    }

    /// Joins the sets of two vertices; the second set's representative is kept. Returns whether they were disjoint.
    pub fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a] = b;
        a != b
    }

    /// Joins the set with representative `set` to the one with representative `other`, which stays the representative.
    pub fn put_into(&mut self, set: usize, other: usize) {
        self.0[set] = other;
    }
}
