//! Paths in sequence: k-iteration paths (windows of consecutive paths of one activation), and call-crossing paths (the
//! caller's path, then the callee's). [`Windows`] and [`CalledPaths`] are the reports of `pleach paths --windows` and
//! `--called`.
//!
//! A profile has no intervals of their counts: they are estimated from those of single paths and from the probability
//! of the next path where a burst shows it.

mod called;
mod windows;

pub use called::{CalledPaths, CalledRow};
pub use windows::{WindowRow, Windows};

use super::paths::ending;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::{Path, Start};
use pleach_profile::Profile;
use serde::Serialize;

const NO_INTERVALS: &str = "a profile has no intervals of these shares; `pleach paths` shows those of single paths";

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

/// Executions of the paths of a profile.
fn flow(profile: &Profile, is_counted: impl Fn(&Path) -> bool) -> f64 {
    let paths = profile.functions.iter().flat_map(|f| &f.paths);
    paths.filter(|p| is_counted(&p.path)).fold(0.0, |sum, p| sum + p.count)
}
