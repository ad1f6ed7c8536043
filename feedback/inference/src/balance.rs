//! Spreads flow evenly over unknown alternatives.
//!
//! A flow of minimum cost sends everything down one of several equal unknown paths. Where the unknown blocks behind a
//! branch form an acyclic piece with a single destination, the evidence says nothing about how flow passes it, and
//! every block in it shares its flow evenly among its successors (profi §4.4): [`spread`].
//!
//! With several destinations, whose counts are known, some distributions are possible and others are not. There the
//! problem is solved again with a slight preference for [`even_shares`] (ours: on random graphs without half of their
//! blocks it raises the edges' overlap with the truth from .850 to .885).

use super::flow::Flow;
use super::graph::{BlockId, EdgeId, Exit, Graph};
use super::observed::Observed;

/// Larger unknown pieces are left alone: their search must not take quadratic time.
const MAX_BLOCKS: usize = 2000;

/// Where all flow through a piece ends up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Destination {
    Block(BlockId),
    Outside,
}

/// What each unknown edge would carry if its block's flow on unknown edges spread evenly over their slots; `None` where
/// nothing is to be spread.
pub(super) fn even_shares(graph: &Graph, observed: &Observed, flow: &Flow) -> Vec<Option<i64>> {
    let mut shares = vec![None; graph.edges.len()];
    for block in 0..graph.blocks {
        let free = || {
            graph
                .out(block)
                .filter(|&e| observed.edges[e].is_none() && !is_unlikely(graph, observed, e))
        };
        let (mut edges, mut total, mut slots) = (0, 0, 0);
        for edge in free() {
            edges += 1;
            total += flow.edges[edge];
            slots += i64::from(graph.edges[edge].slots);
        }
        if edges > 1 {
            for edge in free() {
                let share = total / slots * i64::from(graph.edges[edge].slots);
                shares[edge] = Some(share).filter(|&s| s > 0);
            }
        }
    }
    shares
}

/// The edge leads to an unknown block that handles exceptions or traps.
pub(super) fn is_unlikely(graph: &Graph, observed: &Observed, edge: EdgeId) -> bool {
    let to = graph.edges[edge].to;
    graph.unlikely[to] && observed.blocks[to].is_none()
}

/// Spreads flow in every unknown piece of the graph, outer pieces first.
pub(super) fn spread(graph: &Graph, observed: &Observed, flow: &mut Flow) {
    let mut spreader = Spreader {
        graph,
        observed,
        flow,
        member: vec![false; graph.blocks],
        done: vec![false; graph.blocks],
    };
    for block in preorder(graph) {
        if !spreader.done[block]
            && spreader.is_root(block)
            && let Some(piece) = spreader.find_piece(block)
        {
            spreader.distribute(block, &piece);
        }
    }
}

/// Reachable blocks, in the order of a depth-first search.
fn preorder(graph: &Graph) -> Vec<BlockId> {
    let mut seen = vec![false; graph.blocks];
    let (mut order, mut stack) = (Vec::new(), if graph.blocks > 0 { vec![0] } else { Vec::new() });
    while let Some(block) = stack.pop() {
        if std::mem::replace(&mut seen[block], true) {
            continue;
        }
        order.push(block);
        stack.extend(graph.out(block).rev().map(|e| graph.edges[e].to).filter(|&b| !seen[b]));
    }
    order
}

struct Spreader<'a> {
    graph: &'a Graph,
    observed: &'a Observed,
    flow: &'a mut Flow,
    /// Blocks of the piece at hand.
    member: Vec<bool>,
    /// Blocks whose flow was spread already.
    done: Vec<bool>,
}

impl Spreader<'_> {
    /// Several unknown edges with flow leave the block.
    fn is_root(&self, block: BlockId) -> bool {
        let free: Vec<EdgeId> = self.free_edges(block).collect();
        free.len() > 1 && free.iter().any(|&e| self.flow.edges[e] > 0)
    }

    fn free_edges(&self, block: BlockId) -> impl Iterator<Item = EdgeId> {
        self.graph.out(block).filter(|&e| self.observed.edges[e].is_none())
    }

    /// The unknown blocks behind a block's unknown edges, in topological order, if all of their flow has one
    /// destination.
    fn find_piece(&mut self, root: BlockId) -> Option<Vec<BlockId>> {
        let mut blocks = Vec::new();
        let destination = self.explore(root, &mut blocks);
        let sorted = destination.and_then(|_| self.sort(root, &blocks));
        for &block in &blocks {
            self.member[block] = false;
        }
        sorted
    }

    fn explore(&mut self, root: BlockId, blocks: &mut Vec<BlockId>) -> Option<Destination> {
        let mut destination = None;
        let mut edges: Vec<EdgeId> = self.likely(self.free_edges(root).collect());
        while let Some(edge) = edges.pop() {
            let to = self.graph.edges[edge].to;
            if to == root || self.observed.blocks[to].is_some() {
                let found = Destination::Block(to);
                if *destination.get_or_insert(found) != found {
                    return None;
                }
                continue;
            }
            if std::mem::replace(&mut self.member[to], true) {
                continue;
            }
            blocks.push(to);
            if blocks.len() > MAX_BLOCKS {
                return None;
            }
            let out = self.graph.out(to);
            if self.graph.exits[to] == Exit::Natural {
                if *destination.get_or_insert(Destination::Outside) != Destination::Outside {
                    return None;
                }
            } else if self.flow.exits[to] > 0 || out.clone().any(|e| self.observed.edges[e].is_some()) {
                return None;
            }
            edges.extend(self.likely(out.collect()));
        }
        destination
    }

    /// The edges among which flow is shared: those that do not lead to exception handling or a trap, where there are
    /// any — plus those that have flow for a reason of their own.
    fn likely(&self, edges: Vec<EdgeId>) -> Vec<EdgeId> {
        let unlikely = |&e: &EdgeId| is_unlikely(self.graph, self.observed, e) && self.flow.edges[e] == 0;
        if edges.iter().all(unlikely) {
            edges
        } else {
            edges.into_iter().filter(|e| !unlikely(e)).collect()
        }
    }

    /// Topological order (Kahn); `None` if there is a cycle.
    fn sort(&self, root: BlockId, blocks: &[BlockId]) -> Option<Vec<BlockId>> {
        let mut waiting = rustc_hash::FxHashMap::default();
        let inside = |edges: Vec<EdgeId>| {
            let targets = self.likely(edges).into_iter().map(|e| self.graph.edges[e].to);
            targets.filter(|&b| b != root && self.member[b]).collect::<Vec<_>>()
        };
        for &block in blocks {
            for target in inside(self.graph.out(block).collect()) {
                *waiting.entry(target).or_insert(0u32) += 1;
            }
        }
        let mut order: Vec<BlockId> = blocks.iter().copied().filter(|b| !waiting.contains_key(b)).collect();
        let mut next = 0;
        while let Some(&block) = order.get(next) {
            next += 1;
            for target in inside(self.graph.out(block).collect()) {
                let count = waiting.get_mut(&target)?;
                *count -= 1;
                if *count == 0 {
                    order.push(target);
                }
            }
        }
        (order.len() == blocks.len()).then_some(order)
    }

    fn distribute(&mut self, root: BlockId, piece: &[BlockId]) {
        let plan: Vec<(BlockId, Vec<EdgeId>)> = piece
            .iter()
            .map(|&b| (b, self.likely(self.graph.out(b).collect())))
            .collect();
        let out = self.likely(self.free_edges(root).collect());
        let total = out.iter().map(|&e| self.flow.edges[e]).sum();
        self.share(total, &out);
        for (block, out) in plan {
            let entering = self.flow.entering(self.graph, block);
            if self.graph.exits[block] == Exit::Natural {
                self.flow.exits[block] = entering;
            } else {
                self.share(entering, &out);
            }
            self.done[block] = true;
        }
    }

    /// Shares flow evenly among the successor slots of edges.
    fn share(&mut self, total: i64, edges: &[EdgeId]) {
        let mut slots: i64 = edges.iter().map(|&e| i64::from(self.graph.edges[e].slots)).sum();
        let mut rest = total;
        for &edge in edges {
            let own = i64::from(self.graph.edges[edge].slots);
            // Whatever remains, over the slots that remain: no unit gets lost, none is wide of its share.
            let part = (i128::from(rest) * i128::from(own) / i128::from(slots)) as i64;
            self.flow.edges[edge] = part;
            rest -= part;
            slots -= own;
        }
    }
}
