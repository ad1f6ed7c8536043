//! Which paths of an old graph are paths of a new one.

use super::align::{BlockMatch, Graph};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_ball_larus::graph::PathGraph;
use pleach_ball_larus::{End, NumberingOptions, Path};
use pleach_profile::{EstimatedPath, FunctionProfile, PathWindow};

/// Minimum share of the old executions of paths that must be of paths that the new graph has. What follows a block is
/// judged by all paths through it, so that few may be missing.
const MIN_PATH_FLOW: f64 = 0.98;

/// How the recorded paths of a function's older version run in its new graph.
#[derive(Clone, PartialEq, Debug)]
pub struct OlderPaths {
    /// The recorded function.
    pub id: FunctionId,
    /// Its graph.
    pub cfg_hash: CfgHash,
    /// By old block: the new one, where all recorded steps from and to it are edges of the new graph.
    pub new_of: Vec<Option<BlockIndex>>,
    /// Executions of the paths that are in the new graph, in the profile's counts; 0 where only the blocks are known.
    pub flow: f64,
}

impl OlderPaths {
    /// The paths of an older version, if hardly any execution of them is lost.
    pub(super) fn find(
        old: &FunctionProfile,
        before: &Graph<'_>,
        after: &Graph<'_>,
        matched: &BlockMatch,
    ) -> Option<Self> {
        let blocks = 0..before.features.len();
        let mut found = Self {
            id: old.id,
            cfg_hash: old.cfg_hash,
            new_of: blocks
                .map(|block| Some(BlockIndex(matched.new_of(block)? as u32)))
                .collect(),
            flow: 0.0,
        };
        found.drop_broken_steps(old, after.cfg);
        let graph = PathGraph::new(after.cfg, &NumberingOptions::default());
        let mut all = 0.0;
        for old in &old.paths {
            all += old.count;
            if let Some(path) = found.path(&old.path) {
                // Blocks alone tell which paths are kept, when the graph is not at hand.
                graph.number_of(&path)?;
                found.flow += old.count;
            }
        }
        (found.flow > 0.0 && found.flow >= MIN_PATH_FLOW * all).then_some(found)
    }

    /// Forgets one of the blocks of each recorded step that the new graph has not: that which was executed less.
    fn drop_broken_steps(&mut self, old: &FunctionProfile, new: &Cfg) {
        for path in &old.paths {
            let path = &path.path;
            let steps = path.blocks.windows(2).map(|pair| (pair[0], pair[1]));
            let last = match (path.end, path.blocks.last()) {
                (End::Back(to) | End::Cut(to), Some(&last)) => Some((last, to)),
                _ => None,
            };
            for (from, to) in steps.chain(last) {
                let ends = self.new_of[from.index()].zip(self.new_of[to.index()]);
                if ends.is_some_and(|(start, end)| !new.blocks[start.index()].successors.contains(&end)) {
                    let is_rarer = old.blocks[from.index()] < old.blocks[to.index()];
                    self.new_of[if is_rarer { from } else { to }.index()] = None;
                }
            }
        }
    }

    /// A path in the new graph.
    fn path(&self, old: &Path) -> Option<Path> {
        let new_of = |block: &BlockIndex| self.new_of.get(block.index()).copied().flatten();
        Some(Path {
            start: old.start,
            blocks: old.blocks.iter().map(new_of).collect::<Option<_>>()?,
            end: match old.end {
                End::Back(to) => End::Back(new_of(&to)?),
                End::Cut(to) => End::Cut(new_of(&to)?),
                end @ (End::Exit | End::Call) => end,
            },
        })
    }

    /// Recorded counts by new block; `None` where they are unknown.
    pub fn counts(&self, old: &[u64]) -> Vec<Option<u64>> {
        let blocks = self.new_of.iter().flatten().map(|block| block.index() + 1).max();
        let mut counts = vec![None; blocks.unwrap_or(0)];
        for (new, count) in self.new_of.iter().zip(old) {
            if let Some(new) = new {
                counts[new.index()] = Some(*count);
            }
        }
        counts
    }

    /// Recorded paths, as far as the new graph has them.
    pub fn paths(&self, old: &[EstimatedPath]) -> Vec<EstimatedPath> {
        let moved = |old: &EstimatedPath| {
            Some(EstimatedPath {
                path: self.path(&old.path)?,
                ..*old
            })
        };
        let mut paths: Vec<EstimatedPath> = old.iter().filter_map(moved).collect();
        paths.sort_by(|a, b| b.count.total_cmp(&a.count).then_with(|| a.path.cmp(&b.path)));
        paths
    }

    /// Recorded windows of such paths.
    pub fn windows(&self, old: &[PathWindow]) -> Vec<PathWindow> {
        let moved = |old: &PathWindow| {
            Some(PathWindow {
                paths: old.paths.iter().map(|path| self.path(path)).collect::<Option<_>>()?,
                count: old.count,
            })
        };
        let mut windows: Vec<PathWindow> = old.iter().filter_map(moved).collect();
        windows.sort_by(|a, b| a.paths.cmp(&b.paths));
        windows
    }
}
