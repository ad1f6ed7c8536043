//! Depth-first search of a function's graph: the order of its blocks, and which edges close a cycle.

use pleach_annotate::cfg::Cfg;
use std::ops::Range;

/// All successor slots of a block that have the same target.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergedEdge {
    /// The target.
    pub to: usize,
    /// Number of slots.
    pub slots: u32,
    /// The search was still in the target's subtree when it found this edge: the edge closes a cycle.
    pub back: bool,
}

/// A function's merged edges, and a depth-first search along them from the entry, in the order of successors.
#[derive(Debug)]
pub(super) struct DepthFirstSearch {
    /// Sorted by origin. Edges to targets that do not exist are left out.
    pub edges: Vec<MergedEdge>,
    /// By block: the position of its first edge; then one past the last edge.
    edges_at: Vec<usize>,
    /// Reachable blocks in the order in which the search enters them.
    pub preorder: Vec<usize>,
    /// Reachable blocks in the order in which the search leaves them. Without back edges, this is a reverse topological
    /// order.
    pub postorder: Vec<usize>,
    /// By block: number of blocks entered before it.
    pub entered: Vec<usize>,
    /// By block: number of blocks entered before the search left it.
    pub left: Vec<usize>,
}

/// Origins of the edges that enter each block.
pub(super) struct Predecessors {
    origins: Vec<usize>,
    /// By block: the position of its first predecessor in `origins`; then the length of `origins`.
    starts: Vec<usize>,
}

impl Predecessors {
    /// The origins of a block's incoming edges.
    pub fn of_block(&self, block: usize) -> &[usize] {
        &self.origins[self.starts[block]..self.starts[block + 1]]
    }
}

/// In [`DepthFirstSearch::entered`] and [`DepthFirstSearch::left`]: not yet.
const NEVER: usize = usize::MAX;

impl DepthFirstSearch {
    pub fn new(cfg: &Cfg) -> Self {
        let blocks = cfg.blocks.len();
        let mut search = Self {
            edges: Vec::with_capacity(cfg.edge_count()),
            edges_at: Vec::with_capacity(blocks + 1),
            preorder: Vec::with_capacity(blocks),
            postorder: Vec::with_capacity(blocks),
            entered: vec![NEVER; blocks],
            left: vec![NEVER; blocks],
        };
        search.merge_slots(cfg);
        if blocks != 0 {
            search.run();
        }
        search
    }

    pub fn out(&self, block: usize) -> Range<usize> {
        self.edges_at[block]..self.edges_at[block + 1]
    }

    pub fn reaches(&self, block: usize) -> bool {
        self.entered.get(block).is_some_and(|&e| e != NEVER)
    }

    fn merge_slots(&mut self, cfg: &Cfg) {
        // By target: one past the position of the current block's edge to it, if there is one.
        let mut edge_to = vec![0; cfg.blocks.len()];
        for content in &cfg.blocks {
            let first = self.edges.len();
            self.edges_at.push(first);
            for successor in &content.successors {
                let to = successor.index();
                let Some(known) = edge_to.get_mut(to) else { continue };
                if *known <= first {
                    let (slots, back) = (0, false);
                    self.edges.push(MergedEdge { to, slots, back });
                    *known = self.edges.len();
                }
                self.edges[*known - 1].slots += 1;
            }
        }
        self.edges_at.push(self.edges.len());
    }

    fn run(&mut self) {
        let mut stack = Vec::new();
        self.enter(0, &mut stack);
        while let Some((block, next)) = stack.last_mut() {
            let (block, edge) = (*block, *next);
            if edge == self.edges_at[block + 1] {
                self.left[block] = self.preorder.len();
                self.postorder.push(block);
                stack.pop();
                continue;
            }
            *next += 1;
            let to = self.edges[edge].to;
            if self.entered[to] == NEVER {
                self.enter(to, &mut stack);
            } else {
                self.edges[edge].back = self.left[to] == NEVER;
            }
        }
    }

    fn enter(&mut self, block: usize, stack: &mut Vec<(usize, usize)>) {
        self.entered[block] = self.preorder.len();
        self.preorder.push(block);
        stack.push((block, self.edges_at[block]));
    }

    /// The reachable predecessors of each block along the edges that `wanted` accepts.
    pub fn predecessors(&self, wanted: impl Fn(&MergedEdge) -> bool) -> Predecessors {
        let wanted = |&edge: &usize| wanted(&self.edges[edge]);
        let mut starts = vec![0; self.entered.len() + 1];
        for &from in &self.postorder {
            for edge in self.out(from).filter(wanted) {
                starts[self.edges[edge].to + 1] += 1;
            }
        }
        for block in 1..starts.len() {
            starts[block] += starts[block - 1];
        }
        let mut next = starts.clone();
        let mut origins = vec![0; starts[starts.len() - 1]];
        for &from in &self.postorder {
            for edge in self.out(from).filter(wanted) {
                let slot = &mut next[self.edges[edge].to];
                origins[*slot] = from;
                *slot += 1;
            }
        }
        Predecessors { origins, starts }
    }

    /// By block: whether it gets an edge to EXIT so that every reachable block can reach EXIT. This marks one block of
    /// each region that control cannot leave.
    pub fn endless_blocks(&self, leaves: &[bool]) -> Vec<bool> {
        let predecessors = self.predecessors(|_| true);
        let mut ends = vec![false; leaves.len()];
        let mut stack = Vec::new();
        let mut mark = |block: usize, ends: &mut [bool]| {
            ends[block] = true;
            stack.push(block);
            while let Some(block) = stack.pop() {
                for &origin in predecessors.of_block(block) {
                    if !std::mem::replace(&mut ends[origin], true) {
                        stack.push(origin);
                    }
                }
            }
        };
        for &block in &self.postorder {
            if !ends[block] && (leaves[block] || self.out(block).is_empty()) {
                mark(block, &mut ends);
            }
        }
        let mut endless = vec![false; leaves.len()];
        for &block in &self.postorder {
            if !ends[block] {
                endless[block] = true;
                mark(block, &mut ends);
            }
        }
        endless
    }
}
