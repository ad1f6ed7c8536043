//! Obvious paths: those with an edge that no other path of their region takes, so that how often the edge was taken
//! says how often the path was (Targeted and Practical Path Profiling). The fewer edges there are, cold ones dropped,
//! the more paths are obvious.

use super::cold::EdgeEvidence;
use super::matching::RegionPaths;
use pleach_analysis::regions::split::{Leave, Portion};
use pleach_annotate::id::BlockIndex;
use std::collections::BTreeMap;

/// The obvious paths among some ways through a region, and how often each was taken: as often as that of its own edges
/// which was seen most, for a partial path may end before it has shown all. The last block is such an edge where only
/// one path ends in it.
pub fn obvious(ways: &RegionPaths<'_>, evidence: &EdgeEvidence) -> BTreeMap<Vec<BlockIndex>, f64> {
    let mut paths: BTreeMap<Vec<BlockIndex>, f64> = BTreeMap::new();
    let mut add = |blocks: Vec<BlockIndex>, leave: Option<Leave>, taken: f64| {
        let region = ways.region();
        let own = Portion { region, blocks, leave };
        if let Some(path) = ways.path(&own, 0) {
            let most = paths.entry(path).or_default();
            *most = taken.max(*most);
        }
    };
    for (from, to) in ways.edges() {
        if ways.through(from, to) == 1 {
            add(vec![from, to], None, evidence.taken(from, to));
        }
    }
    for block in ways.blocks() {
        if ways.ending_in(block) == 1 {
            add(vec![block], Some(Leave::Out), evidence.ended(block));
        }
    }
    paths
}
