//! From a function's counts to what the optimiser is told: entry count, branch weights, coldness.
//!
//! Counts are estimates from samples. An edge without samples is not known to be dead, and a function with samples must
//! have been entered. Both get a share of half a sample, the pseudo-count of Krichevsky and Trofimov (*The performance
//! of universal encoding*, 1981): the entry a whole half, all unsampled edges of a function one half together. A half
//! for each edge would break the conservation of flow from which block frequencies are computed: the dispatch loop of
//! an interpreter has hundreds of exits.
//!
//! A block with less than one sample was only inferred: it connects sampled blocks to the entry and to an exit. Its
//! branches are weighted along that connection. Without weights, LLVM would assume one half at each branch, and would
//! overestimate the iterations of the loop before it by the product. A branch in a cycle of such blocks is left without
//! weights, because its number of iterations was not observed.
//!
//! A block that must have run but has no samples counts as one sample, and so does a call of a function that has no
//! samples but was executed: neither is ever cold. The branches of such a function get no weights, because their
//! directions were not observed. An edge to a block that did not run gets weight 0 if that is proved ([`coldness`]), or if
//! the recording has enough bursts ([`crate::support`]).

use crate::coldness;
use crate::support::{MIN_BURSTS_FOR_SIZE, MIN_BURSTS_FOR_SPLITTING};
use pleach_annotate::cfg::{Call, Callee, Cfg, Terminator};
use pleach_annotate::id::BlockIndex;
use pleach_profile::{BranchPrediction, FunctionProfile};

/// The pseudo-count, in samples: of an unsampled entry, and of all unsampled edges of a function together.
pub const PRIOR_SAMPLES: f64 = 0.5;
/// Branch weight of one execution: hundreds of edges may share half a sample.
const WEIGHT_SCALE: u64 = 1000;
/// Minimum of sampled block entries for placing a function without samples in a cold section: by the rule of three,
/// such a function has less than 3/100 000 of all block entries with 95 % probability.
pub const MIN_SAMPLES_FOR_SPLITTING: u64 = 100_000;

/// Misprediction rate from which on a branch is if-converted if possible.
///
/// For a branch marked unpredictable, LLVM speculates at most as many instructions as a misprediction takes cycles. At
/// four instructions per cycle, they cost a quarter of a misprediction in each execution.
pub const UNPREDICTABLE: f64 = 0.25;

/// The count up to which a block is cold: less than one sample.
///
/// LLVM uses the smallest count among the blocks that make up 99.9999 % of all executions. A sampled profile lacks this
/// resolution: a block that was sampled once may matter in another run, and a loop that is no longer vectorised loses
/// more than smaller code gains.
///
/// Exact counts have the resolution, so LLVM's threshold applies. With too few bursts for splitting, only blocks
/// without any count are cold.
pub fn cold_count(evidence: &RecordingEvidence) -> u64 {
    if evidence.exact {
        u64::MAX
    } else if evidence.bursts < MIN_BURSTS_FOR_SPLITTING {
        0
    } else {
        (evidence.scale * PRIOR_SAMPLES) as u64
    }
}

/// Minimum of samples behind a hot count: with fewer, its standard error exceeds a third.
const MIN_SAMPLES_FOR_HOT: f64 = 10.0;

/// The count from which on a block is hot. `summed`: the smallest count among the hottest blocks that together make up
/// 99 % of all executions, with counts summed over inline instances. `by_instance`: the same with each inline instance
/// counted separately ([`Provenance::hot_instance_count`](pleach_profile::Provenance::hot_instance_count)); 0 if
/// unknown.
///
/// LLVM's own instrumentation counts after small functions were inlined, so each inline instance separately. Sums over
/// instances are larger. Compared with them, the only call of a large function appears cold beside a small function
/// that is inlined everywhere, and is not inlined. The counts by instance are therefore used where they are known.
pub fn hot_count(summed: u64, by_instance: u64, scale: f64) -> u64 {
    let min_reliable = (scale * MIN_SAMPLES_FOR_HOT) as u64;
    if by_instance == 0 {
        summed
    } else {
        summed.min(by_instance.max(min_reliable))
    }
}

/// How the optimiser treats a function.
#[derive(Clone, PartialEq, Debug)]
pub enum FunctionTreatment {
    /// Sampled, or executed without samples: it gets these counts.
    Sampled {
        /// Estimated calls, at least 1.
        entry_count: u64,
        /// Whether any call was sampled. If not, [`entry_count_from_frequency`] has a better estimate.
        entry_is_sampled: bool,
        /// Largest block count.
        max_count: u64,
        /// Branches with known directions: a weight for each successor slot.
        branch_weights: Vec<(BlockIndex, Vec<u64>)>,
    },
    /// Optimised for size and not inlined.
    Cold {
        /// Never executed, by exact counts or by breakpoints; else without samples in a profile with many bursts.
        is_proved: bool,
    },
    /// Executed, but rarely, as breakpoints show: it gets the smallest count, so that less is inlined into it. What is
    /// inlined into it may be hot all the same.
    Rare {
        /// Branches of which some directions are proved not to have been taken.
        branch_weights: Vec<(BlockIndex, Vec<u64>)>,
    },
    /// Never executed, or without samples by a profile large enough to show that it rarely runs: placed in a cold
    /// section, but compiled as without a profile, because it may be hot with another input.
    Unlikely {
        /// It is proved that it was not executed: less is inlined into it.
        is_proved: bool,
    },
    /// No samples, by a profile too small for a decision.
    Unknown,
}

/// The evidence behind a whole profile.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecordingEvidence {
    /// Factor from samples to counts.
    pub scale: f64,
    /// Number of sampled block entries.
    pub samples: u64,
    /// Number of bursts.
    pub bursts: u64,
    /// CPU time of the recorded program.
    pub cpu_seconds: f64,
    /// The counts are exact: a block without a count did not run.
    pub exact: bool,
    /// See [`Provenance::hot_instance_count`](pleach_profile::Provenance::hot_instance_count).
    pub hot_instance_count: u64,
}

/// Decides how the optimiser treats a function.
pub fn function_treatment(cfg: &Cfg, profile: &FunctionProfile, evidence: &RecordingEvidence) -> FunctionTreatment {
    let executed = coldness::executed(cfg, profile);
    let not_executed = coldness::not_executed(cfg, profile);
    let can_split = evidence.exact || evidence.bursts >= MIN_BURSTS_FOR_SPLITTING;
    let is_observed = coldness::is_observed(profile);
    let is_proved = not_executed.first() == Some(&true);
    let max_count = profile.blocks.iter().copied().max().unwrap_or(0);
    if max_count == 0 {
        let rare = coldness::rare(cfg, profile, evidence.cpu_seconds);
        let one = ((evidence.scale * 2.0 * PRIOR_SAMPLES) as u64).max(1);
        return if executed.contains(&true) {
            // Functions inlined into it may have samples: their counts are relative to this one.
            FunctionTreatment::Sampled {
                entry_count: one,
                entry_is_sampled: false,
                max_count: one,
                branch_weights: proved_branches(cfg, &not_executed).collect(),
            }
        } else if rare.contains(&true) && rare.iter().zip(&not_executed).all(|(&rare, &absent)| rare || absent) {
            FunctionTreatment::Rare {
                branch_weights: proved_branches(cfg, &not_executed).collect(),
            }
        } else if evidence.exact || (is_proved || !is_observed) && evidence.bursts >= MIN_BURSTS_FOR_SIZE {
            FunctionTreatment::Cold {
                is_proved: evidence.exact || is_proved,
            }
        } else if is_proved || can_split && evidence.samples >= MIN_SAMPLES_FOR_SPLITTING {
            FunctionTreatment::Unlikely { is_proved }
        } else {
            FunctionTreatment::Unknown
        };
    }
    let half = (evidence.scale * PRIOR_SAMPLES).max(1.0) as u64;
    let branches = sampled_branches(cfg, profile, evidence.scale as u64);
    let is_dead = |to: BlockIndex| {
        evidence.exact
            || is_exceptional(cfg, to)
            || not_executed[to.index()]
            || (can_split && !executed[to.index()] && coldness::is_unknown(profile, to))
    };
    let unsampled = branches
        .iter()
        .flat_map(|b| b.slots())
        .filter(|&(to, count)| count == 0 && !is_dead(to))
        .count();
    let prior = (half.saturating_mul(WEIGHT_SCALE) / unsampled.max(1) as u64).max(1);
    let weight = |branch: &SampledBranch<'_>, (to, count): (BlockIndex, u64)| {
        let executed = !evidence.exact && branch.is_sampled && executed[to.index()] && !is_exceptional(cfg, to);
        if executed && profile.blocks[to.index()] <= half {
            WEIGHT_SCALE.saturating_mul(count.max(half.saturating_mul(2)))
        } else if count == 0 && !is_dead(to) {
            prior
        } else {
            WEIGHT_SCALE.saturating_mul(count)
        }
    };
    let sampled_weights = branches.iter().map(|branch| {
        let weights = branch.slots().map(|slot| weight(branch, slot));
        (branch.block, weights.collect())
    });
    let is_sampled = |block: BlockIndex| branches.iter().any(|branch| branch.block == block);
    let proved = proved_branches(cfg, &not_executed).filter(|(block, _)| !is_sampled(*block));
    let mut branch_weights: Vec<(BlockIndex, Vec<u64>)> = sampled_weights.chain(proved).collect();
    branch_weights.sort_by_key(|(block, _)| *block);
    let sampled = profile.blocks.first().copied().unwrap_or(0);
    FunctionTreatment::Sampled {
        entry_count: sampled.max(half),
        entry_is_sampled: sampled as f64 >= evidence.scale,
        max_count,
        branch_weights,
    }
}

/// Branches whose directions were not sampled, but of which some are proved not to have been taken: these get weight 0,
/// the others the same weight each.
fn proved_branches<'a>(cfg: &'a Cfg, not_executed: &'a [bool]) -> impl Iterator<Item = (BlockIndex, Vec<u64>)> + 'a {
    let is_taken = |to: &BlockIndex| !not_executed[to.index()];
    let branches = (0..).map(BlockIndex).zip(&cfg.blocks);
    let partly = branches.filter(move |(block, data)| {
        let taken = data.successors.iter().filter(|to| is_taken(to)).count();
        !not_executed[block.index()] && taken > 0 && taken < data.successors.len()
    });
    partly.map(move |(block, data)| {
        let weights = data
            .successors
            .iter()
            .map(|to| if is_taken(to) { WEIGHT_SCALE } else { 0 });
        (block, weights.collect())
    })
}

/// The entry count of a function without sampled calls: the one that gives its hottest block the recorded count
/// `max_count`. `max_frequency`: the count that LLVM's block frequencies give the hottest block with an entry count of
/// `entry_count`.
pub fn entry_count_from_frequency(entry_count: u64, max_count: u64, max_frequency: f64) -> u64 {
    let entry = entry_count as f64 * max_count as f64 / max_frequency;
    if entry.is_finite() {
        (entry.round() as u64).max(1)
    } else {
        entry_count
    }
}

/// Direct calls without samples in a sampled function, as indices of `cfg.calls`, if the profile has too few bursts to
/// show that they are cold.
///
/// LLVM's inliner regards such calls as cold. The only call of a local function should be inlined nevertheless: the
/// callee's code is in the program anyway, and may be hot with another input.
pub fn unsampled_calls<'a>(
    cfg: &'a Cfg,
    profile: &'a FunctionProfile,
    evidence: &RecordingEvidence,
) -> impl Iterator<Item = usize> + use<'a> {
    let few_bursts = !evidence.exact && evidence.bursts < MIN_BURSTS_FOR_SIZE;
    let is_unsampled = move |call: &Call| {
        let count = profile.blocks.get(call.block.index()).copied().unwrap_or(0);
        few_bursts && count == 0 && matches!(call.callee, Callee::Direct(_)) && !is_exceptional(cfg, call.block)
    };
    let calls = cfg.calls.iter().enumerate();
    calls
        .filter(move |(_, call)| is_unsampled(call))
        .map(|(index, _)| index)
}

/// Blocks whose branches have a misprediction rate of at least [`UNPREDICTABLE`], with that rate. Both use the lower
/// end of the confidence interval.
pub fn unpredictable_branches(profile: &FunctionProfile) -> impl Iterator<Item = (BlockIndex, f64)> {
    let is_unpredictable = |p: &&BranchPrediction| p.low > 0.0 && p.low >= UNPREDICTABLE * p.watched;
    profile
        .predictions
        .iter()
        .filter(is_unpredictable)
        .map(|p| (p.block, p.low / p.watched))
}

/// A block with several successor slots whose directions are known, from samples or by inference.
struct SampledBranch<'a> {
    block: BlockIndex,
    /// It has a sample of its own; otherwise it was inferred.
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
            let known =
                counts.iter().any(|&c| c > 0) && (is_sampled || !is_in_unsampled_cycle(cfg, profile, index, sample));
            known.then_some(SampledBranch {
                is_sampled,
                block: BlockIndex(index as u32),
                successors: &block.successors,
                counts,
            })
        })
        .collect()
}

/// Whether a block is in a cycle of blocks with less than one sample each.
fn is_in_unsampled_cycle(cfg: &Cfg, profile: &FunctionProfile, block: usize, sample: u64) -> bool {
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

/// Whether a block handles exceptions or traps: such blocks are unlikely even without evidence.
fn is_exceptional(cfg: &Cfg, block: BlockIndex) -> bool {
    let block = &cfg.blocks[block.index()];
    block.is_eh_pad || block.terminator == Terminator::Unreachable
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::testing;
    use pleach_profile::{Covered, Executions};

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
            ..FunctionProfile::default()
        }
    }

    fn evidence(samples: u64, bursts: u64) -> RecordingEvidence {
        RecordingEvidence {
            scale: 1000.0,
            samples,
            bursts,
            cpu_seconds: 10.0,
            exact: false,
            hot_instance_count: 0,
        }
    }

    fn weights(cfg: &Cfg, blocks: &[u64], edges: &[u64], bursts: u64) -> (u64, Vec<Vec<u64>>) {
        match function_treatment(cfg, &profile(cfg, blocks, edges), &evidence(1_000_000, bursts)) {
            FunctionTreatment::Sampled {
                entry_count,
                branch_weights,
                ..
            } => {
                let executions = |weights: Vec<u64>| weights.into_iter().map(|w| w / WEIGHT_SCALE).collect();
                (
                    entry_count,
                    branch_weights.into_iter().map(|(_, w)| executions(w)).collect(),
                )
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_unsampled_trap_gets_weight_0() {
        assert_eq!(
            weights(&diamond(), &[5000, 5000, 0, 5000], &[5000, 0, 5000], 1),
            (5000, vec![vec![5000, 0]])
        );
    }

    #[test]
    fn the_unsampled_exits_of_a_loop_share_half_a_sample() {
        // Block 0 loops to itself or leaves by one of five returns; neither entry nor exit was sampled.
        let cfg = testing::cfg(&[&[0, 1, 2, 3, 4, 5], &[], &[], &[], &[], &[]]);
        let (entry, branches) = weights(&cfg, &[100_000, 0, 0, 0, 0, 0], &[100_000, 0, 0, 0, 0, 0], 1);
        assert_eq!(branches, [[100_000, 100, 100, 100, 100, 100]]);
        assert_eq!(entry, 100_000);
    }

    #[test]
    fn inferred_branches_are_weighted_towards_the_exit() {
        // Block 1 is a hot loop. Blocks 2 and 3 lead from it to the exit, and have back edges.
        let cfg = testing::cfg(&[&[1], &[1, 2], &[1, 3], &[1, 4], &[]]);
        let (blocks, edges) = ([500, 100_500, 500, 500, 500], [500, 100_000, 500, 0, 500, 0, 500]);
        let (entry, branches) = weights(&cfg, &blocks, &edges, 1);
        assert_eq!(entry, 500);
        // An edge to an executed block gets at least one sample.
        assert_eq!(branches[0], [100_000, 1000]);
        assert!(
            branches[1][1] >= 2 * branches[1][0] && branches[2][1] >= 2 * branches[2][0],
            "{branches:?}"
        );
    }

    #[test]
    fn many_unsampled_exits_get_less_than_one_execution_each() {
        let returns: Vec<u32> = (0..=2000).collect();
        let mut blocks: Vec<&[u32]> = vec![&[]; 2001];
        blocks[0] = &returns;
        let cfg = testing::cfg(&blocks);
        let counts: Vec<u64> = returns.iter().map(|&b| if b == 0 { 100_000 } else { 0 }).collect();
        let FunctionTreatment::Sampled { branch_weights, .. } =
            function_treatment(&cfg, &profile(&cfg, &counts, &counts), &evidence(1_000_000, 1))
        else {
            panic!("it was sampled");
        };
        let out: u64 = branch_weights[0].1[1..].iter().sum();
        assert_eq!(out, 500 * WEIGHT_SCALE);
    }

    #[test]
    fn an_unsampled_entry_is_derived_from_frequencies() {
        assert_eq!(entry_count_from_frequency(500, 9_000_000, 3_000_000.0), 1500);
        assert_eq!(entry_count_from_frequency(500, 9, 3e12), 1);
        assert_eq!(entry_count_from_frequency(500, 9, 0.0), 500);
    }

    #[test]
    fn an_edge_that_many_bursts_never_show_gets_weight_0() {
        let mut cfg = diamond();
        cfg.blocks[2].terminator = Terminator::Return;
        let by_bursts = |bursts| weights(&cfg, &[5000, 5000, 0, 5000], &[5000, 0, 5000], bursts).1;
        assert_eq!(by_bursts(MIN_BURSTS_FOR_SPLITTING - 1), [[5000, 500]]);
        assert_eq!(by_bursts(MIN_BURSTS_FOR_SPLITTING), [[5000, 0]]);
    }

    #[test]
    fn an_edge_to_an_executed_block_gets_a_sample_with_any_number_of_bursts() {
        let mut cfg = diamond();
        cfg.blocks[2].terminator = Terminator::Return;
        let mut profile = profile(&cfg, &[5000, 5000, 0, 5000], &[5000, 0, 5000]);
        profile.coverage = vec![Covered::Proved, Covered::Proved, Covered::ByDominance, Covered::Proved];
        for bursts in [1, MIN_BURSTS_FOR_SPLITTING, 1_000_000] {
            let FunctionTreatment::Sampled { branch_weights, .. } =
                function_treatment(&cfg, &profile, &evidence(1_000_000, bursts))
            else {
                panic!("it was sampled");
            };
            assert_eq!(
                branch_weights,
                [(BlockIndex(0), vec![5000 * WEIGHT_SCALE, 1000 * WEIGHT_SCALE])]
            );
        }
    }

    #[test]
    fn an_unsampled_function_is_cold_or_unlikely_only_with_a_large_profile() {
        const SAMPLES: u64 = MIN_SAMPLES_FOR_SPLITTING;
        const BURSTS: u64 = MIN_BURSTS_FOR_SIZE;
        let mut never = profile(&diamond(), &[0; 4], &[0; 3]);
        let judge = |never: &FunctionProfile, samples, bursts| {
            function_treatment(&diamond(), never, &evidence(samples, bursts))
        };
        let cold = FunctionTreatment::Cold { is_proved: false };
        assert_eq!(judge(&never, SAMPLES, BURSTS), cold);
        let unlikely = |is_proved| FunctionTreatment::Unlikely { is_proved };
        assert_eq!(judge(&never, SAMPLES, BURSTS - 1), unlikely(false));
        assert_eq!(judge(&never, SAMPLES / 2, BURSTS - 1), FunctionTreatment::Unknown);
        // Many branches do not make up for few bursts.
        assert_eq!(
            judge(&never, 1000 * SAMPLES, MIN_BURSTS_FOR_SPLITTING - 1),
            FunctionTreatment::Unknown
        );
        // Coverage implies that it was called.
        never.coverage = vec![
            Covered::ByDominance,
            Covered::Unknown,
            Covered::Unknown,
            Covered::Unknown,
        ];
        let once = FunctionTreatment::Sampled {
            entry_count: 1000,
            entry_is_sampled: false,
            max_count: 1000,
            branch_weights: Vec::new(),
        };
        assert_eq!(judge(&never, SAMPLES, BURSTS), once);
    }

    #[test]
    fn exact_counts_are_not_smoothed() {
        let cfg = testing::cfg(&[&[1, 2], &[3], &[3], &[]]);
        let exact = RecordingEvidence {
            scale: 1.0,
            cpu_seconds: 10.0,
            exact: true,
            ..evidence(10, 1)
        };
        let FunctionTreatment::Sampled { branch_weights, .. } =
            function_treatment(&cfg, &profile(&cfg, &[5, 5, 0, 5], &[5, 0, 5, 0]), &exact)
        else {
            panic!("it was executed");
        };
        assert_eq!(branch_weights, [(BlockIndex(0), vec![5 * WEIGHT_SCALE, 0])]);
        assert_eq!(
            function_treatment(&cfg, &profile(&cfg, &[0; 4], &[0; 4]), &exact),
            FunctionTreatment::Cold { is_proved: true }
        );
        assert_eq!(cold_count(&exact), u64::MAX);
        assert_eq!(cold_count(&evidence(1_000_000, MIN_BURSTS_FOR_SPLITTING - 1)), 0);
        assert_eq!(cold_count(&evidence(1_000_000, MIN_BURSTS_FOR_SPLITTING)), 500);
    }

    #[test]
    fn unsampled_calls_are_listed_only_with_a_small_profile() {
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
        let calls = |bursts| unsampled_calls(&cfg, &profile, &evidence(1_000_000, bursts)).collect::<Vec<_>>();
        assert_eq!(calls(MIN_BURSTS_FOR_SIZE - 1), [1, 4]);
        assert!(calls(MIN_BURSTS_FOR_SIZE).is_empty());
    }

    #[test]
    fn the_hot_count_is_by_instance_given_enough_samples() {
        let hot = |summed, by_instance| hot_count(summed, by_instance, 100.0);
        assert_eq!(hot(50_000, 0), 50_000);
        assert_eq!(hot(50_000, 20_000), 20_000);
        assert_eq!(hot(50_000, 300), 1_000);
        assert_eq!(hot(500, 300), 500);
    }

    #[test]
    fn unpredictable_branches_have_a_high_lower_bound() {
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
        assert_eq!(
            unpredictable_branches(&profile).collect::<Vec<_>>(),
            [(BlockIndex(1), 0.25)]
        );
    }

    #[test]
    fn a_branch_in_an_unsampled_cycle_gets_no_weights() {
        // 0 → 1, which loops to itself or goes on to 2, which does the same.
        let cfg = testing::cfg(&[&[1], &[1, 2], &[2, 3], &[]]);
        let (_, branches) = weights(&cfg, &[500, 9500, 500, 500], &[500, 9000, 500, 0, 500], 1);
        assert_eq!(branches.len(), 1);
        assert!(branches[0][0] > 5 * branches[0][1]);
    }

    #[test]
    fn what_is_proved_not_to_have_run_is_unlikely_however_few_bursts() {
        // 0 branches to 1 and 2, which join in 3.
        let cfg = pleach_annotate::testing::cfg(&[&[1, 2], &[3], &[3], &[]]);
        let few = RecordingEvidence {
            scale: 1000.0,
            samples: 5,
            bursts: 1,
            cpu_seconds: 10.0,
            exact: false,
            hot_instance_count: 0,
        };
        let states = |states: [Covered; 4], blocks: [u64; 4]| FunctionProfile {
            id: cfg.id,
            cfg_hash: cfg.hash(),
            name: cfg.name.clone(),
            samples: 0,
            blocks: blocks.to_vec(),
            edges: vec![0; cfg.edge_count()],
            coverage: states.to_vec(),
            ..FunctionProfile::default()
        };
        use Covered::{Hit, NotExecuted, Proved, Unknown};
        let unlikely = |is_proved| FunctionTreatment::Unlikely { is_proved };
        let never = states([NotExecuted; 4], [0; 4]);
        // Another input may execute it: only a large recording optimises it for size.
        assert_eq!(function_treatment(&cfg, &never, &few), unlikely(true));
        // Executed, but never sampled: not cold, and one direction is known.
        let rare = states([Proved, Proved, NotExecuted, Proved], [0; 4]);
        let FunctionTreatment::Sampled { branch_weights, .. } = function_treatment(&cfg, &rare, &few) else {
            panic!("it was executed");
        };
        assert_eq!(branch_weights, [(BlockIndex(0), vec![WEIGHT_SCALE, 0])]);
        // Unknown is left alone, however many bursts there are.
        let many = RecordingEvidence {
            bursts: MIN_BURSTS_FOR_SIZE,
            samples: MIN_SAMPLES_FOR_SPLITTING,
            ..few
        };
        let cold = |is_proved| FunctionTreatment::Cold { is_proved };
        assert_eq!(function_treatment(&cfg, &never, &many), cold(true));
        let unknown = states([Unknown, NotExecuted, Unknown, Unknown], [0; 4]);
        assert_eq!(function_treatment(&cfg, &unknown, &few), FunctionTreatment::Unknown);
        assert_eq!(function_treatment(&cfg, &unknown, &many), unlikely(false));
        assert_eq!(
            function_treatment(&cfg, &states([Unknown; 4], [0; 4]), &many),
            cold(false)
        );
        // Breakpoints show that it ran, but no sample does: placed apart, never for size.
        let hit = states([Hit, Hit, NotExecuted, Hit], [0; 4]);
        assert_eq!(function_treatment(&cfg, &hit, &many), unlikely(false));
        assert_eq!(function_treatment(&cfg, &hit, &few), FunctionTreatment::Unknown);
        // They show that it ran rarely, too.
        let counted = |most: [Option<u64>; 4]| FunctionProfile {
            counted: most.map(|at_most| Executions { at_least: 1, at_most }).to_vec(),
            ..hit.clone()
        };
        let rarely = counted([Some(5), Some(5), Some(0), Some(400)]);
        let branch_weights = vec![(BlockIndex(0), vec![WEIGHT_SCALE, 0])];
        assert_eq!(
            function_treatment(&cfg, &rarely, &few),
            FunctionTreatment::Rare { branch_weights }
        );
        for other in [Some(401), None] {
            let not_rarely = counted([Some(5), other, Some(0), Some(5)]);
            assert_eq!(function_treatment(&cfg, &not_rarely, &few), FunctionTreatment::Unknown);
        }
    }
}
