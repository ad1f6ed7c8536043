//! Graph and evidence → a circulation problem, and its solution → flow.
//!
//! A node for the outside world, and two for every block that can be reached: the arc between them carries the block's
//! count. The outside feeds the entry and takes what exits.

use super::cost::{deviance, linear};
use super::flow::Flow;
use super::graph::{BlockId, EdgeId, Exit, Graph};
use super::observed::Observed;
use super::simplex::{Network, Node, Piece, UNBOUNDED};

/// Costs per sample of what nothing was observed of, in units of deviance. An observed zero costs 1 to contradict.
mod slope {
    /// An ordinary unknown block or edge: even a hundred in a row must not bias the known counts around them.
    pub const UNKNOWN: f64 = 1.0 / 65536.0;
    /// What an unknown edge gains by nearing its even share.
    pub const SHARE: f64 = 1.0 / 4096.0;
    /// An unknown way into exception handling or a trap.
    pub const UNLIKELY: f64 = 0.25;
    /// A call that does not return.
    pub const LEAK: f64 = 8.0;
    /// The end of an endless loop.
    pub const ENDLESS: f64 = 1.0 / 64.0;
}

const OUTSIDE: Node = 0;

/// The circulation problem of one function.
pub(super) struct Problem {
    network: Network,
    /// By block and by edge: its arc; `None` where it cannot be reached (or left, for exits).
    block_arcs: Vec<Option<usize>>,
    edge_arcs: Vec<Option<usize>>,
    exit_arcs: Vec<Option<usize>>,
    entry_arc: Option<usize>,
    solution: Vec<i64>,
}

fn entrance(block: BlockId) -> Node {
    1 + 2 * block as Node
}

fn way_out(block: BlockId) -> Node {
    2 + 2 * block as Node
}

impl Problem {
    /// Sets up and solves the problem. `shares` are what unknown edges would carry if flow spread evenly
    /// ([`super::balance::even_shares`]); none at first.
    pub fn new(graph: &Graph, observed: &Observed, shares: &[Option<i64>]) -> Self {
        let mut problem = Self {
            network: Network::new(1 + 2 * graph.blocks as Node),
            block_arcs: vec![None; graph.blocks],
            edge_arcs: vec![None; graph.edges.len()],
            exit_arcs: vec![None; graph.blocks],
            entry_arc: None,
            solution: Vec::new(),
        };
        let mut pieces = Vec::new();
        problem.add_blocks(graph, observed, &mut pieces);
        problem.add_edges(graph, observed, shares, &mut pieces);
        problem.add_outside(graph, observed, &mut pieces);
        problem.solution = problem.network.solve();
        problem
    }

    fn add(&mut self, tail: Node, head: Node, pieces: &[Piece]) -> Option<usize> {
        self.network.arc(tail, head, pieces);
        Some(self.network.arcs() - 1)
    }

    fn add_blocks(&mut self, graph: &Graph, observed: &Observed, pieces: &mut Vec<Piece>) {
        for block in (0..graph.blocks).filter(|&b| graph.reachable[b]) {
            let unlikely = graph.unlikely[block];
            cost(observed.blocks[block], 1.0, unlikely, observed.units, pieces);
            self.block_arcs[block] = self.add(entrance(block), way_out(block), pieces);
        }
    }

    fn add_edges(&mut self, graph: &Graph, observed: &Observed, shares: &[Option<i64>], pieces: &mut Vec<Piece>) {
        for (id, edge) in graph.edges.iter().enumerate().filter(|(_, e)| graph.reachable[e.from]) {
            let unlikely = graph.unlikely[edge.to] && observed.blocks[edge.to].is_none();
            cost(
                observed.edges[id],
                observed.completeness[edge.from],
                unlikely,
                observed.units,
                pieces,
            );
            if let Some(share) = shares.get(id).copied().flatten() {
                bend(share, pieces);
            }
            self.edge_arcs[id] = self.add(way_out(edge.from), entrance(edge.to), pieces);
        }
    }

    fn add_outside(&mut self, graph: &Graph, observed: &Observed, pieces: &mut Vec<Piece>) {
        for block in (0..graph.blocks).filter(|&b| graph.reachable[b]) {
            let slope = match graph.exits[block] {
                Exit::None => continue,
                Exit::Natural => 0.0,
                Exit::Leak => slope::LEAK,
                Exit::Endless => slope::ENDLESS,
            };
            self.exit_arcs[block] = self.add(way_out(block), OUTSIDE, &[linear(slope)]);
        }
        if graph.blocks > 0 {
            cost(observed.entry, 1.0, false, observed.units, pieces);
            self.entry_arc = self.add(OUTSIDE, entrance(0), pieces);
        }
    }

    /// The likeliest flow.
    pub fn flow(&self, graph: &Graph) -> Flow {
        let flow = |arc: &Option<usize>| arc.map_or(0, |a| self.solution[a]);
        let found = Flow {
            entry: flow(&self.entry_arc),
            edges: self.edge_arcs.iter().map(flow).collect(),
            exits: self.exit_arcs.iter().map(flow).collect(),
        };
        debug_assert!(found.is_consistent(graph));
        found
    }

    /// Cost of a unit more over an edge and through the block it leads to, at the solution.
    pub fn edge_price(&self, graph: &Graph, edge: EdgeId) -> i64 {
        self.price(self.edge_arcs[edge]) + self.price(self.block_arcs[graph.edges[edge].to])
    }

    /// Cost of a unit more that leaves the function in a block; `None` where it cannot.
    pub fn exit_price(&self, block: BlockId) -> Option<i64> {
        self.exit_arcs[block].map(|arc| self.price(Some(arc)))
    }

    fn price(&self, arc: Option<usize>) -> i64 {
        let Some(arc) = arc else { return i64::from(u32::MAX) };
        let flow = self.solution[arc];
        let piece = self.network.pieces(arc).iter().find(|p| flow < p.end);
        // Less than nothing where more flow would suit the evidence: paths are found by Dijkstra's algorithm.
        piece.map_or(0, |p| p.slope.max(0))
    }
}

/// Makes a linear cost favour a flow up to `share` over one beyond it.
fn bend(share: i64, pieces: &mut Vec<Piece>) {
    let (slope, by) = (pieces[0].slope, linear(slope::SHARE).slope);
    pieces.clear();
    pieces.push(Piece { end: share, slope: slope - by });
    pieces.push(Piece { end: UNBOUNDED, slope: slope + by });
}

/// Fills `pieces` with the cost of a count.
fn cost(evidence: Option<f64>, completeness: f64, unlikely: bool, units: f64, pieces: &mut Vec<Piece>) {
    match evidence {
        Some(samples) => deviance(samples, completeness, units, pieces),
        None => {
            pieces.clear();
            pieces.push(linear(if unlikely { slope::UNLIKELY } else { slope::UNKNOWN }));
        }
    }
}
