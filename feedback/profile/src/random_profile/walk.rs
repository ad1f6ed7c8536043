//! Random activations of a function, and the paths that they consist of.

use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::graph::{EdgeKind, PathGraph};
use pleach_ball_larus::{End, Path, Start};
use rand::RngExt;
use rand_xoshiro::SplitMix64;
use rustc_hash::FxHashMap;

/// After this many steps, an activation takes the shortest path to an end.
const STEPS: usize = 400;
/// Number of kinds of activation. Each has its own likelihoods for every branch.
const KINDS: u64 = 3;
/// At one in this many back edges, an activation changes its kind.
const CHANGES: u32 = 8;
/// One in this many calls that may not return does not return.
const LEAVES: u32 = 64;
/// Smallest likelihood of a successor slot; the largest is about 1.
const MIN_LIKELIHOOD: f64 = 0.002;
/// In [`Walker::to_end`]: no end is reachable.
const NONE: usize = usize::MAX;

/// Execution counts.
#[derive(Default)]
pub(super) struct Tally {
    pub blocks: Vec<u64>,
    /// By successor slot.
    pub edges: Vec<u64>,
    pub paths: FxHashMap<Path, u64>,
}

/// Generator of random activations of a function.
pub(super) struct Walker<'a> {
    cfg: &'a Cfg,
    graph: &'a PathGraph,
    bases: Vec<u32>,
    /// By block: distance to the nearest block without successors, in edges.
    to_end: Vec<usize>,
    /// By kind and successor slot.
    likelihoods: Vec<Vec<f64>>,
}

impl<'a> Walker<'a> {
    pub fn new(cfg: &'a Cfg, graph: &'a PathGraph, random: &mut SplitMix64) -> Self {
        // Heavy-tailed, so that most branches are biased.
        let likelihood = |random: &mut SplitMix64| random.random::<f64>().powi(4) + MIN_LIKELIHOOD;
        let mut likelihoods = || (0..cfg.edge_count()).map(|_| likelihood(random)).collect();
        Self {
            cfg,
            graph,
            bases: cfg.edge_bases(),
            to_end: distances_to_end(cfg),
            likelihoods: (0..KINDS).map(|_| likelihoods()).collect(),
        }
    }

    /// Adds an activation that occurs `times` times. One that cannot end stops after a back edge, as if it were still
    /// running.
    pub fn walk(&self, random: &mut SplitMix64, times: u64, tally: &mut Tally) {
        let mut kind = random.random_range(0..KINDS);
        let mut path = begin(Start::Entry, BlockIndex::ENTRY);
        let mut resumable = Vec::new();
        tally.blocks[0] += times;
        for step in 0.. {
            let at = path.blocks[path.blocks.len() - 1];
            if self.cfg.blocks[at.index()].successors.is_empty() {
                return tally.end(path, End::Exit, times);
            }
            resumable.extend(self.graph.resumes().iter().map(|r| r.1).filter(|&b| b == at));
            if step < STEPS && self.has(EdgeKind::End(at, End::Call)) && random.random_ratio(1, LEAVES) {
                tally.end(path, End::Call, times);
                let Some(&to) = resumable.last() else { return };
                // The call returns for the second time.
                tally.blocks[to.index()] += times;
                path = begin(Start::Inside, to);
                continue;
            }
            let slot = self.slot(at, step, random, kind);
            let to = self.cfg.blocks[at.index()].successors[slot];
            tally.edges[self.bases[at.index()] as usize + slot] += times;
            tally.blocks[to.index()] += times;
            if self.has(EdgeKind::Flow(at, to)) {
                path.blocks.push(to);
                continue;
            }
            if self.has(EdgeKind::SelfLoop(at)) && at == to {
                // Counted apart; the path goes on as if it had not been taken.
                tally.end(begin(Start::Inside, at), End::Back(at), times);
                continue;
            }
            let cut = self.has(EdgeKind::End(at, End::Cut(to)));
            tally.end(path, if cut { End::Cut(to) } else { End::Back(to) }, times);
            if step >= STEPS && self.to_end[to.index()] == NONE {
                return;
            }
            path = begin(Start::Inside, to);
            if random.random_ratio(1, CHANGES) {
                kind = random.random_range(0..KINDS);
            }
        }
    }

    fn has(&self, kind: EdgeKind) -> bool {
        self.graph.find(kind).is_some()
    }

    /// The successor slot that an activation takes.
    fn slot(&self, at: BlockIndex, step: usize, random: &mut SplitMix64, kind: u64) -> usize {
        let successors = &self.cfg.blocks[at.index()].successors;
        if step >= STEPS && self.to_end[at.index()] != NONE {
            let nearest = (0..successors.len()).min_by_key(|&slot| self.to_end[successors[slot].index()]);
            return nearest.unwrap_or(0);
        }
        let base = self.bases[at.index()] as usize;
        let likelihoods = &self.likelihoods[kind as usize][base..base + successors.len()];
        let mut left = random.random::<f64>() * likelihoods.iter().sum::<f64>();
        let chosen = likelihoods.iter().position(|likelihood| {
            left -= likelihood;
            left < 0.0
        });
        chosen.unwrap_or(successors.len() - 1)
    }
}

impl Tally {
    fn end(&mut self, path: Path, end: End, times: u64) {
        *self.paths.entry(Path { end, ..path }).or_default() += times;
    }
}

fn begin(start: Start, block: BlockIndex) -> Path {
    Path {
        start,
        blocks: vec![block],
        end: End::Exit,
    }
}

fn distances_to_end(cfg: &Cfg) -> Vec<usize> {
    let mut predecessors = vec![Vec::new(); cfg.blocks.len()];
    for (from, block) in cfg.blocks.iter().enumerate() {
        for to in &block.successors {
            predecessors[to.index()].push(from);
        }
    }
    let mut distances = vec![NONE; cfg.blocks.len()];
    let ends = (0..cfg.blocks.len()).filter(|&b| cfg.blocks[b].successors.is_empty());
    let mut queue: Vec<usize> = ends.collect();
    queue.iter().for_each(|&end| distances[end] = 0);
    let mut next = 0;
    while let Some(&at) = queue.get(next) {
        next += 1;
        for &from in &predecessors[at] {
            if distances[from] == NONE {
                distances[from] = distances[at] + 1;
                queue.push(from);
            }
        }
    }
    distances
}
