//! Minimum-cost circulation with convex piecewise-linear arc costs: a primal network simplex.
//!
//! The basis is a spanning tree rooted at an artificial node. Instead of one parallel arc per linear piece, an arc
//! knows its pieces: outside the tree its flow lies on a breakpoint, inside it moves within one piece. That keeps the
//! number of arcs, which pricing scans, independent of how finely costs are approximated. The start is the pseudoflow
//! that minimises every arc on its own — for flow inference, the evidence itself —, with what it lacks in conservation
//! on artificial arcs, so that the work grows with the noise of the evidence rather than with its size.
//!
//! After a solution, costs may be changed and the search resumed from where it stands.
//!
//! Trees stay *strongly feasible* (Cunningham 1976): every node can send some flow to the root, which excludes cycling.
//! Pricing takes the most violating arc of a block of arcs (Grigoriadis 1986).

/// Index of a node of a [`Network`].
pub(super) type Node = u32;

/// A linear piece of an arc's cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LinearPiece {
    /// Flow at which the piece ends; it begins where the one before it ends, the first one at 0.
    pub end: i64,
    /// Cost of one more unit of flow.
    pub slope: i64,
}

/// End of a piece without end. Real flows stay far below it.
pub(super) const UNBOUNDED: i64 = i64::MAX / 4;

const NONE: u32 = u32::MAX;
const NO_UP: i64 = i64::MAX / 4;
const NO_DOWN: i64 = i64::MIN / 4;

/// A network whose arcs have convex piecewise-linear costs and flows ≥ 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    nodes: u32,
    tails: Vec<Node>,
    heads: Vec<Node>,
    /// Where each arc's pieces begin and end.
    spans: Vec<(u32, u32)>,
    pieces: Vec<LinearPiece>,
}

impl Network {
    /// A network without arcs.
    pub fn new(nodes: u32) -> Self {
        Self {
            nodes,
            ..Self::default()
        }
    }

    /// Adds an arc; arcs are numbered in this order. Slopes must increase, the last piece be unbounded and its slope
    /// not negative (else nothing would keep the flow finite).
    pub fn arc(&mut self, tail: Node, head: Node, pieces: &[LinearPiece]) {
        self.tails.push(tail);
        self.heads.push(head);
        let span = self.store(pieces);
        self.spans.push(span);
    }

    /// Number of arcs.
    pub fn arcs(&self) -> usize {
        self.tails.len()
    }

    /// The pieces of an arc's cost.
    pub fn pieces(&self, arc: usize) -> &[LinearPiece] {
        let (start, end) = self.spans[arc];
        &self.pieces[start as usize..end as usize]
    }

    fn store(&mut self, pieces: &[LinearPiece]) -> (u32, u32) {
        debug_assert!(pieces.last().is_some_and(|p| p.end == UNBOUNDED && p.slope >= 0));
        debug_assert!(
            pieces
                .windows(2)
                .all(|p| p[0].end < p[1].end && p[0].slope <= p[1].slope)
        );
        let start = self.pieces.len() as u32;
        self.pieces.extend_from_slice(pieces);
        (start, self.pieces.len() as u32)
    }
}

/// A network with a circulation of minimum cost.
///
/// The zero flow is feasible and costs are bounded below, so there always is one.
pub(super) struct Solution {
    network: Network,
    root: Node,
    // By arc; the artificial arc of node v is number `arcs + v`.
    tails: Vec<Node>,
    heads: Vec<Node>,
    flow: Vec<i64>,
    /// In the tree: the piece that the flow lies in. Outside: the piece above the flow's breakpoint.
    piece: Vec<u32>,
    /// Cost of one unit more; `NO_UP` inside the tree.
    up: Vec<i64>,
    /// Cost that one unit less saves; `NO_DOWN` inside the tree and at zero.
    down: Vec<i64>,
    // By node.
    parent: Vec<Node>,
    /// Arc to the parent.
    parent_arc: Vec<u32>,
    depth: Vec<u32>,
    potential: Vec<i64>,
    first_child: Vec<Node>,
    next_sibling: Vec<Node>,
    previous_sibling: Vec<Node>,
    penalty: i64,
    next_priced: usize,
    block: usize,
    stack: Vec<Node>,
}

/// Cost of a unit on an artificial arc: more than any path costs.
fn penalty(network: &Network) -> i64 {
    let steepest = network.pieces.iter().map(|p| p.slope.abs()).max().unwrap_or(0);
    (steepest + 1) * (i64::from(network.nodes) + 2)
}

/// The tree arc that blocks a pivot.
#[derive(Clone, Copy)]
struct Leaving {
    /// Lower end of the arc.
    node: Node,
    /// On the way from the join down to where the entering flow comes from (else: on the way up from where it goes).
    source_side: bool,
    /// The arc's flow grows until the end of its piece (else: shrinks to its beginning).
    grows: bool,
}

impl Solution {
    /// Solves a network.
    pub fn new(network: Network) -> Self {
        let (nodes, arcs) = (network.nodes as usize, network.arcs());
        let mut solution = Self {
            root: network.nodes,
            tails: network.tails.clone(),
            heads: network.heads.clone(),
            flow: Vec::with_capacity(arcs + nodes),
            piece: Vec::with_capacity(arcs + nodes),
            up: Vec::with_capacity(arcs),
            down: Vec::with_capacity(arcs),
            parent: vec![network.nodes; nodes + 1],
            parent_arc: (0..=nodes).map(|v| (arcs + v) as u32).collect(),
            depth: vec![1; nodes + 1],
            potential: vec![0; nodes + 1],
            first_child: vec![NONE; nodes + 1],
            next_sibling: vec![NONE; nodes + 1],
            previous_sibling: vec![NONE; nodes + 1],
            penalty: penalty(&network),
            next_priced: 0,
            block: (arcs as f64).sqrt().ceil().max(16.0) as usize,
            stack: Vec::new(),
            network,
        };
        solution.start();
        solution.run();
        solution
    }

    /// Flow of an arc.
    pub fn flow(&self, arc: usize) -> i64 {
        self.flow[arc]
    }

    /// The pieces of an arc's cost.
    pub fn pieces(&self, arc: usize) -> &[LinearPiece] {
        self.network.pieces(arc)
    }

    /// Changes the costs of arcs and solves again, from the flow that is there.
    pub fn change(&mut self, costs: impl IntoIterator<Item = (usize, Vec<LinearPiece>)>) {
        for (arc, pieces) in costs {
            self.change_arc(arc, pieces);
        }
        self.penalty = penalty(&self.network);
        self.renew_potentials();
        self.run();
    }

    fn change_arc(&mut self, arc: usize, mut pieces: Vec<LinearPiece>) {
        let flow = self.flow[arc];
        let mut at = pieces.iter().take_while(|p| p.end <= flow).count();
        let on_breakpoint = flow == if at == 0 { 0 } else { pieces[at - 1].end };
        let child = [self.tails[arc], self.heads[arc]]
            .into_iter()
            .find(|&v| self.parent_arc[v as usize] == arc as u32);
        match child {
            // Of two pieces, the one with residual capacity towards the root.
            Some(child) => at -= usize::from(on_breakpoint && at > 0 && self.tails[arc] != child),
            None if !on_breakpoint => {
                // Outside the tree flow lies on a breakpoint: one where the slope does not change serves as well.
                pieces.insert(
                    at,
                    LinearPiece {
                        end: flow,
                        ..pieces[at]
                    },
                );
                at += 1;
            }
            None => {}
        }
        self.network.spans[arc] = self.network.store(&pieces);
        self.piece[arc] = at as u32;
        if child.is_none() {
            self.price_outside(arc);
        }
    }

    /// Potentials from scratch, down from the root.
    fn renew_potentials(&mut self) {
        self.stack.push(self.root);
        while let Some(node) = self.stack.pop() {
            let mut child = self.first_child[node as usize];
            while child != NONE {
                let arc = self.parent_arc[child as usize] as usize;
                let slope = if arc < self.network.arcs() {
                    self.network.pieces(arc)[self.piece[arc] as usize].slope
                } else {
                    self.penalty
                };
                let above = self.potential[node as usize];
                self.potential[child as usize] = if self.tails[arc] == child {
                    above - slope
                } else {
                    above + slope
                };
                self.stack.push(child);
                child = self.next_sibling[child as usize];
            }
        }
    }

    /// Puts every arc at its own minimum and hangs all nodes on the root.
    fn start(&mut self) {
        let nodes = self.network.nodes as usize;
        let mut excess = vec![0i64; nodes];
        for arc in 0..self.network.arcs() {
            let pieces = self.network.pieces(arc);
            let at = pieces.iter().take_while(|p| p.slope < 0).count();
            let flow = if at == 0 { 0 } else { pieces[at - 1].end };
            self.flow.push(flow);
            self.piece.push(at as u32);
            self.up.push(0);
            self.down.push(0);
            self.price_outside(arc);
            excess[self.tails[arc] as usize] -= flow;
            excess[self.heads[arc] as usize] += flow;
        }
        self.parent[self.root as usize] = NONE;
        self.parent_arc[self.root as usize] = NONE;
        self.depth[self.root as usize] = 0;
        for (node, &excess) in excess.iter().enumerate() {
            // A node without excess points at the root, so that it can send flow there.
            let to_root = excess >= 0;
            let (tail, head) = if to_root {
                (node as Node, self.root)
            } else {
                (self.root, node as Node)
            };
            self.tails.push(tail);
            self.heads.push(head);
            self.flow.push(excess.abs());
            self.piece.push(0);
            // Tree arcs have reduced cost 0: slope + potential(tail) − potential(head) = 0.
            self.potential[node] = if to_root { -self.penalty } else { self.penalty };
            self.adopt(self.root, node as Node);
        }
    }

    fn run(&mut self) {
        while let Some((arc, up)) = self.find_entering_arc() {
            self.pivot(arc, up);
        }
        debug_assert!(self.flow[self.network.arcs()..].iter().all(|&f| f == 0));
    }

    /// Finds an arc whose flow should change, and whether it should grow.
    fn find_entering_arc(&mut self) -> Option<(usize, bool)> {
        let arcs = self.network.arcs();
        let (mut scanned, mut best, mut found) = (0, 0, None);
        let mut arc = self.next_priced;
        while scanned < arcs {
            for _ in 0..self.block.min(arcs - scanned) {
                let drop = self.potential[self.tails[arc] as usize] - self.potential[self.heads[arc] as usize];
                let (grow, shrink) = (-(self.up[arc] + drop), self.down[arc] + drop);
                if grow > best {
                    (best, found) = (grow, Some((arc, true)));
                }
                if shrink > best {
                    (best, found) = (shrink, Some((arc, false)));
                }
                scanned += 1;
                arc += 1;
                if arc == arcs {
                    arc = 0;
                }
            }
            if found.is_some() {
                break;
            }
        }
        self.next_priced = arc;
        found
    }

    /// Pushes as much flow as fits around the cycle that an arc closes, and exchanges it for an arc that blocks.
    fn pivot(&mut self, entering: usize, up: bool) {
        let (tail, head) = (self.tails[entering], self.heads[entering]);
        let (source, target) = if up { (tail, head) } else { (head, tail) };
        let join = self.join(source, target);
        let at = self.piece[entering];
        // The piece that the entering arc moves through.
        let piece = if up { at } else { at - 1 };
        let (low, high) = self.bounds(entering, piece);
        let (delta, leaving) = self.blocking(source, target, join, high - low);
        self.push(entering, up, source, target, join, delta);
        let Some(leaving) = leaving else {
            self.piece[entering] = if up { at + 1 } else { at - 1 };
            self.price_outside(entering);
            return;
        };
        self.piece[entering] = piece;
        self.up[entering] = NO_UP;
        self.down[entering] = NO_DOWN;
        let slope = self.network.pieces(entering)[piece as usize].slope;
        let arc = self.parent_arc[leaving.node as usize] as usize;
        let (inside, outside) = if leaving.source_side {
            (source, target)
        } else {
            (target, source)
        };
        self.rehang(leaving.node, inside, outside, entering, slope);
        if arc < self.network.arcs() {
            self.piece[arc] += u32::from(leaving.grows);
            self.price_outside(arc);
        }
    }

    /// Beginning and end of an arc's piece.
    fn bounds(&self, arc: usize, piece: u32) -> (i64, i64) {
        if arc >= self.network.arcs() {
            return (0, UNBOUNDED);
        }
        let pieces = self.network.pieces(arc);
        let low = if piece == 0 { 0 } else { pieces[piece as usize - 1].end };
        (low, pieces[piece as usize].end)
    }

    /// Notes what an arc outside the tree costs in either direction.
    fn price_outside(&mut self, arc: usize) {
        let (pieces, at) = (self.network.pieces(arc), self.piece[arc] as usize);
        self.up[arc] = pieces.get(at).map_or(NO_UP, |p| p.slope);
        self.down[arc] = if at == 0 { NO_DOWN } else { pieces[at - 1].slope };
    }

    /// The two nodes' lowest common ancestor.
    fn join(&self, mut a: Node, mut b: Node) -> Node {
        while a != b {
            if self.depth[a as usize] >= self.depth[b as usize] {
                a = self.parent[a as usize];
            } else {
                b = self.parent[b as usize];
            }
        }
        a
    }

    /// How much fits around the cycle, and the *last* blocking arc from the join in the direction of the flow (which
    /// keeps the tree strongly feasible); `None` where it is the entering arc.
    fn blocking(&self, source: Node, target: Node, join: Node, entering: i64) -> (i64, Option<Leaving>) {
        let (mut delta, mut leaving) = (entering, None);
        let mut node = source;
        while node != join {
            let (residual, grows) = self.residual(node, false);
            if residual < delta {
                (delta, leaving) = (
                    residual,
                    Some(Leaving {
                        node,
                        source_side: true,
                        grows,
                    }),
                );
            }
            node = self.parent[node as usize];
        }
        node = target;
        while node != join {
            let (residual, grows) = self.residual(node, true);
            if residual <= delta {
                (delta, leaving) = (
                    residual,
                    Some(Leaving {
                        node,
                        source_side: false,
                        grows,
                    }),
                );
            }
            node = self.parent[node as usize];
        }
        (delta, leaving)
    }

    /// The residual capacity of a node's parent arc within its piece, upwards or downwards, and whether its flow grows.
    fn residual(&self, node: Node, upwards: bool) -> (i64, bool) {
        let arc = self.parent_arc[node as usize] as usize;
        let (low, high) = self.bounds(arc, self.piece[arc]);
        let grows = (self.tails[arc] == node) == upwards;
        (
            if grows {
                high - self.flow[arc]
            } else {
                self.flow[arc] - low
            },
            grows,
        )
    }

    fn push(&mut self, entering: usize, up: bool, source: Node, target: Node, join: Node, delta: i64) {
        if delta == 0 {
            return;
        }
        self.flow[entering] += if up { delta } else { -delta };
        for (start, upwards) in [(source, false), (target, true)] {
            let mut node = start;
            while node != join {
                let arc = self.parent_arc[node as usize] as usize;
                self.flow[arc] += if (self.tails[arc] == node) == upwards {
                    delta
                } else {
                    -delta
                };
                node = self.parent[node as usize];
            }
        }
    }

    /// Cuts the subtree of `cut` off, turns `inside` into its root and hangs that on `outside` by the entering arc.
    fn rehang(&mut self, cut: Node, inside: Node, outside: Node, entering: usize, slope: i64) {
        let (mut node, mut new_parent, mut new_arc) = (inside, outside, entering as u32);
        loop {
            let (old_parent, old_arc) = (self.parent[node as usize], self.parent_arc[node as usize]);
            self.disown(node);
            self.parent_arc[node as usize] = new_arc;
            self.adopt(new_parent, node);
            if node == cut {
                break;
            }
            (new_parent, node, new_arc) = (node, old_parent, old_arc);
        }
        let (of_inside, of_outside) = (self.potential[inside as usize], self.potential[outside as usize]);
        let wanted = if self.tails[entering] == inside {
            of_outside - slope
        } else {
            of_outside + slope
        };
        self.shift(inside, wanted - of_inside);
    }

    /// Adds to the potentials of a subtree and renews its depths.
    fn shift(&mut self, top: Node, by: i64) {
        self.stack.push(top);
        while let Some(node) = self.stack.pop() {
            self.potential[node as usize] += by;
            self.depth[node as usize] = self.depth[self.parent[node as usize] as usize] + 1;
            let mut child = self.first_child[node as usize];
            while child != NONE {
                self.stack.push(child);
                child = self.next_sibling[child as usize];
            }
        }
    }

    fn adopt(&mut self, parent: Node, child: Node) {
        let first = self.first_child[parent as usize];
        self.parent[child as usize] = parent;
        self.next_sibling[child as usize] = first;
        self.previous_sibling[child as usize] = NONE;
        if first != NONE {
            self.previous_sibling[first as usize] = child;
        }
        self.first_child[parent as usize] = child;
    }

    fn disown(&mut self, child: Node) {
        let (previous, next) = (self.previous_sibling[child as usize], self.next_sibling[child as usize]);
        if previous == NONE {
            self.first_child[self.parent[child as usize] as usize] = next;
        } else {
            self.next_sibling[previous as usize] = next;
        }
        if next != NONE {
            self.previous_sibling[next as usize] = previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn solve(nodes: u32, arcs: &[Drawn]) -> Solution {
        Solution::new(network(nodes, arcs))
    }

    fn flows(solution: &Solution) -> Vec<i64> {
        (0..solution.network.arcs()).map(|arc| solution.flow(arc)).collect()
    }

    /// An arc as the tests draw it: ends and pieces.
    type Drawn = (Node, Node, Vec<LinearPiece>);

    fn convex() -> impl Strategy<Value = Vec<LinearPiece>> {
        (prop::collection::vec((1i64..6, -9i64..10), 0..5), 0i64..12).prop_map(|(steps, last)| {
            let mut slopes: Vec<i64> = steps.iter().map(|s| s.1).collect();
            slopes.sort_unstable();
            let mut end = 0;
            let mut pieces: Vec<LinearPiece> = steps
                .iter()
                .zip(slopes)
                .map(|(step, slope)| {
                    end += step.0;
                    LinearPiece { end, slope }
                })
                .collect();
            let least = pieces.last().map_or(0, |p| p.slope.max(0));
            pieces.push(LinearPiece {
                end: UNBOUNDED,
                slope: least + last,
            });
            pieces
        })
    }

    fn networks(nodes: u32, arcs: usize) -> impl Strategy<Value = (u32, Vec<Drawn>)> {
        (2..=nodes).prop_flat_map(move |n| (Just(n), prop::collection::vec((0..n, 0..n, convex()), 0..=arcs)))
    }

    fn network(nodes: u32, arcs: &[Drawn]) -> Network {
        let mut network = Network::new(nodes);
        arcs.iter()
            .for_each(|(tail, head, pieces)| network.arc(*tail, *head, pieces));
        network
    }

    fn cost(pieces: &[LinearPiece], flow: i64) -> i64 {
        let mut from = 0;
        let mut sum = 0;
        for piece in pieces {
            let to = piece.end.min(flow);
            if to <= from {
                break;
            }
            sum += (to - from) * piece.slope;
            from = to;
        }
        sum
    }

    /// Optimality without the solver's potentials: no cycle of the residual network lowers the cost (Bellman–Ford).
    fn has_negative_cycle(nodes: u32, arcs: &[Drawn], flow: &[i64]) -> bool {
        let mut residual = Vec::new();
        for ((tail, head, pieces), &flow) in arcs.iter().zip(flow) {
            residual.push((*tail, *head, cost(pieces, flow + 1) - cost(pieces, flow)));
            if flow > 0 {
                residual.push((*head, *tail, cost(pieces, flow - 1) - cost(pieces, flow)));
            }
        }
        let mut distance = vec![0i64; nodes as usize];
        (0..=nodes).all(|_| {
            let mut changed = false;
            for &(tail, head, length) in &residual {
                if distance[tail as usize] + length < distance[head as usize] {
                    distance[head as usize] = distance[tail as usize] + length;
                    changed = true;
                }
            }
            changed
        })
    }

    fn conserves(nodes: u32, arcs: &[Drawn], flow: &[i64]) -> bool {
        let mut excess = vec![0; nodes as usize];
        for ((tail, head, _), &flow) in arcs.iter().zip(flow) {
            excess[*tail as usize] -= flow;
            excess[*head as usize] += flow;
        }
        excess.iter().all(|&e| e == 0) && flow.iter().all(|&f| f >= 0)
    }

    /// Least cost over all circulations with flows up to a bound.
    fn brute_force(nodes: u32, arcs: &[Drawn], bound: i64) -> i64 {
        fn walk(nodes: u32, arcs: &[Drawn], bound: i64, flow: &mut Vec<i64>, best: &mut i64) {
            if flow.len() == arcs.len() {
                if conserves(nodes, arcs, flow) {
                    *best = (*best).min(arcs.iter().zip(&*flow).map(|(a, &f)| cost(&a.2, f)).sum());
                }
                return;
            }
            for f in 0..=bound {
                flow.push(f);
                walk(nodes, arcs, bound, flow, best);
                flow.pop();
            }
        }
        let mut best = i64::MAX;
        walk(nodes, arcs, bound, &mut Vec::new(), &mut best);
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn optimal_by_the_residual_network((nodes, arcs) in networks(12, 40)) {
            let flow = flows(&solve(nodes, &arcs));
            prop_assert!(conserves(nodes, &arcs, &flow));
            prop_assert!(!has_negative_cycle(nodes, &arcs, &flow));
        }

        #[test]
        fn optimal_after_changes(
            (nodes, mut arcs) in networks(10, 30),
            changes in prop::collection::vec(prop::collection::vec((any::<prop::sample::Index>(), convex()), 0..12), 1..4),
        ) {
            let mut solution = solve(nodes, &arcs);
            for changes in changes {
                if !arcs.is_empty() {
                    let changes: Vec<_> = changes.into_iter().map(|(i, pieces)| (i.index(arcs.len()), pieces)).collect();
                    for (arc, pieces) in &changes {
                        arcs[*arc].2.clone_from(pieces);
                    }
                    solution.change(changes);
                }
                let flow = flows(&solution);
                prop_assert!(conserves(nodes, &arcs, &flow));
                prop_assert!(!has_negative_cycle(nodes, &arcs, &flow));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]
        #[test]
        fn no_worse_than_brute_force((nodes, arcs) in networks(4, 5)) {
            let flow = flows(&solve(nodes, &arcs));
            prop_assert!(conserves(nodes, &arcs, &flow));
            let found: i64 = arcs.iter().zip(&flow).map(|(a, &f)| cost(&a.2, f)).sum();
            prop_assert!(found <= brute_force(nodes, &arcs, 7));
        }
    }

    #[test]
    fn without_arcs_there_is_no_flow() {
        assert!(flows(&Solution::new(Network::new(3))).is_empty());
    }
}
