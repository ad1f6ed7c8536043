//! A function's reachable blocks and merged edges.

use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::graph::{EdgeKind, PathGraph};
use pleach_ball_larus::{End, Start, may_not_return};

/// A function's graph, successor slots of one target merged. Only reachable blocks have edges.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub successors: Vec<Vec<BlockIndex>>,
    pub predecessors: Vec<Vec<BlockIndex>>,
    /// By block: an activation may begin or go on there other than along a forward edge, so Ball–Larus paths begin
    /// there.
    pub begins: Vec<bool>,
    /// By block: control may leave the function by one of its calls.
    pub leaves: Vec<bool>,
    /// Edges that close a cycle, in order.
    back: Vec<(BlockIndex, BlockIndex)>,
}

impl Flow {
    pub fn new(cfg: &Cfg, graph: &PathGraph) -> Self {
        let blocks = cfg.blocks.len();
        let mut flow = Self {
            successors: vec![Vec::new(); blocks],
            predecessors: vec![Vec::new(); blocks],
            begins: vec![false; blocks],
            leaves: vec![false; blocks],
            back: Vec::new(),
        };
        for &edge in graph.edges() {
            let (from, to, closes) = match edge {
                EdgeKind::Start(Start::Entry | Start::Inside, block) => {
                    flow.begins[block.index()] = true;
                    continue;
                }
                EdgeKind::End(_, End::Exit | End::Call) => continue,
                EdgeKind::Flow(from, to) | EdgeKind::End(from, End::Cut(to)) => (from, to, false),
                EdgeKind::End(from, End::Back(to)) => (from, to, true),
                EdgeKind::SelfLoop(block) => (block, block, true),
            };
            flow.successors[from.index()].push(to);
            flow.predecessors[to.index()].push(from);
            if closes {
                flow.back.push((from, to));
            }
        }
        for call in cfg.calls.iter().filter(|call| may_not_return(call)) {
            if let Some(leaves) = flow.leaves.get_mut(call.block.index()) {
                *leaves = true;
            }
        }
        flow.back.sort_unstable();
        flow
    }

    pub fn is_back(&self, from: BlockIndex, to: BlockIndex) -> bool {
        self.back.binary_search(&(from, to)).is_ok()
    }
}
