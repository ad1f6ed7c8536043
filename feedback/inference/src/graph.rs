//! A function's graph as inference sees it: slots of one target merged, exits found, unreachable blocks known.

use pleach_annotate::cfg::{Cfg, Terminator};

/// Index of a merged edge.
pub(super) type EdgeId = usize;
/// Index of a block.
pub(super) type BlockId = usize;

/// All successor slots of one block that have the same target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edge {
    pub from: BlockId,
    pub to: BlockId,
    /// Number of slots that it merges.
    pub slots: u32,
}

/// How control can leave the function in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Exit {
    /// There is no exit.
    None,
    /// No successors: all flow leaves.
    Natural,
    /// A call that may not return, or an implicit exit.
    Leak,
    /// The exit of a loop that has none.
    Endless,
}

/// The graph. Edges are sorted by origin.
#[derive(Debug)]
pub(super) struct Graph {
    pub blocks: usize,
    pub edges: Vec<Edge>,
    /// The merged edge of each successor slot; `None` for a target that does not exist.
    pub edge_of_slot: Vec<Option<EdgeId>>,
    pub exits: Vec<Exit>,
    /// By block: whether it handles exceptions or traps.
    pub unlikely: Vec<bool>,
    /// By block: whether it can be reached from the entry.
    pub reachable: Vec<bool>,
    out_at: Vec<usize>,
    in_at: Vec<usize>,
    in_edges: Vec<EdgeId>,
}

impl Graph {
    pub fn new(cfg: &Cfg) -> Self {
        let blocks = cfg.blocks.len();
        let mut graph = Self {
            blocks,
            edges: Vec::with_capacity(cfg.edge_count()),
            edge_of_slot: Vec::with_capacity(cfg.edge_count()),
            exits: vec![Exit::None; blocks],
            unlikely: cfg
                .blocks
                .iter()
                .map(|b| b.is_eh_pad || matches!(b.terminator, Terminator::Unreachable | Terminator::Resume))
                .collect(),
            reachable: Vec::new(),
            out_at: Vec::with_capacity(blocks + 1),
            in_at: vec![0; blocks + 1],
            in_edges: Vec::new(),
        };
        graph.merge_slots(cfg);
        graph.index_incoming();
        graph.reachable = graph.reach_forward(0);
        graph.find_exits(cfg);
        graph
    }

    /// Edges out of a block.
    pub fn out(&self, block: BlockId) -> std::ops::Range<EdgeId> {
        self.out_at[block]..self.out_at[block + 1]
    }

    /// Edges into a block.
    pub fn incoming(&self, block: BlockId) -> &[EdgeId] {
        &self.in_edges[self.in_at[block]..self.in_at[block + 1]]
    }

    fn merge_slots(&mut self, cfg: &Cfg) {
        // By target: one past the edge that the current block already has to it.
        let mut edge_to = vec![0; self.blocks];
        for (from, block) in cfg.blocks.iter().enumerate() {
            let first = self.edges.len();
            self.out_at.push(first);
            for successor in &block.successors {
                let to = successor.index();
                let Some(known) = edge_to.get_mut(to) else {
                    self.edge_of_slot.push(None);
                    continue;
                };
                if *known <= first {
                    self.edges.push(Edge { from, to, slots: 0 });
                    *known = self.edges.len();
                }
                self.edges[*known - 1].slots += 1;
                self.edge_of_slot.push(Some(*known - 1));
            }
        }
        self.out_at.push(self.edges.len());
    }

    fn index_incoming(&mut self) {
        for edge in &self.edges {
            self.in_at[edge.to + 1] += 1;
        }
        for block in 0..self.blocks {
            self.in_at[block + 1] += self.in_at[block];
        }
        let mut next = self.in_at.clone();
        self.in_edges = vec![0; self.edges.len()];
        for (id, edge) in self.edges.iter().enumerate() {
            self.in_edges[next[edge.to]] = id;
            next[edge.to] += 1;
        }
    }

    fn reach_forward(&self, start: BlockId) -> Vec<bool> {
        let mut reached = vec![false; self.blocks];
        let mut stack = Vec::new();
        if start < self.blocks {
            reached[start] = true;
            stack.push(start);
        }
        while let Some(block) = stack.pop() {
            for edge in self.out(block) {
                let to = self.edges[edge].to;
                if !std::mem::replace(&mut reached[to], true) {
                    stack.push(to);
                }
            }
        }
        reached
    }

    /// Marks everything that reaches a block, and appends it to `order` once all that reaches it is marked.
    fn mark_backward(&self, start: BlockId, marked: &mut [bool], mut order: impl FnMut(BlockId)) {
        if std::mem::replace(&mut marked[start], true) {
            return;
        }
        let mut stack = vec![(start, 0)];
        while let Some((block, next)) = stack.last_mut() {
            match self.incoming(*block).get(*next) {
                Some(&edge) => {
                    *next += 1;
                    let from = self.edges[edge].from;
                    if !std::mem::replace(&mut marked[from], true) {
                        stack.push((from, 0));
                    }
                }
                None => {
                    order(*block);
                    stack.pop();
                }
            }
        }
    }

    fn find_exits(&mut self, cfg: &Cfg) {
        for call in cfg.calls.iter().filter(|c| c.may_not_return) {
            if let Some(exit) = self.exits.get_mut(call.block.index()) {
                *exit = Exit::Leak;
            }
        }
        for (block, content) in cfg.blocks.iter().enumerate() {
            if self.out(block).is_empty() {
                self.exits[block] = Exit::Natural;
            } else if content.terminator == Terminator::Other {
                // Funclet terminators may unwind to the caller without naming it.
                self.exits[block] = Exit::Leak;
            }
        }
        self.end_endless_loops();
    }

    /// Gives every strongly connected component that nothing leaves an exit at its first block.
    fn end_endless_loops(&mut self) {
        let mut ends = vec![false; self.blocks];
        for block in (0..self.blocks).filter(|&b| self.exits[b] == Exit::Natural) {
            self.mark_backward(block, &mut ends, |_| {});
        }
        let endless: Vec<BlockId> = (0..self.blocks).filter(|&b| self.reachable[b] && !ends[b]).collect();
        if endless.is_empty() {
            return;
        }
        // In a depth-first search against the edges, what finishes last lies in a component that nothing leaves
        // (Kosaraju). Blocks that end count as marked, so that the search stays among those that do not.
        let (mut marked, mut finished) = (ends.clone(), Vec::new());
        for &block in &endless {
            self.mark_backward(block, &mut marked, |b| finished.push(b));
        }
        let mut marked = ends;
        for &block in finished.iter().rev().filter(|&&b| self.reachable[b]) {
            if marked[block] {
                continue;
            }
            self.mark_backward(block, &mut marked, |_| {});
            let component = self.reach_forward(block);
            if let Some(first) = component.iter().position(|&inside| inside) {
                self.exits[first] = Exit::Endless;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::testing::cfg as graph_of;

    #[test]
    fn slots_of_one_target_are_one_edge() {
        let graph = Graph::new(&graph_of(&[&[1, 2, 1, 1], &[2], &[]]));
        assert_eq!(
            graph.edges.iter().map(|e| (e.from, e.to, e.slots)).collect::<Vec<_>>(),
            [(0, 1, 3), (0, 2, 1), (1, 2, 1)]
        );
        assert_eq!(graph.edge_of_slot, [Some(0), Some(1), Some(0), Some(0), Some(2)]);
        assert_eq!(graph.incoming(2), [1, 2]);
    }

    #[test]
    fn every_loop_without_a_way_out_ends_once() {
        // 1 ⇄ 2 leads to the sinks {3, 4} and {5}; 6 cannot be reached.
        let graph = Graph::new(&graph_of(&[&[1], &[2, 3], &[1, 5], &[4], &[3], &[5], &[6]]));
        let endless: Vec<_> = (0..7).filter(|&b| graph.exits[b] == Exit::Endless).collect();
        assert_eq!(endless, [3, 5]);
    }

    #[test]
    fn a_target_that_does_not_exist_is_left_out() {
        let graph = Graph::new(&graph_of(&[&[1, 9], &[]]));
        assert_eq!(graph.edge_of_slot, [Some(0), None]);
    }
}
