//! Where instrumentation goes (§3.4 of the paper, figure 9; back edges, §4): the [`Plan`].

use super::graph::{EdgeKind, PathGraph};
use super::{End, Index, Op, Options, Plan, Start, Storage, tree};
use pleach_annotate::id::BlockIndex;
use std::collections::BTreeMap;

/// Keys of windows stay below this.
const MOST_KEYS: u64 = 1 << 62;

/// The plan for a graph made with [`super::Mode::Paths`] and the same options. `weights` estimates how often each edge is taken, by [`super::graph::EdgeIndex`]; 0
/// where it has none.
pub fn paths(graph: &PathGraph, options: &Options, weights: &[u64]) -> Plan {
    let tree = tree::spanning(graph, |edge| Some(weights.get(edge).copied().unwrap_or(0)));
    let increments = tree::increments(graph, &tree);
    let placement = Placement::new(graph, &tree);
    let mut plan = assemble(graph, |edge| match edge.checked_sub(graph.acyclic()) {
        Some(self_loop) => Some(Op::Count(Index::Const(graph.paths() + self_loop as u64))),
        None => placement.op(edge, increments[edge]),
    });
    plan.numbers = graph.numbers();
    (plan.window, plan.counters) = window(plan.numbers, options.iterations);
    if plan.counters > options.hash_above {
        plan.storage = Storage::Hash;
    }
    plan
}

/// How many paths are counted together, and how many counters that takes.
fn window(numbers: u64, iterations: u8) -> (u8, u64) {
    let (mut window, mut counters) = (1, numbers);
    let mut keys = numbers + 1;
    while window < iterations && numbers != 0 {
        keys = match keys.checked_mul(numbers + 1) {
            Some(keys) if keys < MOST_KEYS => keys,
            _ => break,
        };
        window += 1;
        counters = keys;
    }
    (window, counters)
}

/// Which edges begin and which finish the computation of a number.
struct Placement {
    /// By edge: nothing was added before it, and something may be at or after it.
    sets: Vec<bool>,
    /// By edge: nothing is added after it.
    counts: Vec<bool>,
}

impl Placement {
    /// The two loops of figure 9. The first moves the initialisation from ENTRY down to where it is certain to be
    /// needed or a chord can take it over, the second moves the count from EXIT up.
    ///
    /// A count never moves above a block from which another edge leads, so never above a call in which the path may end.
    fn new(graph: &PathGraph, tree: &[bool]) -> Self {
        let edges = graph.acyclic();
        let mut incoming = vec![Vec::new(); graph.vertices()];
        for edge in 0..edges {
            incoming[graph.target(edge)].push(edge);
        }
        let mut sets = vec![false; edges];
        let mut work = vec![graph.entry()];
        while let Some(vertex) = work.pop() {
            for edge in graph.out(vertex) {
                let to = graph.target(edge);
                if tree[edge] && incoming[to].len() == 1 {
                    work.push(to);
                } else {
                    sets[edge] = true;
                }
            }
        }
        let mut counts = vec![false; edges];
        work.push(graph.exit());
        while let Some(vertex) = work.pop() {
            for &edge in &incoming[vertex] {
                let from = graph.source(edge);
                if tree[edge] && graph.out(from).len() == 1 {
                    work.push(from);
                } else {
                    counts[edge] = true;
                }
            }
        }
        // With the edge from EXIT to ENTRY in the tree, no path is without a chord: what is before all chords is not
        // also after all of them.
        debug_assert!((0..edges).all(|e| !(tree[e] && sets[e] && counts[e])));
        Self { sets, counts }
    }

    /// What an edge does, if it adds this.
    fn op(&self, edge: usize, increment: i64) -> Option<Op> {
        match (self.sets[edge], self.counts[edge]) {
            (true, true) => Some(Op::Count(Index::Const(increment as u64))),
            (true, false) => Some(Op::Set(increment)),
            (false, true) => Some(Op::Count(Index::Register(increment))),
            (false, false) => (increment != 0).then_some(Op::Add(increment)),
        }
    }
}

/// A plan that does for each of the graph's edges, self loops included, what `op` says. The caller completes numbers and
/// counters.
pub(super) fn assemble(graph: &PathGraph, op: impl Fn(usize) -> Option<Op>) -> Plan {
    let find = |kind| graph.find(kind).and_then(|edge| op(edge.index()));
    let inside = |block| find(EdgeKind::Start(Start::Inside, block));
    let mut plan = Plan {
        entry: find(EdgeKind::Start(Start::Entry, BlockIndex::ENTRY))
            .into_iter()
            .collect(),
        edges: Vec::new(),
        exits: Vec::new(),
        records: Vec::new(),
        resumes: Vec::new(),
        numbers: 0,
        window: 1,
        counters: 0,
        storage: Storage::Array,
        chords: Vec::new(),
    };
    let mut edges = BTreeMap::new();
    for (edge, &kind) in graph.edges().iter().enumerate() {
        match kind {
            EdgeKind::Start(..) => {}
            EdgeKind::Flow(from, to) => drop(edges.insert((from, to), Vec::from_iter(op(edge)))),
            EdgeKind::SelfLoop(block) => drop(edges.insert((block, block), Vec::from_iter(op(edge)))),
            // One edge of the program is the end of one path and the beginning of the next.
            EdgeKind::End(from, End::Back(to) | End::Cut(to)) => {
                edges.insert((from, to), op(edge).into_iter().chain(inside(to)).collect());
            }
            EdgeKind::End(block, End::Exit) => plan.exits.extend(op(edge).map(|op| (block, vec![op]))),
            EdgeKind::End(block, End::Call) => match op(edge) {
                Some(Op::Count(index)) => plan.records.push((block, index)),
                // EXIT counts, and a block that calls has another edge, so that no count moves above it.
                _ => debug_assert!(false, "a path that ends in a call has no number"),
            },
        }
    }
    edges.retain(|_, ops| !ops.is_empty());
    plan.edges = edges.into_iter().map(|((from, to), ops)| (from, to, ops)).collect();
    for &(call, block) in graph.resumes() {
        // In a block without successors the path that begins here is complete at once: its exit has been passed.
        let exit = find(EdgeKind::End(block, End::Exit));
        plan.resumes
            .push((call, inside(block).into_iter().chain(exit).collect()));
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_as_long_as_fits() {
        assert_eq!(window(5, 1), (1, 5));
        assert_eq!(window(5, 4), (4, 1296));
        assert_eq!(window(0, 4), (1, 0));
        assert_eq!(window((1 << 31) - 2, 4), (2, ((1 << 31) - 1) * ((1 << 31) - 1)));
        assert_eq!(window((1 << 31) - 1, 4), (1, (1 << 31) - 1));
        assert_eq!(window(1 << 61, 4), (1, 1 << 61));
    }
}
