//! Matching sets: the paths that contain a partial path (Shye et al., Def. 3.2).

use super::data::{End, Path, Start};
use super::graph::{EdgeKind, PathGraph};
use pleach_annotate::id::BlockIndex;

/// The beginning of a path, up to a block.
struct Prefix {
    start: Start,
    blocks: Vec<BlockIndex>,
}

/// The remainder of a path after a block.
struct Suffix {
    blocks: Vec<BlockIndex>,
    end: End,
}

impl PathGraph {
    /// The paths that contain these consecutive blocks: at their beginning if `start` is given, at their end if `end`
    /// is given. Returns no paths if there are more than `max`.
    pub fn containing(&self, start: Option<Start>, blocks: &[BlockIndex], end: Option<End>, max: u64) -> Vec<Path> {
        let (Some(&first), Some(&last)) = (blocks.first(), blocks.last()) else {
            return Vec::new();
        };
        let has = |kind| self.find(kind).is_some();
        if !blocks.windows(2).all(|pair| has(EdgeKind::Flow(pair[0], pair[1]))) {
            return Vec::new();
        }
        let suffixes = match end {
            Some(end) => vec![Suffix {
                blocks: Vec::new(),
                end,
            }],
            None if self.paths_from(last) > max => return Vec::new(),
            None => self.suffixes(last),
        };
        let max = max / suffixes.len().max(1) as u64;
        let prefixes = match start {
            Some(start) => Some(vec![Prefix {
                start,
                blocks: Vec::new(),
            }]),
            None => self.prefixes(first, max),
        };
        let mut paths = Vec::new();
        for prefix in prefixes.unwrap_or_default() {
            for suffix in &suffixes {
                paths.push(Path {
                    start: prefix.start,
                    blocks: [&prefix.blocks[..], blocks, &suffix.blocks].concat(),
                    end: suffix.end,
                });
            }
        }
        paths.retain(|path| self.number_of(path).is_some());
        paths
    }

    /// The paths from a block to EXIT, without the block.
    fn suffixes(&self, block: BlockIndex) -> Vec<Suffix> {
        let mut suffixes = Vec::new();
        let mut stack = vec![vec![block]];
        while let Some(blocks) = stack.pop() {
            for edge in self.out(blocks[blocks.len() - 1].index()) {
                match self.edges()[edge] {
                    EdgeKind::Flow(_, to) => stack.push(blocks.iter().copied().chain([to]).collect()),
                    EdgeKind::End(_, end) => suffixes.push(Suffix {
                        blocks: blocks[1..].to_vec(),
                        end,
                    }),
                    _ => {}
                }
            }
        }
        suffixes
    }

    /// The paths from ENTRY to a block, without the block; `None` if there are more than `max`.
    fn prefixes(&self, block: BlockIndex, max: u64) -> Option<Vec<Prefix>> {
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
        if into[block.index()] > max {
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
        // Each entry is a path to `block` in reverse.
        let (mut prefixes, mut stack) = (Vec::new(), vec![vec![block]]);
        while let Some(reversed) = stack.pop() {
            let first = reversed[reversed.len() - 1].index();
            prefixes.extend(starts[first].iter().map(|&start| Prefix {
                start,
                blocks: reversed[1..].iter().rev().copied().collect(),
            }));
            stack.extend(
                before[first]
                    .iter()
                    .map(|&from| reversed.iter().copied().chain([from]).collect()),
            );
        }
        Some(prefixes)
    }
}
