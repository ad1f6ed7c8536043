//! The probability of a step given the blocks before it, from a function's recorded paths and windows of paths.
//!
//! A variable-order Markov model: long histories are refined from shorter ones with the pseudo-count of Krichevsky and
//! Trofimov (*The performance of universal encoding*, 1981).

use super::contexts::{Contexts, Continuation};
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::{End, Path};
use pleach_profile::{CallCrossingPath, Caller, EstimatedPath, PathWindow};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Weight of the distribution by a shorter history, in observations of the longer one: half an observation for each
/// possible step, of which there are mostly two.
const BACK_OFF: f64 = 1.0;
/// Weight of all shorter histories together from which on they are left out: it bounds the error of a probability, far
/// below what walks are cut off at.
const NEGLIGIBLE: f64 = 1e-6;

/// A function's recorded paths, reduced to the blocks that have markers, with the paths that preceded them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PathHistory {
    /// Sequences by their number of preceding paths.
    by_depth: Vec<Sequences>,
}

/// Sequences with the same number of paths.
#[derive(Clone, PartialEq, Debug, Default)]
struct Sequences {
    sequences: Vec<Sequence>,
    /// The places in the last paths of the sequences.
    contexts: Contexts,
}

/// The blocks with markers of consecutive paths.
#[derive(Clone, PartialEq, Debug)]
struct Sequence {
    /// The blocks, in order. If the last path ends by an edge, the last block is its target.
    steps: Vec<BlockIndex>,
    /// Start of the last path.
    own: usize,
    /// Start of the second path, if there are several. Shorter sequences lack only the steps before it.
    second: Option<usize>,
    /// Whether the last step begins another path.
    restarts: bool,
    /// Share of the function's paths.
    share: f64,
    /// Number of independent observations.
    effective: f64,
}

impl Sequences {
    fn add(&mut self, new: Sequence, places: &mut BTreeMap<(Vec<BlockIndex>, bool), usize>) {
        let next = self.sequences.len();
        let place = *places.entry((new.steps.clone(), new.restarts)).or_insert(next);
        match self.sequences.get_mut(place) {
            Some(known) => {
                known.share += new.share;
                known.effective += new.effective;
            }
            None => self.sequences.push(new),
        }
    }

    /// Makes the sequences ready for [`Self::refine`].
    fn index(&mut self) {
        for (index, sequence) in self.sequences.iter().enumerate() {
            let pairs = sequence.steps.windows(2).enumerate().skip(sequence.own);
            for (position, pair) in pairs {
                // Agreement within the second path and the later ones is known from shorter sequences.
                let required = sequence.second.map_or(0, |second| position + 2 - second);
                let continuation = Continuation {
                    next: pair[1],
                    share: sequence.share,
                    effective: sequence.effective,
                };
                self.contexts.add(index, pair[0], position, required, continuation);
            }
        }
        self.contexts.sort(|sequence| &self.sequences[sequence].steps);
    }

    /// Refines a distribution over `candidates` as next step after `trail`. Returns whether a place agrees with it.
    fn refine(&self, trail: &[BlockIndex], candidates: &[BlockIndex], next: &mut Next) -> bool {
        let mut rows = Rows::new(candidates.len());
        self.contexts.agreeing(
            trail,
            |sequence| &self.sequences[sequence].steps,
            |length, step| match candidates.iter().position(|&candidate| candidate == step.next) {
                Some(candidate) => rows.add(length, candidate, step),
                None => ControlFlow::Continue(()),
            },
        );
        next.refine(&rows);
        !rows.observations.is_empty()
    }
}

/// Sums of continuations, one row for each length of agreement, longest first: what agrees at least so far.
struct Rows {
    /// Number of possible steps.
    steps: usize,
    /// Length of the last row.
    length: usize,
    /// Weight of the last row and shorter ones in the distribution.
    weight: f64,
    /// Shares of the steps, row by row.
    shares: Vec<f64>,
    /// Number of independent observations of each row.
    observations: Vec<f64>,
}

impl Rows {
    fn new(steps: usize) -> Self {
        Self {
            steps,
            length: 0,
            weight: 1.0,
            shares: Vec::new(),
            observations: Vec::new(),
        }
    }

    /// Adds a continuation, unless its row and shorter ones are negligible. Lengths do not increase from one to the next.
    fn add(&mut self, length: usize, step: usize, found: &Continuation) -> ControlFlow<()> {
        match self.observations.last().copied() {
            None => {
                self.shares.resize(self.steps, 0.0);
                self.observations.push(0.0);
            }
            Some(longer) if length < self.length => {
                self.weight *= BACK_OFF / (longer + BACK_OFF);
                if self.weight < NEGLIGIBLE {
                    return ControlFlow::Break(());
                }
                self.shares.extend_from_within(self.shares.len() - self.steps..);
                self.observations.push(longer);
            }
            Some(_) => {}
        }
        self.length = length;
        let row = self.shares.len() - self.steps;
        self.shares[row + step] += found.share;
        if let Some(observations) = self.observations.last_mut() {
            *observations += found.effective;
        }
        ControlFlow::Continue(())
    }
}

/// A function's recorded paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordedPaths<'a> {
    /// Estimated paths.
    pub paths: &'a [EstimatedPath],
    /// Windows of paths that followed one another.
    pub windows: &'a [PathWindow],
    /// Paths from the entry, with the caller's blocks before the call.
    pub called: &'a [CallCrossingPath],
}

/// Encodes a caller's block for the trail of its callee, distinct from all blocks of the callee. `caller` numbers the
/// callers. `None` if there are too many callers or blocks.
pub fn caller_block(caller: usize, block: BlockIndex) -> Option<BlockIndex> {
    const BLOCK_BITS: u32 = 20;
    const CALLERS: usize = 1 << 11;
    let fits = caller < CALLERS && block.0 < 1 << BLOCK_BITS;
    fits.then_some(BlockIndex(1 << 31 | (caller as u32) << BLOCK_BITS | block.0))
}

/// Whether a block of a trail belongs to a caller.
pub fn is_caller_block(block: BlockIndex) -> bool {
    block.0 >> 31 == 1
}

/// A distribution over possible next steps.
#[derive(Clone, PartialEq, Debug)]
pub struct Next {
    /// Probability of each step.
    pub probabilities: Vec<f64>,
    /// Number of independent observations of the longest history.
    pub effective: f64,
}

impl PathHistory {
    /// Builds the history. `visible`: whether a block has a marker. `caller`: a caller's block as in trails
    /// ([`caller_block`]), if it has a marker.
    pub fn new(
        RecordedPaths { paths, windows, called }: RecordedPaths<'_>,
        visible: impl Fn(BlockIndex) -> bool,
        caller: impl Fn(&Caller, BlockIndex) -> Option<BlockIndex>,
    ) -> Self {
        let total: f64 = paths.iter().map(|p| p.count).sum();
        let mut history = Self::default();
        let mut places = vec![BTreeMap::new(); PathWindow::MAX_PATHS];
        let mut add = |before: &[Vec<BlockIndex>], path: &Path, share: f64, effective: f64| {
            let depth = before.len();
            if history.by_depth.len() <= depth {
                history.by_depth.resize(depth + 1, Sequences::default());
            }
            let mut steps = before.concat();
            let own = steps.len();
            steps.extend(path.blocks.iter().copied().filter(|&b| visible(b)));
            let second = before.first().map(Vec::len);
            if second == Some(0) {
                // No block of the first path has a marker.
                return;
            }
            let restart = match path.end {
                End::Back(to) | End::Cut(to) if visible(to) => Some(to),
                _ => None,
            };
            steps.extend(restart);
            let sequence = Sequence {
                steps,
                own,
                second,
                restarts: restart.is_some(),
                share,
                effective,
            };
            history.by_depth[depth].add(sequence, &mut places[depth]);
        };
        // Independent observations per execution of a path.
        let mut effective_share: BTreeMap<&Path, f64> = BTreeMap::new();
        for estimated in paths.iter().filter(|p| p.count > 0.0) {
            let effective = estimated.effective.min(f64::from(u32::MAX));
            effective_share.insert(&estimated.path, effective / estimated.count);
            add(&[], &estimated.path, estimated.count / total, effective);
        }
        let seen = |path: &Path| path.blocks.iter().copied().filter(|&b| visible(b)).collect();
        for window in windows.iter().filter(|w| w.paths.len() <= PathWindow::MAX_PATHS) {
            if let Some((last, before)) = window.paths.split_last()
                && let Some(effective_share) = effective_share.get(last)
            {
                let before: Vec<Vec<BlockIndex>> = before.iter().map(seen).collect();
                add(&before, last, window.count / total, window.count * effective_share);
            }
        }
        for called in called {
            if let Some(effective_share) = effective_share.get(&called.path) {
                let blocks = called.caller.before.iter();
                let before = blocks.filter_map(|&block| caller(&called.caller, block)).collect();
                add(
                    &[before],
                    &called.path,
                    called.count / total,
                    called.count * effective_share,
                );
            }
        }
        for sequences in &mut history.by_depth {
            sequences.index();
        }
        history
    }

    /// Whether there are no recorded paths.
    pub fn is_empty(&self) -> bool {
        self.by_depth.is_empty()
    }

    /// The maximal number of earlier paths that may predict a step.
    pub fn depth(&self) -> usize {
        self.by_depth.len().saturating_sub(1)
    }

    /// The distribution over `candidates` as next step after `trail` (most recent block last; it may span several
    /// paths). Backs off from rare long histories to shorter ones, and finally to `prior`. `None` if no recorded path
    /// continues from the last block to a candidate.
    pub fn next(&self, trail: &[BlockIndex], candidates: &[BlockIndex], prior: &[f64]) -> Option<Next> {
        let mut next = Next {
            probabilities: prior.to_vec(),
            effective: 0.0,
        };
        let depths = self.by_depth.iter();
        let refined = depths.take_while(|known| known.refine(trail, candidates, &mut next));
        (refined.count() > 0).then_some(next)
    }
}

impl Next {
    /// Refines the distribution, first by all continuations, last by those that agree most.
    fn refine(&mut self, rows: &Rows) {
        let shares = rows.shares.chunks(rows.steps.max(1));
        for (shares, &observations) in shares.zip(&rows.observations).rev() {
            let sum: f64 = shares.iter().sum();
            for (probability, share) in self.probabilities.iter_mut().zip(shares) {
                *probability = (observations * share / sum + BACK_OFF * *probability) / (observations + BACK_OFF);
            }
            self.effective = observations;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId, ModuleHash};
    use pleach_ball_larus::Path;
    use pleach_ball_larus::Start;

    fn path(blocks: &[u32], end: End, count: f64) -> EstimatedPath {
        EstimatedPath {
            path: Path {
                start: Start::Entry,
                blocks: blocks.iter().map(|&b| BlockIndex(b)).collect(),
                end,
            },
            count,
            low: count,
            high: count,
            effective: count,
        }
    }

    fn known(paths: &[EstimatedPath], windows: &[PathWindow], visible: impl Fn(BlockIndex) -> bool) -> PathHistory {
        let recorded = RecordedPaths {
            paths,
            windows,
            called: &[],
        };
        PathHistory::new(recorded, visible, |_, _| None)
    }

    fn blocks(numbers: &[u32]) -> Vec<BlockIndex> {
        numbers.iter().map(|&b| BlockIndex(b)).collect()
    }

    /// The distribution over two steps that are equally likely as far as the branch's weights tell.
    fn next_after(history: &PathHistory, trail: &[u32], candidates: &[u32]) -> Option<Next> {
        history.next(&blocks(trail), &blocks(candidates), &[0.5, 0.5])
    }

    /// Two consecutive diamonds: the second branch is unbiased but repeats the direction of the first.
    fn correlated() -> Vec<EstimatedPath> {
        vec![
            path(&[0, 1, 3, 4, 6], End::Exit, 1000.0),
            path(&[0, 2, 3, 5, 6], End::Exit, 1000.0),
        ]
    }

    #[test]
    fn blocks_before_the_join_predict_the_branch() {
        let history = known(&correlated(), &[], |_| true);
        let next = |trail: &[u32]| next_after(&history, trail, &[4, 5]).unwrap();
        assert!(next(&[0, 1, 3]).probabilities[0] > 0.99);
        assert!(next(&[0, 2, 3]).probabilities[1] > 0.99);
        assert_eq!(next(&[3]).probabilities, [0.5, 0.5]);
        assert_eq!(next_after(&history, &[7], &[4, 5]), None);
    }

    #[test]
    fn blocks_without_markers_are_skipped() {
        let history = known(&correlated(), &[], |b| b != BlockIndex(3));
        let next = next_after(&history, &[0, 1], &[4, 5]).unwrap();
        assert!(next.probabilities[0] > 0.99);
    }

    #[test]
    fn a_rare_long_history_has_little_weight() {
        let mut paths = correlated();
        paths[1].effective = 0.1;
        let history = known(&paths, &[], |_| true);
        let next = next_after(&history, &[0, 2, 3], &[4, 5]).unwrap();
        assert!(next.probabilities[1] < 0.6, "{next:?}");
    }

    /// Left out, they change a probability by less than walks are cut off at; with fewer observations all count.
    #[test]
    fn shorter_histories_are_left_out_where_they_are_negligible() {
        let predicted = |observations: f64| {
            // Shorter histories of block 9 step to block 5 more often than longer ones.
            let paths = [
                path(&[0, 1, 2, 9, 4], End::Exit, observations),
                path(&[0, 7, 2, 9, 5], End::Exit, observations),
                path(&[0, 8, 9, 5], End::Exit, 4.0 * observations),
            ];
            let history = known(&paths, &[], |_| true);
            next_after(&history, &[0, 1, 2, 9], &[4, 5]).unwrap().probabilities[0]
        };
        // Of all histories, of those through 2, and of the longest: n observations each of 4, among 6n, 2n and n.
        let all = |n: f64| {
            let refined = |p: f64, share: f64, n: f64| (n * share + BACK_OFF * p) / (n + BACK_OFF);
            refined(refined(refined(0.5, 1.0 / 6.0, 6.0 * n), 0.5, 2.0 * n), 1.0, n)
        };
        assert_eq!(predicted(10.0), all(10.0));
        assert!((predicted(1e4) - all(1e4)).abs() < NEGLIGIBLE);
    }

    #[test]
    fn the_target_of_a_back_edge_ends_a_sequence() {
        let paths = [
            path(&[0, 1, 2], End::Back(BlockIndex(1)), 10.0),
            path(&[0, 1, 3], End::Exit, 1.0),
        ];
        let history = known(&paths, &[], |_| true);
        let next = next_after(&history, &[1], &[2, 3]).unwrap();
        assert!((next.probabilities[0] - 10.0 / 11.0).abs() < 0.05);
    }

    /// A loop that alternates between left and right.
    fn alternating() -> (Vec<EstimatedPath>, Vec<PathWindow>) {
        let side = |block| EstimatedPath {
            path: Path {
                start: Start::Inside,
                ..path(&[1, block], End::Back(BlockIndex(1)), 0.0).path
            },
            ..path(&[1], End::Exit, 1000.0)
        };
        let (left, right) = (side(2), side(3));
        let window = |a: &EstimatedPath, b: &EstimatedPath, count| PathWindow {
            paths: vec![a.path.clone(), b.path.clone()],
            count,
        };
        let windows = vec![
            window(&left, &right, 999.0),
            window(&right, &left, 998.0),
            window(&left, &left, 1.0),
        ];
        (vec![left, right], windows)
    }

    #[test]
    fn the_previous_iteration_predicts_the_branch() {
        let (paths, windows) = alternating();
        let history = known(&paths, &windows, |_| true);
        assert_eq!(history.depth(), 1);
        let next = |trail: &[u32]| next_after(&history, trail, &[2, 3]).unwrap();
        assert!((next(&[1]).probabilities[0] - 0.5).abs() < 1e-6);
        assert!(next(&[1, 2, 1]).probabilities[1] > 0.99);
        assert!(next(&[1, 3, 1]).probabilities[0] > 0.99);
        // An unrecorded history backs off to a shorter one.
        assert!((next(&[1, 4, 1]).probabilities[0] - 0.5).abs() < 1e-6);
        let without = known(&paths, &[], |_| true);
        let next = next_after(&without, &[1, 2, 1], &[2, 3]).unwrap();
        assert!((next.probabilities[0] - 0.5).abs() < 1e-6);
    }

    #[test]
    fn blocks_of_the_caller_predict_the_branch() {
        let paths = [path(&[0, 1], End::Exit, 1000.0), path(&[0, 2], End::Exit, 1000.0)];
        let called_from = |block: u32, path: &EstimatedPath| CallCrossingPath {
            caller: Caller {
                id: FunctionId {
                    guid: FunctionGuid(9),
                    module: ModuleHash(0),
                },
                cfg_hash: CfgHash(0),
                before: blocks(&[5, block]),
            },
            path: path.path.clone(),
            count: 1000.0,
        };
        let called = [called_from(6, &paths[0]), called_from(7, &paths[1])];
        let recorded = RecordedPaths {
            paths: &paths,
            windows: &[],
            called: &called,
        };
        let history = PathHistory::new(recorded, |_| true, |_, block| caller_block(3, block));
        let next = |caller: usize, block: u32| {
            let trail = [caller_block(caller, BlockIndex(block)).unwrap(), BlockIndex(0)];
            let next = history.next(&trail, &blocks(&[1, 2]), &[0.5, 0.5]);
            next.unwrap().probabilities[0]
        };
        assert!(next(3, 6) > 0.99 && next(3, 7) < 0.01);
        // Another caller has no recorded paths.
        assert!((next(2, 6) - 0.5).abs() < 1e-6);
        assert_eq!(caller_block(1 << 11, BlockIndex(0)), None);
    }
}
