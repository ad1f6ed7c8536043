//! How often each region path was executed: estimated, exact, or projected from Ball–Larus paths.

use super::Regions;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_ball_larus::Path;
use pleach_ball_larus::counts::exact::ExactFunction;
use pleach_profile::path_profile::PathProfile;
use std::collections::BTreeMap;

/// A region path of a program. Its first block is its region's entry and so names the region.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RegionPath {
    /// The function.
    pub id: FunctionId,
    /// The graph that the blocks are of.
    pub cfg_hash: CfgHash,
    /// The blocks passed, at least one.
    pub blocks: Vec<BlockIndex>,
}

/// Weights of region paths: executions if exact, otherwise in the unit of the estimate.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RegionProfile {
    /// Paths with a positive weight.
    pub paths: BTreeMap<RegionPath, f64>,
    /// Weight without a region path: of paths that are not listed, of unknown graphs, or of paths that begin in the
    /// middle of a region.
    pub unplaced: f64,
}

impl RegionProfile {
    /// Adds to one path of a function.
    pub fn add(&mut self, regions: &Regions, blocks: Vec<BlockIndex>, weight: f64) {
        if weight == 0.0 {
            return;
        }
        let path = RegionPath {
            id: regions.id,
            cfg_hash: regions.cfg_hash,
            blocks,
        };
        *self.paths.entry(path).or_default() += weight;
    }

    /// Adds the region paths of a Ball–Larus path.
    pub fn add_path(&mut self, regions: &Regions, path: &Path, weight: f64) {
        for portion in regions.split_path(path) {
            match regions.all[portion.region.index()].entry() == portion.blocks[0] {
                true => self.add(regions, portion.blocks, weight),
                false => self.unplaced += weight,
            }
        }
    }

    /// Exact counts. Functions whose edges were counted add nothing.
    ///
    /// Where paths were counted with another limit on their number than the default, they may begin in the middle of a
    /// region: such counts are in [`RegionProfile::unplaced`].
    pub fn exact<'e>(functions: impl IntoIterator<Item = &'e ExactFunction>, threshold: u64) -> Self {
        let mut this = Self::default();
        for function in functions {
            let regions = Regions::new(&function.cfg, threshold);
            for path in function.acyclic() {
                if let Some(latest) = path.path.last() {
                    this.add_path(&regions, latest, path.count as f64);
                }
            }
        }
        this
    }

    /// An estimate of Ball–Larus paths, split into region paths. `regions` gives the regions of a function.
    pub fn projected<'r>(
        profile: &PathProfile,
        mut regions: impl FnMut(FunctionId, CfgHash) -> Option<&'r Regions>,
    ) -> Self {
        let mut this = Self::default();
        for function in &profile.functions {
            this.unplaced += function.unlisted;
            let known = regions(function.id, function.cfg_hash);
            for path in &function.paths {
                match known {
                    Some(regions) => this.add_path(regions, &path.path, path.count),
                    None => this.unplaced += path.count,
                }
            }
        }
        this
    }

    /// The weight of all paths.
    pub fn total(&self) -> f64 {
        self.paths.values().sum()
    }

    /// Each path's flow: its share of the weight of all.
    pub fn shares(&self) -> impl Iterator<Item = (&RegionPath, f64)> {
        let total = self.total();
        self.paths.iter().map(move |(path, weight)| (path, weight / total))
    }

    /// The paths whose flow is at least this, by descending flow and then by path.
    pub fn hot(&self, threshold: f64) -> Vec<(&RegionPath, f64)> {
        let mut hot = self.by_flow();
        hot.retain(|&(_, flow)| flow >= threshold);
        hot
    }

    /// All paths by descending flow and then by path.
    pub fn by_flow(&self) -> Vec<(&RegionPath, f64)> {
        let mut all: Vec<_> = self.shares().collect();
        // Stable: equals stay in the order of paths.
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }
}
