//! Graph and evidence → a circulation problem, and its solution → flow.
//!
//! A node for the outside world, and two for every block that can be reached: the arc between them carries the block's
//! count. The outside feeds the entry and takes what exits.

use super::cost::{deviance, linear};
use super::flow::Flow;
use super::graph::{BlockId, Edge, EdgeId, Exit, Graph};
use super::observed::Observed;
use super::simplex::{LinearPiece, Network, Node, Solution, UNBOUNDED};

/// Costs per sample of what nothing was observed of, in units of deviance. An observed zero costs 1 to contradict.
mod slope {
    /// An ordinary unknown block or edge: even a hundred in a row must not bias the known counts around them.
    pub const UNKNOWN: f64 = 1.0 / 65536.0;
    /// What an unknown edge gains by nearing its even share.
    pub const SHARE: f64 = 1.0 / 4096.0;
    /// An unknown edge into exception handling or a trap.
    pub const UNLIKELY: f64 = 0.25;
    /// A call that does not return.
    pub const LEAK: f64 = 8.0;
    /// The end of an endless loop.
    pub const ENDLESS: f64 = 1.0 / 64.0;
}

const OUTSIDE: Node = 0;

/// The circulation problem of one function.
pub(super) struct Problem {
    solution: Solution,
    /// By block and by edge: its arc; `None` where it cannot be reached (or left, for exits).
    block_arcs: Vec<Option<usize>>,
    edge_arcs: Vec<Option<usize>>,
    exit_arcs: Vec<Option<usize>>,
    entry_arc: Option<usize>,
}

fn entrance(block: BlockId) -> Node {
    1 + 2 * block as Node
}

fn way_out(block: BlockId) -> Node {
    2 + 2 * block as Node
}

/// The network while it is built, and which arc is what.
struct Builder<'a> {
    graph: &'a Graph,
    observed: &'a Observed,
    network: Network,
    pieces: Vec<LinearPiece>,
}

impl Problem {
    /// Sets up and solves the problem.
    pub fn new(graph: &Graph, observed: &Observed) -> Self {
        let network = Network::new(1 + 2 * graph.blocks as Node);
        let mut builder = Builder {
            graph,
            observed,
            network,
            pieces: Vec::new(),
        };
        let block_arcs = builder.add_blocks();
        let edge_arcs = builder.add_edges();
        let exit_arcs = builder.add_exits();
        let entry_arc = builder.add_entry();
        Self {
            solution: Solution::new(builder.network),
            block_arcs,
            edge_arcs,
            exit_arcs,
            entry_arc,
        }
    }

    /// Solves again with a slight preference for what unknown edges would carry if flow spread evenly
    /// ([`super::balance::even_shares`]).
    pub fn near(&mut self, graph: &Graph, observed: &Observed, shares: &[Option<i64>]) {
        let arcs = self.edge_arcs.iter().zip(shares).enumerate();
        let changes = arcs.filter_map(|(edge, (&arc, &share))| {
            let unlikely = super::balance::is_unlikely(graph, observed, edge);
            let slope = linear(if unlikely { slope::UNLIKELY } else { slope::UNKNOWN }).slope;
            Some((arc?, bent(slope, share?)))
        });
        self.solution.change(changes.collect::<Vec<_>>());
    }

    /// The likeliest flow.
    pub fn flow(&self, graph: &Graph) -> Flow {
        let flow = |arc: &Option<usize>| arc.map_or(0, |a| self.solution.flow(a));
        let found = Flow {
            entry: flow(&self.entry_arc),
            edges: self.edge_arcs.iter().map(flow).collect(),
            exits: self.exit_arcs.iter().map(flow).collect(),
        };
        debug_assert!(found.is_consistent(graph));
        found
    }

    /// Marginal cost of flow over an edge and through its target block, at the solution.
    pub fn edge_cost(&self, graph: &Graph, edge: EdgeId) -> i64 {
        self.marginal_cost(self.edge_arcs[edge]) + self.marginal_cost(self.block_arcs[graph.edges[edge].to])
    }

    /// Marginal cost of flow that leaves the function in a block; `None` if it cannot.
    pub fn exit_cost(&self, block: BlockId) -> Option<i64> {
        self.exit_arcs[block].map(|arc| self.marginal_cost(Some(arc)))
    }

    fn marginal_cost(&self, arc: Option<usize>) -> i64 {
        let Some(arc) = arc else { return i64::from(u32::MAX) };
        let flow = self.solution.flow(arc);
        let piece = self.solution.pieces(arc).iter().find(|p| flow < p.end);
        // Negative where more flow would agree better with the evidence. Dijkstra's algorithm needs non-negative costs.
        piece.map_or(0, |p| p.slope.max(0))
    }
}

impl Builder<'_> {
    fn add(&mut self, tail: Node, head: Node) -> Option<usize> {
        self.network.arc(tail, head, &self.pieces);
        Some(self.network.arcs() - 1)
    }

    fn add_blocks(&mut self) -> Vec<Option<usize>> {
        let (graph, observed) = (self.graph, self.observed);
        let add = |block: BlockId| {
            cost(
                observed.blocks[block],
                1.0,
                graph.unlikely[block],
                observed.units,
                &mut self.pieces,
            );
            graph.reachable[block]
                .then(|| self.add(entrance(block), way_out(block)))
                .flatten()
        };
        (0..graph.blocks).map(add).collect()
    }

    fn add_edges(&mut self) -> Vec<Option<usize>> {
        let (graph, observed) = (self.graph, self.observed);
        let add = |(id, edge): (EdgeId, &Edge)| {
            let unlikely = super::balance::is_unlikely(graph, observed, id);
            let completeness = observed.completeness[edge.from];
            cost(
                observed.edges[id],
                completeness,
                unlikely,
                observed.units,
                &mut self.pieces,
            );
            graph.reachable[edge.from]
                .then(|| self.add(way_out(edge.from), entrance(edge.to)))
                .flatten()
        };
        graph.edges.iter().enumerate().map(add).collect()
    }

    fn add_exits(&mut self) -> Vec<Option<usize>> {
        let graph = self.graph;
        let add = |block: BlockId| {
            let slope = match graph.exits[block] {
                Exit::None => return None,
                Exit::Natural => 0.0,
                Exit::Leak => slope::LEAK,
                Exit::Endless => slope::ENDLESS,
            };
            self.pieces.clear();
            self.pieces.push(linear(slope));
            graph.reachable[block]
                .then(|| self.add(way_out(block), OUTSIDE))
                .flatten()
        };
        (0..graph.blocks).map(add).collect()
    }

    fn add_entry(&mut self) -> Option<usize> {
        cost(self.observed.entry, 1.0, false, self.observed.units, &mut self.pieces);
        if self.graph.blocks > 0 {
            self.add(OUTSIDE, entrance(0))
        } else {
            None
        }
    }
}

/// A linear cost that favours a flow up to `share` over one beyond it.
fn bent(slope: i64, share: i64) -> Vec<LinearPiece> {
    let by = linear(slope::SHARE).slope;
    vec![
        LinearPiece {
            end: share,
            slope: slope - by,
        },
        LinearPiece {
            end: UNBOUNDED,
            slope: slope + by,
        },
    ]
}

/// Fills `pieces` with the cost of a count.
fn cost(evidence: Option<f64>, completeness: f64, unlikely: bool, units: f64, pieces: &mut Vec<LinearPiece>) {
    match evidence {
        Some(samples) => deviance(samples, completeness, units, pieces),
        None => {
            pieces.clear();
            pieces.push(linear(if unlikely { slope::UNLIKELY } else { slope::UNKNOWN }));
        }
    }
}
