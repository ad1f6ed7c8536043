//! The order of a function's blocks: the extended travelling-salesman model.
//!
//! Newell and Pupyrev, *Improved Basic Block Reordering* (IEEE TC 2020), with the parameters of LLVM's implementation
//! (`CodeLayout.cpp`): a jump that falls through counts 1, one that stays within some lines a tenth or less. Chains of
//! blocks, at first one each, are merged greedily; of two chains, the first may be cut in two, and the second put
//! between.

/// Largest distance in bytes of a jump that still counts, forwards and backwards.
const FORWARD: u64 = 1024;
const BACKWARD: u64 = 640;
/// Weight of such a jump.
const NEAR: f64 = 0.1;
/// Longest chain that may be cut.
const MAX_CUT: usize = 128;
/// Least gain of a merger.
const MIN_GAIN: f64 = 1e-9;

/// A block: bytes and executions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Node {
    /// Bytes of code.
    pub size: u64,
    /// Executions.
    pub count: u64,
}

/// A jump from one block to another, or a fall-through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jump {
    /// Position of the first block.
    pub from: usize,
    /// Position of the second one.
    pub to: usize,
    /// Executions.
    pub count: u64,
}

/// Orders blocks; the first one, the entry, stays first. Jumps between invalid positions are ignored.
pub fn order(nodes: &[Node], jumps: &[Jump]) -> Vec<usize> {
    if nodes.is_empty() {
        return Vec::new();
    }
    let is_valid = |jump: &&Jump| jump.from < nodes.len() && jump.to < nodes.len() && jump.from != jump.to;
    let jumps: Vec<Jump> = jumps.iter().filter(is_valid).copied().collect();
    let mut chains: Vec<Vec<usize>> = (0..nodes.len()).map(|block| vec![block]).collect();
    let mut of: Vec<usize> = (0..nodes.len()).collect();
    let mut layout = Layout {
        nodes,
        jumps: &jumps,
        start: vec![None; nodes.len()],
    };
    // The best merger of each pair of chains that a jump joins.
    let mut mergers = Vec::<(usize, usize, f64, Vec<usize>)>::new();
    let mut changed: Vec<usize> = (0..nodes.len()).collect();
    loop {
        mergers.retain(|(a, b, ..)| !changed.contains(a) && !changed.contains(b));
        let joined = jumps.iter().map(|jump| (of[jump.from], of[jump.to]));
        let mut pairs: Vec<(usize, usize)> = joined
            .filter(|(a, b)| a != b && (changed.contains(a) || changed.contains(b)))
            .flat_map(|(a, b)| [(a, b), (b, a)])
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        for (a, b) in pairs {
            if let Some((gain, merged)) = layout.best_merger(&chains[a], &chains[b]) {
                mergers.push((a, b, gain, merged));
            }
        }
        let best = mergers.iter().enumerate().max_by(|(_, x), (_, y)| {
            let by_gain = x.2.total_cmp(&y.2);
            // Of equal ones, the first.
            by_gain.then_with(|| (y.0, y.1).cmp(&(x.0, x.1)))
        });
        let Some((at, _)) = best else { break };
        let (a, b, _, merged) = mergers.swap_remove(at);
        merged.iter().for_each(|&block| of[block] = a);
        chains[a] = merged;
        chains[b].clear();
        changed = vec![a, b];
    }
    chains.retain(|chain| !chain.is_empty());
    let density = |chain: &Vec<usize>| {
        let (count, size) = chain.iter().fold((0, 0), |(count, size), &block| {
            (count + nodes[block].count, size + nodes[block].size)
        });
        count as f64 / size.max(1) as f64
    };
    chains.sort_by(|a, b| {
        let is_entry = |chain: &Vec<usize>| chain.first() == Some(&0);
        is_entry(b).cmp(&is_entry(a)).then(density(b).total_cmp(&density(a)))
    });
    chains.concat()
}

struct Layout<'a> {
    nodes: &'a [Node],
    jumps: &'a [Jump],
    /// By block: where it begins, in the order that is looked at.
    start: Vec<Option<u64>>,
}

impl Layout<'_> {
    /// The best order of two chains together, if it gains anything.
    fn best_merger(&mut self, first: &[usize], second: &[usize]) -> Option<(f64, Vec<usize>)> {
        let apart = self.score(first) + self.score(second);
        let cuts = if first.len() <= MAX_CUT { 1..first.len() } else { 0..0 };
        let whole = std::iter::once([first, second].concat());
        let cut = cuts.flat_map(|at| {
            let (before, after) = first.split_at(at);
            [
                [before, second, after],
                [second, after, before],
                [after, before, second],
            ]
        });
        let mut best: Option<(f64, Vec<usize>)> = None;
        for merged in whole.chain(cut.map(|parts| parts.concat())) {
            // The entry stays first.
            if merged[1..].contains(&0) {
                continue;
            }
            let gain = self.score(&merged) - apart;
            if gain > MIN_GAIN && best.as_ref().is_none_or(|(least, _)| gain > *least) {
                best = Some((gain, merged));
            }
        }
        best
    }

    /// What an order of some blocks is worth.
    fn score(&mut self, order: &[usize]) -> f64 {
        let mut end = 0;
        for &block in order {
            self.start[block] = Some(end);
            end += self.nodes[block].size;
        }
        let value = |jump: &Jump| -> Option<f64> {
            let (end, to) = (
                self.start[jump.from]? + self.nodes[jump.from].size,
                self.start[jump.to]?,
            );
            let near = |distance: u64, largest: u64| NEAR * (1.0 - distance as f64 / largest as f64).max(0.0);
            let weight = if to == end {
                1.0
            } else if to > end {
                near(to - end, FORWARD)
            } else {
                near(end - to, BACKWARD)
            };
            Some(weight * jump.count as f64)
        };
        let score = self.jumps.iter().filter_map(value).sum();
        order.iter().for_each(|&block| self.start[block] = None);
        score
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(counts: &[u64]) -> Vec<Node> {
        counts.iter().map(|&count| Node { size: 10, count }).collect()
    }

    fn jump(from: usize, to: usize, count: u64) -> Jump {
        Jump { from, to, count }
    }

    #[test]
    fn what_follows_most_often_is_next() {
        // 0 leads to 1 rarely and to 2 often; both lead to 3.
        let jumps = [jump(0, 1, 1), jump(0, 2, 99), jump(1, 3, 1), jump(2, 3, 99)];
        assert_eq!(order(&nodes(&[100, 1, 99, 100]), &jumps), [0, 2, 3, 1]);
    }

    #[test]
    fn loops_are_turned() {
        // 1 is the header with the exit to 3, 2 the body: the body falls into the header.
        let jumps = [jump(0, 1, 1), jump(1, 2, 99), jump(2, 1, 99), jump(1, 3, 1)];
        let found = order(&nodes(&[1, 100, 99, 1]), &jumps);
        assert_eq!(found[0], 0);
        let at = |block: usize| found.iter().position(|&of| of == block).expect("each block is placed");
        assert!(at(2) == at(1) + 1 || at(1) == at(2) + 1, "{found:?}");
    }

    #[test]
    fn each_block_is_placed_once_and_the_entry_first() {
        let jumps: Vec<Jump> = (0..400)
            .map(|at| jump(at * 7 % 40, at * 13 % 41, at as u64 % 17))
            .collect();
        let found = order(&nodes(&[3; 40]), &jumps);
        assert_eq!(found[0], 0);
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..40).collect::<Vec<_>>());
        assert!(order(&[], &jumps).is_empty());
    }
}
