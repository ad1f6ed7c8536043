//! Which blocks of two graphs are the same.
//!
//! A function's blocks are in the order of its source, which most edits keep: the blocks are matched such that their
//! order is the same and the sum of similarities is largest (Needleman and Wunsch, 1970; gaps cost nothing). What was
//! moved is found along edges: where a matched block's slot leads to unmatched blocks in both graphs, these match.

use super::features::Features;
use pleach_annotate::cfg::{Cfg, Terminator};

/// Maximum number of pairs of blocks that are compared, which bounds time and memory: two functions of 5 000 blocks
/// each that differ everywhere.
const MAX_PAIRS: usize = 25_000_000;

/// A graph and the features of its blocks.
#[derive(Debug)]
pub struct Graph<'g> {
    /// The graph.
    pub cfg: &'g Cfg,
    /// By block.
    pub features: Vec<Features>,
}

impl<'g> Graph<'g> {
    /// A graph with its features.
    pub fn new(cfg: &'g Cfg) -> Self {
        Self {
            cfg,
            features: Features::of(cfg),
        }
    }
}

/// Which blocks of an old graph are which of a new one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockMatch {
    /// By old block, the new one.
    new_of: Vec<Option<usize>>,
    /// By new block, the old one.
    old_of: Vec<Option<usize>>,
}

impl BlockMatch {
    /// Matches two graphs. The entries always match. `None` if the graphs are too large to be compared.
    pub fn find(old: &Graph<'_>, new: &Graph<'_>) -> Option<Self> {
        let mut matched = Self {
            new_of: vec![None; old.features.len()],
            old_of: vec![None; new.features.len()],
        };
        if old.features.is_empty() || new.features.is_empty() {
            return Some(matched);
        }
        matched.insert(0, 0);
        for (old, new) in aligned(&old.features[1..], &new.features[1..])? {
            matched.insert(old + 1, new + 1);
        }
        matched.keep_supported(old, new);
        matched.follow_edges(old, new);
        Some(matched)
    }

    /// Number of matched blocks.
    pub fn len(&self) -> usize {
        self.pairs().count()
    }

    /// Whether no block is matched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All pairs of an old and a new block.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let pairs = self.new_of.iter().enumerate();
        pairs.filter_map(|(old, new)| Some((old, (*new)?)))
    }

    /// The old block that a new one is.
    pub fn old_of(&self, new: usize) -> Option<usize> {
        self.old_of.get(new).copied().flatten()
    }

    /// The new block that an old one is.
    pub fn new_of(&self, old: usize) -> Option<usize> {
        self.new_of.get(old).copied().flatten()
    }

    fn insert(&mut self, old: usize, new: usize) {
        self.new_of[old] = Some(new);
        self.old_of[new] = Some(old);
    }

    /// Takes back matches of blocks that differ, none of whose neighbours match.
    fn keep_supported(&mut self, old: &Graph<'_>, new: &Graph<'_>) {
        let mut supported = vec![false; old.features.len()];
        let edges = old.cfg.blocks.iter().enumerate();
        for (from, to) in edges.flat_map(|(from, block)| block.successors.iter().map(move |to| (from, to.index()))) {
            if let (Some(new_from), Some(new_to)) = (self.new_of(from), self.new_of(to)) {
                let mut slots = new.cfg.blocks[new_from].successors.iter();
                if slots.any(|slot| slot.index() == new_to) {
                    supported[from] = true;
                    supported[to] = true;
                }
            }
        }
        let differs = |block: usize, found: usize| old.features[block].own != new.features[found].own;
        for (block, is_supported) in supported.into_iter().enumerate().skip(1) {
            if let Some(found) = self.new_of[block].filter(|&found| !is_supported && differs(block, found)) {
                self.new_of[block] = None;
                self.old_of[found] = None;
            }
        }
    }

    /// Matches what the same slots of matched blocks lead to.
    fn follow_edges(&mut self, old: &Graph<'_>, new: &Graph<'_>) {
        let mut waiting: Vec<(usize, usize)> = self.pairs().collect();
        while let Some((from_old, from_new)) = waiting.pop() {
            let (before, after) = (&old.cfg.blocks[from_old], &new.cfg.blocks[from_new]);
            if before.terminator != after.terminator
                || before.successors.len() != after.successors.len()
                || before.terminator == Terminator::Switch
            {
                continue;
            }
            for (to_old, to_new) in before.successors.iter().zip(&after.successors) {
                let pair = (to_old.index(), to_new.index());
                let is_free = self.new_of[pair.0].is_none() && self.old_of[pair.1].is_none();
                if is_free && old.features[pair.0].is_compatible(&new.features[pair.1]) {
                    self.insert(pair.0, pair.1);
                    waiting.push(pair);
                }
            }
        }
    }
}

/// The pairs of two sequences of blocks with the largest sum of similarities. `None` if there is too much to compare.
fn aligned(old: &[Features], new: &[Features]) -> Option<Vec<(usize, usize)>> {
    let is_same = |(a, b): (&Features, &Features)| a.neighbourhood == b.neighbourhood;
    let first = old.iter().zip(new).take_while(|&pair| is_same(pair)).count();
    let (old_rest, new_rest) = (&old[first..], &new[first..]);
    let last = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(|&pair| is_same(pair))
        .count();
    let (old_rest, new_rest) = (&old_rest[..old_rest.len() - last], &new_rest[..new_rest.len() - last]);
    let beginning = (0..first).map(|at| (at, at));
    let end = (1..=last).map(|back| (old.len() - back, new.len() - back));
    let middle = best_pairs(old_rest, new_rest)?;
    let middle = middle.into_iter().map(|(a, b)| (a + first, b + first));
    Some(beginning.chain(middle).chain(end).collect())
}

/// What the best alignment of two prefixes ends with.
#[derive(Clone, Copy)]
enum Last {
    SkippedOld,
    SkippedNew,
    Pair,
}

fn best_pairs(old: &[Features], new: &[Features]) -> Option<Vec<(usize, usize)>> {
    let width = new.len();
    let cells = old.len().checked_mul(width).filter(|&cells| cells <= MAX_PAIRS)?;
    let mut lasts = Vec::with_capacity(cells);
    // The best sums of all prefixes of `new`, with the blocks of `old` so far.
    let mut above = vec![0.0; width + 1];
    let mut row = vec![0.0; width + 1];
    for a in old {
        for (at, b) in new.iter().enumerate() {
            let (mut best, mut last) = (above[at + 1], Last::SkippedOld);
            if row[at] > best {
                (best, last) = (row[at], Last::SkippedNew);
            }
            if a.is_compatible(b) {
                let pair = above[at] + a.similarity(b);
                if pair > best {
                    (best, last) = (pair, Last::Pair);
                }
            }
            row[at + 1] = best;
            lasts.push(last);
        }
        std::mem::swap(&mut above, &mut row);
    }
    let (mut i, mut j) = (old.len(), width);
    let mut pairs = Vec::new();
    while i > 0 && j > 0 {
        match lasts[(i - 1) * width + j - 1] {
            Last::SkippedOld => i -= 1,
            Last::SkippedNew => j -= 1,
            Last::Pair => {
                (i, j) = (i - 1, j - 1);
                pairs.push((i, j));
            }
        }
    }
    Some(pairs)
}
