//! Which code an optimiser may treat as cold: what never ran, as far as a large recording can tell.
//!
//! That nothing was seen of a block proves little by itself, because sampling sees what runs often. Two things are asked:
//!
//! - *Nothing implies it.* What dominates or post-dominates an executed block was executed too, but for calls that do not
//!   return: a block seen behind a test shows that the test ran. Such blocks never go cold, however large the recording.
//! - *The recording is large.* Bursts, not branches, are independent observations. What is absent from all of n bursts has,
//!   with 95 % probability, a share of less than 3/n of what runs (the rule of three). LLVM calls hot what makes up 99 % of all
//!   counts; from [`ENOUGH_BURSTS`] bursts on, code that was never seen is in the rest. That says where a branch goes, but code in that rest
//!   still runs, and what is optimised for size and called instead of inlined may take twice its time: functions are, from
//!   [`ENOUGH_TO_SHRINK`] bursts on, when this can cost a thousandth of a program's time.

use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::dominance::BlockDominance;
use pleach_profile::{Covered, FunctionProfile};

/// The share of execution that LLVM's `-profile-summary-cutoff-hot` leaves out, in percent.
const NOT_HOT_PERCENT: u64 = 1;
/// Bursts from which on what none of them shows is cold: 3 divided by the share that is not hot.
pub const ENOUGH_BURSTS: u64 = 3 * 100 / NOT_HOT_PERCENT;
/// Bursts from which on a function that none of them shows is optimised for size: 3 divided by a thousandth.
pub const ENOUGH_TO_SHRINK: u64 = 3 * 1000;

/// For each block, whether it was executed: it has a count, coverage says so, or what was executed implies it. The
/// predictions of shadow execution count as well: this guides an optimiser, it proves nothing.
///
/// Unlike in [`pleach_analysis::coverage`], activations that never end are no obstacle here: a block that is implied by mistake is
/// merely not cold.
pub fn executed(cfg: &Cfg, profile: &FunctionProfile) -> Vec<bool> {
    let counted = |block: usize| profile.blocks.get(block).is_some_and(|&count| count > 0);
    let covered = |block: usize| profile.coverage.get(block).is_some_and(|&c| c != Covered::No);
    let seeds: Vec<bool> = (0..cfg.blocks.len()).map(|b| counted(b) || covered(b)).collect();
    // Nothing or everything: no need for trees.
    if seeds.iter().all(|&s| s) || seeds.iter().all(|&s| !s) {
        return seeds;
    }
    let implied = BlockDominance::from_cfg(cfg);
    let mut executed = seeds;
    let mut waiting: Vec<usize> = (0..executed.len()).filter(|&b| executed[b]).collect();
    while let Some(block) = waiting.pop() {
        let block = BlockIndex(block as u32);
        // The nearest of each kind: those behind it follow from it.
        let nearest = [implied.dominators(block).next(), implied.post_dominators(block).next()];
        for other in nearest.into_iter().flatten() {
            if !std::mem::replace(&mut executed[other.index()], true) {
                waiting.push(other.index());
            }
        }
    }
    executed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cfg(blocks: &[Vec<u32>]) -> Cfg {
        let blocks: Vec<&[u32]> = blocks.iter().map(Vec::as_slice).collect();
        pleach_annotate::testing::cfg(&blocks)
    }

    fn profile(cfg: &Cfg, counts: Vec<u64>, coverage: Vec<Covered>) -> FunctionProfile {
        FunctionProfile {
            id: cfg.id,
            cfg_hash: cfg.hash(),
            name: cfg.name.clone(),
            samples: 0,
            blocks: counts,
            edges: vec![0; cfg.edge_count()],
            call_targets: vec![],
            paths: Vec::new(),
            windows: Vec::new(),
            called: Vec::new(),
            predictions: Vec::new(),
            coverage,
        }
    }

    /// Whether block `to` can be reached from `from` by a way that does not pass `without`.
    fn reaches(cfg: &Cfg, from: usize, to: impl Fn(usize) -> bool, without: usize) -> bool {
        let (mut seen, mut stack) = (vec![false; cfg.blocks.len()], vec![from]);
        while let Some(at) = stack.pop() {
            if at == without || std::mem::replace(&mut seen[at], true) {
                continue;
            }
            if to(at) {
                return true;
            }
            stack.extend(cfg.blocks[at].successors.iter().map(|s| s.index()));
        }
        false
    }

    #[test]
    fn what_a_diamond_implies() {
        // 0 branches to 1 and 2, both go on to 3.
        let cfg = cfg(&[vec![1, 2], vec![3], vec![3], vec![]]);
        let seen = profile(&cfg, vec![0, 7, 0, 0], vec![]);
        assert_eq!(executed(&cfg, &seen), [true, true, false, true]);
        let covered = vec![Covered::No, Covered::No, Covered::Predicted, Covered::No];
        assert_eq!(
            executed(&cfg, &profile(&cfg, vec![0; 4], covered)),
            [true, false, true, true]
        );
        assert_eq!(executed(&cfg, &profile(&cfg, vec![0; 4], vec![])), [false; 4]);
    }

    fn graphs() -> impl Strategy<Value = (Vec<Vec<u32>>, Vec<u64>)> {
        (2usize..12).prop_flat_map(|n| {
            // Block 0 is never a successor: an entry has no predecessors.
            let successors = prop::collection::vec(1..n as u32, 0..3);
            (
                prop::collection::vec(successors, n),
                prop::collection::vec(prop_oneof![3 => Just(0u64), 1 => 1..9u64], n),
            )
        })
    }

    /// The same by definition: what cannot be avoided on the way to an executed block, or from it to an end.
    fn by_definition(cfg: &Cfg, counts: &[u64]) -> Vec<bool> {
        let blocks = 0..cfg.blocks.len();
        let none = usize::MAX;
        let returns = |at: usize| cfg.blocks[at].successors.is_empty();
        let ends: Vec<bool> = blocks
            .clone()
            .map(|b| returns(b) || !reaches(cfg, b, returns, none))
            .collect();
        let mut executed: Vec<bool> = counts.iter().map(|&c| c > 0).collect();
        loop {
            let before = executed.clone();
            for seed in blocks.clone().filter(|&b| before[b]) {
                for other in blocks.clone() {
                    let dominates = reaches(cfg, 0, |b| b == seed, none) && !reaches(cfg, 0, |b| b == seed, other);
                    executed[other] |= dominates || !reaches(cfg, seed, |b| ends[b], other);
                }
            }
            if executed == before {
                return executed;
            }
        }
    }

    proptest! {
        #[test]
        fn implied_blocks_and_no_others_are_executed((blocks, counts) in graphs()) {
            let cfg = cfg(&blocks);
            let expected = by_definition(&cfg, &counts);
            prop_assert_eq!(executed(&cfg, &profile(&cfg, counts, vec![])), expected);
        }
    }
}
