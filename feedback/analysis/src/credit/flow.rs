//! What the inferred counts of edges say about paths that no observation tells apart.
//!
//! Observations of inline instances that lost the probes of some blocks do not tell which of these blocks were executed.
//! Other instances may have kept them, and counts of edges are inferred from all.

use crate::partial_path::PartialPath;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_ball_larus::{End, Path};
use pleach_profile::Profile;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Minimum probability of an edge, because inference may be wrong.
const MIN_PROBABILITY: f32 = 1e-3;

/// How probable each edge of a function is, given that the block was executed where it begins.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EdgeProbabilities(FxHashMap<(BlockIndex, BlockIndex), f32>);

impl EdgeProbabilities {
    /// From the counts of a graph's edges, in the order of its blocks and their successors.
    pub fn from_counts(cfg: &Cfg, edges: &[u64]) -> Self {
        let mut probabilities: FxHashMap<_, f32> = FxHashMap::default();
        let mut counts = edges.iter().map(|&count| count as f64);
        for (from, block) in cfg.blocks.iter().enumerate() {
            let counts: Vec<f64> = counts.by_ref().take(block.successors.len()).collect();
            let sum: f64 = counts.iter().sum();
            if sum > 0.0 {
                for (&to, count) in block.successors.iter().zip(counts) {
                    *probabilities.entry((BlockIndex(from as u32), to)).or_default() += (count / sum) as f32;
                }
            }
        }
        Self(probabilities)
    }

    /// The probability of a path, given that its first block was executed; edges of which nothing is known count as
    /// certain.
    pub(super) fn of_path(&self, path: &Path) -> f32 {
        self.of_blocks(&path.blocks, Some(path.end))
    }

    /// The same of a list of partial paths.
    pub(super) fn of_partial_paths(&self, partial_paths: &[PartialPath]) -> f32 {
        let probability = |partial_path: &PartialPath| self.of_blocks(&partial_path.blocks, partial_path.end);
        partial_paths
            .iter()
            .map(probability)
            .product::<f32>()
            .max(f32::MIN_POSITIVE)
    }

    fn of_blocks(&self, blocks: &[BlockIndex], end: Option<End>) -> f32 {
        let to = match end {
            Some(End::Back(to) | End::Cut(to)) => Some(to),
            _ => None,
        };
        let next = blocks.iter().skip(1).copied().chain(to);
        let probability = |edge| {
            self.0
                .get(&edge)
                .map_or(1.0, |probability| probability.max(MIN_PROBABILITY))
        };
        let edges = blocks.iter().copied().zip(next);
        edges.map(probability).product::<f32>().max(f32::MIN_POSITIVE)
    }
}

/// The edge probabilities of functions. Functions that are not there have none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Flows(BTreeMap<(FunctionId, CfgHash), EdgeProbabilities>);

impl Flows {
    /// From the inferred counts of a profile.
    pub fn from_profile(profile: &Profile) -> Self {
        let functions = profile.functions.iter().filter_map(|function| {
            let graph = function.graph.as_deref()?;
            let key = (function.id, function.cfg_hash);
            Some((key, EdgeProbabilities::from_counts(graph, &function.edges)))
        });
        functions.collect()
    }

    pub(super) fn of_function(&self, key: &(FunctionId, CfgHash)) -> Option<&EdgeProbabilities> {
        self.0.get(key)
    }
}

impl FromIterator<((FunctionId, CfgHash), EdgeProbabilities)> for Flows {
    fn from_iter<I: IntoIterator<Item = ((FunctionId, CfgHash), EdgeProbabilities)>>(functions: I) -> Self {
        Self(functions.into_iter().collect())
    }
}
