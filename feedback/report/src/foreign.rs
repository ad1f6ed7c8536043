//! Removes counts that do not belong to a program's graphs.

use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::manifest::{Anchor, Entry};
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_profile::Profile;
use rustc_hash::FxHashSet;

/// A function whose counts do not belong to a program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "counts of function {function} are from another build{}; they are left out",
    if *is_changed { ", in which its control flow was different" } else { ", or from a library: the binary has no such function" }
)]
pub struct Foreign {
    /// Its name.
    pub function: String,
    /// The program has the function, but with another graph.
    pub is_changed: bool,
}

/// Removes functions that a program does not have with the same graph from exact counts. Returns the executed ones
/// among them.
///
/// `manifest` has the entries of the program's executable and libraries.
pub fn take_foreign(exact: &mut ExactProfile, manifest: &[Entry]) -> Vec<Foreign> {
    let own = ProgramGraphs::from_manifest(manifest);
    let (known, foreign): (Vec<_>, Vec<_>) = exact
        .functions
        .drain(..)
        .partition(|f| own.has(f.cfg.id, f.cfg.hash(), f.anchor));
    exact.functions = known;
    let executed = foreign.iter().filter(|f| f.is_executed());
    executed.map(|f| own.foreign(f.cfg.id, &f.cfg.name)).collect()
}

/// The same for a sampled profile. Returns the sampled ones among the removed functions.
pub fn take_foreign_estimates(profile: &mut Profile, manifest: &[Entry]) -> Vec<Foreign> {
    let own = ProgramGraphs::from_manifest(manifest);
    let anchor = profile.anchor;
    let (known, foreign): (Vec<_>, Vec<_>) = profile
        .functions
        .drain(..)
        .partition(|f| own.has(f.id, f.cfg_hash, anchor));
    profile.functions = known;
    let sampled = foreign.iter().filter(|f| f.samples > 0);
    sampled.map(|f| own.foreign(f.id, &f.name)).collect()
}

/// A program's own graphs.
struct ProgramGraphs {
    graphs: FxHashSet<(FunctionId, CfgHash, Anchor)>,
    functions: FxHashSet<FunctionId>,
}

impl ProgramGraphs {
    fn from_manifest(manifest: &[Entry]) -> Self {
        Self {
            graphs: manifest.iter().map(|e| (e.cfg.id, e.hash, e.anchor)).collect(),
            functions: manifest.iter().map(|e| e.cfg.id).collect(),
        }
    }

    fn has(&self, id: FunctionId, hash: CfgHash, anchor: Anchor) -> bool {
        self.graphs.contains(&(id, hash, anchor))
    }

    fn foreign(&self, id: FunctionId, name: &str) -> Foreign {
        Foreign {
            function: name.into(),
            is_changed: self.functions.contains(&id),
        }
    }
}
