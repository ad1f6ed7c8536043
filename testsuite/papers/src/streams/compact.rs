//! Two ways to reduce a recording: windows from many bursts, or few whole bursts.

use super::curve::overlap;
use pleach_collector::stream::{Compressor, Generator};
use pleach_collector::vector::{Branch, Burst, VectorSet};
use std::collections::HashMap;

/// The recording is reduced by this factor.
const REDUCTION: u64 = 8;

/// The quality of both in files of one size; means over all trials.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CompactRecording {
    /// Bytes of all bursts.
    pub whole: u64,
    /// r with which windows fit.
    pub rate: f64,
    /// Σ min of the shares of all taken branches, for windows.
    pub windows: f64,
    /// The same for bursts that were chosen at random.
    pub bursts: f64,
}

impl CompactRecording {
    pub(super) fn measure(vectors: &VectorSet, trials: u64) -> Self {
        let packed = |set: &VectorSet| set.to_bytes().len() as u64;
        let all = VectorSet {
            bursts: vectors.bursts.clone(),
            ..VectorSet::default()
        };
        let whole = packed(&all);
        let truth = counts(all.bursts.iter().map(|burst| (&burst.branches[..], 1)));
        let mut compact = Self {
            whole,
            rate: 0.0,
            windows: 0.0,
            bursts: 0.0,
        };
        for seed in 0..trials {
            let mut compressor = Compressor::new(Generator::new(seed));
            all.bursts.iter().for_each(|burst| compressor.push(burst));
            let mut set = VectorSet::default();
            let compressed = loop {
                let compressed = compressor.finish();
                set.compressed = Some(compressed.clone());
                if packed(&set) <= whole / REDUCTION || compressed.windows.is_empty() {
                    break compressed;
                }
                compressor.coarsen();
            };
            let kept = counts(compressed.windows.iter().map(|w| (&w.branches[..], w.weight)));
            let used = packed(&set);
            compact.rate += compressed.rate as f64 / trials as f64;
            compact.windows += overlap(&truth, &kept) / trials as f64;
            let bursts = shuffled(&all.bursts, seed);
            let kept = counts(fitting(bursts, used).iter().map(|burst| (&burst.branches[..], 1)));
            compact.bursts += overlap(&truth, &kept) / trials as f64;
        }
        compact
    }
}

/// As many bursts from the front as fit.
fn fitting(bursts: Vec<Burst>, max_bytes: u64) -> Vec<Burst> {
    let (mut fit, mut too_many) = (0, bursts.len() + 1);
    let mut set = VectorSet::default();
    while fit + 1 < too_many {
        let middle = (fit + too_many) / 2;
        set.bursts = bursts[..middle].to_vec();
        if set.to_bytes().len() as u64 <= max_bytes {
            fit = middle;
        } else {
            too_many = middle;
        }
    }
    set.bursts = bursts[..fit].to_vec();
    set.bursts
}

fn shuffled(bursts: &[Burst], seed: u64) -> Vec<Burst> {
    let (mut bursts, mut generator) = (bursts.to_vec(), Generator::new(!seed));
    for i in (1..bursts.len()).rev() {
        bursts.swap(i, generator.below(i as u64 + 1) as usize);
    }
    bursts
}

fn counts<'a>(windows: impl Iterator<Item = (&'a [Branch], u64)>) -> HashMap<Branch, u64> {
    let mut counts = HashMap::new();
    for (branches, weight) in windows {
        for branch in branches {
            *counts.entry(*branch).or_default() += weight;
        }
    }
    counts
}
