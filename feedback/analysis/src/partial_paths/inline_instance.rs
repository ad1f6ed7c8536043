//! The blocks that one inline instance of a function shows, and the block sequences between them.
//!
//! A *block sequence* leads from one observed block to the next; it lacks the first.

use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::graph::{EdgeKind, PathGraph};
use pleach_ball_larus::{End, NumberingOptions};
use rustc_hash::FxHashMap;

/// Maximum number of hypotheses, and of sequences between two observed blocks.
pub(super) const MAX_HYPOTHESES: usize = 16;
/// Maximum number of steps of one search for sequences.
const MAX_SEARCH_STEPS: usize = 2048;

/// A function's graph, prepared for walking.
#[derive(Debug)]
pub struct Graph {
    /// The graph whose paths are counted.
    pub paths: PathGraph,
    /// By block: its distinct successors.
    successors: Vec<Vec<BlockIndex>>,
    /// By edge, where a path ends at it: how the path ends.
    ends: FxHashMap<(BlockIndex, BlockIndex), End>,
    /// By block: whether it holds a call that may not return.
    leaves: Vec<bool>,
}

impl Graph {
    /// Prepares a function's graph.
    pub fn new(cfg: &Cfg, options: &NumberingOptions) -> Self {
        let paths = PathGraph::new(cfg, options);
        let mut ends = FxHashMap::default();
        let mut leaves = vec![false; cfg.blocks.len()];
        for &edge in paths.edges() {
            match edge {
                EdgeKind::End(from, end @ (End::Back(to) | End::Cut(to))) => {
                    ends.insert((from, to), end);
                }
                EdgeKind::SelfLoop(block) => {
                    ends.insert((block, block), End::Back(block));
                }
                EdgeKind::End(from, End::Call) => leaves[from.index()] = true,
                _ => {}
            }
        }
        let distinct = |slots: &[BlockIndex]| {
            let mut to: Vec<BlockIndex> = Vec::with_capacity(slots.len());
            slots.iter().for_each(|&s| {
                if !to.contains(&s) {
                    to.push(s);
                }
            });
            to
        };
        Self {
            successors: cfg.blocks.iter().map(|b| distinct(&b.successors)).collect(),
            ends,
            leaves,
            paths,
        }
    }

    /// The distinct successors of a block.
    pub fn successors(&self, block: BlockIndex) -> &[BlockIndex] {
        &self.successors[block.index()]
    }

    /// How a path that takes this edge ends; `None` if it continues.
    pub fn end_at(&self, from: BlockIndex, to: BlockIndex) -> Option<End> {
        self.ends.get(&(from, to)).copied()
    }

    /// Whether the edge is a self loop with a counter of its own. The path around it continues as if the edge was not
    /// taken.
    pub fn is_counted_self_loop(&self, from: BlockIndex, to: BlockIndex) -> bool {
        from == to && self.paths.find(EdgeKind::SelfLoop(from)).is_some()
    }

    /// Whether a path may end in a call of this block.
    pub fn may_end_in_call(&self, block: BlockIndex) -> bool {
        self.leaves[block.index()]
    }
}

/// Which blocks of one inline instance are unprobed.
#[derive(Clone, Debug)]
pub struct InstanceBlocks {
    /// By block: whether control may pass it unobserved.
    unprobed: Vec<bool>,
}

impl InstanceBlocks {
    /// An inline instance with `blocks` blocks, of which those in `shown` have code.
    pub fn new(blocks: usize, shown: impl Iterator<Item = BlockIndex>) -> Self {
        let mut unprobed = vec![true; blocks];
        shown.for_each(|block| unprobed[block.index()] = false);
        Self { unprobed }
    }

    /// Whether control may pass a block unobserved.
    pub fn is_unprobed(&self, block: BlockIndex) -> bool {
        self.unprobed[block.index()]
    }

    /// Marks a block as unprobed. Returns whether it was not marked before.
    pub fn mark_unprobed(&mut self, block: BlockIndex) -> bool {
        !std::mem::replace(&mut self.unprobed[block.index()], true)
    }

    /// The sequences from a block, or from the function's entry if `from` is `None`, to the last block of `group`:
    /// through unprobed blocks, then through some of the group.
    ///
    /// A group holds the blocks at one address. Control that reaches the address may have passed any of them, and has
    /// reached the last.
    ///
    /// `None` if there are more than 16.
    pub fn sequences_to(
        &self,
        graph: &Graph,
        from: Option<BlockIndex>,
        group: &[BlockIndex],
    ) -> Option<Vec<Vec<BlockIndex>>> {
        let mut search = SequenceSearch {
            instance: self,
            graph,
            group,
            sequence: Vec::new(),
            found: Vec::new(),
            budget: MAX_SEARCH_STEPS,
        };
        match from {
            Some(from) => search.from(from, 0),
            None => search.visit(BlockIndex::ENTRY, 0),
        }
        (search.found.len() <= MAX_HYPOTHESES && search.budget > 0).then_some(search.found)
    }

    /// The sequences of unprobed blocks from a block to the function's exits, and how each ends. `None` if there are
    /// more than 16.
    pub fn sequences_out(&self, graph: &Graph, from: BlockIndex) -> Option<Vec<(Vec<BlockIndex>, End)>> {
        let mut out = Vec::new();
        let mut budget = MAX_SEARCH_STEPS;
        self.search_out(graph, from, &mut Vec::new(), &mut out, &mut budget);
        (out.len() <= MAX_HYPOTHESES && budget > 0).then_some(out)
    }

    fn search_out(
        &self,
        graph: &Graph,
        from: BlockIndex,
        sequence: &mut Vec<BlockIndex>,
        out: &mut Vec<(Vec<BlockIndex>, End)>,
        budget: &mut usize,
    ) {
        if graph.successors(from).is_empty() {
            out.push((sequence.clone(), End::Exit));
            return;
        }
        for &next in graph.successors(from) {
            if *budget == 0 || out.len() > MAX_HYPOTHESES {
                return;
            }
            *budget -= 1;
            if self.is_unprobed(next) && !sequence.contains(&next) && graph.end_at(from, next).is_none() {
                sequence.push(next);
                self.search_out(graph, next, sequence, out, budget);
                sequence.pop();
            }
        }
    }

    /// The shortest sequence from any block of `from` to another block through any blocks, without both ends.
    pub fn shortest_sequence(&self, graph: &Graph, from: &[BlockIndex], to: BlockIndex) -> Option<Vec<BlockIndex>> {
        let mut before: FxHashMap<BlockIndex, Option<BlockIndex>> = from.iter().map(|&b| (b, None)).collect();
        let mut queue: std::collections::VecDeque<BlockIndex> = from.iter().copied().collect();
        while let Some(block) = queue.pop_front() {
            for &next in graph.successors(block) {
                if next == to {
                    let mut sequence = Vec::new();
                    let mut at = Some(block);
                    while let Some(block) = at {
                        at = before[&block];
                        if at.is_some() {
                            sequence.push(block);
                        }
                    }
                    sequence.reverse();
                    return Some(sequence);
                }
                before.entry(next).or_insert_with(|| {
                    queue.push_back(next);
                    Some(block)
                });
            }
        }
        None
    }
}

struct SequenceSearch<'a> {
    instance: &'a InstanceBlocks,
    graph: &'a Graph,
    group: &'a [BlockIndex],
    sequence: Vec<BlockIndex>,
    found: Vec<Vec<BlockIndex>>,
    budget: usize,
}

impl SequenceSearch<'_> {
    /// Continues from a block; the first `passed` blocks of the group cannot follow.
    fn from(&mut self, block: BlockIndex, passed: usize) {
        let graph = self.graph;
        for &next in graph.successors(block) {
            self.visit(next, passed);
        }
    }

    fn visit(&mut self, next: BlockIndex, passed: usize) {
        if self.found.len() > MAX_HYPOTHESES || self.budget == 0 || self.sequence.contains(&next) {
            return;
        }
        self.budget -= 1;
        let position = self.group[passed..].iter().position(|&b| b == next);
        if position.is_none() && !self.instance.is_unprobed(next) {
            return;
        }
        self.sequence.push(next);
        match position.map(|p| passed + p + 1) {
            Some(passed) if passed == self.group.len() => self.found.push(self.sequence.clone()),
            Some(passed) => self.from(next, passed),
            None => self.from(next, passed),
        }
        self.sequence.pop();
    }
}
