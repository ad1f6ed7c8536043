//! Random profiles, for tests: the compiler must generate correct code with any profile.
//!
//! [`random_profile`] is the exact profile of random activations of a function. [`shuffled_paths`] permutes the counts
//! of paths and keeps everything else. A benchmark against it shows what paths are worth.

mod walk;

use crate::data::{BranchPrediction, EstimatedPath, FunctionProfile};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, FunctionId};
use pleach_ball_larus::graph::PathGraph;
use pleach_ball_larus::{NumberingOptions, Path};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::SplitMix64;
use rustc_hash::FxHashMap;
use walk::{Tally, Walker};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The scale of random profiles, from samples to counts.
pub const SCALE: f64 = 1000.0;
/// One in this many functions is never executed.
const NEVER: u32 = 6;
/// Limit on the number of different activations of a function.
const MAX_WALKS: u64 = 48;
/// Limit on the base-2 logarithm of the number of times that a function's activations repeat. Each activation repeats
/// up to [`MAX_REPEATS`] times as often. Sums of counts stay below 2⁵³, so `f64` represents them exactly.
const MAX_DOUBLINGS: u64 = 28;
const MAX_REPEATS: u64 = 64;

/// A profile of random activations, which depends only on function, graph and seed. Some functions are never executed,
/// and few are hot. Loops have a few iterations or hundreds. Successive branches are correlated. Exceptions and calls
/// that do not return are as likely as other successors. The counts of blocks, edges and paths agree, and intervals
/// contain nothing but the count. Predictions are random. Call targets and coverage are left out.
pub fn random_profile(cfg: &Cfg, seed: u64) -> FunctionProfile {
    let mut random = generator(cfg.id, seed);
    let mut tally = Tally {
        blocks: vec![0; cfg.blocks.len()],
        edges: vec![0; cfg.edge_count()],
        paths: FxHashMap::default(),
    };
    if !cfg.blocks.is_empty() && !random.random_ratio(1, NEVER) {
        let graph = PathGraph::new(cfg, &NumberingOptions::default());
        let walker = Walker::new(cfg, &graph, &mut random);
        let repeats = 1 << random.random_range(0..MAX_DOUBLINGS + 1);
        for _ in 0..=random.random_range(0..MAX_WALKS) {
            let times = repeats * (1 + random.random_range(0..MAX_REPEATS));
            walker.walk(&mut random, times, &mut tally);
        }
    }
    share_slots(cfg, &mut tally.edges);
    let mut paths: Vec<_> = tally.paths.into_iter().map(|(path, n)| exact(path, n as f64)).collect();
    paths.sort_unstable_by(EstimatedPath::hottest_first);
    let predictions = predictions(cfg, &tally.blocks, &mut random);
    FunctionProfile {
        id: cfg.id,
        cfg_hash: cfg.hash(),
        name: cfg.name.clone(),
        samples: (tally.blocks.iter().sum::<u64>() as f64 / SCALE).ceil() as u64,
        blocks: tally.blocks,
        edges: tally.edges,
        paths,
        predictions,
        ..FunctionProfile::default()
    }
}

/// Random predictions: half of the executed branches are never mispredicted, the others at a random rate.
fn predictions(cfg: &Cfg, blocks: &[u64], random: &mut SplitMix64) -> Vec<BranchPrediction> {
    let branches = cfg.blocks.iter().enumerate();
    let branches = branches.filter(|(at, block)| block.successors.len() == 2 && blocks[*at] > 0);
    let predicted = |(at, _)| {
        let watched = blocks[at] as f64;
        let rate = if random.random_ratio(1, 2) {
            random.random_range(0..101) as f64 / 100.0
        } else {
            0.0
        };
        BranchPrediction {
            block: BlockIndex(at as u32),
            watched,
            mispredicted: watched * rate,
            low: watched * rate,
        }
    };
    branches.map(predicted).collect()
}

/// The same profile with the counts of paths permuted, and likewise those of windows of paths and of called paths. The
/// permutation depends only on function and seed.
pub fn shuffled_paths(mut profile: FunctionProfile, seed: u64) -> FunctionProfile {
    let mut random = generator(profile.id, seed);
    let mut paths: Vec<Path> = profile.paths.iter().map(|p| p.path.clone()).collect();
    paths.shuffle(&mut random);
    profile.paths.iter_mut().zip(paths).for_each(|(p, path)| p.path = path);
    profile.paths.sort_unstable_by(EstimatedPath::hottest_first);
    shuffle_counts(profile.windows.iter_mut().map(|w| &mut w.count), &mut random);
    shuffle_counts(profile.called.iter_mut().map(|c| &mut c.count), &mut random);
    profile
}

fn shuffle_counts<'a>(counts: impl Iterator<Item = &'a mut f64>, random: &mut SplitMix64) {
    let counts: Vec<&mut f64> = counts.collect();
    let mut shuffled: Vec<f64> = counts.iter().map(|count| **count).collect();
    shuffled.shuffle(random);
    counts
        .into_iter()
        .zip(shuffled)
        .for_each(|(count, other)| *count = other);
}

fn generator(id: FunctionId, seed: u64) -> SplitMix64 {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&id.guid.0.to_le_bytes());
    bytes[8..].copy_from_slice(&id.module.0.to_le_bytes());
    SplitMix64::seed_from_u64(xxh3_64_with_seed(&bytes, seed))
}

fn exact(path: Path, count: f64) -> EstimatedPath {
    EstimatedPath {
        path,
        count,
        low: count,
        high: count,
        effective: f64::INFINITY,
    }
}

/// Divides counts evenly among a block's slots with the same target, as in a recorded profile. The first slot gets the
/// remainder.
fn share_slots(cfg: &Cfg, edges: &mut [u64]) {
    let mut rest = edges;
    for block in &cfg.blocks {
        let (slots, others) = rest.split_at_mut(block.successors.len());
        rest = others;
        let mut of_target: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        for (slot, &to) in block.successors.iter().enumerate() {
            of_target.entry(to).or_default().push(slot);
        }
        for same in of_target.into_values().filter(|same| same.len() > 1) {
            let sum: u64 = same.iter().map(|&slot| slots[slot]).sum();
            let share = sum / same.len() as u64;
            same.iter().for_each(|&slot| slots[slot] = share);
            slots[same[0]] += sum - share * same.len() as u64;
        }
    }
}
