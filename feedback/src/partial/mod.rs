//! Partial paths (ALGORITHMS 1): what bursts show of the paths that activations of a function took.
//!
//! An activation's blocks are split where acyclic paths end (back edges, cut edges, exits), as Ball and Larus define them. A
//! piece that lies wholly inside a burst is a whole path; the pieces at a burst's ends, and around code that is not known,
//! lack a beginning or an end.

use crate::ball_larus::{End, Path, Start};
use pleach_annotate::id::BlockIndex;

/// Consecutive blocks of one path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Piece {
    /// How the path begins, where its beginning was seen: then `blocks` begins with its first block.
    pub start: Option<Start>,
    /// The blocks that it passed, at least one, without gaps.
    pub blocks: Vec<BlockIndex>,
    /// How the path ends, where its end was seen: then `blocks` ends with its last block.
    pub end: Option<End>,
}

impl Piece {
    /// The whole path, where all of it was seen.
    pub fn whole(&self) -> Option<Path> {
        Some(Path {
            start: self.start?,
            blocks: self.blocks.clone(),
            end: self.end?,
        })
    }
}
