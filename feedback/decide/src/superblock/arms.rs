//! Which blocks get no marker: the short arms of branches. LLVM merges what such arms have in common, and if-converts
//! them, and a marker that is left says nothing about which way control went.

use pleach_annotate::cfg::{Cfg, Terminator};
use pleach_annotate::id::BlockIndex;

/// For each block, whether it is an arm of a two-way branch that contains code but no calls and rejoins the other arm.
pub fn arms(cfg: &Cfg) -> Vec<bool> {
    let mut entries = vec![0_u32; cfg.blocks.len()];
    let successors = cfg.blocks.iter().flat_map(|b| &b.successors);
    successors.for_each(|to| entries[to.index()] += 1);
    let mut calls = vec![false; cfg.blocks.len()];
    cfg.calls.iter().for_each(|call| calls[call.block.index()] = true);

    // The only successor of a block with a single predecessor and no call.
    let next = |block: BlockIndex| match cfg.blocks[block.index()].successors[..] {
        [to] if entries[block.index()] == 1 && !calls[block.index()] => Some(to),
        _ => None,
    };
    let mut arms = vec![false; cfg.blocks.len()];
    for block in cfg.blocks.iter().filter(|b| b.terminator == Terminator::Branch) {
        let [first, second] = block.successors[..] else {
            continue;
        };
        let found = match (next(first), next(second)) {
            (Some(a), Some(b)) if a == b => vec![first, second],
            (Some(join), _) if join == second => vec![first],
            (_, Some(join)) if join == first => vec![second],
            _ => continue,
        };
        for arm in found {
            // The last instruction is the jump.
            arms[arm.index()] = cfg.blocks[arm.index()].instructions > 1;
        }
    }
    arms
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::cfg::{Call, Callee};
    use pleach_annotate::testing::cfg;

    fn find(successors: &[&[u32]], without_code: &[u32], calls: &[u32]) -> Vec<usize> {
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
    fn arms_that_rejoin() {
        assert_eq!(find(&[&[1, 2], &[3], &[3], &[]], &[], &[]), [1, 2]);
        assert_eq!(find(&[&[1, 2], &[2], &[]], &[], &[]), [1]);
        assert_eq!(find(&[&[2, 1], &[2], &[]], &[], &[]), [1]);
    }

    #[test]
    fn no_arms_where_if_conversion_is_impossible() {
        // The arms do not rejoin.
        assert!(find(&[&[1, 2], &[3], &[4], &[], &[]], &[], &[]).is_empty());
        // A loop's body.
        assert!(find(&[&[1], &[2, 3], &[1], &[]], &[], &[]).is_empty());
        // An arm has another predecessor.
        assert_eq!(
            find(&[&[1, 4], &[2, 3], &[4], &[4], &[2, 5], &[]], &[], &[]),
            [] as [usize; 0]
        );
        // A call.
        assert_eq!(find(&[&[1, 2], &[3], &[3], &[]], &[], &[1]), [] as [usize; 0]);
        assert!(find(&[&[1, 2], &[2], &[]], &[], &[1]).is_empty());
        // An arm of a switch.
        assert!(find(&[&[1, 2, 3], &[3], &[3], &[]], &[], &[]).is_empty());
    }

    #[test]
    fn a_block_without_code_is_no_arm() {
        assert_eq!(find(&[&[1, 2], &[3], &[3], &[]], &[2], &[]), [1]);
        assert!(find(&[&[1, 2], &[2], &[]], &[1], &[]).is_empty());
    }
}
