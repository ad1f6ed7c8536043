//! The baseline: a path profile made of an edge profile, as if each block's way out did not depend on the way to it.

use crate::ball_larus::graph::{EdgeKind, PathGraph};
use crate::ball_larus::{End, Options, Path, Start};
use crate::path_profile::{FunctionPaths, PathProfile};
use crate::profile::{EstimatedPath, FunctionProfile, Profile};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use std::collections::BTreeMap;

/// Paths with a smaller share of all executions are not listed.
const LEAST: f64 = 1e-6;

/// Paths of a profile's functions, from the counts of their edges. `cfg` finds a function's graph; functions without one
/// are left out. The intervals are those of a distribution that is taken to be known: nothing wide.
pub fn independent<'c>(profile: &Profile, mut cfg: impl FnMut(&FunctionProfile) -> Option<&'c Cfg>) -> PathProfile {
    let mut found: Vec<(&FunctionProfile, Ways)> = Vec::new();
    for function in &profile.functions {
        if function.blocks.iter().any(|&count| count > 0)
            && let Some(cfg) = cfg(function)
        {
            found.push((function, Ways::new(cfg, function)));
        }
    }
    let total: f64 = found.iter().flat_map(|(_, ways)| ways.starts.values()).sum();
    // Counts are of sampled executions.
    let scale = if profile.scale > 0.0 { profile.scale } else { 1.0 };
    let functions = found.into_iter().map(|(function, ways)| {
        let (mut paths, unlisted) = ways.paths(total * LEAST, scale);
        paths.sort_by(|a, b| b.count.total_cmp(&a.count).then_with(|| a.path.cmp(&b.path)));
        FunctionPaths {
            id: function.id,
            cfg_hash: function.cfg_hash,
            name: function.name.clone(),
            paths,
            unlisted: unlisted / scale,
        }
    });
    PathProfile {
        anchor: profile.anchor,
        functions: functions.collect(),
    }
}

/// How a path goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    To(BlockIndex),
    End(End),
}

/// A function's edges as probabilities.
struct Ways {
    /// Where paths begin, and how many.
    starts: BTreeMap<(Start, BlockIndex), f64>,
    /// By block: ways out and how likely they are.
    steps: Vec<Vec<(Step, f64)>>,
    /// Loops of a block to itself that are paths of their own.
    loops: Vec<(BlockIndex, f64)>,
}

impl Ways {
    fn new(cfg: &Cfg, function: &FunctionProfile) -> Self {
        let mut taken: BTreeMap<(BlockIndex, BlockIndex), f64> = BTreeMap::new();
        let mut counts = function.edges.iter();
        for (from, block) in cfg.blocks.iter().enumerate() {
            for (&to, &count) in block.successors.iter().zip(&mut counts) {
                *taken.entry((BlockIndex(from as u32), to)).or_default() += count as f64;
            }
        }
        let taken = |from, to| taken.get(&(from, to)).copied().unwrap_or(0.0);
        let entered = |block: BlockIndex| function.blocks.get(block.index()).map_or(0.0, |&count| count as f64);
        let graph = PathGraph::new(cfg, &Options::default());
        let mut ways = Self {
            starts: BTreeMap::new(),
            steps: vec![Vec::new(); cfg.blocks.len()],
            loops: Vec::new(),
        };
        ways.starts
            .insert((Start::Entry, BlockIndex::ENTRY), entered(BlockIndex::ENTRY));
        for &kind in graph.edges() {
            let (from, step, count) = match kind {
                EdgeKind::Start(..) => continue,
                EdgeKind::SelfLoop(block) => {
                    ways.loops.push((block, taken(block, block)));
                    continue;
                }
                EdgeKind::Flow(from, to) => (from, Step::To(to), taken(from, to)),
                EdgeKind::End(from, end @ (End::Back(to) | End::Cut(to))) => {
                    *ways.starts.entry((Start::Inside, to)).or_default() += taken(from, to);
                    (from, Step::End(end), taken(from, to))
                }
                EdgeKind::End(from, end @ (End::Exit | End::Call)) => {
                    let out = cfg.blocks[from.index()].successors.iter();
                    let leave: f64 = out
                        .fold(BTreeMap::new(), |mut seen, &to| {
                            seen.insert(to, taken(from, to));
                            seen
                        })
                        .values()
                        .sum();
                    (from, Step::End(end), (entered(from) - leave).max(0.0))
                }
            };
            ways.steps[from.index()].push((step, count));
        }
        for steps in &mut ways.steps {
            let sum: f64 = steps.iter().map(|(_, count)| count).sum();
            steps.retain(|(_, count)| *count > 0.0);
            steps.iter_mut().for_each(|(_, count)| *count /= sum);
        }
        ways
    }

    /// All paths of at least `least` executions, and how many executions the others have.
    fn paths(&self, least: f64, scale: f64) -> (Vec<EstimatedPath>, f64) {
        let mut out = Vec::new();
        let mut emit = |path, count: f64| {
            let count = count / scale;
            out.push(EstimatedPath {
                path,
                count,
                low: count,
                high: count,
                effective: 0.0,
            });
        };
        let mut unlisted = 0.0;
        for &(block, count) in self.loops.iter().filter(|(_, count)| *count > 0.0) {
            let path = Path {
                start: Start::Inside,
                blocks: vec![block],
                end: End::Back(block),
            };
            emit(path, count);
        }
        for (&(start, block), &count) in &self.starts {
            let mut open = vec![(vec![block], count)];
            while let Some((blocks, count)) = open.pop() {
                let steps = blocks.last().map_or(&[][..], |block| &self.steps[block.index()]);
                if count < least || steps.is_empty() {
                    unlisted += count;
                    continue;
                }
                for &(step, probability) in steps {
                    let count = count * probability;
                    match step {
                        Step::End(end) => emit(
                            Path {
                                start,
                                blocks: blocks.clone(),
                                end,
                            },
                            count,
                        ),
                        Step::To(next) => {
                            let mut blocks = blocks.clone();
                            blocks.push(next);
                            open.push((blocks, count));
                        }
                    }
                }
            }
        }
        (out, unlisted)
    }
}
