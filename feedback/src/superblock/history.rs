//! How often a step follows a history, from a function's recorded paths.

use crate::ball_larus::End;
use crate::profile::EstimatedPath;
use pleach_annotate::id::BlockIndex;
use rustc_hash::FxHashMap;

/// Observations that what a shorter history says is worth beside what a longer one says: Krichevsky and Trofimov's half for each of
/// the possible steps, which are mostly two.
const BACK_OFF: f64 = 1.0;

/// A function's recorded paths, as far as their blocks left markers in the code.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct History {
    paths: Vec<Visible>,
    /// Paths and positions at which each block occurs.
    occurrences: FxHashMap<BlockIndex, Vec<(u32, u32)>>,
}

#[derive(Clone, PartialEq, Debug)]
struct Visible {
    /// Blocks with markers, in order; last, where the path ends by an edge, the block that this leads to.
    steps: Vec<BlockIndex>,
    /// Whether the last step begins another path.
    restarts: bool,
    /// Share of the function's paths.
    share: f64,
    /// Independent observations.
    effective: f64,
}

/// A distribution over possible next steps.
#[derive(Clone, PartialEq, Debug)]
pub struct Next {
    /// Probability of each.
    pub probabilities: Vec<f64>,
    /// Independent observations behind that.
    pub effective: f64,
}

impl History {
    /// From a function's estimated paths, given which of its blocks have markers.
    pub fn new(paths: &[EstimatedPath], visible: impl Fn(BlockIndex) -> bool) -> Self {
        let total: f64 = paths.iter().map(|p| p.count).sum();
        let mut history = Self::default();
        let mut places: FxHashMap<(Vec<BlockIndex>, bool), usize> = FxHashMap::default();
        for estimated in paths.iter().filter(|p| p.count > 0.0) {
            let path = &estimated.path;
            let mut steps: Vec<_> = path.blocks.iter().copied().filter(|&b| visible(b)).collect();
            let restart = match path.end {
                End::Back(to) | End::Cut(to) if visible(to) => Some(to),
                _ => None,
            };
            steps.extend(restart);
            let restarts = restart.is_some();
            let (share, effective) = (estimated.count / total, estimated.effective.min(f64::from(u32::MAX)));
            let next = history.paths.len();
            let place = *places.entry((steps.clone(), restarts)).or_insert(next);
            if let Some(known) = history.paths.get_mut(place) {
                known.share += share;
                known.effective += effective;
                continue;
            }
            for (position, &step) in steps.iter().enumerate() {
                let occurrences = history.occurrences.entry(step).or_default();
                occurrences.push((next as u32, position as u32));
            }
            history.paths.push(Visible {
                steps,
                restarts,
                share,
                effective,
            });
        }
        history
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The distribution over `candidates` as next step after `trail`, whose last block is the most recent. Where longer histories were
    /// seen seldom, shorter ones count, and `prior` in the end. `None` where nothing was seen of the last block.
    pub fn next(&self, trail: &[BlockIndex], candidates: &[BlockIndex], prior: &[f64]) -> Option<Next> {
        let (&last, _) = trail.split_last()?;
        // By how much of the trail a path agrees with: weight and observations of each candidate.
        let mut by_agreement: Vec<(usize, usize, f64, f64)> = Vec::new();
        for &(path, position) in self.occurrences.get(&last)? {
            let (path, position) = (&self.paths[path as usize], position as usize);
            if path.restarts && position + 1 == path.steps.len() {
                continue;
            }
            let Some(step) = path.steps.get(position + 1) else {
                continue;
            };
            let Some(candidate) = candidates.iter().position(|c| c == step) else {
                continue;
            };
            let agreement = trail
                .iter()
                .rev()
                .zip(path.steps[..=position].iter().rev())
                .take_while(|(a, b)| a == b)
                .count();
            by_agreement.push((agreement, candidate, path.share, path.effective));
        }
        if by_agreement.is_empty() {
            return None;
        }
        by_agreement.sort_unstable_by_key(|a| a.0);
        let mut probabilities = prior.to_vec();
        let mut effective = 0.0;
        let mut from = 0;
        // What agrees with at least so much, from little to much.
        while from < by_agreement.len() {
            let agreeing = &by_agreement[from..];
            let mut shares = vec![0.0; candidates.len()];
            let mut observations = 0.0;
            for &(_, candidate, share, observed) in agreeing {
                shares[candidate] += share;
                observations += observed;
            }
            let sum: f64 = shares.iter().sum();
            for (probability, share) in probabilities.iter_mut().zip(&shares) {
                *probability = (observations * share / sum + BACK_OFF * *probability) / (observations + BACK_OFF);
            }
            effective = observations;
            let agreement = agreeing[0].0;
            from += agreeing.iter().take_while(|a| a.0 == agreement).count();
        }
        Some(Next {
            probabilities,
            effective,
        })
    }

    /// Whether a step from one block to another ends a path, as back edges do: history begins anew there.
    pub fn restarts(&self, from: BlockIndex, to: BlockIndex) -> bool {
        let mut votes = 0.0;
        for &(path, position) in self.occurrences.get(&from).into_iter().flatten() {
            let path = &self.paths[path as usize];
            if path.steps.get(position as usize + 1) == Some(&to) {
                let ends = path.restarts && position as usize + 2 == path.steps.len();
                votes += if ends { path.share } else { -path.share };
            }
        }
        votes > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ball_larus::{Path, Start};

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

    fn blocks(of: &[u32]) -> Vec<BlockIndex> {
        of.iter().map(|&b| BlockIndex(b)).collect()
    }

    /// Two diamonds in a row: the second goes the way of the first, although both are even.
    fn correlated() -> Vec<EstimatedPath> {
        vec![
            path(&[0, 1, 3, 4, 6], End::Exit, 1000.0),
            path(&[0, 2, 3, 5, 6], End::Exit, 1000.0),
        ]
    }

    #[test]
    fn what_was_passed_before_the_join_decides() {
        let history = History::new(&correlated(), |_| true);
        let next = |trail: &[u32]| history.next(&blocks(trail), &blocks(&[4, 5]), &[0.5, 0.5]).unwrap();
        assert!(next(&[0, 1, 3]).probabilities[0] > 0.99);
        assert!(next(&[0, 2, 3]).probabilities[1] > 0.99);
        assert_eq!(next(&[3]).probabilities, [0.5, 0.5]);
        assert_eq!(history.next(&blocks(&[7]), &blocks(&[4, 5]), &[0.5, 0.5]), None);
    }

    #[test]
    fn blocks_without_markers_are_passed_unseen() {
        let history = History::new(&correlated(), |b| b != BlockIndex(3));
        let next = history.next(&blocks(&[0, 1]), &blocks(&[4, 5]), &[0.5, 0.5]).unwrap();
        assert!(next.probabilities[0] > 0.99);
    }

    #[test]
    fn a_long_history_seen_seldom_says_little() {
        let mut paths = correlated();
        paths[1].effective = 0.1;
        let history = History::new(&paths, |_| true);
        let next = history
            .next(&blocks(&[0, 2, 3]), &blocks(&[4, 5]), &[0.5, 0.5])
            .unwrap();
        assert!(next.probabilities[1] < 0.6, "{next:?}");
    }

    #[test]
    fn back_edges_begin_anew() {
        let paths = [
            path(&[0, 1, 2], End::Back(BlockIndex(1)), 10.0),
            path(&[0, 1, 3], End::Exit, 1.0),
        ];
        let history = History::new(&paths, |_| true);
        assert!(history.restarts(BlockIndex(2), BlockIndex(1)));
        assert!(!history.restarts(BlockIndex(0), BlockIndex(1)));
        // The header, as what a back edge leads to, has no next step.
        let next = history.next(&blocks(&[1]), &blocks(&[2, 3]), &[0.5, 0.5]).unwrap();
        assert!((next.probabilities[0] - 10.0 / 11.0).abs() < 0.05);
    }
}
