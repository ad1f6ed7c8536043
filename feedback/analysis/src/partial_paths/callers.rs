//! Callers of activations: the observed end of the caller's path (call-crossing paths; feedback/ALGORITHMS.md, Path
//! crediting).

use crate::partial_path::PartialPath;
use pleach_ball_larus::{Path, Start};
use pleach_profile::Caller;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Maximum number of the caller's last blocks that are kept.
pub(super) const MAX_BEFORE: usize = 4;
/// Maximum number of activations of one inline instance whose first path has not ended. There is one, unless paths were
/// lost.
const MAX_WAITING: usize = 4;

/// Callers of the activations of one inline instance whose first path has not ended yet, oldest first; `None` for an
/// unknown caller.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct PendingCallers(VecDeque<Option<Caller>>);

impl PendingCallers {
    /// An activation begins.
    pub fn enter(&mut self, caller: Option<Caller>) {
        if self.0.len() == MAX_WAITING {
            self.0.clear();
        }
        self.0.push_back(caller);
    }

    /// Discards all callers: the next path is not the oldest activation's first.
    pub fn lose(&mut self) {
        self.0.clear();
    }

    /// Takes the caller of the activation whose first path this is; `None` for later paths.
    pub fn take_caller(&mut self, partial_path: &PartialPath) -> Option<Caller> {
        match partial_path.start {
            Some(Start::Entry) => self.0.pop_front().flatten(),
            _ => None,
        }
    }
}

/// Weighted number of times that each path followed the last blocks of its caller.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Called(FxHashMap<(Caller, Path), f64>);

impl Called {
    /// Adds executions.
    pub(super) fn add(&mut self, caller: Caller, path: Path, times: f64) {
        *self.0.entry((caller, path)).or_default() += times;
    }

    /// Adds the counts of another module for the same function.
    pub(super) fn merge(&mut self, other: Self) {
        for (key, times) in other.0 {
            *self.0.entry(key).or_default() += times;
        }
    }

    /// All counts, sorted by caller and path.
    pub fn sorted(&self) -> Vec<(&Caller, &Path, f64)> {
        let mut all: Vec<_> = self
            .0
            .iter()
            .map(|((caller, path), &times)| (caller, path, times))
            .collect();
        all.sort_unstable_by_key(|&(caller, path, _)| (caller, path));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
    use pleach_ball_larus::End;
    use pleach_profile::Caller;

    fn caller(block: u32) -> Option<Caller> {
        Some(Caller {
            id: FunctionId {
                guid: FunctionGuid(7),
                module: ModuleHash(0),
            },
            cfg_hash: CfgHash(1),
            before: vec![BlockIndex(block)],
        })
    }

    fn partial_path(start: Option<Start>) -> PartialPath {
        PartialPath {
            start,
            blocks: vec![BlockIndex(0)],
            end: Some(End::Exit),
        }
    }

    #[test]
    fn first_paths_get_the_callers_of_their_activations() {
        let mut waiting = PendingCallers::default();
        waiting.enter(caller(1));
        waiting.enter(None);
        waiting.enter(caller(2));
        assert_eq!(waiting.take_caller(&partial_path(Some(Start::Entry))), caller(1));
        // Later paths of an activation were not called.
        assert_eq!(waiting.take_caller(&partial_path(None)), None);
        assert_eq!(waiting.take_caller(&partial_path(Some(Start::Entry))), None);
        assert_eq!(waiting.take_caller(&partial_path(Some(Start::Entry))), caller(2));
        assert_eq!(waiting.take_caller(&partial_path(Some(Start::Entry))), None);
    }

    #[test]
    fn no_path_gets_the_caller_of_a_lost_one() {
        let mut waiting = PendingCallers::default();
        waiting.enter(caller(1));
        waiting.lose();
        waiting.enter(caller(2));
        assert_eq!(waiting.take_caller(&partial_path(Some(Start::Entry))), caller(2));
        // More activations than are kept: first paths must have been lost.
        for block in 0..=MAX_WAITING as u32 {
            waiting.enter(caller(block));
        }
        assert_eq!(
            waiting.take_caller(&partial_path(Some(Start::Entry))),
            caller(MAX_WAITING as u32)
        );
    }
}
