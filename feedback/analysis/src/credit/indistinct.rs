//! Bounds of the counts of paths that nothing in a recording tells apart.
//!
//! Where a branch became a select, no burst shows which arm was executed. If no inline instance kept the probes of the
//! arms, how crediting divides such executions is a guess, and replicates do not scatter by it: each path may have had all
//! of them, or none.

use super::em::{Matching, Weighed, add, likelihoods, share, sum_of};
use crate::partial_path::PartialPath;
use crate::replicates::{REPLICATES, Times};
use rustc_hash::FxHashMap;

const ZERO: Times = [0.0; REPLICATES + 1];

/// The executions of a path, at least and at most.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub least: Times,
    pub most: Times,
}

/// Whether no block with a probe tells these lists of partial paths apart. `shown`: blocks that some inline instance shows.
pub(super) fn are_indistinct(alternatives: &[Vec<PartialPath>], shown: &[bool]) -> bool {
    let seen = |partial_path: &PartialPath| {
        let blocks = partial_path.blocks.iter().filter(|block| shown[block.index()]);
        (
            partial_path.start,
            blocks.copied().collect::<Vec<_>>(),
            partial_path.end,
        )
    };
    let mut seen = alternatives
        .iter()
        .map(|list| list.iter().map(seen).collect::<Vec<_>>());
    let first = seen.next();
    seen.all(|other| Some(other) == first)
}

/// The bounds of the paths that share indistinct observations, by path. `counts`: what the paths were credited with;
/// `weights`: what the observations were divided by.
pub(super) fn bounds(
    matchings: &[Matching],
    observations: &[Weighed<'_>],
    weights: &[Times],
    counts: &[Times],
) -> FxHashMap<u32, Bounds> {
    let mut bounds: FxHashMap<u32, Bounds> = FxHashMap::default();
    let all = sum_of(weights);
    for observation in observations.iter().filter(|observation| observation.is_indistinct) {
        // What each path gets if one of the alternatives was executed each time.
        let alone: Vec<FxHashMap<u32, Times>> = observation
            .alternatives
            .iter()
            .map(|partial_paths| {
                let mut alone = FxHashMap::default();
                for &partial_path in partial_paths {
                    share(
                        &matchings[partial_path as usize],
                        observation.times,
                        weights,
                        |path, part| {
                            add(alone.entry(path).or_insert(ZERO), part, |t| t);
                        },
                    );
                }
                alone
            })
            .collect();
        let likelihoods = likelihoods(observation, matchings, weights, &all);
        let mut paths: Vec<u32> = alone.iter().flat_map(FxHashMap::keys).copied().collect();
        paths.sort_unstable();
        paths.dedup();
        for path in paths {
            let credited = counts[path as usize];
            let Bounds { least, most } = bounds.entry(path).or_insert(Bounds {
                least: credited,
                most: credited,
            });
            for lane in 0..=REPLICATES {
                let (mut fewest, mut largest, mut mean) = (f32::INFINITY, 0.0_f32, 0.0);
                for (gains, likelihood) in alone.iter().zip(&likelihoods) {
                    let gain = gains.get(&path).map_or(0.0, |times| times[lane]);
                    fewest = fewest.min(gain);
                    largest = largest.max(gain);
                    mean += gain * likelihood[lane];
                }
                least[lane] = (least[lane] - (mean - fewest)).max(0.0);
                most[lane] += largest - mean;
            }
        }
    }
    bounds
}
