//! The loops that a block is in, reducible or not.
//!
//! A loop is a strongly connected component with an edge. Its head is the block that a depth-first search enters first;
//! without the head, the remaining components are the inner loops (Bourdoncle, *Efficient chaotic iteration strategies
//! with widenings*, 1993). In reducible graphs these are the natural loops, where those of one head are one loop.

use super::flow::Flow;
use pleach_annotate::id::BlockIndex;
use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;

/// By block: the head of the innermost loop that it is in. A head is in its own loop.
pub(super) fn innermost(flow: &Flow) -> Vec<Option<BlockIndex>> {
    let blocks = flow.successors.len();
    let mut innermost = vec![None; blocks];
    let mut components = Components {
        flow,
        scope: vec![NONE; blocks],
        number: vec![NONE; blocks],
        low: vec![NONE; blocks],
        done: vec![true; blocks],
    };
    let mut work = vec![preorder(flow)];
    let mut scope = 0;
    while let Some(set) = work.pop() {
        for mut component in components.strongly_connected(&set, scope) {
            let is_loop = component.len() > 1 || flow.successors[component[0].index()].contains(&component[0]);
            if !is_loop {
                continue;
            }
            // Sets stay in the order of the search.
            let head = component[0];
            for block in &component {
                innermost[block.index()] = Some(head);
            }
            component.remove(0);
            work.push(component);
        }
        scope += 1;
    }
    innermost
}

fn preorder(flow: &Flow) -> Vec<BlockIndex> {
    let mut order = Vec::new();
    let mut seen = vec![false; flow.successors.len()];
    let mut stack: Vec<(BlockIndex, usize)> = Vec::new();
    let mut next = (!seen.is_empty()).then_some(BlockIndex::ENTRY);
    loop {
        if let Some(block) = next.take() {
            seen[block.index()] = true;
            order.push(block);
            stack.push((block, 0));
        }
        let Some((block, slot)) = stack.last_mut() else {
            return order;
        };
        match flow.successors[block.index()].get(*slot) {
            Some(to) => {
                *slot += 1;
                next = (!seen[to.index()]).then_some(*to);
            }
            None => drop(stack.pop()),
        }
    }
}

/// Tarjan's algorithm on parts of the graph.
struct Components<'a> {
    flow: &'a Flow,
    /// By block: the last part that it was in.
    scope: Vec<u32>,
    number: Vec<u32>,
    low: Vec<u32>,
    /// By block: its component in the current part is complete.
    done: Vec<bool>,
}

impl Components<'_> {
    /// The strongly connected components of a part, each in the part's order.
    fn strongly_connected(&mut self, part: &[BlockIndex], scope: u32) -> Vec<Vec<BlockIndex>> {
        for block in part {
            self.scope[block.index()] = scope;
            self.number[block.index()] = NONE;
        }
        let mut out = Vec::new();
        let (mut open, mut numbered) = (Vec::new(), 0);
        for &root in part {
            if self.number[root.index()] == NONE {
                self.search(root, scope, &mut open, &mut numbered, &mut out);
            }
        }
        let position: FxHashMap<BlockIndex, u32> = part.iter().copied().zip(0..).collect();
        for component in &mut out {
            component.sort_unstable_by_key(|block| position[block]);
        }
        out
    }

    fn search(
        &mut self,
        root: BlockIndex,
        scope: u32,
        open: &mut Vec<BlockIndex>,
        numbered: &mut u32,
        out: &mut Vec<Vec<BlockIndex>>,
    ) {
        let mut stack = Vec::new();
        let mut next = Some(root);
        loop {
            if let Some(block) = next.take() {
                self.number[block.index()] = *numbered;
                self.low[block.index()] = *numbered;
                self.done[block.index()] = false;
                *numbered += 1;
                open.push(block);
                stack.push((block, 0));
            }
            let Some((block, slot)) = stack.last_mut() else { return };
            let block = *block;
            if let Some(&to) = self.flow.successors[block.index()].get(*slot) {
                *slot += 1;
                if self.scope[to.index()] != scope {
                    continue;
                }
                if self.number[to.index()] == NONE {
                    next = Some(to);
                } else if !self.done[to.index()] {
                    self.low[block.index()] = self.low[block.index()].min(self.number[to.index()]);
                }
                continue;
            }
            stack.pop();
            if let Some((above, _)) = stack.last() {
                self.low[above.index()] = self.low[above.index()].min(self.low[block.index()]);
            }
            if self.low[block.index()] == self.number[block.index()] {
                let at = open.iter().rposition(|&b| b == block).unwrap_or(0);
                let component = open.split_off(at);
                component.iter().for_each(|b| self.done[b.index()] = true);
                out.push(component);
            }
        }
    }
}
