//! Where activations were called from: the end of the caller's path, as far as it was seen
//! (call-crossing paths; feedback/ALGORITHMS.md, Path crediting).

use crate::partial_path::PartialPath;
use pleach_ball_larus::{Path, Start};
use pleach_profile::Caller;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Blocks of the caller that are kept.
pub(super) const MAX_BEFORE: usize = 4;
/// Activations of one copy whose first path is waited for. There is one, but where paths were lost.
const MAX_WAITING: usize = 4;

/// Callers of the activations of one copy whose first path has not ended yet, oldest first; `None` where nothing is known.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Waiting(VecDeque<Option<Caller>>);

impl Waiting {
    /// An activation begins.
    pub fn enter(&mut self, caller: Option<Caller>) {
        if self.0.len() == MAX_WAITING {
            self.0.clear();
        }
        self.0.push_back(caller);
    }

    /// What is told next is not what the oldest of them waits for.
    pub fn lose(&mut self) {
        self.0.clear();
    }

    /// The caller of the activation that a piece is the first one of.
    pub fn take_caller(&mut self, piece: &PartialPath) -> Option<Caller> {
        match piece.start {
            Some(Start::Entry) => self.0.pop_front().flatten(),
            _ => None,
        }
    }
}

/// How often each path followed what its caller had passed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Called(FxHashMap<(Caller, Path), f64>);

impl Called {
    /// Adds executions.
    pub(super) fn add(&mut self, caller: Caller, path: Path, times: f64) {
        *self.0.entry((caller, path)).or_default() += times;
    }

    /// Adds what was seen of the same function elsewhere.
    pub(super) fn merge(&mut self, other: Self) {
        for (key, times) in other.0 {
            *self.0.entry(key).or_default() += times;
        }
    }

    /// All of it, in order.
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

    fn piece(start: Option<Start>) -> PartialPath {
        PartialPath {
            start,
            blocks: vec![BlockIndex(0)],
            end: Some(End::Exit),
        }
    }

    #[test]
    fn first_paths_get_the_callers_of_their_activations() {
        let mut waiting = Waiting::default();
        waiting.enter(caller(1));
        waiting.enter(None);
        waiting.enter(caller(2));
        assert_eq!(waiting.take_caller(&piece(Some(Start::Entry))), caller(1));
        // Later paths of an activation were not called.
        assert_eq!(waiting.take_caller(&piece(None)), None);
        assert_eq!(waiting.take_caller(&piece(Some(Start::Entry))), None);
        assert_eq!(waiting.take_caller(&piece(Some(Start::Entry))), caller(2));
        assert_eq!(waiting.take_caller(&piece(Some(Start::Entry))), None);
    }

    #[test]
    fn no_path_gets_the_caller_of_a_lost_one() {
        let mut waiting = Waiting::default();
        waiting.enter(caller(1));
        waiting.lose();
        waiting.enter(caller(2));
        assert_eq!(waiting.take_caller(&piece(Some(Start::Entry))), caller(2));
        // So many that first paths must have been lost.
        for block in 0..=MAX_WAITING as u32 {
            waiting.enter(caller(block));
        }
        assert_eq!(
            waiting.take_caller(&piece(Some(Start::Entry))),
            caller(MAX_WAITING as u32)
        );
    }
}
