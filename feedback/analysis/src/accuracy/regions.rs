//! The flow of region paths, on which the papers' figures are based.

use super::{Shares, Truth};
use crate::regions::profile::{RegionPath, RegionProfile};
use crate::regions::{DEFAULT_THRESHOLD, Regions};
use pleach_ball_larus::Path;
use pleach_profile::path_profile::PathProfile;
use std::collections::BTreeMap;

/// The regions of every function that was counted, and their exact flow.
#[derive(Debug)]
pub struct RegionFlow {
    regions: BTreeMap<super::truth::FunctionKey, Regions>,
    /// The flow of each region path that was executed.
    pub exact: Shares<RegionPath>,
}

impl RegionFlow {
    /// Splits the paths of exact counts into region paths.
    pub fn new(truth: &Truth) -> Self {
        let mut profile = RegionProfile::default();
        let mut all = BTreeMap::new();
        for (&key, function) in &truth.functions {
            let executed: Vec<(&Path, &u64)> = function.paths.iter().filter(|(_, count)| **count > 0).collect();
            let regions = Regions::new(&function.cfg, DEFAULT_THRESHOLD);
            for (path, &count) in executed {
                profile.add_path(&regions, path, count as f64);
            }
            all.insert(key, regions);
        }
        Self {
            regions: all,
            exact: shares(profile),
        }
    }

    /// Splits the paths of an estimate into region paths. Paths of functions that were not counted count as wrong:
    /// remove them before.
    pub fn estimated(&self, profile: &PathProfile) -> Shares<RegionPath> {
        shares(RegionProfile::projected(profile, |id, hash| {
            self.regions.get(&(id, hash))
        }))
    }
}

fn shares(profile: RegionProfile) -> Shares<RegionPath> {
    Shares::new(profile.paths, profile.unplaced)
}
