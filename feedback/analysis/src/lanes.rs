//! Probes of vectorised loops, in the order of the loop's iterations.
//!
//! LLVM's vectoriser repeats each probe of a loop once for each element of its vectors, block after block: 7 7 7 7 5 5 5 5
//! for four iterations of a loop of the blocks 7 and 5. Taken literally, that would be 7 (5) 7 (5) 7 …: twice as many
//! executions. Here it becomes 7 5 7 5 7 5 7 5.

use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_annotate::probe::Address;

/// A block with its place.
pub(crate) type Passed = (Address, InlineInstanceIndex, BlockIndex);

/// Reorders the blocks of a fall-through range. Places keep their addresses and inline instances.
pub(crate) fn interleave(map: &AddressMap, passed: &mut [Passed]) {
    let is_loop = |instance: InlineInstanceIndex, block: BlockIndex| {
        let blocks = &map.function_of(instance).cfg.blocks;
        blocks
            .get(block.index())
            .is_some_and(|of| of.successors.contains(&block))
    };
    interleave_lanes(passed, is_loop);
}

/// `is_loop`: whether a block leads to itself, so that executions of it may follow one another.
fn interleave_lanes(passed: &mut [Passed], is_loop: impl Fn(InlineInstanceIndex, BlockIndex) -> bool) {
    let repeats = |pair: &[Passed]| (pair[0].1, pair[0].2) == (pair[1].1, pair[1].2);
    let mut instances: Vec<InlineInstanceIndex> = passed.windows(2).filter(|p| repeats(p)).map(|p| p[0].1).collect();
    instances.sort_unstable();
    instances.dedup();
    for instance in instances {
        let places: Vec<usize> = (0..passed.len()).filter(|&at| passed[at].1 == instance).collect();
        let blocks: Vec<BlockIndex> = places.iter().map(|&at| passed[at].2).collect();
        let runs: Vec<&[BlockIndex]> = blocks.chunk_by(|a, b| a == b).collect();
        let (mut at, mut place) = (0, 0);
        while at < runs.len() {
            let lanes = runs[at].len();
            let group = &runs[at..at + length_of_group(&runs[at..], |block| is_loop(instance, block))];
            if lanes > 1 && group.len() > 1 {
                for lane in 0..lanes {
                    for (number, run) in group.iter().enumerate() {
                        passed[places[place + lane * group.len() + number]].2 = run[0];
                    }
                }
            }
            at += group.len();
            place += lanes * group.len();
        }
    }
}

/// How many runs from the first one on are of one vectorised loop: different blocks, none of which leads to itself, in
/// equal numbers. At least 1.
fn length_of_group(runs: &[&[BlockIndex]], is_loop: impl Fn(BlockIndex) -> bool) -> usize {
    let first = runs[0];
    let is_same = |at: usize| {
        let run = runs[at];
        run.len() == first.len() && !is_loop(run[0]) && runs[..at].iter().all(|before| before[0] != run[0])
    };
    if is_loop(first[0]) {
        return 1;
    }
    (1..runs.len()).find(|&at| !is_same(at)).unwrap_or(runs.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of inline instances, each at its own address; block 9 leads to itself.
    fn interleaved(blocks: &[(u32, u32)]) -> Vec<u32> {
        let mut passed: Vec<Passed> = (0..)
            .zip(blocks)
            .map(|(at, &(instance, block))| (Address(at), InlineInstanceIndex(instance), BlockIndex(block)))
            .collect();
        interleave_lanes(&mut passed, |_, block| block == BlockIndex(9));
        let places = passed.iter().map(|(at, instance, _)| (at.0, instance.0));
        assert!(places.eq((0..).zip(blocks).map(|(at, (instance, _))| (at, *instance))));
        passed.iter().map(|(.., block)| block.0).collect()
    }

    fn of_one(blocks: &[u32]) -> Vec<u32> {
        interleaved(&blocks.iter().map(|&block| (0, block)).collect::<Vec<_>>())
    }

    #[test]
    fn elements_become_iterations() {
        assert_eq!(of_one(&[4, 7, 7, 7, 5, 5, 5, 6]), [4, 7, 5, 7, 5, 7, 5, 6]);
        assert_eq!(of_one(&[7, 7, 8, 8, 5, 5]), [7, 8, 5, 7, 8, 5]);
        // The vector body, and its remainder.
        assert_eq!(
            of_one(&[7, 7, 7, 7, 5, 5, 5, 5, 7, 7, 5, 5]),
            [7, 5, 7, 5, 7, 5, 7, 5, 7, 5, 7, 5]
        );
    }

    #[test]
    fn what_is_no_vectorised_loop_stays() {
        for blocks in [
            &[7, 7, 7, 5, 5][..],
            &[9, 9, 5, 5],
            &[7, 7, 9, 9],
            &[7, 5, 7, 5],
            &[7, 7],
            &[7, 7, 7, 7, 6],
            &[],
        ] {
            assert_eq!(of_one(blocks), blocks);
        }
    }

    #[test]
    fn inlined_blocks_keep_their_places() {
        let inlined = [(0, 7), (0, 7), (1, 1), (1, 1), (1, 2), (1, 2), (0, 5), (0, 5)];
        assert_eq!(interleaved(&inlined), [7, 5, 1, 2, 1, 2, 7, 5]);
    }
}
