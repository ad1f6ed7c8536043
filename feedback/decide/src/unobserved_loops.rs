//! Loops whose number of iterations was not observed: no sample at their headers, though loops inside may have many.
//!
//! A burst ends within an inner loop that runs long, so neither the outer loop's next iteration nor its end is in it.
//! Inference then connects the inner loop to the function's end, and never back to the outer loop's header.

use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};
use pleach_annotate::cfg::Cfg;

/// For each block: whether its branch leaves a natural loop whose header `is_unsampled` accepts.
pub fn exiting(cfg: &Cfg, is_unsampled: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut exiting = vec![false; cfg.blocks.len()];
    if cfg.blocks.is_empty() {
        return exiting;
    }
    let edges = cfg.blocks.iter().enumerate().flat_map(|(from, block)| {
        let to = move |to: &pleach_annotate::id::BlockIndex| (from as u32, to.0);
        block.successors.iter().map(to)
    });
    let mut graph = DiGraph::<(), ()>::from_edges(edges);
    while graph.node_count() < cfg.blocks.len() {
        graph.add_node(());
    }
    let dominators = simple_fast(&graph, NodeIndex::new(0));
    let dominates = |header, block| {
        dominators
            .dominators(block)
            .is_some_and(|mut above| above.any(|a| a == header))
    };
    for header in graph.node_indices().filter(|header| is_unsampled(header.index())) {
        let latches: Vec<_> = graph
            .neighbors_directed(header, petgraph::Incoming)
            .filter(|&latch| dominates(header, latch))
            .collect();
        if latches.is_empty() {
            continue;
        }
        let mut is_inside = vec![false; cfg.blocks.len()];
        is_inside[header.index()] = true;
        let mut waiting = latches;
        let mut body = vec![header];
        while let Some(block) = waiting.pop() {
            if !std::mem::replace(&mut is_inside[block.index()], true) {
                body.push(block);
                waiting.extend(graph.neighbors_directed(block, petgraph::Incoming));
            }
        }
        for block in body {
            exiting[block.index()] |= graph.neighbors(block).any(|to| !is_inside[to.index()]);
        }
    }
    exiting
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::testing;

    #[test]
    fn only_exits_of_loops_without_samples_at_their_headers_are_found() {
        // 1 to 4 is a loop around the loop of block 2; 3 may leave it, and so may 1.
        let cfg = testing::cfg(&[&[1], &[2, 5], &[2, 3], &[4, 5], &[1], &[]]);
        let unsampled = |block: usize| block != 2;
        assert_eq!(exiting(&cfg, unsampled), [false, true, false, true, false, false]);
        assert_eq!(
            exiting(&cfg, |block| block == 2),
            [false, false, true, false, false, false]
        );
        assert_eq!(exiting(&cfg, |_| false), [false; 6]);
    }

    #[test]
    fn graphs_without_loops_and_without_entries_have_none() {
        assert!(exiting(&testing::cfg(&[]), |_| true).is_empty());
        // Blocks 1 and 2 are in a cycle that the entry does not reach; 0 is entered twice, and no loop.
        assert_eq!(
            exiting(&testing::cfg(&[&[3, 3], &[2, 3], &[1, 3], &[]]), |_| true),
            [false; 4]
        );
    }
}
