//! Which loops are peeled although they run long on the average: most of their visits are short. And which loops run as
//! often as LLVM peels them in nearly all visits: what is left of them only runs with other input.
//!
//! LLVM knows the mean number of iterations only, and peels loops in which it is small. Windows of consecutive paths
//! show how many visits end after one, two or three iterations (feedback/ALGORITHMS.md, Weights).

use crate::if_conversion::ISSUE_WIDTH;
use crate::short_loops::LLVM_MIN_TRIP_COUNT;
use crate::superblock::walks::back_edges;
use crate::support::wilson_low;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::{End, Path, Start};
use pleach_profile::{FunctionProfile, PathWindow};
use std::collections::BTreeSet;

/// Iterations that are peeled at most: as many as windows of paths tell apart from more.
pub const MAX_PEELED: usize = PathWindow::MAX_PATHS - 1;

/// Mean iterations up to which LLVM peels by its own rules.
const LLVM_MAX_PEELED: f64 = 7.0;
/// Cycles that a visit saves if it ends within the peeled iterations: the test whether one iteration of the vectorised
/// or unrolled loop is left, the scalar loop's beginning, and a part of a misprediction.
const SAVED: f64 = 8.0;
/// Cycles that each peeled iteration costs any other visit, which the vectorised or unrolled loop would not have taken.
const PEELED_ITERATION: f64 = 2.0;
/// Share of the visits of a steady loop that end within the peeled iterations.
const MIN_STEADY: f64 = 0.875;
/// Independent observations that an exact count is worth.
const EXACT: f64 = 1e9;

/// A loop most of whose visits are short.
#[derive(Clone, PartialEq, Debug)]
pub struct MostlyShortLoop {
    /// The block that back edges lead to.
    pub head: BlockIndex,
    /// The blocks with back edges to it.
    pub latches: Vec<BlockIndex>,
    /// Shares of visits that end after at most one iteration, two, …: as many as should be peeled.
    pub within: Vec<f64>,
    /// Mean iterations that the other visits have left after that.
    pub rest: f64,
    /// Issue slots that peeling saves, in the profile's counts.
    pub slots: f64,
}

/// The innermost loops of a function for which peeling pays, though their mean number of iterations is too large for
/// LLVM to peel them.
pub fn mostly_short_loops(cfg: &Cfg, profile: &FunctionProfile) -> Vec<MostlyShortLoop> {
    if profile.windows.is_empty() {
        return Vec::new();
    }
    innermost_loops(cfg)
        .into_iter()
        .filter_map(|found| found.mostly_short(cfg, profile))
        .collect()
}

/// The innermost loops of a function that run as often as LLVM peels them, by their mean number of iterations, in nearly
/// all visits; each by its latches.
pub fn steady_loops(cfg: &Cfg, profile: &FunctionProfile) -> Vec<Vec<BlockIndex>> {
    if profile.windows.is_empty() {
        return Vec::new();
    }
    let mut loops = innermost_loops(cfg);
    loops.retain(|found| found.is_steady(cfg, profile) == Some(true));
    loops.into_iter().map(|found| found.latches).collect()
}

/// An innermost natural loop.
struct InnermostLoop {
    head: BlockIndex,
    latches: Vec<BlockIndex>,
    /// Control may leave the loop from its head, so that the last test is no iteration.
    tests_first: bool,
}

fn innermost_loops(cfg: &Cfg) -> Vec<InnermostLoop> {
    let (back, bases) = (back_edges(cfg), cfg.edge_bases());
    let edges = || {
        cfg.blocks.iter().enumerate().flat_map(|(from, block)| {
            let slots = bases[from] as usize..;
            block
                .successors
                .iter()
                .zip(slots)
                .map(move |(&to, slot)| (from, to.index(), slot))
        })
    };
    let heads: BTreeSet<usize> = edges()
        .filter(|&(_, _, slot)| back[slot])
        .map(|(_, to, _)| to)
        .collect();
    if heads.is_empty() {
        return Vec::new();
    }
    let mut predecessors = vec![Vec::new(); cfg.blocks.len()];
    for (from, to, _) in edges() {
        predecessors[to].push(from);
    }
    let natural = |head: usize| {
        let latches: BTreeSet<usize> = edges()
            .filter(|&(_, to, slot)| to == head && back[slot])
            .map(|(from, _, _)| from)
            .collect();
        let mut body = BTreeSet::from([head]);
        let mut left: Vec<usize> = latches.iter().copied().collect();
        while let Some(block) = left.pop() {
            if body.insert(block) {
                left.extend(&predecessors[block]);
            }
        }
        // With the entry, control enters elsewhere than at the head.
        let is_natural = head == 0 || !body.contains(&0);
        let is_innermost = heads.iter().filter(|&head| body.contains(head)).count() == 1;
        let leaves = |block: usize| {
            cfg.blocks[block]
                .successors
                .iter()
                .any(|to| !body.contains(&to.index()))
        };
        let at = |block: usize| BlockIndex(block as u32);
        (is_natural && is_innermost).then(|| InnermostLoop {
            head: at(head),
            tests_first: leaves(head) && !latches.contains(&head),
            latches: latches.into_iter().map(at).collect(),
        })
    };
    heads.iter().filter_map(|&head| natural(head)).collect()
}

impl InnermostLoop {
    /// The visits that have iterations, and the mean number of these.
    fn visits_and_mean(&self, cfg: &Cfg, profile: &FunctionProfile) -> Option<(Visits, f64)> {
        let of_all = self.mean_back_edges(cfg, profile)?;
        if of_all == 0.0 {
            return None;
        }
        let visits = self.visits(profile)?;
        let back_edges = of_all / visits.with_iterations;
        Some((visits, if self.tests_first { back_edges } else { back_edges + 1.0 }))
    }

    /// Whether nearly all visits end within the mean number of iterations; `None` where windows of paths are too short to
    /// tell.
    fn is_steady(&self, cfg: &Cfg, profile: &FunctionProfile) -> Option<bool> {
        let (visits, mean) = self.visits_and_mean(cfg, profile)?;
        let peeled = mean.round() as usize;
        let longer = match peeled.checked_sub(1).and_then(|last| visits.within.get(last)) {
            Some(within) => 1.0 - within,
            // Windows show how many visits have one iteration more than they tell apart. As the mean is the sum of the
            // shares of visits that have one iteration, two, …, what they do not account for are still more iterations.
            None if peeled == visits.within.len() + 1 => {
                let known: f64 = visits.within.iter().map(|within| 1.0 - within).sum();
                (mean - 1.0 - known).clamp(0.0, 1.0)
            }
            None => return None,
        };
        // Little is lost where that is wrong, so that the estimate is taken as it is.
        Some(1.0 - longer >= MIN_STEADY)
    }

    fn mostly_short(self, cfg: &Cfg, profile: &FunctionProfile) -> Option<MostlyShortLoop> {
        let (visits, mean) = self.visits_and_mean(cfg, profile)?;
        if mean <= LLVM_MAX_PEELED {
            return None;
        }
        // Of a number of peeled iterations, at that share of short visits.
        let gain = |peeled: usize, share: f64| SAVED * share - PEELED_ITERATION * peeled as f64 * (1.0 - share);
        let at_least = |peeled: usize| gain(peeled, wilson_low(visits.within[peeled - 1], visits.observations));
        let peeled = (1..=visits.within.len()).max_by(|&a, &b| at_least(a).total_cmp(&at_least(b)))?;
        if at_least(peeled) <= 0.0 {
            return None;
        }
        let within = &visits.within[..peeled];
        let of_short: f64 = (1..=peeled)
            .map(|k| k as f64 * (within[k - 1] - if k > 1 { within[k - 2] } else { 0.0 }))
            .sum();
        let longer = 1.0 - within[peeled - 1];
        Some(MostlyShortLoop {
            head: self.head,
            latches: self.latches,
            rest: if longer > 0.0 {
                ((mean - of_short) / longer - peeled as f64).max(1.0)
            } else {
                f64::from(LLVM_MIN_TRIP_COUNT)
            },
            slots: visits.count * gain(peeled, within[peeled - 1]) * ISSUE_WIDTH,
            within: within.to_vec(),
        })
    }

    /// Mean back edges of a visit.
    fn mean_back_edges(&self, cfg: &Cfg, profile: &FunctionProfile) -> Option<f64> {
        let bases = cfg.edge_bases();
        let mut repeated = 0_u64;
        for latch in &self.latches {
            let successors = &cfg.blocks[latch.index()].successors;
            for (&to, slot) in successors.iter().zip(bases[latch.index()] as usize..) {
                let count = if to == self.head { *profile.edges.get(slot)? } else { 0 };
                repeated = count.saturating_add(repeated);
            }
        }
        let visits = profile.blocks.get(self.head.index())?.saturating_sub(repeated);
        (visits > 0).then(|| repeated as f64 / visits as f64)
    }

    /// Whether a path ends by another iteration.
    fn repeats(&self, path: &Path) -> bool {
        path.end == End::Back(self.head)
    }

    /// Whether a path enters the loop from outside.
    fn enters(&self, path: &Path) -> bool {
        match path.blocks.iter().position(|&block| block == self.head) {
            Some(0) => path.start == Start::Entry,
            found => found.is_some(),
        }
    }

    /// How long visits are, as far as windows of paths show.
    fn visits(&self, profile: &FunctionProfile) -> Option<Visits> {
        let entering: Vec<_> = profile.paths.iter().filter(|path| self.enters(&path.path)).collect();
        let all: f64 = entering.iter().map(|path| path.count).sum();
        let repeating: f64 = entering
            .iter()
            .filter(|path| self.repeats(&path.path))
            .map(|path| path.count)
            .sum();
        let observations: f64 = entering.iter().map(|path| path.effective.min(EXACT)).sum();
        // By the number of back edges: how often control takes one more.
        let (mut reached, mut taken) = ([0.0; PathWindow::MAX_PATHS], [0.0; PathWindow::MAX_PATHS]);
        (reached[0], taken[0]) = (all, repeating);
        for window in &profile.windows {
            let Some((last, before)) = window.paths.split_last() else {
                continue;
            };
            if self.enters(&before[0]) && before.iter().all(|path| self.repeats(path)) {
                reached[before.len()] += window.count;
                taken[before.len()] += if self.repeats(last) { window.count } else { 0.0 };
            }
        }
        // Shares of visits that take 1, 2, … back edges.
        let mut share = 1.0;
        let mut at_least = Vec::new();
        for (&reached, &taken) in reached.iter().zip(&taken) {
            if reached <= 0.0 {
                break;
            }
            share *= (taken / reached).min(1.0);
            at_least.push(share);
        }
        // A visit of a loop that tests first has no iteration, to be compared with others, without a back edge.
        let (whole, longer) = if self.tests_first {
            at_least.split_first().map(|(&first, longer)| (first, longer))?
        } else {
            (1.0, at_least.as_slice())
        };
        let within: Vec<f64> = longer
            .iter()
            .take(MAX_PEELED)
            .map(|share| 1.0 - share / whole)
            .collect();
        (whole > 0.0 && !within.is_empty()).then_some(Visits {
            with_iterations: whole,
            count: all * whole,
            observations: observations * whole,
            within,
        })
    }
}

/// Visits of a loop that have one iteration at least.
struct Visits {
    /// Their share of all visits.
    with_iterations: f64,
    /// Their number, in the profile's counts.
    count: f64,
    /// Independent observations of them.
    observations: f64,
    /// Shares of visits that end after at most one iteration, two, …
    within: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_profile::EstimatedPath;
    use proptest::prelude::*;

    /// The number of visits of a loop by its iterations, and observations of all.
    type Visited = (Vec<(usize, f64)>, f64);

    const BACK: End = End::Back(BlockIndex(1));

    fn path(start: Start, blocks: &[u32], end: End) -> Path {
        let blocks = blocks.iter().copied().map(BlockIndex).collect();
        Path { start, blocks, end }
    }

    /// The paths of a visit of `for (…; test;) body`: block 1 tests, 2 is the body.
    fn tests_first(iterations: usize) -> Vec<Path> {
        let mut paths: Vec<Path> = (0..iterations)
            .map(|_| path(Start::Inside, &[1, 2], BACK))
            .chain([path(Start::Inside, &[1, 3], End::Exit)])
            .collect();
        paths[0].start = Start::Entry;
        paths[0].blocks.insert(0, BlockIndex(0));
        paths
    }

    /// The paths of a visit of `do body while (test)`: block 1 is all of it.
    fn tests_last(iterations: usize) -> Vec<Path> {
        let mut paths: Vec<Path> = (1..iterations)
            .map(|_| path(Start::Inside, &[1], BACK))
            .chain([path(Start::Inside, &[1, 2], End::Exit)])
            .collect();
        paths[0].start = Start::Entry;
        paths[0].blocks.insert(0, BlockIndex(0));
        paths
    }

    /// The profile of these visits.
    fn profile(cfg: &Cfg, visit: impl Fn(usize) -> Vec<Path>, (visits, observations): &Visited) -> FunctionProfile {
        let mut profile = FunctionProfile {
            blocks: vec![0; cfg.blocks.len()],
            edges: vec![0; cfg.edge_count()],
            ..FunctionProfile::default()
        };
        let bases = cfg.edge_bases();
        let all: f64 = visits.iter().map(|&(_, count)| count).sum();
        for &(iterations, count) in visits {
            let paths = visit(iterations);
            for (at, path) in paths.iter().enumerate() {
                for (position, block) in path.blocks.iter().enumerate() {
                    profile.blocks[block.index()] += count as u64;
                    let next = path.blocks.get(position + 1).copied();
                    let next = next.or(if let End::Back(head) = path.end {
                        Some(head)
                    } else {
                        None
                    });
                    let slot = cfg.blocks[block.index()]
                        .successors
                        .iter()
                        .position(|to| Some(*to) == next);
                    if let Some(slot) = slot {
                        profile.edges[bases[block.index()] as usize + slot] += count as u64;
                    }
                }
                match profile.paths.iter_mut().find(|p| p.path == *path) {
                    Some(known) => known.count += count,
                    None => profile.paths.push(EstimatedPath {
                        path: path.clone(),
                        count,
                        low: 0.0,
                        high: 0.0,
                        effective: 0.0,
                    }),
                }
                for length in 2..=PathWindow::MAX_PATHS.min(paths.len() - at) {
                    let window = &paths[at..at + length];
                    match profile.windows.iter_mut().find(|w| w.paths == window) {
                        Some(known) => known.count += count,
                        None => profile.windows.push(PathWindow {
                            paths: window.to_vec(),
                            count,
                        }),
                    }
                }
            }
        }
        for known in &mut profile.paths {
            known.effective = known.count / all * observations;
        }
        profile
    }

    /// A loop that tests first, and one that tests last.
    fn loops() -> (Cfg, Cfg) {
        (
            pleach_annotate::testing::cfg(&[&[1], &[2, 3], &[1], &[]]),
            pleach_annotate::testing::cfg(&[&[1], &[1, 2], &[]]),
        )
    }

    fn found(visits: &[(usize, f64)], observations: f64) -> [Option<MostlyShortLoop>; 2] {
        let visited = (visits.to_vec(), observations);
        let (first, last) = loops();
        let only = |mut found: Vec<MostlyShortLoop>| found.pop().filter(|_| found.is_empty());
        [
            only(mostly_short_loops(&first, &profile(&first, tests_first, &visited))),
            only(mostly_short_loops(&last, &profile(&last, tests_last, &visited))),
        ]
    }

    #[test]
    fn short_visits_of_a_loop_that_runs_long_on_the_average() {
        for found in found(&[(1, 300.0), (2, 300.0), (3, 250.0), (100, 150.0)], 500.0) {
            let found = found.expect("85 % are short");
            assert_eq!(found.head, BlockIndex(1));
            assert_eq!(found.within.len(), 3);
            for (share, expected) in found.within.iter().zip([0.3, 0.6, 0.85]) {
                assert!((share - expected).abs() < 1e-9, "{share} instead of {expected}");
            }
            assert!((found.rest - 97.0).abs() < 1e-6, "{}", found.rest);
        }
        // Two in three have one iteration: a second one would cost more than it saves.
        for found in found(&[(1, 650.0), (2, 10.0), (100, 340.0)], 500.0) {
            assert_eq!(found.expect("66 % are short").within.len(), 1);
        }
    }

    #[test]
    fn other_loops_are_left_to_llvm() {
        // Few iterations on the average, which LLVM peels.
        assert_eq!(found(&[(1, 900.0), (20, 100.0)], 500.0), [None, None]);
        // Mostly long.
        assert_eq!(found(&[(1, 100.0), (20, 900.0)], 500.0), [None, None]);
        // Seldom observed.
        let rarely_short = [(1, 450.0), (50, 550.0)];
        assert!(found(&rarely_short, 500.0).iter().all(Option::is_some));
        assert_eq!(found(&rarely_short, 5.0), [None, None]);
    }

    #[test]
    fn visits_without_iterations_are_not_visits() {
        let cfg = pleach_annotate::testing::cfg(&[&[1], &[2, 3], &[1], &[]]);
        let with = |empty| {
            let visits = vec![(0, empty), (1, 400.0), (40, 200.0)];
            mostly_short_loops(&cfg, &profile(&cfg, tests_first, &(visits, 1e6)))
        };
        let (none, many) = (with(0.0), with(5000.0));
        assert!((none[0].within[0] - many[0].within[0]).abs() < 1e-9);
        assert!((none[0].rest - many[0].rest).abs() < 1e-6);
    }

    #[test]
    fn only_innermost_loops() {
        // 0 → 1 (outer head) → 2 (inner loop, itself) → 1 or 3.
        let cfg = pleach_annotate::testing::cfg(&[&[1], &[2], &[2, 1, 3], &[]]);
        let heads: Vec<u32> = innermost_loops(&cfg).iter().map(|found| found.head.0).collect();
        assert_eq!(heads, [2]);
    }

    #[test]
    fn loops_that_nearly_always_run_as_often_as_they_are_peeled() {
        let steady = |visits: &[(usize, f64)]| {
            let visited = (visits.to_vec(), 1e3);
            let (first, last) = loops();
            let first = steady_loops(&first, &profile(&first, tests_first, &visited));
            let last = steady_loops(&last, &profile(&last, tests_last, &visited));
            assert_eq!(first.len(), last.len());
            !first.is_empty()
        };
        for iterations in 2..=4 {
            assert!(steady(&[(iterations, 100.0)]), "{iterations}");
        }
        assert!(!steady(&[(5, 100.0)])); // more than windows tell apart
        assert!(steady(&[(3, 95.0), (4, 5.0)]));
        // As often on the average.
        let geometric: Vec<(usize, f64)> = (1..40).map(|n| (n, 1e3 * 0.75_f64.powi(n as i32))).collect();
        assert!(!steady(&geometric));
        assert!(!steady(&[(2, 50.0), (6, 50.0)]));
    }

    proptest! {
        #[test]
        fn any_profile_gives_finite_shares(
            visits in prop::collection::vec((1_usize..60, 0.0..1e9), 1..6),
            observations in 0.0..1e6,
        ) {
            for found in found(&visits, observations).into_iter().flatten() {
                prop_assert!(found.within.is_sorted());
                prop_assert!(found.within.iter().all(|share| (0.0..=1.0).contains(share)));
                prop_assert!(found.rest >= 1.0 && found.rest.is_finite());
                prop_assert!(found.slots.is_finite());
            }
        }
    }
}
