//! What over-matching does (§4.6 of the paper): in a hot region whose partial paths match many paths, paths that were
//! never hot look hot and take the place of others.

use super::credit::Matching;
use pleach_analysis::regions::profile::{RegionPath, RegionProfile};
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use std::collections::{BTreeMap, BTreeSet};

/// The distribution of one region's weight.
#[derive(Clone, PartialEq, Debug)]
pub struct RegionReport {
    /// The function.
    pub id: FunctionId,
    /// The graph that the entry is of.
    pub cfg_hash: CfgHash,
    /// The region's entry.
    pub entry: BlockIndex,
    /// The region's share of the flow, by exact counts.
    pub flow: f64,
    /// Its share of the flow, estimated.
    pub estimated: f64,
    /// Estimated flow of paths of it that were never executed.
    pub false_flow: f64,
    /// Paths of it that are hot by exact counts.
    pub hot: usize,
    /// Paths of it that only the estimate has among the hot ones.
    pub false_hot: usize,
    /// The average size of its partial paths' matching sets; `None` where nothing of it was seen.
    pub ratio: Option<f64>,
}

impl RegionReport {
    fn new((id, cfg_hash, entry): RegionKey) -> Self {
        Self {
            id,
            cfg_hash,
            entry,
            flow: 0.0,
            estimated: 0.0,
            false_flow: 0.0,
            hot: 0,
            false_hot: 0,
            ratio: None,
        }
    }
}

/// The effect on a whole profile.
#[derive(Clone, PartialEq, Debug)]
pub struct OverMatching {
    /// By descending exact flow.
    pub regions: Vec<RegionReport>,
    /// Hot paths by exact counts; as many of the estimate's hottest are compared with them.
    pub hot: usize,
    /// Number of those that are not hot.
    pub false_hot: usize,
    /// Estimated flow of paths that were never executed.
    pub false_flow: f64,
}

/// The identity of a region: function, graph, entry.
pub type RegionKey = (FunctionId, CfgHash, BlockIndex);

fn key(path: &RegionPath) -> RegionKey {
    (path.id, path.cfg_hash, path.blocks[0])
}

/// Compares an estimate with exact counts. A path is hot from a flow of `threshold` on (the papers: 0.00125).
pub fn compare(
    estimated: &RegionProfile,
    exact: &RegionProfile,
    matching: &BTreeMap<RegionKey, Matching>,
    threshold: f64,
) -> OverMatching {
    let mut regions: BTreeMap<RegionKey, RegionReport> = BTreeMap::new();
    let mut report = |key: RegionKey, change: &dyn Fn(&mut RegionReport)| {
        change(regions.entry(key).or_insert_with(|| RegionReport::new(key)));
    };
    for (path, flow) in exact.shares() {
        report(key(path), &|r| r.flow += flow);
    }
    let mut false_flow = 0.0;
    for (path, flow) in estimated.shares() {
        let never = if exact.paths.contains_key(path) { 0.0 } else { flow };
        false_flow += never;
        report(key(path), &|r| {
            r.estimated += flow;
            r.false_flow += never;
        });
    }
    let hot: BTreeSet<&RegionPath> = exact.hot(threshold).into_iter().map(|(path, _)| path).collect();
    for path in &hot {
        report(key(path), &|r| r.hot += 1);
    }
    let hottest = estimated.by_flow().into_iter().take(hot.len());
    let wrong: Vec<&RegionPath> = hottest
        .map(|(path, _)| path)
        .filter(|path| !hot.contains(path))
        .collect();
    for path in &wrong {
        report(key(path), &|r| r.false_hot += 1);
    }
    for (&key, matching) in matching {
        report(key, &|r| r.ratio = Some(matching.ratio()));
    }
    let mut regions: Vec<_> = regions.into_values().collect();
    regions.sort_by(|a, b| b.flow.total_cmp(&a.flow));
    OverMatching {
        regions,
        hot: hot.len(),
        false_hot: wrong.len(),
        false_flow,
    }
}
