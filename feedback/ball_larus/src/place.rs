//! Placement of the instrumentation (§3.4 of the paper, figure 9; back edges, §4): the [`Plan`].

use super::data::{End, Index, NumberingOptions, Op, Plan, Start, Storage};
use super::graph::{EdgeKind, PathGraph};
use super::tree;
use pleach_annotate::id::BlockIndex;
use std::collections::BTreeMap;

/// Keys of windows are below this.
const MAX_KEYS: u64 = 1 << 62;

/// The plan for a graph that was made with [`Mode::Paths`](crate::Mode::Paths) and the same options. `weights`
/// estimates how often each edge is taken, by [`EdgeIndex`](crate::graph::EdgeIndex); missing weights are 0.
pub fn paths(graph: &PathGraph, options: &NumberingOptions, weights: &[u64]) -> Plan {
    let tree = tree::spanning(graph, |edge| Some(weights.get(edge).copied().unwrap_or(0)));
    let increments = tree::increments(graph, &tree);
    let placement = Placement::new(graph, &tree);
    let mut plan = assemble(graph, |edge| match edge.checked_sub(graph.acyclic()) {
        Some(self_loop) => Some(Op::Count(Index::Const(graph.paths() + self_loop as u64))),
        None => placement.op(edge, increments[edge]),
    });
    plan.numbers = graph.numbers();
    let size = window_size(plan.numbers, options.iterations);
    (plan.window, plan.counters) = (size.window, size.counters);
    if plan.counters > options.hash_above {
        plan.storage = Storage::Hash;
    }
    plan
}

/// Size of the windows of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct WindowSize {
    /// Number of consecutive paths counted together.
    window: u8,
    /// Number of counters that this takes.
    counters: u64,
}

/// The longest windows, up to `iterations` paths, whose keys fit.
fn window_size(numbers: u64, iterations: u8) -> WindowSize {
    let (mut window, mut counters) = (1, numbers);
    let mut keys = numbers + 1;
    while window < iterations && numbers != 0 {
        keys = match keys.checked_mul(numbers + 1) {
            Some(keys) if keys < MAX_KEYS => keys,
            _ => break,
        };
        window += 1;
        counters = keys;
    }
    WindowSize { window, counters }
}

/// Which edges initialise the path register, and which count.
struct Placement {
    /// By edge: no increment comes before it, so it may set the register instead of adding to it.
    sets: Vec<bool>,
    /// By edge: no increment comes after it, so it may count.
    counts: Vec<bool>,
}

impl Placement {
    /// The two loops of figure 9. The first moves the initialisation from ENTRY down, to where it is certain to be
    /// needed or a chord can do it. The second moves the count from EXIT up.
    ///
    /// A count never moves above a block that has another edge, and therefore never above a call in which the path may
    /// end.
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
        // The tree has the edge from EXIT to ENTRY, so every path has a chord. An edge before all chords of a path is
        // therefore not after all of them as well.
        debug_assert!((0..edges).all(|e| !(tree[e] && sets[e] && counts[e])));
        Self { sets, counts }
    }

    /// The operation of an edge with this increment.
    fn op(&self, edge: usize, increment: i64) -> Option<Op> {
        match (self.sets[edge], self.counts[edge]) {
            (true, true) => Some(Op::Count(Index::Const(increment as u64))),
            (true, false) => Some(Op::Set(increment)),
            (false, true) => Some(Op::Count(Index::Register(increment))),
            (false, false) => (increment != 0).then_some(Op::Add(increment)),
        }
    }
}

/// A plan with the operation `op` for each of the graph's edges, self loops included. The caller sets numbers and
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
            // The same edge of the program ends one path and begins the next.
            EdgeKind::End(from, End::Back(to) | End::Cut(to)) => {
                edges.insert((from, to), op(edge).into_iter().chain(inside(to)).collect());
            }
            EdgeKind::End(block, End::Exit) => plan.exits.extend(op(edge).map(|op| (block, vec![op]))),
            EdgeKind::End(block, End::Call) => match op(edge) {
                Some(Op::Count(index)) => plan.records.push((block, index)),
                // The edge to EXIT counts: the block has another edge, so the count did not move above it.
                _ => debug_assert!(false, "a path that ends in a call has no number"),
            },
        }
    }
    edges.retain(|_, ops| !ops.is_empty());
    plan.edges = edges.into_iter().map(|((from, to), ops)| (from, to, ops)).collect();
    for &(call, block) in graph.resumes() {
        // In a block without successors, control has already passed the exit's operations, and the new path is
        // complete.
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
        let size = |numbers, iterations| {
            let size = window_size(numbers, iterations);
            (size.window, size.counters)
        };
        assert_eq!(size(5, 1), (1, 5));
        assert_eq!(size(5, 4), (4, 1296));
        assert_eq!(size(0, 4), (1, 0));
        assert_eq!(size((1 << 31) - 2, 4), (2, ((1 << 31) - 1) * ((1 << 31) - 1)));
        assert_eq!(size((1 << 31) - 1, 4), (1, (1 << 31) - 1));
        assert_eq!(size(1 << 61, 4), (1, 1 << 61));
    }
}
