//! Predicts which edges fall through, before code generation.
//!
//! Chains of blocks are merged along edges, in descending order of what falling through saves (Pettis and Hansen, PLDI
//! 1990). Edges inside a chain fall through; all others are taken jumps.

/// Cost of a taken branch, in instructions: `-misfetch-cost` of LLVM's block placement.
pub const TAKEN: f64 = 1.0;
/// Cost of an unconditional jump instruction, in instructions: `-jump-inst-cost` of LLVM's block placement.
pub const JUMP: f64 = 1.0;

/// An edge and its count.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Flow {
    /// The source node.
    pub from: usize,
    /// The target node.
    pub to: usize,
    /// Executions.
    pub count: f64,
    /// Cost of an execution if the edge does not fall through; 0 if falling through saves nothing.
    pub cost: f64,
}

impl Flow {
    fn weight(&self) -> f64 {
        self.count * self.cost
    }
}

/// The fall-through successor of each node, if any. Node 0 is the entry: no node falls through to it.
pub fn fall_through(nodes: usize, flows: &[Flow]) -> Vec<Option<usize>> {
    let mut order: Vec<&Flow> = flows
        .iter()
        .filter(|f| f.to != 0 && f.from != f.to && f.weight() > 0.0)
        .collect();
    order.sort_by(|a, b| {
        b.weight()
            .total_cmp(&a.weight())
            .then_with(|| (a.from, a.to).cmp(&(b.from, b.to)))
    });
    let mut next = vec![None; nodes];
    let mut has_previous = vec![false; nodes];
    let mut chain: Vec<usize> = (0..nodes).collect();
    for flow in order {
        let (from, to) = (find(&mut chain, flow.from), find(&mut chain, flow.to));
        if next[flow.from].is_none() && !has_previous[flow.to] && from != to {
            next[flow.from] = Some(flow.to);
            has_previous[flow.to] = true;
            chain[to] = from;
        }
    }
    next
}

fn find(chain: &mut [usize], mut node: usize) -> usize {
    while chain[node] != node {
        chain[node] = chain[chain[node]];
        node = chain[node];
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heavier_side_of_a_diamond_falls_through() {
        let flow = |from, to, count| Flow {
            from,
            to,
            count,
            cost: TAKEN,
        };
        let flows = [
            flow(0, 1, 9.0),
            flow(0, 2, 1.0),
            flow(1, 3, 9.0),
            flow(2, 3, 1.0),
            flow(3, 0, 10.0),
        ];
        assert_eq!(fall_through(4, &flows), [Some(1), Some(3), None, None]);
    }

    #[test]
    fn a_cycle_stays_open() {
        let flow = |from, to, count| Flow {
            from,
            to,
            count,
            cost: TAKEN,
        };
        let next = fall_through(3, &[flow(1, 2, 5.0), flow(2, 1, 5.0), flow(0, 1, 1.0)]);
        assert_eq!(next, [Some(1), Some(2), None]);
    }

    #[test]
    fn a_loop_is_rotated_so_that_a_conditional_branch_closes_it() {
        let flow = |from, to, count, cost| Flow { from, to, count, cost };
        let flows = [
            flow(0, 1, 1.0, TAKEN),
            flow(1, 2, 10.0, TAKEN),
            flow(2, 3, 7.0, TAKEN + JUMP),
            flow(3, 1, 9.0, TAKEN),
        ];
        assert_eq!(fall_through(4, &flows), [Some(1), Some(2), Some(3), None]);
    }
}
