//! Cleans a branch stack: keeps the branches that were executed, oldest first.

use super::report::Report;
use crate::vector::{BranchFacts, Burst};

/// An entry of a branch stack, addresses as in the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RawBranch {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) facts: BranchFacts,
    /// Fetched, but never retired.
    pub(super) wrong_path: bool,
}

/// Reverses the stack to oldest first, and drops branches that were not executed.
pub(super) fn clean(
    newest_first: impl DoubleEndedIterator<Item = RawBranch>,
    into: &mut Vec<RawBranch>,
    report: &mut Report,
) {
    into.clear();
    for branch in newest_first.rev() {
        // AMD pads with zeros.
        if branch.from == 0 && branch.to == 0 {
            report.empty_entries += 1;
        } else if branch.wrong_path {
            report.wrong_path += 1;
        } else {
            into.push(branch);
        }
    }
    // A forward branch cannot reach itself without another branch: Skylake recorded it twice.
    if let [.., before, last] = into[..]
        && same(&before, &last)
        && last.from < last.to
    {
        into.pop();
        report.duplicates += 1;
    }
}

fn same(a: &RawBranch, b: &RawBranch) -> bool {
    (a.from, a.to) == (b.from, b.to)
}

/// Skylake records the newest branch twice in some stacks. For a backward branch this looks like a loop of one branch.
/// In a real loop, however, the next two branches are equal about as often as the newest two. If the newest two are
/// equal much more often, one of them is dropped.
pub(super) fn drop_duplicates(bursts: &mut [Burst], report: &mut Report) {
    let equal_at = |age: usize| {
        let equal = |burst: &&Burst| {
            let mut newest = burst.branches.iter().rev().skip(age);
            newest.next().zip(newest.next()).is_some_and(|(a, b)| a == b)
        };
        bursts.iter().filter(equal).count()
    };
    let (newest, next) = (equal_at(0), equal_at(1));
    if newest + report.duplicates as usize <= 4 * next + 8 {
        return;
    }
    for burst in bursts {
        if let [.., before, last] = burst.branches[..]
            && before == last
        {
            burst.branches.pop();
            if let Some(hardware) = &mut burst.hardware
                && !hardware.facts.is_empty()
            {
                let mut facts = std::mem::take(&mut hardware.facts).into_vec();
                facts.pop();
                hardware.facts = facts.into();
            }
            report.duplicates += 1;
        }
    }
}
