//! Regions and the paths through them, on which the papers profile (Shye et al., *Code coverage … and path profiling
//! with PMUs*, INTERACT 2005, §3.3; thesis §3.5.3): the baseline beside Ball–Larus paths.
//!
//! A region is a single-entry acyclic piece of a function's graph. The rules:
//! 1. it is entered through its entry only;
//! 2. it does not mix blocks inside and outside of a loop;
//! 3. it has fewer paths from its entry to its exits than a threshold;
//! 4. it has as many blocks as possible: it grows greedily, breadth first, and its exits are the entries of new
//!    regions.
//!
//! Decisions that the papers leave open: an edge back to the entry leaves the region; a loop is a strongly connected
//! component without the heads of those around it, so that irreducible loops are loops; unreachable blocks are in no
//! region. A region also begins wherever a Ball–Larus path may begin inside the function, so that every Ball–Larus path
//! is a sequence of whole ways through regions. (Targets of back edges begin regions by the rules alone; those of cut
//! edges and second returns do not.)
//!
//! A region path is named by its blocks, as in the papers' table 3.1: how control goes on after its last block, and
//! whether by one or another of several edges, does not matter. It ends in a block from which an edge leaves the
//! region, or which leaves the function. What ends early in a call that does not come back is no path of the region,
//! but an execution all the same: it is kept under the blocks that it passed.
//!
//! The phases, one a file: the graph (`flow`), loops (`loops`), formation (`form`), splitting ([`split`]), and the
//! profile ([`profile`]). The experiments of the papers with regions are in `testsuite/papers`.

mod flow;
mod form;
mod loops;
pub mod profile;
pub mod split;

use flow::Flow;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_ball_larus::NumberingOptions;
use pleach_ball_larus::graph::PathGraph;

/// The default threshold T: a region has fewer paths. The papers give no number.
pub const DEFAULT_THRESHOLD: u64 = 1000;

/// A region's position in [`Regions::all`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RegionIndex(pub u32);

impl RegionIndex {
    /// As an index into a slice of regions.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// `R_BODY`: the entry first, each block after all others of the region that lead to it.
    pub body: Vec<BlockIndex>,
    /// `R_EXIT`: the blocks that edges out of the region lead to; the entry, if one leads back to it.
    pub exits: Vec<BlockIndex>,
    /// The number of paths through it.
    pub paths: u64,
}

impl Region {
    /// `R_ENTRY`.
    pub fn entry(&self) -> BlockIndex {
        self.body[0]
    }
}

/// The regions of a function.
#[derive(Clone, Debug)]
pub struct Regions {
    /// The function.
    pub id: FunctionId,
    /// The graph that the blocks are of.
    pub cfg_hash: CfgHash,
    flow: Flow,
    /// By block: IR instructions.
    instructions: Vec<u32>,
    all: Vec<Region>,
    /// By block.
    region_of: Vec<Option<RegionIndex>>,
}

impl Regions {
    /// The regions of a function, each with fewer than `threshold` paths (at least one, whatever the threshold).
    ///
    /// They begin where the paths begin that [`pleach_ball_larus`] numbers with its default options.
    pub fn new(cfg: &Cfg, threshold: u64) -> Self {
        let flow = Flow::new(cfg, &PathGraph::new(cfg, &NumberingOptions::default()));
        let (all, region_of) = form::form(&flow, threshold);
        Self {
            id: cfg.id,
            cfg_hash: cfg.hash(),
            flow,
            instructions: cfg.blocks.iter().map(|block| block.instructions).collect(),
            all,
            region_of,
        }
    }

    /// All regions. A region's position is its [`RegionIndex`].
    pub fn all(&self) -> &[Region] {
        &self.all
    }

    /// The region that a block is in; `None` for blocks that cannot be reached.
    pub fn region_of(&self, block: BlockIndex) -> Option<RegionIndex> {
        self.region_of.get(block.index()).copied().flatten()
    }

    /// The blocks that edges from a block lead to, each once.
    pub fn successors(&self, block: BlockIndex) -> &[BlockIndex] {
        self.flow.successors.get(block.index()).map_or(&[], Vec::as_slice)
    }

    /// The blocks from which edges lead to a block.
    pub fn predecessors(&self, block: BlockIndex) -> &[BlockIndex] {
        self.flow.predecessors.get(block.index()).map_or(&[], Vec::as_slice)
    }

    /// Whether a Ball–Larus path may begin in a block.
    pub fn may_begin(&self, block: BlockIndex) -> bool {
        self.flow.begins.get(block.index()).is_some_and(|&begins| begins)
    }

    /// Whether control may leave the function by one of a block's calls.
    pub fn may_end_in_call(&self, block: BlockIndex) -> bool {
        self.flow.leaves.get(block.index()).is_some_and(|&leaves| leaves)
    }

    /// Whether an edge closes a cycle.
    pub fn is_back(&self, from: BlockIndex, to: BlockIndex) -> bool {
        self.flow.is_back(from, to)
    }

    /// IR instructions of a block.
    pub fn instructions(&self, block: BlockIndex) -> u32 {
        self.instructions.get(block.index()).copied().unwrap_or(0)
    }

    /// Whether an edge leads from one block to another.
    pub fn is_edge(&self, from: BlockIndex, to: BlockIndex) -> bool {
        self.successors(from).contains(&to)
    }

    /// Whether control that goes from one block to another leaves the first one's region, be it to enter it again.
    pub fn crosses(&self, from: BlockIndex, to: BlockIndex) -> bool {
        let region = self.region_of(to);
        region != self.region_of(from) || region.is_some_and(|r| self.all[r.index()].entry() == to)
    }
}
