//! Paths in sequence: k-iteration paths (windows of consecutive paths of one activation), and call-crossing paths (the
//! caller's path, then the callee's). [`Windows`] and [`CallCrossingPaths`] are the reports of `pleach paths --iterations` and
//! `--across-calls`.
//!
//! Their counts are estimated from those of single paths and from the probability of the next path where a burst shows
//! it. Their intervals are those of parts of a single path's count ([`Interval::of_part`]).

mod called;
mod windows;

pub use called::{CallCrossingPaths, CalledRow};
pub use windows::{WindowRow, Windows};

use super::paths::ending;
use pleach_analysis::credit::interval::Interval;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::{Path, Start};
use pleach_profile::{EstimatedPath, FunctionProfile, Profile};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// A path in a row for scripts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct PathView<'p> {
    blocks: &'p [BlockIndex],
    start: Start,
    end: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<BlockIndex>,
}

impl<'p> From<&'p Path> for PathView<'p> {
    fn from(path: &'p Path) -> Self {
        let (end, to) = ending(path.end);
        Self {
            blocks: &path.blocks,
            start: path.start,
            end,
            to,
        }
    }
}

/// The interval of `part` of the executions of `path`; that of an exact count if the profile does not have the path.
fn interval_of_part(paths: &FxHashMap<&Path, &EstimatedPath>, path: &Path, part: f64) -> Interval {
    let whole = paths.get(path);
    let (count, effective) = whole.map_or((part, f64::INFINITY), |p| (p.count, p.effective));
    Interval::of_part(part, count, effective)
}

/// The paths of a function by themselves.
fn by_path(function: &FunctionProfile) -> FxHashMap<&Path, &EstimatedPath> {
    function.paths.iter().map(|p| (&p.path, p)).collect()
}

/// Executions of the paths of a profile.
fn flow(profile: &Profile, is_counted: impl Fn(&Path) -> bool) -> f64 {
    let paths = profile.functions.iter().flat_map(|f| &f.paths);
    paths.filter(|p| is_counted(&p.path)).fold(0.0, |sum, p| sum + p.count)
}
