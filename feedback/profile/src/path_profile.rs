//! Estimated path profiles: the estimated executions of each acyclic path.

use crate::data::EstimatedPath;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::manifest::Anchor;

/// A path is hot if it has at least this share of the executions of all paths.
pub const HOT_SHARE: f64 = 0.00125;
/// Number of a function's hottest paths that are listed in IR even if they are not hot.
const MIN_LISTED: usize = 16;

/// The paths of a function that are listed in IR: its hot paths, of which a program has at most 1/[`HOT_SHARE`], and in
/// any case its 16 hottest executed paths. `paths` is ordered by descending count; `flow` is the number of executions
/// of all paths of the program.
pub fn paths_to_list(paths: &[EstimatedPath], flow: f64) -> &[EstimatedPath] {
    let hot = paths.iter().take_while(|p| p.count >= flow * HOT_SHARE).count();
    let executed = paths.iter().take_while(|p| p.count > 0.0).count();
    &paths[..hot.max(MIN_LISTED).min(executed)]
}

/// Estimated paths of a program. Counts are in sampled executions: one for each execution in a burst.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PathProfile {
    /// The anchor of the graphs.
    pub anchor: Anchor,
    /// Functions with samples, ordered by identifier and graph.
    pub functions: Vec<FunctionPaths>,
}

/// Estimated paths of one function.
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionPaths {
    /// Identifier, unique in a program.
    pub id: FunctionId,
    /// The graph of the paths.
    pub cfg_hash: CfgHash,
    /// Linkage name, for people.
    pub name: String,
    /// By descending count and then by path.
    pub paths: Vec<EstimatedPath>,
    /// By block: some inline instance has a probe of it. No recorded branch distinguishes paths that differ only in
    /// other blocks.
    pub shown: Vec<bool>,
    /// Executions of paths that are not listed: they were sampled, but which paths they were is unknown.
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
            paths_to_list(&paths, flow).len()
        };
        assert_eq!(listed(&[5.0; 40], 5.0 / HOT_SHARE), 40);
        assert_eq!(listed(&[5.0; 40], 5.1 / HOT_SHARE), 16);
        assert_eq!(listed(&[5.0, 4.0, 0.0], 1e9), 2);
        assert_eq!(listed(&[0.0], 0.0), 0);
    }
}
