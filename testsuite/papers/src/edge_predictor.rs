//! Paths predicted from an edge profile (Ball & Larus, *Efficient Path Profiling*, §6.3): from where a path starts, the
//! most frequent edge is followed out of each block until the path ends.

use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::counts::exact::ExactFunction;
use pleach_ball_larus::graph::{EdgeKind, PathGraph};
use pleach_ball_larus::{End, Path};

/// Where a path goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    To(BlockIndex),
    End(End),
}

/// A function's most frequent edges.
#[derive(Clone, Debug)]
pub struct Predictor {
    /// By block: the most frequent successor, the first of equals. A loop of the block to itself that has a counter of
    /// its own is none: paths go on as if it were not there.
    successors: Vec<Option<(Step, u64)>>,
    /// By block: how often that loop was taken.
    loops: Vec<Option<u64>>,
}

impl Predictor {
    /// From the function's edge counts.
    pub fn new(function: &ExactFunction) -> Self {
        let graph = PathGraph::new(&function.cfg, &function.options);
        let flow = &function.flow;
        let taken = |from, to| flow.edges.get(&(from, to)).copied().unwrap_or(0);
        let mut this = Self {
            successors: vec![None; graph.blocks()],
            loops: vec![None; graph.blocks()],
        };
        for &kind in graph.edges() {
            let (from, step, count) = match kind {
                EdgeKind::Start(..) => continue,
                EdgeKind::SelfLoop(block) => {
                    this.loops[block.index()] = Some(taken(block, block));
                    continue;
                }
                EdgeKind::Flow(from, to) => (from, Step::To(to), taken(from, to)),
                EdgeKind::End(from, end @ (End::Back(to) | End::Cut(to))) => (from, Step::End(end), taken(from, to)),
                EdgeKind::End(from, end @ (End::Exit | End::Call)) => (from, Step::End(end), flow.exits[from.index()]),
            };
            let way = &mut this.successors[from.index()];
            if way.is_none_or(|(_, most)| count > most) {
                *way = Some((step, count));
            }
        }
        this
    }

    /// How many blocks of a path are predicted from its start on, the first included, and whether all of it is.
    pub fn predicted(&self, path: &Path) -> (usize, bool) {
        let (Some(&first), Some(&last)) = (path.blocks.first(), path.blocks.last()) else {
            return (0, true);
        };
        if path.blocks.len() == 1
            && path.end == End::Back(first)
            && let Some(count) = self.loops[first.index()]
        {
            let most = self.successors[first.index()].map_or(0, |(_, most)| most);
            return (1, count > most);
        }
        let way = |block: BlockIndex| self.successors[block.index()].map(|(step, _)| step);
        let steps = path.blocks.windows(2);
        let right = steps.take_while(|pair| way(pair[0]) == Some(Step::To(pair[1]))).count() + 1;
        let ends = right == path.blocks.len() && way(last) == Some(Step::End(path.end));
        (right, ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::manifest::Anchor;
    use pleach_annotate::testing;
    use pleach_ball_larus::edges::ExactFlow;
    use pleach_ball_larus::{NumberingOptions, Start};
    use std::collections::BTreeMap;

    /// 0 → 1 or 2 → 3; 3 loops to itself, or returns.
    fn function() -> ExactFunction {
        let edge = |from, to, count| ((BlockIndex(from), BlockIndex(to)), count);
        ExactFunction {
            cfg: testing::cfg(&[&[1, 2], &[3], &[3], &[3, 4], &[]]),
            anchor: Anchor::Early,
            options: NumberingOptions::default(),
            window: 1,
            paths: Vec::new(),
            flow: ExactFlow {
                entries: 10,
                blocks: vec![10, 3, 7, 40, 10],
                edges: BTreeMap::from([
                    edge(0, 1, 3),
                    edge(0, 2, 7),
                    edge(1, 3, 3),
                    edge(2, 3, 7),
                    edge(3, 3, 30),
                    edge(3, 4, 10),
                ]),
                exits: vec![0, 0, 0, 0, 10],
            },
        }
    }

    #[test]
    fn the_most_frequent_edges_are_followed() {
        let predictor = Predictor::new(&function());
        let path = |start, blocks: &[u32], end| Path {
            start,
            blocks: blocks.iter().map(|&b| BlockIndex(b)).collect(),
            end,
        };
        let frequent = path(Start::Entry, &[0, 2, 3, 4], End::Exit);
        assert_eq!(predictor.predicted(&frequent), (4, true));
        let seldom = path(Start::Entry, &[0, 1, 3, 4], End::Exit);
        assert_eq!(predictor.predicted(&seldom), (1, false));
        let round = path(Start::Inside, &[3], End::Back(BlockIndex(3)));
        assert_eq!(predictor.predicted(&round), (1, true));
    }
}
