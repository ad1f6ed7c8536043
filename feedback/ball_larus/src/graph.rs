//! The graph whose paths from ENTRY to EXIT are counted (§2.1 and §4 of the paper). It has the function's edges, dummy
//! edges in place of those at which a path ends, and an edge for each beginning and end of a path.

use super::calls::{may_not_return, returns_twice};
use super::data::{End, Mode, NumberingOptions, Start};
use super::numbering::{self, AcyclicEdges, EdgeRole, Numbering, Vertex};
use super::search::DepthFirstSearch;
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

/// What an edge of the graph represents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EdgeKind {
    /// From ENTRY: a path begins at this block.
    Start(Start, BlockIndex),
    /// An edge of the function. Successor slots of a block with the same target are one edge.
    Flow(BlockIndex, BlockIndex),
    /// To EXIT: a path ends in this block.
    End(BlockIndex, End),
    /// An edge from a block to itself. It is not part of the acyclic graph but has a counter of its own. A path that
    /// takes it continues as if it had not.
    SelfLoop(BlockIndex),
}

/// The graph of a function, with path numbers when paths are counted.
///
/// It has only blocks that are reachable from the entry. When edges are counted, back edges and self loops are
/// [`EdgeKind::Flow`], so the graph has cycles and [`PathGraph::paths`] is 0. A region that control cannot leave then
/// has one [`End::Exit`] in a block with successors, which represents activations that never end.
#[derive(Clone, Debug)]
pub struct PathGraph {
    /// ENTRY's edges, each block's edges, self loops.
    edges: Vec<EdgeKind>,
    /// By block: the position of its first edge; then one past the last block's edges.
    edges_at: Vec<usize>,
    /// Positions of all edges, sorted by kind.
    sorted: Vec<u32>,
    reachable: Vec<bool>,
    /// Reachable blocks in topological order of the acyclic graph.
    topological: Vec<BlockIndex>,
    resumes: Vec<(CallIndex, BlockIndex)>,
    numbering: Numbering,
}

impl PathGraph {
    /// Builds the graph of a function, cuts it and numbers its paths.
    ///
    /// [`NumberingOptions::max_paths`] is lowered if N might otherwise exceed 61 bits.
    pub fn new(cfg: &Cfg, options: &NumberingOptions) -> Self {
        let blocks = cfg.blocks.len();
        let search = DepthFirstSearch::new(cfg);
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
        let roles = numbering::edge_roles(&search, options, &leaves);
        let mut graph = Self {
            edges: Vec::with_capacity(search.edges.len() + 2),
            edges_at: Vec::with_capacity(blocks + 1),
            sorted: Vec::new(),
            topological: search.postorder.iter().rev().map(|&b| block(b)).collect(),
            reachable: (0..blocks).map(|b| search.reaches(b)).collect(),
            resumes,
            numbering: Numbering::default(),
        };
        graph.add_starts(&search, &roles);
        graph.add_blocks(&search, &roles, &leaves, options.mode);
        graph.sorted = (0..graph.edges.len() as u32).collect();
        graph.sorted.sort_unstable_by_key(|&edge| graph.edges[edge as usize]);
        graph.numbering = graph.number(&search, options.mode);
        graph
    }

    fn number(&self, search: &DepthFirstSearch, mode: Mode) -> Numbering {
        let acyclic = AcyclicEdges {
            postorder: &search.postorder,
            blocks: self.blocks(),
            entry: self.entry(),
            targets: (0..self.acyclic()).map(|edge| self.target(edge)).collect(),
        };
        Numbering::new(&acyclic, |vertex| self.out(vertex), mode)
    }

    /// All edges. An edge's position is its [`EdgeIndex`].
    pub fn edges(&self) -> &[EdgeKind] {
        &self.edges
    }

    /// Number of paths: N in the paper. 0 when edges are counted.
    pub fn paths(&self) -> u64 {
        self.numbering.paths
    }

    /// Number of path numbers: N, and one for each self loop. The i-th self loop has number N + i.
    pub fn numbers(&self) -> u64 {
        self.numbering.paths + (self.edges.len() - self.acyclic()) as u64
    }

    /// Number of paths from a block to EXIT: `NumPaths` in the paper. 0 for unreachable blocks.
    pub fn paths_from(&self, block: BlockIndex) -> u64 {
        self.numbering.paths_from.get(block.index()).copied().unwrap_or(0)
    }

    /// Whether a block is reachable from the entry.
    pub fn is_reachable(&self, block: BlockIndex) -> bool {
        self.reachable.get(block.index()).is_some_and(|&r| r)
    }

    /// Number of blocks of the function, unreachable ones included.
    pub fn blocks(&self) -> usize {
        self.reachable.len()
    }

    /// The reachable blocks in topological order of the acyclic graph.
    pub fn topological(&self) -> &[BlockIndex] {
        &self.topological
    }

    /// The edge of this kind, if the graph has it.
    pub fn find(&self, kind: EdgeKind) -> Option<EdgeIndex> {
        let position = self
            .sorted
            .binary_search_by_key(&kind, |&edge| self.edges[edge as usize]);
        position.ok().map(|p| EdgeIndex(self.sorted[p]))
    }

    /// The value that an edge adds to a path's number: `Val` in the paper.
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

    /// Number of vertices, unreachable blocks included.
    pub(super) fn vertices(&self) -> usize {
        self.blocks() + 2
    }

    /// Number of edges that are not self loops. Self loops come last.
    pub fn acyclic(&self) -> usize {
        self.edges_at.last().copied().unwrap_or(0)
    }

    /// Positions of the edges that leave a vertex.
    pub fn out(&self, vertex: Vertex) -> Range<usize> {
        match vertex {
            v if v < self.blocks() => self.edges_at[v]..self.edges_at[v + 1],
            v if v == self.entry() => 0..self.edges_at.first().copied().unwrap_or(0),
            _ => 0..0,
        }
    }

    /// The edges that leave a vertex, by increasing value. The first edge's value is 0.
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

    fn add_starts(&mut self, search: &DepthFirstSearch, roles: &[EdgeRole]) {
        if self.blocks() == 0 {
            self.edges_at.push(0);
            return;
        }
        let mut inside = vec![false; self.blocks()];
        for (_, block) in &self.resumes {
            inside[block.index()] = true;
        }
        for (merged, role) in search.edges.iter().zip(roles) {
            inside[merged.to] |= matches!(role, EdgeRole::Back | EdgeRole::Cut);
        }
        self.edges.push(EdgeKind::Start(Start::Entry, BlockIndex::ENTRY));
        let inside = (0..inside.len()).filter(|&b| inside[b]);
        self.edges
            .extend(inside.map(|b| EdgeKind::Start(Start::Inside, block(b))));
    }

    fn add_blocks(&mut self, search: &DepthFirstSearch, roles: &[EdgeRole], leaves: &[bool], mode: Mode) {
        let endless = match mode {
            Mode::Paths => vec![false; self.blocks()],
            Mode::Edges => search.endless_blocks(leaves),
        };
        let mut loops = Vec::new();
        for from in 0..self.blocks() {
            self.edges_at.push(self.edges.len());
            if !search.reaches(from) {
                continue;
            }
            for merged in search.out(from) {
                let (this, to) = (block(from), block(search.edges[merged].to));
                match roles[merged] {
                    EdgeRole::Flow => self.edges.push(EdgeKind::Flow(this, to)),
                    EdgeRole::Back => self.edges.push(EdgeKind::End(this, End::Back(to))),
                    EdgeRole::Cut => self.edges.push(EdgeKind::End(this, End::Cut(to))),
                    EdgeRole::SelfLoop => loops.push(EdgeKind::SelfLoop(this)),
                    EdgeRole::Unreachable => {}
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
