//! Dominators and post-dominators of a function's graph.

use petgraph::algo::dominators::{Dominators, simple_fast};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, Reversed};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;

/// The blocks whose execution a block's execution implies within an activation.
pub struct BlockDominance {
    before: Dominators<NodeIndex>,
    after: Dominators<NodeIndex>,
    exit: NodeIndex,
}

fn node(block: usize) -> NodeIndex {
    NodeIndex::new(block)
}

impl BlockDominance {
    /// Computes the dominator tree and the post-dominator tree of a function.
    pub fn from_cfg(cfg: &Cfg) -> Self {
        let mut graph = DiGraph::<(), ()>::with_capacity(cfg.blocks.len() + 1, cfg.edge_count());
        for _ in &cfg.blocks {
            graph.add_node(());
        }
        for (from, block) in cfg.blocks.iter().enumerate() {
            for to in &block.successors {
                graph.update_edge(node(from), node(to.index()), ());
            }
        }
        let before = simple_fast(&graph, node(0));
        let exit = graph.add_node(());
        let ends = |block: usize| cfg.blocks[block].successors.is_empty();
        for block in (0..cfg.blocks.len()).filter(|&block| ends(block)) {
            graph.update_edge(node(block), exit, ());
        }
        for call in cfg.calls.iter().filter(|call| call.may_not_return) {
            graph.update_edge(node(call.block.index()), exit, ());
        }
        // A block from which no end is reachable may still be an activation's last, for instance in an endless loop.
        let mut reaches = vec![false; graph.node_count()];
        let mut search = Dfs::new(Reversed(&graph), exit);
        while let Some(found) = search.next(Reversed(&graph)) {
            reaches[found.index()] = true;
        }
        for block in (0..cfg.blocks.len()).filter(|&block| !reaches[block]) {
            graph.update_edge(node(block), exit, ());
        }
        graph.reverse();
        let after = simple_fast(&graph, exit);
        Self { before, after, exit }
    }

    /// The strict dominators of a block: blocks on every path from the entry to it.
    pub fn dominators(&self, block: BlockIndex) -> impl Iterator<Item = BlockIndex> + '_ {
        strict_dominators(&self.before, block)
    }

    /// The strict post-dominators of a block: blocks on every path from it to an end.
    pub fn post_dominators(&self, block: BlockIndex) -> impl Iterator<Item = BlockIndex> + '_ {
        strict_dominators(&self.after, block).filter(|found| found.index() != self.exit.index())
    }
}

fn strict_dominators(tree: &Dominators<NodeIndex>, block: BlockIndex) -> impl Iterator<Item = BlockIndex> + '_ {
    let strict = tree.strict_dominators(node(block.index())).into_iter().flatten();
    strict.map(|found| BlockIndex(found.index() as u32))
}
