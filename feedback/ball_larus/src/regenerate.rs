//! From a number back to its path (§3.5 of the paper), and from a window's key to its paths.

use super::data::{End, Path, Start};
use super::graph::{EdgeIndex, EdgeKind, PathGraph};
use pleach_annotate::id::BlockIndex;

impl PathGraph {
    /// The path with this number; `None` if it is [`PathGraph::numbers`] or more.
    ///
    /// A self loop counts as a path of one block that begins inside and ends at a back edge to the same block.
    pub fn path(&self, number: u64) -> Option<Path> {
        let edges = self.edges_of(number)?;
        if let [EdgeIndex(only)] = edges[..] {
            return match self.edges()[only as usize] {
                EdgeKind::SelfLoop(block) => Some(loop_path(block)),
                _ => None,
            };
        }
        let mut path = Path {
            start: Start::Entry,
            blocks: Vec::with_capacity(edges.len() - 1),
            end: End::Exit,
        };
        for edge in edges {
            match self.edges()[edge.index()] {
                EdgeKind::Start(start, block) => {
                    path.start = start;
                    path.blocks.push(block);
                }
                EdgeKind::Flow(_, block) => path.blocks.push(block),
                EdgeKind::End(_, end) => path.end = end,
                EdgeKind::SelfLoop(_) => return None,
            }
        }
        Some(path)
    }

    /// The number of a path; `None` if the graph does not have the path.
    pub fn number_of(&self, path: &Path) -> Option<u64> {
        let (&first, &last) = (path.blocks.first()?, path.blocks.last()?);
        if let Some(edge) = self.find(EdgeKind::SelfLoop(first))
            && *path == loop_path(first)
        {
            return Some(self.paths() + (edge.index() - self.acyclic()) as u64);
        }
        if self.paths() == 0 {
            return None;
        }
        let mut number = self.value(self.find(EdgeKind::Start(path.start, first))?);
        for pair in path.blocks.windows(2) {
            number += self.value(self.find(EdgeKind::Flow(pair[0], pair[1]))?);
        }
        Some(number + self.value(self.find(EdgeKind::End(last, path.end))?))
    }

    /// The paths of the window with this key, oldest first: `window` paths, or fewer soon after the function's entry.
    /// `None` for a key that no window has.
    ///
    /// With W = [`PathGraph::numbers`] + 1, the key is the sum of digit j times W^j. Digit j is one more than the
    /// number of the path j places before the latest one, or 0 if there was no such path yet.
    pub fn window(&self, mut key: u64, window: u8) -> Option<Vec<Path>> {
        if self.numbers() == 0 {
            return None;
        }
        let base = self.numbers() + 1;
        let mut paths = Vec::with_capacity(window.into());
        while key != 0 && paths.len() < window.into() {
            paths.push(self.path((key % base).checked_sub(1)?)?);
            key /= base;
        }
        paths.reverse();
        (key == 0 && !paths.is_empty()).then_some(paths)
    }

    /// The edges of the path with this number, or the self loop with this number.
    pub(super) fn edges_of(&self, number: u64) -> Option<Vec<EdgeIndex>> {
        if number >= self.numbers() {
            return None;
        }
        if let Some(self_loop) = number.checked_sub(self.paths()) {
            return Some(vec![EdgeIndex((self.acyclic() as u64 + self_loop) as u32)]);
        }
        let (mut rest, mut edges) = (number, Vec::new());
        let mut vertex = self.entry();
        while vertex != self.exit() {
            let out = self.by_value(vertex);
            // The edge with the largest value up to the rest. It exists, since the first edge's value is 0.
            let above = out.partition_point(|&edge| self.value(EdgeIndex(edge)) <= rest);
            let edge = EdgeIndex(*out.get(above.checked_sub(1)?)?);
            rest -= self.value(edge);
            vertex = self.target(edge.index());
            edges.push(edge);
        }
        Some(edges)
    }
}

fn loop_path(block: BlockIndex) -> Path {
    Path {
        start: Start::Inside,
        blocks: vec![block],
        end: End::Back(block),
    }
}
