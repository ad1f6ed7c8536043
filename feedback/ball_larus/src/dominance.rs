//! Dominators and post-dominators of a function's graph.

use petgraph::algo::dominators::{Dominators, simple_fast};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, Reversed};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;

/// What a block's execution implies within its activation.
pub struct Implied {
    before: Dominators<NodeIndex>,
    after: Dominators<NodeIndex>,
    exit: NodeIndex,
}

fn node(block: usize) -> NodeIndex {
    NodeIndex::new(block)
}

impl Implied {
    /// Builds both trees.
    pub fn of(cfg: &Cfg) -> Self {
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
        // From where no end can be reached, activations do not end in a way that the graph shows.
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

    /// Blocks on every way from the entry to a block, without the block itself.
    pub fn dominators(&self, block: BlockIndex) -> impl Iterator<Item = BlockIndex> + '_ {
        of_tree(&self.before, block)
    }

    /// Blocks on every way from a block to an end, without the block itself.
    pub fn post_dominators(&self, block: BlockIndex) -> impl Iterator<Item = BlockIndex> + '_ {
        of_tree(&self.after, block).filter(|found| found.index() != self.exit.index())
    }
}

fn of_tree(tree: &Dominators<NodeIndex>, block: BlockIndex) -> impl Iterator<Item = BlockIndex> + '_ {
    let strict = tree.strict_dominators(node(block.index())).into_iter().flatten();
    strict.map(|found| BlockIndex(found.index() as u32))
}
