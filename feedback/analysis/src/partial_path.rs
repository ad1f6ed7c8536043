//! Partial paths: the observed part of a path that an activation took.

use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::{End, Path, Start};

/// Consecutive blocks of one path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PartialPath {
    /// How the path begins, if that was observed: then `blocks` begins with its first block.
    pub start: Option<Start>,
    /// The blocks passed, at least one, without gaps.
    pub blocks: Vec<BlockIndex>,
    /// How the path ends, if that was observed: then `blocks` ends with its last block.
    pub end: Option<End>,
}

/// Lists of partial paths. The activation passed one of the lists; no branch of the program tells which.
pub type Alternatives = Vec<Vec<PartialPath>>;

impl PartialPath {
    /// The whole path, if all of it was observed.
    pub fn whole(&self) -> Option<Path> {
        Some(Path {
            start: self.start?,
            blocks: self.blocks.clone(),
            end: self.end?,
        })
    }

    /// Whether it is a part of `path`, or all of it.
    pub fn is_of(&self, path: &Path) -> bool {
        let fits = |at: usize| path.blocks[at..].starts_with(&self.blocks);
        let at = match self.start {
            Some(start) => (start == path.start && fits(0)).then_some(0),
            // A block is on an acyclic path once.
            None => path
                .blocks
                .iter()
                .position(|&b| b == self.blocks[0])
                .filter(|&at| fits(at)),
        };
        at.is_some_and(|at| match self.end {
            Some(end) => end == path.end && at + self.blocks.len() == path.blocks.len(),
            None => true,
        })
    }
}
