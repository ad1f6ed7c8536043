//! Flow on the merged graph, and counts by slot.

use super::FlowCounts;
use super::graph::{BlockId, Graph};
use super::observed::Observed;

/// A flow in inference's own units.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Flow {
    pub entry: i64,
    /// By merged edge.
    pub edges: Vec<i64>,
    /// By block.
    pub exits: Vec<i64>,
}

impl Flow {
    pub fn zero(graph: &Graph) -> Self {
        Self {
            entry: 0,
            edges: vec![0; graph.edges.len()],
            exits: vec![0; graph.blocks],
        }
    }

    /// What enters a block.
    pub fn entering(&self, graph: &Graph, block: BlockId) -> i64 {
        let incoming: i64 = graph.incoming(block).iter().map(|&e| self.edges[e]).sum();
        incoming + if block == 0 { self.entry } else { 0 }
    }

    /// What leaves a block.
    pub fn leaving(&self, graph: &Graph, block: BlockId) -> i64 {
        self.edges[graph.out(block)].iter().sum::<i64>() + self.exits[block]
    }

    pub fn is_consistent(&self, graph: &Graph) -> bool {
        (0..graph.blocks).all(|b| self.entering(graph, b) == self.leaving(graph, b))
            && self.edges.iter().chain(&self.exits).all(|&f| f >= 0)
    }

    /// Counts by block and successor slot.
    pub fn into_counts(self, graph: &Graph, observed: &Observed) -> FlowCounts {
        let count = |flow: i64| (flow.max(0) as u64).saturating_mul(1 << observed.shift);
        let mut shared = vec![0u32; graph.edges.len()];
        let edges = graph
            .edge_of_slot
            .iter()
            .map(|&edge| {
                let Some(edge) = edge else { return 0 };
                let (slots, flow) = (u64::from(graph.edges[edge].slots), count(self.edges[edge]));
                let position = u64::from(shared[edge]);
                shared[edge] += 1;
                flow / slots + u64::from(position < flow % slots)
            })
            .collect();
        FlowCounts {
            blocks: (0..graph.blocks).map(|b| count(self.entering(graph, b))).collect(),
            edges,
            entry: count(self.entry),
            exits: self.exits.iter().map(|&f| count(f)).collect(),
            inferred_blocks: observed.blocks.iter().map(Option::is_none).collect(),
            inferred_edges: graph
                .edge_of_slot
                .iter()
                .map(|e| e.is_none_or(|e| observed.edges[e].is_none()))
                .collect(),
        }
    }
}
