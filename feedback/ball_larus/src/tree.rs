//! Which edges carry instrumentation, and what each of them adds (§3.3 of the paper; Ball, *Efficiently Counting Program
//! Events with Support for On-line Queries*, TOPLAS 1994).

use super::End;
use super::graph::{EdgeKind, PathGraph};

/// The edges of a spanning tree of maximum weight, by [`super::graph::EdgeIndex`]; all other edges are chords.
///
/// The tree also has an edge from EXIT to ENTRY, which the graph does not list. `weight` tells what leaving an edge
/// uninstrumented is worth; edges for which it is `None` are chords, and the others must connect the graph. Of equal
/// edges the first is taken, ends in calls last: those cost the same on either side.
pub fn spanning(graph: &PathGraph, weight: impl Fn(usize) -> Option<u64>) -> Vec<bool> {
    let mut candidates: Vec<(std::cmp::Reverse<u64>, bool, u32)> = (0..graph.acyclic())
        .filter_map(|edge| {
            let call = matches!(graph.edges()[edge], EdgeKind::End(_, End::Call));
            Some((std::cmp::Reverse(weight(edge)?), call, edge as u32))
        })
        .collect();
    candidates.sort_unstable();
    let mut sets = Sets::new(graph.vertices());
    sets.join(graph.exit(), graph.entry());
    let mut tree = vec![false; graph.edges().len()];
    for (_, _, edge) in candidates {
        let edge = edge as usize;
        tree[edge] = sets.join(graph.source(edge), graph.target(edge));
    }
    tree
}

/// What each chord adds so that along every path from ENTRY to EXIT the chords' sum is the path's number. 0 for edges
/// of the tree and self loops. In wrapping arithmetic.
///
/// A chord's increment is the sum of the values around the cycle that it closes with the tree, negative where the cycle
/// goes against an edge. That is the chord's value plus the difference of its ends' distances from the root, where the
/// distance adds up values along the tree in the same way.
pub fn increments(graph: &PathGraph, tree: &[bool]) -> Vec<i64> {
    let value = |edge: usize| graph.value(super::graph::EdgeIndex(edge as u32)) as i64;
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

/// Disjoint sets of vertices.
pub(super) struct Sets(Vec<usize>);

impl Sets {
    pub fn new(vertices: usize) -> Self {
        Self((0..vertices).collect())
    }

    /// The vertex that stands for a set. Unless [`Sets::join`] decides, it is the one that [`Sets::put_into`] named.
    pub fn find(&mut self, mut vertex: usize) -> usize {
        while self.0[vertex] != vertex {
            self.0[vertex] = self.0[self.0[vertex]];
            vertex = self.0[vertex];
        }
        vertex
    }

    /// Whether the two were apart.
    pub fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a] = b;
        a != b
    }

    /// Joins a set, named by what stands for it, with another that keeps its own.
    pub fn put_into(&mut self, set: usize, other: usize) {
        self.0[set] = other;
    }
}
