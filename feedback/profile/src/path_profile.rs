//! Estimated path profiles: what a recording says about how often each acyclic path was executed.

use crate::{Anchor, EstimatedPath};
use pleach_annotate::id::{CfgHash, FunctionId};

/// The share of all executions of paths from which on a path is hot.
pub const HOT_SHARE: f64 = 0.00125;
/// How many paths of a function are listed in IR although they are not hot.
const LISTED_ANYWAY: usize = 16;

/// The paths of a function that are listed in IR, of those that a profile has, hottest first: all that are hot, given the
/// executions of all paths of the program, of which there are at most 1/[`HOT_SHARE`]; and the function's hottest 16 anyway.
pub fn worth_listing(paths: &[EstimatedPath], flow: f64) -> &[EstimatedPath] {
    let hot = paths.iter().take_while(|p| p.count >= flow * HOT_SHARE).count();
    let executed = paths.iter().take_while(|p| p.count > 0.0).count();
    &paths[..hot.max(LISTED_ANYWAY).min(executed)]
}

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
    /// By block: some copy's code shows when it is passed. Paths that differ in other blocks only are told apart by no branch.
    pub shown: Vec<bool>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::id::BlockIndex;
    use pleach_ball_larus::End;
    use pleach_ball_larus::{Path, Start};

    #[test]
    fn hot_paths_are_listed_and_a_functions_hottest() {
        let path = |count| EstimatedPath {
            path: Path {
                start: Start::Entry,
                blocks: vec![BlockIndex(0)],
                end: End::Exit,
            },
            count,
            low: 0.0,
            high: count,
            effective: 1.0,
        };
        let listed = |counts: &[f64], flow| {
            let paths: Vec<_> = counts.iter().map(|&c| path(c)).collect();
            worth_listing(&paths, flow).len()
        };
        assert_eq!(listed(&[5.0; 40], 5.0 / HOT_SHARE), 40);
        assert_eq!(listed(&[5.0; 40], 5.1 / HOT_SHARE), 16);
        assert_eq!(listed(&[5.0, 4.0, 0.0], 1e9), 2);
        assert_eq!(listed(&[0.0], 0.0), 0);
    }
}
