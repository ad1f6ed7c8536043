//! How one block with a probe follows another in an inline instance of a function, where other blocks have none.

use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// How one block of an inline instance follows another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Over these edges, through blocks that have no probe.
    Path(Vec<u32>),
    /// Every path passes blocks whose probes are not in all of the inline instance's code: the optimiser decided their
    /// branches, as in the last iteration of an unrolled loop. These edges and blocks are on all paths through the
    /// fewest such blocks; other edges are unknown.
    Implied(Vec<u32>, Vec<BlockIndex>),
    /// Two paths lead there through blocks without probes: this block's branch chooses between them, and no other does.
    /// The optimiser made selects of what they compute, and code generation may have made a branch of these again.
    Choice(BlockIndex),
    /// There is no path, or there are several others.
    Unknown,
}

/// The graph of one inline instance, in which steps are searched for.
#[derive(Clone, Copy)]
pub(crate) struct Graph<'a> {
    pub cfg: &'a Cfg,
    /// See [`Cfg::edge_bases`].
    pub bases: &'a [u32],
    /// By block: it has a probe in this inline instance.
    pub probed: &'a [bool],
}

/// Maximum number of steps of a search; beyond it the step counts as unknown.
const MAX_SEARCH: usize = 256;
/// Maximum number of edges of which the common ones are determined.
const MAX_LINKS: usize = 64;

impl Graph<'_> {
    /// The only path from one block to another through blocks without probes; if there is none, the common part of the
    /// paths through blocks with probes.
    pub fn find_step(self, from: BlockIndex, to: BlockIndex) -> Step {
        let mut search = StepSearch {
            graph: self,
            to,
            budget: MAX_SEARCH,
            path: Vec::new(),
            found: Vec::new(),
            gives_up: false,
        };
        search.walk(from);
        if search.gives_up || search.budget == 0 {
            return Step::Unknown;
        }
        match &mut search.found[..] {
            [] => self.find_implied(from, to).unwrap_or(Step::Unknown),
            [path] => Step::Path(std::mem::take(path)),
            [one, other] => self.find_choice(one, other).map_or(Step::Unknown, Step::Choice),
            _ => Step::Unknown,
        }
    }

    /// The only block on two paths that has several successors.
    fn find_choice(self, one: &[u32], other: &[u32]) -> Option<BlockIndex> {
        let mut blocks: Vec<BlockIndex> = self.choosing(one).chain(self.choosing(other)).collect();
        blocks.dedup();
        (blocks.len() == 1).then(|| blocks[0])
    }

    /// The blocks with several successors on a path.
    pub fn choosing(self, edges: &[u32]) -> impl Iterator<Item = BlockIndex> {
        let blocks = edges.iter().map(move |&edge| self.source(edge));
        blocks.filter(move |block| {
            let successors = &self.cfg.blocks[block.index()].successors;
            successors.iter().any(|next| *next != successors[0])
        })
    }

    /// The block that an edge leaves.
    fn source(self, edge: u32) -> BlockIndex {
        BlockIndex(self.bases.partition_point(|&base| base <= edge) as u32 - 1)
    }

    /// The common part of all paths from one block to another through the fewest blocks with probes.
    fn find_implied(self, from: BlockIndex, to: BlockIndex) -> Option<Step> {
        let links = self.fewest_probes(from, to)?;
        let surely = |one: &dyn Fn(&Link) -> bool| !leads(&links, from, to, one);
        let mut edges: Vec<u32> = links.iter().map(|link| link.edge).collect();
        edges.retain(|&edge| surely(&|link| link.edge == edge));
        edges.sort_unstable();
        let mut implied: Vec<BlockIndex> = links.iter().map(|link| link.to).collect();
        implied.sort_unstable();
        implied.dedup();
        implied.retain(|&block| block != to && self.probed[block.index()] && surely(&|link| link.to == block));
        (!implied.is_empty()).then_some(Step::Implied(edges, implied))
    }

    /// The edges of all paths through the fewest blocks with probes; `None` if there are none, or more than
    /// [`MAX_LINKS`].
    fn fewest_probes(self, from: BlockIndex, to: BlockIndex) -> Option<Vec<Link>> {
        // By block: how many blocks with probes have been passed when control leaves it (0-1 breadth-first search).
        let mut passed: FxHashMap<BlockIndex, u32> = FxHashMap::default();
        let mut queue = VecDeque::from([(from, 0)]);
        let mut fewest = None;
        while let Some((block, count)) = queue.pop_front() {
            if fewest.is_some_and(|fewest| count > fewest) {
                break;
            }
            if passed.contains_key(&block) {
                continue;
            }
            passed.insert(block, count);
            for &next in &self.cfg.blocks[block.index()].successors {
                if next == to {
                    fewest = Some(fewest.map_or(count, |fewest: u32| fewest.min(count)));
                } else if self.probed[next.index()] {
                    queue.push_back((next, count + 1));
                } else {
                    queue.push_front((next, count));
                }
            }
        }
        // Backwards, from a block to its predecessors on such a path.
        let mut links = Vec::new();
        let mut seen = FxHashSet::default();
        let mut stack = vec![(to, fewest?)];
        while let Some((at, count)) = stack.pop() {
            for (index, content) in self.cfg.blocks.iter().enumerate() {
                let block = BlockIndex(index as u32);
                let Some(slot) = content.successors.iter().position(|&next| next == at) else {
                    continue;
                };
                if passed.get(&block) != Some(&count) {
                    continue;
                }
                if links.len() == MAX_LINKS {
                    return None;
                }
                links.push(Link {
                    from: block,
                    to: at,
                    edge: self.bases[index] + slot as u32,
                });
                if block != from && seen.insert(block) {
                    stack.push((block, count - u32::from(self.probed[index])));
                }
            }
        }
        Some(links)
    }
}

/// An edge on a path.
struct Link {
    from: BlockIndex,
    to: BlockIndex,
    edge: u32,
}

/// Whether these edges, except those for which `but` holds, lead from one block to another.
fn leads(links: &[Link], from: BlockIndex, to: BlockIndex, but: &dyn Fn(&Link) -> bool) -> bool {
    let mut reached = FxHashSet::default();
    let mut stack = vec![from];
    while let Some(block) = stack.pop() {
        for link in links.iter().filter(|link| link.from == block && !but(link)) {
            if link.to == to {
                return true;
            }
            if reached.insert(link.to) {
                stack.push(link.to);
            }
        }
    }
    false
}

struct StepSearch<'a> {
    graph: Graph<'a>,
    to: BlockIndex,
    budget: usize,
    /// Blocks and edges on the path to the current block of the search.
    path: Vec<(BlockIndex, u32)>,
    found: Vec<Vec<u32>>,
    gives_up: bool,
}

impl StepSearch<'_> {
    fn walk(&mut self, block: BlockIndex) {
        let graph = self.graph;
        let successors = &graph.cfg.blocks[block.index()].successors;
        for (slot, &next) in successors.iter().enumerate() {
            if self.gives_up || self.budget == 0 {
                return;
            }
            if successors[..slot].contains(&next) {
                continue; // a second slot of one target cannot be told from the first
            }
            self.budget -= 1;
            let edge = graph.bases[block.index()] + slot as u32;
            if next == self.to {
                self.gives_up = self.found.len() == 2;
                self.found
                    .push(self.path.iter().map(|&(_, e)| e).chain([edge]).collect());
            } else if !graph.probed[next.index()] {
                if self.path.iter().any(|&(b, _)| b == next) {
                    // A loop of blocks without probes may have gone round any number of times.
                    self.gives_up = true;
                } else {
                    self.path.push((next, edge));
                    self.walk(next);
                    self.path.pop();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::testing::cfg;
    use proptest::prelude::*;

    /// Edges as pairs of blocks, and implied blocks.
    type Known = (Vec<(u32, u32)>, Vec<u32>);

    fn step(successors: &[&[u32]], without: &[u32], from: u32, to: u32) -> Option<Known> {
        let cfg = cfg(successors);
        let bases = cfg.edge_bases();
        let probed: Vec<bool> = (0..successors.len() as u32).map(|b| !without.contains(&b)).collect();
        let graph = Graph {
            cfg: &cfg,
            bases: &bases,
            probed: &probed,
        };
        let ends: Vec<(u32, u32)> = (successors.iter().zip(0..))
            .flat_map(|(to, from)| to.iter().map(move |&to| (from, to)))
            .collect();
        let (edges, implied) = match graph.find_step(BlockIndex(from), BlockIndex(to)) {
            Step::Path(edges) => (edges, Vec::new()),
            Step::Implied(edges, implied) => (edges, implied),
            Step::Choice(_) | Step::Unknown => return None,
        };
        let edges = edges.iter().map(|&edge| ends[edge as usize]).collect();
        Some((edges, implied.iter().map(|block| block.0).collect()))
    }

    /// A loop, tested before each iteration: 1 → 2 → 3 → 1, and out by 1 → 4.
    const LOOP: [&[u32]; 5] = [&[1], &[2, 4], &[3], &[1], &[]];

    #[test]
    fn the_only_way_without_probes() {
        assert_eq!(step(&LOOP, &[], 0, 1), Some((vec![(0, 1)], vec![])));
        assert_eq!(step(&LOOP, &[3], 2, 1), Some((vec![(2, 3), (3, 1)], vec![])));
        // Either arm of a diamond, or a loop that may have gone round.
        assert_eq!(step(&[&[1, 2], &[3], &[3], &[]], &[1, 2], 0, 3), None);
        assert_eq!(step(&[&[1], &[1, 2], &[]], &[1], 0, 2), None);
    }

    fn choice(successors: &[&[u32]], without: &[u32], from: u32, to: u32) -> Option<u32> {
        let cfg = cfg(successors);
        let (bases, probed): (_, Vec<bool>) = (
            cfg.edge_bases(),
            (0..successors.len() as u32).map(|b| !without.contains(&b)).collect(),
        );
        let graph = Graph {
            cfg: &cfg,
            bases: &bases,
            probed: &probed,
        };
        match graph.find_step(BlockIndex(from), BlockIndex(to)) {
            Step::Choice(branch) => Some(branch.0),
            _ => None,
        }
    }

    #[test]
    fn a_branch_that_became_selects_is_a_choice() {
        let diamond: [&[u32]; 4] = [&[1, 2], &[3], &[3], &[]];
        assert_eq!(choice(&diamond, &[1, 2], 0, 3), Some(0));
        assert_eq!(choice(&[&[1, 2], &[2], &[]], &[1], 0, 2), Some(0));
        // The branch may be in a block without a probe.
        assert_eq!(choice(&[&[1], &[2, 3], &[4], &[4], &[]], &[1, 2, 3], 0, 4), Some(1));
        // One way has a probe, or another branch follows.
        assert_eq!(choice(&diamond, &[1], 0, 3), None);
        assert_eq!(
            choice(&[&[1, 2], &[3], &[3], &[4, 5], &[], &[]], &[1, 2, 3], 0, 4),
            None
        );
        // Two choices, three ways, or a loop.
        let two: [&[u32]; 7] = [&[1, 2], &[3], &[3], &[4, 5], &[6], &[6], &[]];
        assert_eq!(choice(&two, &[1, 2, 3, 4, 5], 0, 6), None);
        assert_eq!(choice(&[&[1, 2, 3], &[4], &[4], &[4], &[]], &[1, 2, 3], 0, 4), None);
        assert_eq!(choice(&[&[1], &[1, 2], &[]], &[1], 0, 2), None);
    }

    #[test]
    fn a_test_that_an_unrolled_loop_does_not_make() {
        assert_eq!(step(&LOOP, &[], 2, 4), Some((vec![(1, 4), (2, 3), (3, 1)], vec![1, 3])));
        assert_eq!(step(&LOOP, &[3], 2, 4), Some((vec![(1, 4), (2, 3), (3, 1)], vec![1])));
        // From one iteration to the next.
        assert_eq!(step(&LOOP, &[3], 2, 2), Some((vec![(1, 2), (2, 3), (3, 1)], vec![1])));
    }

    #[test]
    fn fewest_implied_blocks_and_what_several_ways_share() {
        // By 1, or by 2 and 3.
        let graph: [&[u32]; 5] = [&[1, 2], &[4], &[3], &[4], &[]];
        assert_eq!(step(&graph, &[], 0, 4), Some((vec![(0, 1), (1, 4)], vec![1])));
        assert_eq!(step(&graph, &[3], 0, 4), None);
        // Blocks without probes may be many.
        assert_eq!(
            step(&[&[1, 2], &[4], &[3], &[5], &[5], &[]], &[1], 0, 5),
            Some((vec![(0, 1), (1, 4), (4, 5)], vec![4]))
        );
        // By 1 or by 2, then surely by 3.
        assert_eq!(
            step(&[&[1, 2], &[3], &[3], &[4], &[]], &[1, 2], 0, 4),
            Some((vec![(3, 4)], vec![3]))
        );
        // No path at all.
        assert_eq!(step(&graph, &[], 4, 1), None);
    }

    /// All paths without a block twice, as the blocks between and the edges.
    fn simple_paths(graph: &[Vec<u32>], at: u32, to: u32, between: &mut Vec<u32>, found: &mut Vec<Known>) {
        for &next in &graph[at as usize] {
            if next == to {
                let blocks: Vec<u32> = between.iter().copied().chain([to]).collect();
                let edges = blocks.windows(2).map(|pair| (pair[0], pair[1])).collect();
                found.push((edges, between[1..].to_vec()));
            } else if !between.contains(&next) {
                between.push(next);
                simple_paths(graph, next, to, between, found);
                between.pop();
            }
        }
    }

    fn shared<T: Copy + Ord>(of: &[Vec<T>]) -> Vec<T> {
        let mut all = of[0].clone();
        all.retain(|one| of.iter().all(|other| other.contains(one)));
        all.sort_unstable();
        all
    }

    proptest! {
        #[test]
        fn what_the_ways_through_fewest_probes_share(
            graph in prop::collection::vec(prop::collection::btree_set(1u32..8, 0..3), 8),
            without in prop::collection::btree_set(0u32..8, 0..4),
            from in 0u32..8,
            to in 1u32..8,
        ) {
            let graph: Vec<Vec<u32>> = graph.into_iter().map(|to| to.into_iter().collect()).collect();
            let slices: Vec<&[u32]> = graph.iter().map(Vec::as_slice).collect();
            let without: Vec<u32> = without.into_iter().filter(|&b| b != from && b != to).collect();
            let mut all = Vec::new();
            simple_paths(&graph, from, to, &mut vec![from], &mut all);
            let probes = |blocks: &[u32]| blocks.iter().filter(|b| !without.contains(b)).count();
            let fewest = all.iter().map(|(_, blocks)| probes(blocks)).min();
            all.retain(|(_, blocks)| Some(probes(blocks)) == fewest);
            let told = step(&slices, &without, from, to);
            match fewest {
                None => prop_assert_eq!(told, None),
                // Loops without probes may have gone round.
                Some(0) => prop_assert!(told.is_none_or(|(edges, implied)| all.len() == 1 && all[0].0 == edges && implied.is_empty())),
                Some(_) => {
                    let (edges, blocks): (Vec<_>, Vec<_>) = all.into_iter().unzip();
                    let mut implied = shared(&blocks);
                    implied.retain(|block| !without.contains(block));
                    if let Some(told) = told {
                        prop_assert_eq!(told, (shared(&edges), implied));
                    } else {
                        // Or paths without probes form a loop, on which the search for them gives up.
                        let has_loop = without.iter().any(|&block| {
                            let mut found = Vec::new();
                            simple_paths(&graph, block, block, &mut vec![block], &mut found);
                            found.iter().any(|(_, blocks)| probes(blocks) == 0)
                        });
                        prop_assert!(implied.is_empty() || has_loop);
                    }
                }
            }
        }
    }
}
