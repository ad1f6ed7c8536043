//! Estimated path profiles: what a recording says about how often each acyclic path was executed.

use crate::profile::{Anchor, EstimatedPath};
use pleach_annotate::id::{CfgHash, FunctionId};

/// Estimated paths of a program. Counts are in sampled executions: one for each time that a burst saw a path.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PathProfile {
    /// Where the graphs were taken.
    pub anchor: Anchor,
    /// Functions of which something was seen, by identifier and graph.
    pub functions: Vec<FunctionPaths>,
}

/// Estimated paths of one function.
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionPaths {
    /// Identifier, unique in a program.
    pub id: FunctionId,
    /// The graph that the paths are of.
    pub cfg_hash: CfgHash,
    /// Linkage name, for people.
    pub name: String,
    /// By descending count and then by path.
    pub paths: Vec<EstimatedPath>,
    /// Executions of paths that are not listed: something was seen of them, but not which they were.
    pub unlisted: f64,
}

impl PathProfile {
    /// Executions of all paths of all functions, listed or not.
    pub fn total(&self) -> f64 {
        let listed = |f: &FunctionPaths| f.paths.iter().map(|p| p.count).sum::<f64>();
        self.functions.iter().map(|f| listed(f) + f.unlisted).sum()
    }
}
