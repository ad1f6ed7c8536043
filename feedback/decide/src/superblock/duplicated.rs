//! A graph with copies of some of its blocks, and the count of each edge.

use super::walks::Walk;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;

/// A node: the block of the same number, or a copy of one.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// The original block.
    pub origin: BlockIndex,
    /// Target of each successor slot of the origin.
    pub successors: Vec<usize>,
    /// Count of each successor slot.
    pub counts: Vec<f64>,
}

impl Node {
    /// Executions.
    pub fn count(&self) -> f64 {
        self.counts.iter().sum()
    }
}

/// A graph whose nodes map to a function's blocks, slot by slot. The first nodes are the blocks themselves.
#[derive(Clone, PartialEq, Debug)]
pub struct DuplicatedGraph {
    /// The nodes.
    pub nodes: Vec<Node>,
}

impl DuplicatedGraph {
    /// A graph without copies. The count of an edge is its block's count times its slot's probability.
    pub fn new(cfg: &Cfg, counts: &[f64], probabilities: &[f64]) -> Self {
        let nodes = cfg
            .blocks
            .iter()
            .zip(cfg.edge_bases())
            .enumerate()
            .map(|(i, (block, base))| {
                let slots = probabilities.iter().skip(base as usize).take(block.successors.len());
                Node {
                    origin: BlockIndex(i as u32),
                    successors: block.successors.iter().map(|s| s.index()).collect(),
                    counts: slots.map(|p| p * counts[i]).collect(),
                }
            });
        Self { nodes: nodes.collect() }
    }

    /// The nodes that a walk passes. Walks start at original blocks.
    pub fn trace(&self, walk: &Walk) -> Vec<usize> {
        let mut node = walk.blocks[0].index();
        let mut trace = vec![node];
        for block in &walk.blocks[1..] {
            let to = self.nodes[node]
                .successors
                .iter()
                .find(|&&s| self.nodes[s].origin == *block);
            let Some(&to) = to else { break };
            node = to;
            trace.push(node);
        }
        trace
    }

    /// The count of the edge between two nodes, summed over slots.
    pub fn flow(&self, from: usize, to: usize) -> f64 {
        let node = &self.nodes[from];
        let slots = node.successors.iter().zip(&node.counts);
        slots.filter(|&(&s, _)| s == to).map(|(_, c)| c).sum()
    }

    /// Copies `trace` for its predecessor `from`. `next`: for each node of the trace, how its slots share the
    /// executions that come from `from`. The flow of a copy is subtracted from its original, so that flow is conserved.
    pub fn duplicate(&mut self, from: usize, trace: &[usize], next: &[Vec<f64>]) {
        let first = self.nodes.len();
        let mut inflow = self.flow(from, trace[0]);
        for (i, (&node, probabilities)) in trace.iter().zip(next).enumerate() {
            let counts = distribute(inflow, probabilities, &self.nodes[node].counts);
            for (rest, taken) in self.nodes[node].counts.iter_mut().zip(&counts) {
                *rest = (*rest - taken).max(0.0);
            }
            let mut copy = self.nodes[node].clone();
            copy.counts = counts;
            if let Some(&following) = trace.get(i + 1) {
                let slots = copy
                    .successors
                    .iter_mut()
                    .zip(&copy.counts)
                    .filter(|(s, _)| **s == following);
                inflow = slots
                    .map(|(successor, count)| {
                        *successor = first + i + 1;
                        count
                    })
                    .sum();
            }
            self.nodes.push(copy);
        }
        for successor in &mut self.nodes[from].successors {
            if *successor == trace[0] {
                *successor = first;
            }
        }
    }
}

/// Distributes a flow by probabilities, with an upper limit for each slot.
fn distribute(flow: f64, probabilities: &[f64], limits: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; limits.len()];
    let mut rest = flow.min(limits.iter().sum());
    // Each round fills at least one slot, or distributes all of the flow.
    for _ in 0..=limits.len() {
        let open = |i: usize, shares: &[f64]| limits[i] - shares[i] > 0.0;
        let sum: f64 = (0..limits.len())
            .filter(|&i| open(i, &shares))
            .map(|i| probabilities[i])
            .sum();
        if rest <= 0.0 || sum <= 0.0 {
            break;
        }
        let mut left = 0.0;
        for i in 0..limits.len() {
            if open(i, &shares) {
                let share = rest * probabilities[i] / sum;
                let free = limits[i] - shares[i];
                shares[i] += share.min(free);
                left += (share - free).max(0.0);
            }
        }
        rest = left;
    }
    // Flow that no probability claims goes where a slot has capacity left.
    for i in 0..limits.len() {
        let more = rest.min(limits[i] - shares[i]).max(0.0);
        shares[i] += more;
        rest -= more;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_never_gets_more_than_there_is() {
        assert_eq!(distribute(10.0, &[0.9, 0.1], &[4.0, 20.0]), [4.0, 6.0]);
        assert_eq!(distribute(10.0, &[1.0, 0.0], &[4.0, 20.0]), [4.0, 6.0]);
        assert_eq!(distribute(10.0, &[0.5, 0.5], &[20.0, 20.0]), [5.0, 5.0]);
        assert_eq!(distribute(10.0, &[0.5, 0.5], &[1.0, 2.0]), [1.0, 2.0]);
    }

    #[test]
    fn copies_take_flow_from_what_they_copy() {
        let node = |origin, successors: &[usize], counts: &[f64]| Node {
            origin: BlockIndex(origin),
            successors: successors.to_vec(),
            counts: counts.to_vec(),
        };
        // 0 and 1 lead to 2, which leads to 3 or 4.
        let mut graph = DuplicatedGraph {
            nodes: vec![
                node(0, &[2], &[6.0]),
                node(1, &[2], &[4.0]),
                node(2, &[3, 4], &[5.0, 5.0]),
                node(3, &[], &[]),
                node(4, &[], &[]),
            ],
        };
        graph.duplicate(1, &[2], &[vec![1.0, 0.0]]);
        assert_eq!(graph.nodes[5], node(2, &[3, 4], &[4.0, 0.0]));
        assert_eq!(graph.nodes[2].counts, [1.0, 5.0]);
        assert_eq!((graph.nodes[1].successors[0], graph.nodes[0].successors[0]), (5, 2));
    }
}
