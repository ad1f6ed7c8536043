//! Evidence by merged edge: checked, with its completeness.

use super::Evidence;
use super::graph::{BlockId, EdgeId, Graph};

/// Larger evidence (in samples) is cut off: no recording gets there.
const MAX_SAMPLES: f64 = 1e15;
/// Flows stay below it, so that sums over any function fit 64 bits, and 12 digits of it remain.
const MAX_FLOW: f64 = (1u64 << 40) as f64;
/// Entries that the function's mean completeness of transitions counts for in each block.
const PRIOR_ENTRIES: f64 = 4.0;
/// Minimum of completeness.
const MIN_COMPLETENESS: f64 = 0.05;

/// What was observed of a function.
#[derive(Debug)]
pub(super) struct Observed {
    /// By block, in samples.
    pub blocks: Vec<Option<f64>>,
    /// By merged edge, in samples.
    pub edges: Vec<Option<f64>>,
    pub entry: Option<f64>,
    /// By block: the share of transitions out of it that the edges' evidence holds.
    pub completeness: Vec<f64>,
    /// Units of flow in a sample.
    pub units: f64,
    /// Executions in a unit of flow, as a power of two: more than 1 only for huge counts.
    pub shift: u32,
}

impl Observed {
    pub fn new(graph: &Graph, evidence: &Evidence, scale: f64) -> Self {
        let clean = |value: Option<f64>| value.filter(|v| *v >= 0.0).map(|v| v.min(MAX_SAMPLES));
        let mut edges: Vec<Option<f64>> = vec![None; graph.edges.len()];
        for (slot, &edge) in graph.edge_of_slot.iter().enumerate() {
            if let (Some(edge), Some(seen)) = (edge, clean(evidence.edges.get(slot).copied().flatten())) {
                *edges[edge].get_or_insert(0.0) += seen;
            }
        }
        let mut observed = Self {
            blocks: (0..graph.blocks)
                .map(|b| clean(evidence.blocks.get(b).copied().flatten()))
                .collect(),
            edges,
            entry: clean(evidence.entry),
            completeness: Vec::new(),
            units: if scale.is_finite() && scale > 0.0 { scale } else { 1.0 },
            shift: 0,
        };
        observed.completeness = observed.find_completeness(graph);
        observed.limit_flow();
        observed
    }

    /// Any sample in a place that can run.
    pub fn any_positive(&self) -> bool {
        self.blocks
            .iter()
            .chain(&self.edges)
            .chain([&self.entry])
            .any(|v| v.is_some_and(|v| v > 0.0))
    }

    /// Half a sample, at least one unit.
    pub fn half_sample(&self) -> i64 {
        ((self.units / 2.0) as i64).max(1)
    }

    fn find_completeness(&self, graph: &Graph) -> Vec<f64> {
        // Blocks where both the entries and all transitions were looked for: the only ones that can be compared.
        let compared = |block: BlockId| -> Option<(f64, f64)> {
            let edges = graph.out(block);
            let seen: Option<f64> = edges.clone().map(|e: EdgeId| self.edges[e]).sum();
            (!edges.is_empty()).then_some((seen?, self.blocks[block]?))
        };
        let (mut seen, mut entries) = (1.0, 1.0);
        for (s, e) in (0..graph.blocks).filter_map(compared) {
            seen += s.min(e);
            entries += e;
        }
        let mean: f64 = seen / entries;
        (0..graph.blocks)
            .map(|block| {
                let (seen, entries) = compared(block).unwrap_or((0.0, 0.0));
                let share = (seen + PRIOR_ENTRIES * mean) / (entries + PRIOR_ENTRIES);
                share.clamp(MIN_COMPLETENESS, 1.0)
            })
            .collect()
    }

    fn limit_flow(&mut self) {
        let largest = self
            .blocks
            .iter()
            .chain(&self.edges)
            .chain([&self.entry])
            .flatten()
            .fold(0.0, |a: f64, &b| a.max(b));
        while largest * self.units > MAX_FLOW && self.shift < 63 {
            self.units /= 2.0;
            self.shift += 1;
        }
        self.units = self.units.min(MAX_FLOW);
    }
}
