//! The graph whose paths from ENTRY to EXIT are counted (§2.1 and §4 of the paper): the function's edges, those of them
//! that a path ends at replaced by dummy edges, and the edges that stand for beginnings and ends.

use super::numbering::{self, Fate, Numbering};
use super::{End, Mode, Options, Start, may_not_return, returns_twice};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, CallIndex};
use std::ops::Range;

/// An edge's position in [`PathGraph::edges`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EdgeIndex(pub u32);

impl EdgeIndex {
    /// As an index into a slice of edges.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an edge stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EdgeKind {
    /// From ENTRY: a path begins at this block.
    Start(Start, BlockIndex),
    /// An edge of the function; several successor slots of a block that name the same target are one.
    Flow(BlockIndex, BlockIndex),
    /// To EXIT: a path ends in this block.
    End(BlockIndex, End),
    /// An edge from a block to itself. It is not part of the acyclic graph and has a counter of its own; the path that
    /// takes it goes on as if it had not.
    SelfLoop(BlockIndex),
}

/// A block, ENTRY or EXIT.
pub(crate) type Vertex = usize;

/// The graph of a function, with numbers for its paths when paths are counted.
///
/// Only blocks that can be reached from the entry are in it. When edges are counted, back edges and self loops are
/// [`EdgeKind::Flow`], so that the graph has cycles and [`PathGraph::paths`] is 0. A region without a way out then has
/// one [`End::Exit`] in a block that has successors: it stands for activations that never end.
#[derive(Clone, Debug)]
pub struct PathGraph {
    /// ENTRY's edges, each block's edges, self loops.
    edges: Vec<EdgeKind>,
    /// Where each block's edges begin, and one past the last block's.
    edges_at: Vec<usize>,
    /// All edges in the order of what they stand for.
    sorted: Vec<u32>,
    reachable: Vec<bool>,
    /// Reachable blocks, each before those that an acyclic path may pass after it.
    topological: Vec<BlockIndex>,
    resumes: Vec<(CallIndex, BlockIndex)>,
    numbering: Numbering,
}

impl PathGraph {
    /// The graph of a function, cut and numbered.
    ///
    /// A limit on paths so large that N might not fit in 61 bits is lowered until it does.
    pub fn new(cfg: &Cfg, options: &Options) -> Self {
        let blocks = cfg.blocks.len();
        let search = Search::new(cfg);
        let mut leaves = vec![false; blocks];
        let mut resumes = Vec::new();
        for (call, content) in cfg.calls.iter().enumerate() {
            if !search.reaches(content.block.index()) {
                continue;
            }
            leaves[content.block.index()] |= may_not_return(content);
            if returns_twice(content) {
                resumes.push((CallIndex(call as u32), content.block));
            }
        }
        let fates = numbering::fates(&search, options, &leaves);
        let mut graph = Self {
            edges: Vec::with_capacity(search.arcs.len() + 2),
            edges_at: Vec::with_capacity(blocks + 1),
            sorted: Vec::new(),
            topological: search.postorder.iter().rev().map(|&b| block(b)).collect(),
            reachable: (0..blocks).map(|b| search.reaches(b)).collect(),
            resumes,
            numbering: Numbering::default(),
        };
        graph.add_starts(&search, &fates);
        graph.add_blocks(&search, &fates, &leaves, options.mode);
        graph.sorted = (0..graph.edges.len() as u32).collect();
        graph.sorted.sort_unstable_by_key(|&edge| graph.edges[edge as usize]);
        graph.numbering = Numbering::new(&graph, &search, options.mode);
        graph
    }

    /// All edges. An edge's position is its [`EdgeIndex`].
    pub fn edges(&self) -> &[EdgeKind] {
        &self.edges
    }

    /// How many paths there are: N in the paper. 0 when edges are counted.
    pub fn paths(&self) -> u64 {
        self.numbering.paths
    }

    /// How many numbers there are: N, and one for each self loop; the i-th of them has number N + i.
    pub fn numbers(&self) -> u64 {
        self.numbering.paths + (self.edges.len() - self.acyclic()) as u64
    }

    /// How many paths lead from a block to EXIT: `NumPaths` in the paper. 0 for unreachable blocks.
    pub fn paths_from(&self, block: BlockIndex) -> u64 {
        self.numbering.paths_from.get(block.index()).copied().unwrap_or(0)
    }

    /// Whether any execution of the function could get to a block, as far as its edges tell.
    pub fn is_reachable(&self, block: BlockIndex) -> bool {
        self.reachable.get(block.index()).is_some_and(|&r| r)
    }

    /// How many blocks the function has, reachable or not.
    pub fn blocks(&self) -> usize {
        self.reachable.len()
    }

    /// The reachable blocks, each before those that an acyclic path may pass after it.
    pub fn topological(&self) -> &[BlockIndex] {
        &self.topological
    }

    /// The edge that stands for this, if the graph has one.
    pub fn find(&self, kind: EdgeKind) -> Option<EdgeIndex> {
        let position = self
            .sorted
            .binary_search_by_key(&kind, |&edge| self.edges[edge as usize]);
        position.ok().map(|p| EdgeIndex(self.sorted[p]))
    }

    /// What an edge adds to a path's number: `Val` in the paper.
    pub fn value(&self, edge: EdgeIndex) -> u64 {
        self.numbering.values.get(edge.index()).copied().unwrap_or(0)
    }

    /// The calls that may return a second time, and their blocks.
    pub fn resumes(&self) -> &[(CallIndex, BlockIndex)] {
        &self.resumes
    }

    pub(super) fn entry(&self) -> Vertex {
        self.blocks()
    }

    pub(super) fn exit(&self) -> Vertex {
        self.blocks() + 1
    }

    /// How many vertices there are, those of unreachable blocks included.
    pub(super) fn vertices(&self) -> usize {
        self.blocks() + 2
    }

    /// How many edges there are without self loops, which come last.
    pub fn acyclic(&self) -> usize {
        self.edges_at.last().copied().unwrap_or(0)
    }

    /// The edges that leave a vertex.
    pub fn out(&self, vertex: Vertex) -> Range<usize> {
        match vertex {
            v if v < self.blocks() => self.edges_at[v]..self.edges_at[v + 1],
            v if v == self.entry() => 0..self.edges_at.first().copied().unwrap_or(0),
            _ => 0..0,
        }
    }

    /// The edges that leave a vertex, by increasing value: the first has 0.
    pub(super) fn by_value(&self, vertex: Vertex) -> &[u32] {
        &self.numbering.order[self.out(vertex)]
    }

    pub(super) fn source(&self, edge: usize) -> Vertex {
        match self.edges[edge] {
            EdgeKind::Start(..) => self.entry(),
            EdgeKind::Flow(block, _) | EdgeKind::End(block, _) | EdgeKind::SelfLoop(block) => block.index(),
        }
    }

    /// The vertex that an edge leads to.
    pub fn target(&self, edge: usize) -> Vertex {
        match self.edges[edge] {
            EdgeKind::Start(_, block) | EdgeKind::Flow(_, block) | EdgeKind::SelfLoop(block) => block.index(),
            EdgeKind::End(..) => self.exit(),
        }
    }

    fn add_starts(&mut self, search: &Search, fates: &[Fate]) {
        if self.blocks() == 0 {
            self.edges_at.push(0);
            return;
        }
        let mut inside = vec![false; self.blocks()];
        for (_, block) in &self.resumes {
            inside[block.index()] = true;
        }
        for (arc, fate) in search.arcs.iter().zip(fates) {
            inside[arc.to] |= matches!(fate, Fate::Back | Fate::Cut);
        }
        self.edges.push(EdgeKind::Start(Start::Entry, BlockIndex::ENTRY));
        let inside = (0..inside.len()).filter(|&b| inside[b]);
        self.edges
            .extend(inside.map(|b| EdgeKind::Start(Start::Inside, block(b))));
    }

    fn add_blocks(&mut self, search: &Search, fates: &[Fate], leaves: &[bool], mode: Mode) {
        let endless = match mode {
            Mode::Paths => vec![false; self.blocks()],
            Mode::Edges => search.endless(leaves),
        };
        let mut loops = Vec::new();
        for from in 0..self.blocks() {
            self.edges_at.push(self.edges.len());
            if !search.reaches(from) {
                continue;
            }
            for arc in search.out(from) {
                let (this, to) = (block(from), block(search.arcs[arc].to));
                match fates[arc] {
                    Fate::Flow => self.edges.push(EdgeKind::Flow(this, to)),
                    Fate::Back => self.edges.push(EdgeKind::End(this, End::Back(to))),
                    Fate::Cut => self.edges.push(EdgeKind::End(this, End::Cut(to))),
                    Fate::Alone => loops.push(EdgeKind::SelfLoop(this)),
                    Fate::Unreachable => {}
                }
            }
            if search.out(from).is_empty() || endless[from] {
                self.edges.push(EdgeKind::End(block(from), End::Exit));
            } else if leaves[from] {
                self.edges.push(EdgeKind::End(block(from), End::Call));
            }
        }
        if self.blocks() != 0 {
            self.edges_at.push(self.edges.len());
        }
        self.edges.append(&mut loops);
    }
}

fn block(index: usize) -> BlockIndex {
    BlockIndex(index as u32)
}

/// All successor slots of a block that name the same target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arc {
    pub to: usize,
    /// How many slots it merges.
    pub slots: u32,
    /// The depth-first search found its target among the blocks it was still in.
    pub back: bool,
}

/// A function's merged edges, and a depth-first search along them from the entry, in the order of successors.
#[derive(Debug)]
pub(super) struct Search {
    /// By origin. Targets that do not exist are left out.
    pub arcs: Vec<Arc>,
    arcs_at: Vec<usize>,
    /// Reachable blocks in the order in which the search enters them.
    pub preorder: Vec<usize>,
    /// Reachable blocks in the order in which the search leaves them: without back edges, a reverse topological order.
    pub postorder: Vec<usize>,
    /// By block: how many blocks were entered before it.
    pub entered: Vec<usize>,
    /// By block: how many blocks were entered before the search left it.
    pub left: Vec<usize>,
}

/// In [`Search::entered`] and [`Search::left`]: not yet.
const NEVER: usize = usize::MAX;

impl Search {
    pub fn new(cfg: &Cfg) -> Self {
        let blocks = cfg.blocks.len();
        let mut search = Self {
            arcs: Vec::with_capacity(cfg.edge_count()),
            arcs_at: Vec::with_capacity(blocks + 1),
            preorder: Vec::with_capacity(blocks),
            postorder: Vec::with_capacity(blocks),
            entered: vec![NEVER; blocks],
            left: vec![NEVER; blocks],
        };
        search.merge_slots(cfg);
        if blocks != 0 {
            search.run();
        }
        search
    }

    pub fn out(&self, block: usize) -> Range<usize> {
        self.arcs_at[block]..self.arcs_at[block + 1]
    }

    pub fn reaches(&self, block: usize) -> bool {
        self.entered.get(block).is_some_and(|&e| e != NEVER)
    }

    fn merge_slots(&mut self, cfg: &Cfg) {
        // By target: one past the edge that the current block already has to it.
        let mut arc_to = vec![0; cfg.blocks.len()];
        for content in &cfg.blocks {
            let first = self.arcs.len();
            self.arcs_at.push(first);
            for successor in &content.successors {
                let to = successor.index();
                let Some(known) = arc_to.get_mut(to) else { continue };
                if *known <= first {
                    let (slots, back) = (0, false);
                    self.arcs.push(Arc { to, slots, back });
                    *known = self.arcs.len();
                }
                self.arcs[*known - 1].slots += 1;
            }
        }
        self.arcs_at.push(self.arcs.len());
    }

    fn run(&mut self) {
        let mut stack = Vec::new();
        self.enter(0, &mut stack);
        while let Some((block, next)) = stack.last_mut() {
            let (block, arc) = (*block, *next);
            if arc == self.arcs_at[block + 1] {
                self.left[block] = self.preorder.len();
                self.postorder.push(block);
                stack.pop();
                continue;
            }
            *next += 1;
            let to = self.arcs[arc].to;
            if self.entered[to] == NEVER {
                self.enter(to, &mut stack);
            } else {
                self.arcs[arc].back = self.left[to] == NEVER;
            }
        }
    }

    fn enter(&mut self, block: usize, stack: &mut Vec<(usize, usize)>) {
        self.entered[block] = self.preorder.len();
        self.preorder.push(block);
        stack.push((block, self.arcs_at[block]));
    }

    /// The origins of reachable blocks' incoming edges, by target, and where each block's begin in that list.
    pub fn incoming(&self, wanted: impl Fn(&Arc) -> bool) -> (Vec<usize>, Vec<usize>) {
        let wanted = |&arc: &usize| wanted(&self.arcs[arc]);
        let mut at = vec![0; self.entered.len() + 1];
        for &from in &self.postorder {
            for arc in self.out(from).filter(wanted) {
                at[self.arcs[arc].to + 1] += 1;
            }
        }
        for block in 1..at.len() {
            at[block] += at[block - 1];
        }
        let mut next = at.clone();
        let mut origins = vec![0; at[at.len() - 1]];
        for &from in &self.postorder {
            for arc in self.out(from).filter(wanted) {
                let slot = &mut next[self.arcs[arc].to];
                origins[*slot] = from;
                *slot += 1;
            }
        }
        (origins, at)
    }

    /// Blocks that, if they led to EXIT, would let every reachable block reach it.
    fn endless(&self, leaves: &[bool]) -> Vec<bool> {
        let (origins, at) = self.incoming(|_| true);
        let mut ends = vec![false; leaves.len()];
        let mut stack = Vec::new();
        let mut mark = |block: usize, ends: &mut [bool]| {
            ends[block] = true;
            stack.push(block);
            while let Some(block) = stack.pop() {
                for &origin in &origins[at[block]..at[block + 1]] {
                    if !std::mem::replace(&mut ends[origin], true) {
                        stack.push(origin);
                    }
                }
            }
        };
        for &block in &self.postorder {
            if !ends[block] && (leaves[block] || self.out(block).is_empty()) {
                mark(block, &mut ends);
            }
        }
        let mut endless = vec![false; leaves.len()];
        for &block in &self.postorder {
            if !ends[block] {
                endless[block] = true;
                mark(block, &mut ends);
            }
        }
        endless
    }
}
