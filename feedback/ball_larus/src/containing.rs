//! Matching sets: the paths that contain a piece (Shye et al., Def. 3.2).

use super::graph::{EdgeKind, PathGraph};
use super::{End, Path, Start};
use pleach_annotate::id::BlockIndex;

/// The beginning of a path.
type Prefix = (Start, Vec<BlockIndex>);

impl PathGraph {
    /// The paths that contain consecutive blocks, at their beginning or end where that is given; none where there are more
    /// than `most`.
    pub fn containing(&self, start: Option<Start>, blocks: &[BlockIndex], end: Option<End>, most: u64) -> Vec<Path> {
        let (Some(&first), Some(&last)) = (blocks.first(), blocks.last()) else {
            return Vec::new();
        };
        let has = |kind| self.find(kind).is_some();
        if !blocks.windows(2).all(|pair| has(EdgeKind::Flow(pair[0], pair[1]))) {
            return Vec::new();
        }
        let suffixes = match end {
            Some(end) => vec![(Vec::new(), end)],
            None if self.paths_from(last) > most => return Vec::new(),
            None => self.suffixes(last),
        };
        let most = most / suffixes.len().max(1) as u64;
        let prefixes: Option<Vec<Prefix>> = match start {
            Some(start) => Some(vec![(start, Vec::new())]),
            None => self.prefixes(first, most),
        };
        let mut paths = Vec::new();
        for (start, before) in prefixes.unwrap_or_default() {
            for (after, end) in &suffixes {
                let blocks = [&before[..], blocks, after].concat();
                paths.push(Path {
                    start,
                    blocks,
                    end: *end,
                });
            }
        }
        paths.retain(|path| self.number_of(path).is_some());
        paths
    }

    /// The ways from a block to EXIT, without the block.
    fn suffixes(&self, block: BlockIndex) -> Vec<(Vec<BlockIndex>, End)> {
        let mut ways = Vec::new();
        let mut stack = vec![vec![block]];
        while let Some(way) = stack.pop() {
            for edge in self.out(way[way.len() - 1].index()) {
                match self.edges()[edge] {
                    EdgeKind::Flow(_, to) => stack.push(way.iter().copied().chain([to]).collect()),
                    EdgeKind::End(_, end) => ways.push((way[1..].to_vec(), end)),
                    _ => {}
                }
            }
        }
        ways
    }

    /// The ways from ENTRY to a block, without the block; `None` where there are too many.
    fn prefixes(&self, block: BlockIndex, most: u64) -> Option<Vec<Prefix>> {
        let mut into = vec![0_u64; self.blocks()];
        for edge in &self.edges()[..self.acyclic()] {
            if let EdgeKind::Start(_, to) = edge {
                into[to.index()] += 1;
            }
        }
        for &from in self.topological() {
            for edge in self.out(from.index()) {
                if let EdgeKind::Flow(_, to) = self.edges()[edge] {
                    into[to.index()] = into[to.index()].saturating_add(into[from.index()]);
                }
            }
        }
        if into[block.index()] > most {
            return None;
        }
        let mut before: Vec<Vec<BlockIndex>> = vec![Vec::new(); self.blocks()];
        let mut starts: Vec<Vec<Start>> = vec![Vec::new(); self.blocks()];
        for edge in &self.edges()[..self.acyclic()] {
            match *edge {
                EdgeKind::Start(start, to) => starts[to.index()].push(start),
                EdgeKind::Flow(from, to) => before[to.index()].push(from),
                _ => {}
            }
        }
        let (mut ways, mut stack) = (Vec::new(), vec![vec![block]]);
        while let Some(way) = stack.pop() {
            let at = way[way.len() - 1].index();
            let rest = || way[1..].iter().rev().copied().collect::<Vec<_>>();
            ways.extend(starts[at].iter().map(|&start| (start, rest())));
            stack.extend(
                before[at]
                    .iter()
                    .map(|&from| way.iter().copied().chain([from]).collect()),
            );
        }
        Some(ways)
    }
}
