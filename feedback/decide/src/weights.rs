//! What a function's counts mean to the optimiser: entry count, branch weights, coldness.
//!
//! Counts are estimates from samples. An edge that was never sampled is not known to be dead, and an entry that was never
//! sampled must have happened. Both get a share of half a sample (the Krichevsky–Trofimov estimator's pseudo-count): the
//! entry all of it, the never-sampled edges of a function one half between them. A half for each would break the
//! conservation of flow that block frequencies are computed from: an interpreter's loop has hundreds of ways out.
//!
//! What has less than a sample was only inferred to be executed, to connect what was sampled to the entry and to an exit. Its branches lead that
//! way: were they left to the optimiser, each would halve what gets out, and the loop before it would seem to go round so much more often. But
//! nobody saw how often a loop on that way goes round: such branches are left alone, and flow gets out of them all the same.
//!
//! Blocks that were executed, but that no sample is left for, get a whole one, and so do calls of functions of which nothing else was seen: they
//! never go cold. Their branches have no weights: nobody saw which way they went. What was never executed
//! gets nothing where the recording is large enough to tell ([`crate::coldness`]).

use crate::coldness;
use crate::coldness::{ENOUGH_BURSTS, ENOUGH_TO_SHRINK};
use pleach_annotate::cfg::{Call, Callee, Cfg, Terminator};
use pleach_annotate::id::BlockIndex;
use pleach_profile::{BranchPrediction, FunctionProfile};

/// Samples that a function's never-sampled edges get between them, and a never-sampled entry gets.
pub const PRIOR_SAMPLES: f64 = 0.5;
/// Branch weights are in parts of an execution: hundreds of edges may share half a sample.
const PARTS: u64 = 1000;
/// Sampled block entries from which on a function that was never sampled is placed apart: with this many, a function with
/// more than 3/100 000 of all block entries would have been seen with 95 % probability.
pub const ENOUGH_SAMPLES: u64 = 100_000;

/// Share of mispredicted executions from which on a branch should become a select, where it can.
///
/// For such a branch LLVM speculates as many instructions, at most, as a misprediction takes cycles. A processor that executes four in a cycle
/// spends a quarter of a misprediction on them, each time.
pub const UNPREDICTABLE: f64 = 0.25;

/// The count up to which a block is cold, so that it may be optimised for size: less than one sample.
///
/// LLVM takes the smallest count among the blocks that make up 99.9999 % of all executions. A sampled profile has no such
/// resolution: a block that was sampled once may matter in another run, and a loop that is no longer vectorised loses more
/// than smaller code gains.
///
/// Exact counts have that resolution, and LLVM's own threshold stands. In a recording that is too small for splitting cold
/// code off, only blocks without any count are cold.
pub fn cold_count(recorded: &Recorded) -> u64 {
    if recorded.exact {
        u64::MAX
    } else if recorded.bursts < ENOUGH_BURSTS {
        0
    } else {
        (recorded.scale * PRIOR_SAMPLES) as u64
    }
}

/// Samples from which on a copy's count tells how hot it is: the standard error of fewer is more than a third.
const ENOUGH_FOR_HOT: f64 = 10.0;

/// The count from which on a block is hot. `summed`: the least among the blocks that make up 99 % of all executions; LLVM takes that.
///
/// Exact counts that LLVM knows are of code in which small functions are inlined already, each copy's by itself. Sums over copies
/// are larger: next to a small function that is inlined everywhere, a large one's only call hardly matters, and is not inlined for it. So
/// what counts is the copies' own counts (`copies`, [`Provenance::hot_in_copies`](pleach_profile::Provenance::hot_in_copies)), where they can be told.
pub fn hot_count(summed: u64, copies: u64, scale: f64) -> u64 {
    let sure = (scale * ENOUGH_FOR_HOT) as u64;
    if copies == 0 {
        summed
    } else {
        summed.min(copies.max(sure))
    }
}

/// What to tell the optimiser about a function.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// Sampled: these counts.
    Sampled {
        /// Estimated calls, at least 1.
        entry_count: u64,
        /// Whether any call was sampled: where none was, [`entry_for`] says more.
        entry_is_sampled: bool,
        /// Largest block count.
        max_count: u64,
        /// For blocks with two successors or more, where it is known which way they went: a weight for each successor slot.
        branch_weights: Vec<(BlockIndex, Vec<u64>)>,
    },
    /// Never executed, by a profile with so many bursts that it is cold: optimised for size and kept out of others.
    Cold,
    /// Never sampled, by a profile large enough to say that it hardly runs: placed apart from code that does, but compiled
    /// as without a profile. It may run on other inputs, and must not be slow then.
    Apart,
    /// Never sampled, by a profile too small to say anything.
    Unknown,
}

/// How much a whole profile rests on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Recorded {
    /// Factor from samples to counts.
    pub scale: f64,
    /// Sampled block entries.
    pub samples: u64,
    /// Bursts.
    pub bursts: u64,
    /// Everything was counted: what has no count never ran.
    pub exact: bool,
    /// See [`Provenance::hot_in_copies`](pleach_profile::Provenance::hot_in_copies).
    pub hot_in_copies: u64,
}

/// Decides what a profile says about a function.
pub fn verdict(cfg: &Cfg, profile: &FunctionProfile, recorded: &Recorded) -> Verdict {
    let executed = coldness::executed(cfg, profile);
    let large = recorded.exact || recorded.bursts >= ENOUGH_BURSTS;
    let max_count = profile.blocks.iter().copied().max().unwrap_or(0);
    if max_count == 0 {
        let one = ((recorded.scale * 2.0 * PRIOR_SAMPLES) as u64).max(1);
        return if executed.contains(&true) {
            // It may not be seen itself, but what is inlined into it: that needs a count to be relative to.
            Verdict::Sampled {
                entry_count: one,
                entry_is_sampled: false,
                max_count: one,
                branch_weights: Vec::new(),
            }
        } else if recorded.exact || recorded.bursts >= ENOUGH_TO_SHRINK {
            Verdict::Cold
        } else if large && recorded.samples >= ENOUGH_SAMPLES {
            Verdict::Apart
        } else {
            Verdict::Unknown
        };
    }
    let half = (recorded.scale * PRIOR_SAMPLES).max(1.0) as u64;
    let branches = sampled_branches(cfg, profile, recorded.scale as u64);
    let nothing = |to: BlockIndex| recorded.exact || unlikely(cfg, to) || (large && !executed[to.index()]);
    let unsampled = branches
        .iter()
        .flat_map(|b| b.slots())
        .filter(|&(to, count)| count == 0 && !nothing(to))
        .count();
    let prior = (half.saturating_mul(PARTS) / unsampled.max(1) as u64).max(1);
    let weight = |branch: &SampledBranch<'_>, (to, count): (BlockIndex, u64)| {
        let executed = !recorded.exact && branch.is_sampled && executed[to.index()] && !unlikely(cfg, to);
        if executed && profile.blocks[to.index()] <= half {
            PARTS.saturating_mul(count.max(2 * half))
        } else if count == 0 && !nothing(to) {
            prior
        } else {
            PARTS.saturating_mul(count)
        }
    };
    let branch_weights = branches
        .iter()
        .map(|branch| {
            let weights = branch.slots().map(|slot| weight(branch, slot));
            (branch.block, weights.collect())
        })
        .collect();
    let sampled = profile.blocks.first().copied().unwrap_or(0);
    Verdict::Sampled {
        entry_count: sampled.max(half),
        entry_is_sampled: sampled as f64 >= recorded.scale,
        max_count,
        branch_weights,
    }
}

/// The entry count of a function that no call was sampled of, by which its hottest block gets the count that was recorded: `most` is what it gets,
/// by the optimiser's frequencies, with an entry count of `entry_count`.
pub fn entry_for(entry_count: u64, max_count: u64, most: f64) -> u64 {
    let entry = entry_count as f64 * max_count as f64 / most;
    if entry.is_finite() {
        (entry.round() as u64).max(1)
    } else {
        entry_count
    }
}

/// Direct calls of a sampled function, by index, that were never sampled, by a profile too small to say that they do not matter.
///
/// An inliner takes them for cold. That is no reason to keep a local function that nothing else calls: its code stays, and may run
/// often on other inputs.
pub fn unseen_calls<'a>(
    cfg: &'a Cfg,
    profile: &'a FunctionProfile,
    recorded: &Recorded,
) -> impl Iterator<Item = usize> + use<'a> {
    let small = !recorded.exact && recorded.bursts < ENOUGH_TO_SHRINK;
    let unseen = move |call: &Call| {
        let count = profile.blocks.get(call.block.index()).copied().unwrap_or(0);
        small && count == 0 && matches!(call.callee, Callee::Direct(_)) && !unlikely(cfg, call.block)
    };
    let calls = cfg.calls.iter().enumerate();
    calls.filter(move |(_, call)| unseen(call)).map(|(index, _)| index)
}

/// Blocks that end in a branch which is certain to be mispredicted so often that selects in its place would be faster, and the share that is, at
/// least.
pub fn unpredictable(profile: &FunctionProfile) -> impl Iterator<Item = (BlockIndex, f64)> {
    let often = |p: &&BranchPrediction| p.low > 0.0 && p.low >= UNPREDICTABLE * p.watched;
    profile
        .predictions
        .iter()
        .filter(often)
        .map(|p| (p.block, p.low / p.watched))
}

/// A block with several successor slots, of which it is known which way it went, sampled or inferred.
struct SampledBranch<'a> {
    block: BlockIndex,
    /// It has a sample, not only what connects others.
    is_sampled: bool,
    successors: &'a [BlockIndex],
    counts: &'a [u64],
}

impl SampledBranch<'_> {
    fn slots(&self) -> impl Iterator<Item = (BlockIndex, u64)> {
        self.successors.iter().copied().zip(self.counts.iter().copied())
    }
}

fn sampled_branches<'a>(cfg: &'a Cfg, profile: &'a FunctionProfile, sample: u64) -> Vec<SampledBranch<'a>> {
    let bases = cfg.edge_bases();
    let branches = cfg
        .blocks
        .iter()
        .zip(bases)
        .enumerate()
        .filter(|(_, (block, _))| block.successors.len() > 1);
    branches
        .filter_map(|(index, (block, base))| {
            let base = base as usize;
            let counts = profile.edges.get(base..base + block.successors.len())?;
            let is_sampled = profile.blocks[index] >= sample;
            let known = counts.iter().any(|&c| c > 0) && (is_sampled || !comes_back(cfg, profile, index, sample));
            known.then_some(SampledBranch {
                is_sampled,
                block: BlockIndex(index as u32),
                successors: &block.successors,
                counts,
            })
        })
        .collect()
}

/// Whether a block is in a cycle of blocks that have less than a sample each.
fn comes_back(cfg: &Cfg, profile: &FunctionProfile, block: usize, sample: u64) -> bool {
    let mut seen = vec![false; cfg.blocks.len()];
    let mut stack = vec![block];
    while let Some(at) = stack.pop() {
        for to in cfg.blocks[at].successors.iter().map(|to| to.index()) {
            if to == block {
                return true;
            }
            if profile.blocks[to] < sample && !std::mem::replace(&mut seen[to], true) {
                stack.push(to);
            }
        }
    }
    false
}

/// Exception handling and traps: nobody expects those, sampled or not.
fn unlikely(cfg: &Cfg, block: BlockIndex) -> bool {
    let block = &cfg.blocks[block.index()];
    block.is_eh_pad || block.terminator == Terminator::Unreachable
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::testing;
    use pleach_profile::Covered;

    fn diamond() -> Cfg {
        let mut cfg = testing::cfg(&[&[1, 2], &[3], &[], &[]]);
        cfg.blocks[2].terminator = Terminator::Unreachable;
        cfg
    }

    fn profile(cfg: &Cfg, blocks: &[u64], edges: &[u64]) -> FunctionProfile {
        FunctionProfile {
            id: cfg.id,
            cfg_hash: cfg.hash(),
            name: cfg.name.clone(),
            samples: 0,
            blocks: blocks.to_vec(),
            edges: edges.to_vec(),
            call_targets: vec![],
            paths: Vec::new(),
            windows: Vec::new(),
            called: Vec::new(),
            predictions: Vec::new(),
            coverage: Vec::new(),
        }
    }

    fn recorded(samples: u64, bursts: u64) -> Recorded {
        Recorded {
            scale: 1000.0,
            samples,
            bursts,
            exact: false,
            hot_in_copies: 0,
        }
    }

    fn weights(cfg: &Cfg, blocks: &[u64], edges: &[u64], bursts: u64) -> (u64, Vec<Vec<u64>>) {
        match verdict(cfg, &profile(cfg, blocks, edges), &recorded(1_000_000, bursts)) {
            Verdict::Sampled {
                entry_count,
                branch_weights,
                ..
            } => {
                let executions = |weights: Vec<u64>| weights.into_iter().map(|w| w / PARTS).collect();
                (
                    entry_count,
                    branch_weights.into_iter().map(|(_, w)| executions(w)).collect(),
                )
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_trap_that_was_never_sampled_gets_nothing() {
        assert_eq!(
            weights(&diamond(), &[5000, 5000, 0, 5000], &[5000, 0, 5000], 1),
            (5000, vec![vec![5000, 0]])
        );
    }

    #[test]
    fn the_ways_out_of_a_loop_share_half_a_sample() {
        // Block 0 loops to itself or leaves by one of five returns; neither entry nor exit was sampled.
        let cfg = testing::cfg(&[&[0, 1, 2, 3, 4, 5], &[], &[], &[], &[], &[]]);
        let (entry, branches) = weights(&cfg, &[100_000, 0, 0, 0, 0, 0], &[100_000, 0, 0, 0, 0, 0], 1);
        assert_eq!(branches, [[100_000, 100, 100, 100, 100, 100]]);
        assert_eq!(entry, 100_000);
    }

    #[test]
    fn what_only_connects_leads_out() {
        // A hot loop of 1 alone, which 2 and 3 lead out of; both could go back.
        let cfg = testing::cfg(&[&[1], &[1, 2], &[1, 3], &[1, 4], &[]]);
        let (blocks, edges) = ([500, 100_500, 500, 500, 500], [500, 100_000, 500, 0, 500, 0, 500]);
        let (entry, branches) = weights(&cfg, &blocks, &edges, 1);
        assert_eq!(entry, 500);
        // What is sure to be executed gets a whole sample.
        assert_eq!(branches[0], [100_000, 1000]);
        assert!(
            branches[1][1] >= 2 * branches[1][0] && branches[2][1] >= 2 * branches[2][0],
            "{branches:?}"
        );
    }

    #[test]
    fn many_ways_out_share_less_than_an_execution_each() {
        let returns: Vec<u32> = (0..=2000).collect();
        let mut blocks: Vec<&[u32]> = vec![&[]; 2001];
        blocks[0] = &returns;
        let cfg = testing::cfg(&blocks);
        let counts: Vec<u64> = returns.iter().map(|&b| if b == 0 { 100_000 } else { 0 }).collect();
        let Verdict::Sampled { branch_weights, .. } =
            verdict(&cfg, &profile(&cfg, &counts, &counts), &recorded(1_000_000, 1))
        else {
            panic!("it was sampled");
        };
        let out: u64 = branch_weights[0].1[1..].iter().sum();
        assert_eq!(out, 500 * PARTS);
    }

    #[test]
    fn an_entry_that_no_call_was_sampled_of_is_what_frequencies_need() {
        assert_eq!(entry_for(500, 9_000_000, 3_000_000.0), 1500);
        assert_eq!(entry_for(500, 9, 3e12), 1);
        assert_eq!(entry_for(500, 9, 0.0), 500);
    }

    #[test]
    fn what_many_bursts_never_saw_gets_nothing() {
        let mut cfg = diamond();
        cfg.blocks[2].terminator = Terminator::Return;
        let of = |bursts| weights(&cfg, &[5000, 5000, 0, 5000], &[5000, 0, 5000], bursts).1;
        assert_eq!(of(ENOUGH_BURSTS - 1), [[5000, 500]]);
        assert_eq!(of(ENOUGH_BURSTS), [[5000, 0]]);
    }

    #[test]
    fn what_was_executed_gets_a_sample_however_many_bursts_there_are() {
        let mut cfg = diamond();
        cfg.blocks[2].terminator = Terminator::Return;
        let mut profile = profile(&cfg, &[5000, 5000, 0, 5000], &[5000, 0, 5000]);
        profile.coverage = vec![Covered::Seen, Covered::Seen, Covered::ByDominance, Covered::Seen];
        for bursts in [1, ENOUGH_BURSTS, 1_000_000] {
            let Verdict::Sampled { branch_weights, .. } = verdict(&cfg, &profile, &recorded(1_000_000, bursts)) else {
                panic!("it was sampled");
            };
            assert_eq!(branch_weights, [(BlockIndex(0), vec![5000 * PARTS, 1000 * PARTS])]);
        }
    }

    #[test]
    fn never_sampled_is_cold_or_apart_only_where_the_profile_is_large() {
        let mut never = profile(&diamond(), &[0; 4], &[0; 3]);
        let of = |never: &FunctionProfile, samples, bursts| verdict(&diamond(), never, &recorded(samples, bursts));
        assert_eq!(of(&never, ENOUGH_SAMPLES, ENOUGH_TO_SHRINK), Verdict::Cold);
        assert_eq!(of(&never, ENOUGH_SAMPLES, ENOUGH_TO_SHRINK - 1), Verdict::Apart);
        assert_eq!(of(&never, ENOUGH_SAMPLES / 2, ENOUGH_TO_SHRINK - 1), Verdict::Unknown);
        // However many branches so few bursts have.
        assert_eq!(of(&never, 1000 * ENOUGH_SAMPLES, ENOUGH_BURSTS - 1), Verdict::Unknown);
        // Something implies that it was called.
        never.coverage = vec![Covered::ByDominance, Covered::No, Covered::No, Covered::No];
        let once = Verdict::Sampled {
            entry_count: 1000,
            entry_is_sampled: false,
            max_count: 1000,
            branch_weights: Vec::new(),
        };
        assert_eq!(of(&never, ENOUGH_SAMPLES, ENOUGH_TO_SHRINK), once);
    }

    #[test]
    fn exact_counts_are_taken_as_they_are() {
        let cfg = testing::cfg(&[&[1, 2], &[3], &[3], &[]]);
        let exact = Recorded {
            scale: 1.0,
            exact: true,
            ..recorded(10, 1)
        };
        let Verdict::Sampled { branch_weights, .. } =
            verdict(&cfg, &profile(&cfg, &[5, 5, 0, 5], &[5, 0, 5, 0]), &exact)
        else {
            panic!("it was executed");
        };
        assert_eq!(branch_weights, [(BlockIndex(0), vec![5 * PARTS, 0])]);
        assert_eq!(verdict(&cfg, &profile(&cfg, &[0; 4], &[0; 4]), &exact), Verdict::Cold);
        assert_eq!(cold_count(&exact), u64::MAX);
        assert_eq!(cold_count(&recorded(1_000_000, ENOUGH_BURSTS - 1)), 0);
        assert_eq!(cold_count(&recorded(1_000_000, ENOUGH_BURSTS)), 500);
    }

    #[test]
    fn calls_of_unseen_blocks_are_unseen_until_the_profile_is_large() {
        let mut cfg = testing::cfg(&[&[1, 2], &[3], &[3], &[4, 5], &[], &[]]);
        cfg.blocks[4].terminator = Terminator::Unreachable;
        let call = |block, callee| Call {
            block: BlockIndex(block),
            callee,
            may_not_return: false,
        };
        let direct = Callee::Direct(cfg.id.guid);
        cfg.calls = vec![
            call(1, direct),
            call(2, direct),
            call(2, Callee::Indirect),
            call(4, direct),
            call(5, direct),
        ];
        let profile = profile(&cfg, &[9, 9, 0, 9, 0, 0], &[9, 0, 9, 0, 9, 0]);
        let of = |bursts| unseen_calls(&cfg, &profile, &recorded(1_000_000, bursts)).collect::<Vec<_>>();
        assert_eq!(of(ENOUGH_TO_SHRINK - 1), [1, 4]);
        assert!(of(ENOUGH_TO_SHRINK).is_empty());
    }

    #[test]
    fn copies_tell_what_is_hot_where_they_were_seen_often_enough() {
        let hot = |summed, copies| hot_count(summed, copies, 100.0);
        assert_eq!(hot(50_000, 0), 50_000);
        assert_eq!(hot(50_000, 20_000), 20_000);
        assert_eq!(hot(50_000, 300), 1_000);
        assert_eq!(hot(500, 300), 500);
    }

    #[test]
    fn unpredictable_is_what_certainly_is() {
        let cfg = testing::cfg(&[&[1, 2], &[2, 3], &[3, 4], &[4], &[]]);
        let mut profile = profile(&cfg, &[9; 5], &[0; 7]);
        let prediction = |block, mispredicted, low| BranchPrediction {
            block: BlockIndex(block),
            watched: 1000.0,
            mispredicted,
            low,
        };
        profile.predictions = vec![
            prediction(0, 240.0, 230.0),
            prediction(1, 400.0, 250.0),
            prediction(2, 400.0, 240.0),
            BranchPrediction::none(BlockIndex(3)),
        ];
        assert_eq!(unpredictable(&profile).collect::<Vec<_>>(), [(BlockIndex(1), 0.25)]);
    }

    #[test]
    fn branches_that_nobody_saw_are_left_to_the_optimiser() {
        // 0 → 1, which loops to itself or goes on to 2, which does the same.
        let cfg = testing::cfg(&[&[1], &[1, 2], &[2, 3], &[]]);
        let (_, branches) = weights(&cfg, &[500, 9500, 500, 500], &[500, 9000, 500, 0, 500], 1);
        assert_eq!(branches.len(), 1);
        assert!(branches[0][0] > 5 * branches[0][1]);
    }
}
