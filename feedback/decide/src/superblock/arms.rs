//! Which blocks the optimiser should be free to do without.
//!
//! A marker is an instruction that stays where it is. Short ways of a branch whose code is alike LLVM makes one of, with selects in place of
//! the branch; with a marker at its end, or before it, what is alike is not found. That a superblock could tell the ways apart is worth less
//! than the selects: markers must not cost what superblocks cannot give back.

use pleach_annotate::cfg::{Cfg, Terminator};
use pleach_annotate::id::BlockIndex;

/// By block: whether it is a way of a two-way branch, with code but without calls, to where the branch's other way leads or is.
pub fn arms(cfg: &Cfg) -> Vec<bool> {
    let mut entries = vec![0_u32; cfg.blocks.len()];
    let successors = cfg.blocks.iter().flat_map(|b| &b.successors);
    successors.for_each(|to| entries[to.index()] += 1);
    let mut calls = vec![false; cfg.blocks.len()];
    cfg.calls.iter().for_each(|call| calls[call.block.index()] = true);

    // Where a block that nothing else leads to goes on.
    let next = |block: BlockIndex| match cfg.blocks[block.index()].successors[..] {
        [to] if entries[block.index()] == 1 && !calls[block.index()] => Some(to),
        _ => None,
    };
    let mut arms = vec![false; cfg.blocks.len()];
    for block in cfg.blocks.iter().filter(|b| b.terminator == Terminator::Branch) {
        let [first, second] = block.successors[..] else {
            continue;
        };
        let ways = match (next(first), next(second)) {
            (Some(a), Some(b)) if a == b => vec![first, second],
            (Some(join), _) if join == second => vec![first],
            (_, Some(join)) if join == first => vec![second],
            _ => continue,
        };
        for way in ways {
            // Its last instruction is the jump.
            arms[way.index()] = cfg.blocks[way.index()].instructions > 1;
        }
    }
    arms
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::cfg::{Call, Callee};
    use pleach_annotate::testing::cfg;

    fn of(successors: &[&[u32]], without_code: &[u32], calls: &[u32]) -> Vec<usize> {
        let mut cfg = cfg(successors);
        cfg.blocks.iter_mut().for_each(|block| block.instructions = 4);
        without_code
            .iter()
            .for_each(|&b| cfg.blocks[b as usize].instructions = 1);
        cfg.calls = calls
            .iter()
            .map(|&block| Call {
                block: BlockIndex(block),
                callee: Callee::Indirect,
                may_not_return: false,
            })
            .collect();
        let arms = arms(&cfg);
        (0..arms.len()).filter(|&i| arms[i]).collect()
    }

    #[test]
    fn ways_that_meet_again() {
        assert_eq!(of(&[&[1, 2], &[3], &[3], &[]], &[], &[]), [1, 2]);
        assert_eq!(of(&[&[1, 2], &[2], &[]], &[], &[]), [1]);
        assert_eq!(of(&[&[2, 1], &[2], &[]], &[], &[]), [1]);
    }

    #[test]
    fn not_where_the_branch_stays_anyway() {
        // They go different ways.
        assert!(of(&[&[1, 2], &[3], &[4], &[], &[]], &[], &[]).is_empty());
        // A loop's body.
        assert!(of(&[&[1], &[2, 3], &[1], &[]], &[], &[]).is_empty());
        // Something else leads there.
        assert_eq!(
            of(&[&[1, 4], &[2, 3], &[4], &[4], &[2, 5], &[]], &[], &[]),
            [] as [usize; 0]
        );
        // A call.
        assert_eq!(of(&[&[1, 2], &[3], &[3], &[]], &[], &[1]), [] as [usize; 0]);
        assert!(of(&[&[1, 2], &[2], &[]], &[], &[1]).is_empty());
        // A way of a switch.
        assert!(of(&[&[1, 2, 3], &[3], &[3], &[]], &[], &[]).is_empty());
    }

    #[test]
    fn a_marker_alone_is_not_in_the_way() {
        assert_eq!(of(&[&[1, 2], &[3], &[3], &[]], &[2], &[]), [1]);
        assert!(of(&[&[1, 2], &[2], &[]], &[1], &[]).is_empty());
    }
}
