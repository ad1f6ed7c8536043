//! Conditional jumps of branches that became selects.
//!
//! The optimiser makes selects of a branch whose ways only compute values, and puts the probes of all blocks around it
//! at one address. On loop-carried chains, code generation makes conditional jumps of selects again. Such a jump is
//! found between one group of probes at one address and the next: there is one jump more than branches of the graph
//! that chose the next group, and it comes first.

use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::InlineInstanceIndex;
use pleach_annotate::probe::Address;
use pleach_collector::vector::ModuleId;

/// A branch of an inline instance.
pub(super) type BranchKey = (ModuleId, InlineInstanceIndex, BlockIndex);

/// Where probes were passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// In the chain: the probes follow this branch.
    pub position: usize,
    /// Their address.
    pub address: Address,
}

/// How a probe was reached from the one before it in its activation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reached {
    /// By so many branches of the graph. It is the first one of its activation, if none.
    Decided(usize),
    /// By one of two ways without probes, which this branch chose.
    Chosen(BranchKey),
    /// It is not known how.
    Unknown,
}

/// Probes at one address that were passed together.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Group {
    place: Place,
    /// Branches of the graph between the group before and this one; `None` if they are not known.
    decided: Option<usize>,
    /// Number of branches within the group, and the last of them.
    choices: usize,
    choice: Option<BranchKey>,
}

/// A branch that became selects, if there is a jump more than `decided` between two places, the first one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Candidate {
    /// The branch.
    pub branch: BranchKey,
    /// Where its probes were passed.
    pub from: Place,
    /// Where the next probes were passed.
    pub to: Place,
    /// Number of branches of the graph between them.
    pub decided: usize,
}

/// The two latest groups of a burst.
#[derive(Clone, Default, Debug)]
pub(super) struct Groups {
    last: Option<Group>,
    current: Option<Group>,
}

impl Groups {
    /// Another burst begins.
    pub fn begin(&mut self) {
        *self = Self::default();
    }

    /// A probe was passed. Returns the candidate between the two groups before, if a group ended and there is one.
    pub fn pass(&mut self, place: Place, reached: Reached) -> Option<Candidate> {
        let mut candidate = None;
        if self.current.is_none_or(|current| current.place != place) {
            candidate = self.candidate();
            self.last = self.current.take();
        }
        let current = self.current.get_or_insert(Group {
            place,
            decided: Some(0),
            choices: 0,
            choice: None,
        });
        match reached {
            Reached::Decided(branches) => current.decided = current.decided.map(|decided| decided + branches),
            Reached::Unknown => current.decided = None,
            Reached::Chosen(branch) => {
                current.choices += 1;
                current.choice = Some(branch);
            }
        }
        candidate
    }

    fn candidate(&self) -> Option<Candidate> {
        let (last, current) = (self.last?, self.current?);
        Some(Candidate {
            branch: last.choice.filter(|_| last.choices == 1)?,
            from: last.place,
            to: current.place,
            decided: current.decided?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRANCH: BranchKey = (ModuleId(0), InlineInstanceIndex(0), BlockIndex(2));

    fn place(position: usize) -> Place {
        Place {
            position,
            address: Address(0x1000),
        }
    }

    /// The candidates of probes, each with the position of its place and how it was reached.
    fn candidates(probes: &[(usize, Reached)]) -> Vec<(usize, usize, usize)> {
        let mut groups = Groups::default();
        let found = probes
            .iter()
            .filter_map(|&(at, reached)| groups.pass(place(at), reached));
        found.map(|c| (c.from.position, c.to.position, c.decided)).collect()
    }

    #[test]
    fn a_branch_within_a_group_is_a_candidate_with_the_next_group() {
        use Reached::{Chosen, Decided, Unknown};
        // An iteration is one group; the next is reached by the loop's branch.
        let iteration = |at| [(at, Decided(1)), (at, Chosen(BRANCH)), (at, Decided(0))];
        let loops = [iteration(0), iteration(2), iteration(3)].concat();
        assert_eq!(candidates(&loops), [(0, 2, 1)]);
        // The last group may go on until another begins.
        let ended = [&loops[..], &[(4, Decided(1))]].concat();
        assert_eq!(candidates(&ended), [(0, 2, 1), (2, 3, 1)]);
        // Two branches in one group, or a group that was reached in an unknown way.
        assert_eq!(
            candidates(&[
                (0, Chosen(BRANCH)),
                (0, Chosen(BRANCH)),
                (1, Decided(1)),
                (2, Decided(1))
            ]),
            []
        );
        assert_eq!(candidates(&[(0, Chosen(BRANCH)), (1, Unknown), (2, Decided(1))]), []);
        // A branch between two groups is none within one.
        assert_eq!(
            candidates(&[(0, Decided(1)), (1, Chosen(BRANCH)), (2, Unknown), (3, Decided(1))]),
            []
        );
    }
}
