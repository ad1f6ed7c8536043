//! Equal crediting: a partial path's weight is divided equally over its matching set (thesis §3.5.3.3).
//!
//! It assumes that all paths of a set are equally likely. Two of the remedies that the papers propose for what follows
//! from that (§4.6) can be switched on, so that each can be measured:
//! - cold-edge elimination drops the candidates that take an edge which is cold with confidence ([`Cold`]), unless none
//!   is left;
//! - obvious paths get what their own edges say ([`obvious`]): of a partial path's weight, the share that they have of
//!   the passes over its rarest edge. The other candidates share the rest.
//!
//! The sum of all weights stays what it was, whatever the options.

use super::cold::{Cold, EdgeEvidence};
use super::matching::RegionPaths;
use super::obvious::obvious;
use pleach_analysis::regions::profile::RegionProfile;
use pleach_analysis::regions::split::Portion;
use pleach_analysis::regions::{RegionIndex, Regions};
use pleach_annotate::id::BlockIndex;
use std::collections::BTreeMap;

/// A function's partial paths, split at regions, and how often each was seen.
pub type Portions = BTreeMap<Portion, f64>;

/// Which remedies against over-matching are on. The papers' own crediting has neither.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct EqualOptions {
    /// Drop candidates that take cold edges.
    pub cold: Option<Cold>,
    /// Credit obvious paths from their edges.
    pub obvious: bool,
}

/// The ambiguity of a region's partial paths.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Matching {
    /// The region.
    pub region: RegionIndex,
    /// Partial paths, weighted.
    pub weight: f64,
    /// Sum of the sizes of their matching sets, weighted.
    pub candidates: f64,
    /// Those of them that match one path, weighted.
    pub unique: f64,
}

impl Matching {
    /// The papers' matching ratio: the average size of the matching set (§4.6).
    pub fn ratio(&self) -> f64 {
        self.candidates / self.weight
    }
}

/// Credits a function's partial paths to a profile. The regions of which something was seen, in order.
pub fn equal(
    regions: &Regions,
    portions: &Portions,
    options: &EqualOptions,
    profile: &mut RegionProfile,
) -> Vec<Matching> {
    let evidence = EdgeEvidence::of(portions.iter().map(|(portion, &weight)| (portion, weight)));
    let portions: Vec<(&Portion, f64)> = portions.iter().map(|(portion, &weight)| (portion, weight)).collect();
    // A portion's region is what portions are ordered by first.
    let by_region = portions.chunk_by(|a, b| a.0.region == b.0.region);
    by_region
        .map(|portions| {
            let region = Crediting::new(regions, portions[0].0.region, &evidence, options);
            region.credit(portions, profile)
        })
        .collect()
}

/// Crediting within one region.
struct Crediting<'a> {
    regions: &'a Regions,
    evidence: &'a EdgeEvidence,
    all: RegionPaths<'a>,
    /// Without cold edges.
    warm: Option<RegionPaths<'a>>,
    obvious: BTreeMap<Vec<BlockIndex>, f64>,
}

impl<'a> Crediting<'a> {
    fn new(regions: &'a Regions, region: RegionIndex, evidence: &'a EdgeEvidence, options: &EqualOptions) -> Self {
        let all = RegionPaths::all(regions, region);
        let warm = options
            .cold
            .map(|cold| RegionPaths::without(regions, region, |from, to| evidence.is_cold(from, to, &cold)));
        let obvious = match options.obvious {
            true => obvious(warm.as_ref().unwrap_or(&all), evidence),
            false => BTreeMap::new(),
        };
        Self {
            regions,
            evidence,
            all,
            warm,
            obvious,
        }
    }

    fn credit(&self, portions: &[(&Portion, f64)], profile: &mut RegionProfile) -> Matching {
        let mut matching = Matching {
            region: self.all.region(),
            weight: 0.0,
            candidates: 0.0,
            unique: 0.0,
        };
        for &(portion, weight) in portions {
            let warm = self.warm.as_ref().filter(|warm| warm.count(portion) > 0);
            let ways = warm.unwrap_or(&self.all);
            let count = ways.count(portion);
            matching.weight += weight;
            matching.candidates += weight * count as f64;
            if count == 1 {
                matching.unique += weight;
            }
            let paths: Vec<_> = ways.matching(portion).collect();
            for (path, share) in self.shares(portion, paths) {
                profile.add(self.regions, path, weight * share);
            }
        }
        matching
    }

    /// Candidates and their shares, which add up to 1.
    fn shares(&self, portion: &Portion, paths: Vec<Vec<BlockIndex>>) -> Vec<(Vec<BlockIndex>, f64)> {
        let passes = self.passes(portion);
        let known = |path: &Vec<BlockIndex>| Some((self.obvious.get(path)? / passes).min(1.0));
        let shares: Vec<Option<f64>> = paths.iter().map(known).collect();
        let sum: f64 = shares.iter().flatten().sum();
        let others = shares.iter().filter(|share| share.is_none()).count();
        let equal = 1.0 / paths.len() as f64;
        let share = |share: Option<f64>| match share {
            // Nothing is known of any of them.
            _ if others == 0 && sum == 0.0 => equal,
            Some(share) if others == 0 || sum > 1.0 => share / sum,
            Some(share) => share,
            None => (1.0 - sum).max(0.0) / others as f64,
        };
        paths.into_iter().zip(shares.into_iter().map(share)).collect()
    }

    /// The observed executions of the portion's rarest block or edge.
    fn passes(&self, portion: &Portion) -> f64 {
        let blocks = portion.blocks.iter().map(|&block| self.evidence.passes(block));
        let edges = portion.blocks.windows(2).map(|p| self.evidence.taken(p[0], p[1]));
        blocks.chain(edges).fold(f64::INFINITY, f64::min)
    }
}
