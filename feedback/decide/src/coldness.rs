//! Which code may be treated as cold.
//!
//! A block that is proved not to have been executed, in all recordings, is what instrumentation calls cold: it is treated
//! as cold, however small the recording is. A whole function is only placed apart then: with another input it may be
//! what the program does, and its size alone saves no time. What breakpoints show to have been executed is not cold,
//! though it was not sampled.
//!
//! A function all of whose executed blocks are [`rare`] gets the smallest count, as instrumentation would give it.
//!
//! Where they show nothing, a block without samples is not known to be cold: sampling misses code that runs rarely. It is
//! treated as cold only if both hold:
//!
//! - *No executed block implies it.* A block that dominates or post-dominates an executed block was executed too,
//!   unless a call did not return. Implied blocks are never cold, however large the recording is.
//! - *The recording has enough bursts.* See [`MIN_BURSTS_FOR_SPLITTING`](crate::support::MIN_BURSTS_FOR_SPLITTING) and
//!   [`MIN_BURSTS_FOR_SIZE`](crate::support::MIN_BURSTS_FOR_SIZE).

use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::dominance::BlockDominance;
use pleach_profile::{Covered, FunctionProfile};
use std::fmt;

/// Whether breakpoints observed a function: then they say what was not executed.
pub fn is_observed(profile: &FunctionProfile) -> bool {
    profile
        .coverage
        .iter()
        .any(|&state| state < Covered::Unknown || state == Covered::Hit)
        || !profile.coverage.is_empty() && profile.coverage.iter().all(|&state| state == Covered::Proved)
}

/// Whether breakpoints do not say whether a block was executed.
pub fn is_unknown(profile: &FunctionProfile, block: BlockIndex) -> bool {
    let state = profile.coverage.get(block.index());
    state.is_none_or(|&state| state == Covered::Unknown)
}

/// For each block, whether it is proved that it, or at least its code, was not executed.
pub fn not_executed(cfg: &Cfg, profile: &FunctionProfile) -> Vec<bool> {
    let state = |block: usize| profile.coverage.get(block).copied().unwrap_or_default();
    // A count says otherwise where a profile is foreign or damaged.
    let counted = |block: usize| profile.blocks.get(block).is_some_and(|&count| count > 0);
    (0..cfg.blocks.len())
        .map(|block| state(block) < Covered::Unknown && !counted(block))
        .collect()
}

/// Executions of a block's code in a second of the program's CPU time, up to which it is rare. Where such code misses the
/// caches, each execution takes a microsecond at most: all the blocks of a large program together, few of which run so
/// often, stay below a thousandth of its time.
const MAX_RARE_PER_SECOND: f64 = 40.0;

/// For each block, whether breakpoints show that it was executed, but rarely, in all recordings.
pub fn rare(cfg: &Cfg, profile: &FunctionProfile, cpu_seconds: f64) -> Vec<bool> {
    let most = MAX_RARE_PER_SECOND * cpu_seconds;
    let is_rare = |n: u64| n > 0 && n as f64 <= most;
    (0..cfg.blocks.len())
        .map(|block| profile.executions(block).at_most.is_some_and(is_rare))
        .collect()
}

/// For each block, whether sampling shows that it was executed: it has a count, it is covered, or an executed block implies it.
///
/// Blocks that only breakpoints show are not among them: most of them run too rarely to be compared with a sample.
///
/// Blocks that shadow execution predicted count as executed. Activations that never end are ignored, unlike in
/// `pleach_analysis::coverage`: a block that is implied wrongly is merely not treated as cold. What is proved not to have
/// been executed is not implied, as what follows a loop that a server never leaves.
pub fn executed(cfg: &Cfg, profile: &FunctionProfile) -> Vec<bool> {
    let counted = |block: usize| profile.blocks.get(block).is_some_and(|&count| count > 0);
    let covered = |block: usize| {
        profile
            .coverage
            .get(block)
            .is_some_and(|c| c.is_executed() && *c != Covered::Hit)
    };
    let seeds: Vec<bool> = (0..cfg.blocks.len()).map(|b| counted(b) || covered(b)).collect();
    // No block or every block: dominance adds nothing.
    if seeds.iter().all(|&s| s) || seeds.iter().all(|&s| !s) {
        return seeds;
    }
    let implied = BlockDominance::from_cfg(cfg);
    let absent = not_executed(cfg, profile);
    let mut executed = seeds;
    let mut waiting: Vec<usize> = (0..executed.len()).filter(|&b| executed[b]).collect();
    while let Some(block) = waiting.pop() {
        let block = BlockIndex(block as u32);
        // The immediate ones suffice: they in turn imply theirs.
        let nearest = [implied.dominators(block).next(), implied.post_dominators(block).next()];
        for other in nearest.into_iter().flatten().filter(|other| !absent[other.index()]) {
            if !std::mem::replace(&mut executed[other.index()], true) {
                waiting.push(other.index());
            }
        }
    }
    executed
}

/// Numbers of a function's blocks by what is known of their execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownBlocks {
    /// Executed: sampled, implied by what was, or hit by a breakpoint.
    pub executed: usize,
    /// Proved not executed.
    pub not_executed: usize,
    /// Neither.
    pub unknown: usize,
}

/// What is known of a function's blocks; `None` if coverage was not recorded.
pub fn known_blocks(cfg: &Cfg, profile: &FunctionProfile) -> Option<KnownBlocks> {
    if profile.coverage.is_empty() {
        return None;
    }
    let sampled = executed(cfg, profile);
    let is_executed = |block: &usize| sampled[*block] || profile.coverage.get(*block).is_some_and(|c| c.is_executed());
    let executed = (0..cfg.blocks.len()).filter(is_executed).count();
    let not_executed = not_executed(cfg, profile).into_iter().filter(|&proved| proved).count();
    Some(KnownBlocks {
        executed,
        not_executed,
        unknown: cfg.blocks.len().saturating_sub(executed + not_executed),
    })
}

impl fmt::Display for KnownBlocks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            executed,
            not_executed,
            unknown,
        } = self;
        write!(
            out,
            "blocks: {executed} executed, {not_executed} not executed, {unknown} unknown"
        )
    }
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
            coverage,
            ..FunctionProfile::default()
        }
    }

    #[test]
    fn blocks_are_counted_by_what_is_known() {
        // 0 branches to 1 and 2, which join in 3; 3 branches to 4 and 5.
        let cfg = cfg(&[vec![1, 2], vec![3], vec![3], vec![4, 5], vec![], vec![]]);
        let coverage = |states| known_blocks(&cfg, &profile(&cfg, vec![0, 9, 0, 0, 0, 0], states));
        assert_eq!(coverage(vec![]), None);
        let mut states = vec![Covered::Unknown; 6];
        states[2] = Covered::NotExecuted;
        states[4] = Covered::Hit;
        let known = coverage(states).expect("coverage was recorded");
        assert_eq!(known.to_string(), "blocks: 4 executed, 1 not executed, 1 unknown");
    }

    /// Whether a path from block `from` to block `to` avoids block `without`.
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
    fn implied_blocks_of_a_diamond() {
        // 0 branches to 1 and 2, which join in 3.
        let cfg = cfg(&[vec![1, 2], vec![3], vec![3], vec![]]);
        let seen = profile(&cfg, vec![0, 7, 0, 0], vec![]);
        assert_eq!(executed(&cfg, &seen), [true, true, false, true]);
        let covered = vec![Covered::Unknown, Covered::Unknown, Covered::Predicted, Covered::Unknown];
        assert_eq!(
            executed(&cfg, &profile(&cfg, vec![0; 4], covered)),
            [true, false, true, true]
        );
        assert_eq!(executed(&cfg, &profile(&cfg, vec![0; 4], vec![])), [false; 4]);
    }

    /// A loop that a server leaves by ending, and what follows it.
    #[test]
    fn what_is_proved_not_executed_is_not_implied() {
        let cfg = cfg(&[vec![1], vec![1, 2], vec![3], vec![]]);
        let mut states = vec![Covered::Unknown; 4];
        assert_eq!(
            executed(&cfg, &profile(&cfg, vec![0, 9, 0, 0], states.clone())),
            [true; 4]
        );
        states[2] = Covered::NotExecuted;
        states[3] = Covered::NotExecuted;
        assert_eq!(
            executed(&cfg, &profile(&cfg, vec![0, 9, 0, 0], states)),
            [true, true, false, false]
        );
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

    /// The same by definition: blocks on every path from the entry to an executed block, or from it to an exit.
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
