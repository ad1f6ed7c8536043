//! A common form of sampled profiles and exact counts, so that any two can be compared.

use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_ball_larus::{Mode, Path};
use pleach_profile::Profile;
use std::collections::BTreeMap;

/// A function with one graph.
pub type FunctionKey = (FunctionId, CfgHash);

/// A count with its interval: the 90 % interval of an estimate; the count itself if it is exact.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Interval {
    /// Executions.
    pub count: f64,
    /// At least this many.
    pub low: f64,
    /// At most this many.
    pub high: f64,
}

/// Counts of one function.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FunctionFlow {
    /// Linkage name.
    pub name: String,
    /// Executed acyclic paths.
    pub paths: BTreeMap<Path, Interval>,
    /// Executions of each block.
    pub blocks: Vec<f64>,
}

impl FunctionFlow {
    /// Executions of all its paths. Half-widths of intervals add up: the same bursts saw all paths of a function, so
    /// their errors are not independent.
    pub fn flow(&self) -> Interval {
        let mut flow = Interval::default();
        let (mut below, mut above) = (0.0, 0.0);
        for path in self.paths.values() {
            flow.count += path.count;
            below += path.count - path.low;
            above += path.high - path.count;
        }
        flow.low = (flow.count - below).max(0.0);
        flow.high = flow.count + above;
        flow
    }

    /// Executions of all its blocks.
    pub fn block_flow(&self) -> f64 {
        self.blocks.iter().sum()
    }
}

/// A profile or exact counts of a program.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Flows {
    /// The anchor of the graphs.
    pub anchor: Anchor,
    /// All functions, by identifier and graph.
    pub functions: BTreeMap<FunctionKey, FunctionFlow>,
    /// Number of independent observations (bursts) of the estimates; `None` for exact counts.
    pub observations: Option<f64>,
    /// Number of functions whose edges were counted, so that their paths are unknown.
    pub only_edges: u64,
}

/// Exact counts of modules with different anchors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "some of its functions were counted at the early anchor, some at the late one: build all of it with one --anchor"
)]
pub struct MixedAnchors;

impl Flows {
    /// Flows of a sampled profile.
    pub fn of_profile(profile: &Profile) -> Self {
        let function = |f: &pleach_profile::FunctionProfile| FunctionFlow {
            name: f.name.clone(),
            paths: f
                .paths
                .iter()
                .map(|p| {
                    let (count, low, high) = (p.count, p.low.min(p.count), p.high.max(p.count));
                    (p.path.clone(), Interval { count, low, high })
                })
                .collect(),
            blocks: f.blocks.iter().map(|&c| c as f64).collect(),
        };
        let worth = profile.functions.iter().flat_map(|f| &f.paths).map(|p| p.effective);
        // Bursts are independent of each other; what one of them sees is not.
        let observations = match profile.provenance.bursts {
            0 => worth.filter(|e| e.is_finite()).sum(),
            bursts => bursts as f64,
        };
        Self {
            anchor: profile.anchor,
            functions: profile
                .functions
                .iter()
                .map(|f| ((f.id, f.cfg_hash), function(f)))
                .collect(),
            observations: Some(observations),
            only_edges: 0,
        }
    }

    /// Flows of exact counts.
    ///
    /// # Errors
    /// Fails if modules have different anchors.
    pub fn of_exact(exact: &ExactProfile) -> Result<Self, MixedAnchors> {
        let anchor = exact.functions.first().map(|f| f.anchor).unwrap_or_default();
        let mut flows = Self {
            anchor,
            ..Self::default()
        };
        for function in &exact.functions {
            if function.anchor != anchor {
                return Err(MixedAnchors);
            }
            flows.only_edges += u64::from(function.options.mode == Mode::Edges && function.is_executed());
            let key = (function.cfg.id, function.cfg.hash());
            let known = flows.functions.entry(key).or_insert_with(|| FunctionFlow {
                name: function.cfg.name.clone(),
                paths: BTreeMap::new(),
                blocks: vec![0.0; function.cfg.blocks.len()],
            });
            // A function that was counted in several ways is there several times.
            for exact in function.acyclic() {
                let count = exact.count as f64;
                for path in exact.path {
                    let sum = known.paths.entry(path).or_default();
                    sum.count += count;
                    (sum.low, sum.high) = (sum.count, sum.count);
                }
            }
            for (sum, &count) in known.blocks.iter_mut().zip(&function.flow.blocks) {
                *sum += count as f64;
            }
        }
        Ok(flows)
    }

    /// Executions of all paths.
    pub fn path_flow(&self) -> f64 {
        let paths = self.functions.values().flat_map(|f| f.paths.values());
        paths.map(|p| p.count).sum()
    }

    /// Executions of all blocks.
    pub fn block_flow(&self) -> f64 {
        self.functions.values().map(FunctionFlow::block_flow).sum()
    }

    /// Upper limit, at 95 % confidence, of the share of a path without samples: n independent observations miss a path
    /// with probability (1 − share)ⁿ. 0 for exact counts.
    pub fn unseen_share(&self) -> f64 {
        match self.observations {
            None => 0.0,
            Some(n) => 1.0 - 0.05_f64.powf(1.0 / n.max(1.0)),
        }
    }
}

/// Number of functions whose graphs all differ between the two sides, so that their paths cannot be compared.
pub(super) fn changed_functions(a: &Flows, b: &Flows) -> u64 {
    let mut changed = 0;
    let mut last = None;
    for (id, _) in a.functions.keys() {
        if last.replace(*id) == Some(*id) {
            continue;
        }
        let graphs = |flows: &Flows| -> Vec<CfgHash> {
            let all = (*id, CfgHash(0))..=(*id, CfgHash(u64::MAX));
            flows.functions.range(all).map(|(key, _)| key.1).collect()
        };
        let (ours, theirs) = (graphs(a), graphs(b));
        changed += u64::from(!theirs.is_empty() && !ours.iter().any(|hash| theirs.contains(hash)));
    }
    changed
}
