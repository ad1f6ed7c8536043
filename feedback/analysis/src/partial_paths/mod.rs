//! Partial paths (ALGORITHMS 1): what bursts show of the paths that activations of a function took.
//!
//! An activation's blocks are split where acyclic paths end (back edges, cut edges, exits), as Ball and Larus define them. A
//! piece that lies wholly inside a burst is a whole path; the pieces at a burst's ends, and around code that is not known,
//! lack a beginning or an end. A shadow call stack keeps activations apart, so that pieces go on after calls: they are not cut
//! there, however much other code ran in between.
//!
//! The phases, one a file: [`copy`] finds the ways between blocks that were seen, [`walk`] splits what one activation passed,
//! [`frames`] tells activations apart, [`store`] sums up equal observations in all [`replicates`], and [`gather`] does so for all
//! bursts of a recording.

pub mod callers;
mod copies;
pub mod copy;
mod frames;
pub mod gather;
pub mod replicates;
mod store;
mod walk;

pub use gather::{Evidence, FunctionEvidence, Observation, Options, gather};

use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::{End, Path, Start};

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

/// Lists of pieces, one of which was passed; no branch of the program tells which.
pub type Alternatives = Vec<Vec<Piece>>;

impl Piece {
    /// The whole path, where all of it was seen.
    pub fn whole(&self) -> Option<Path> {
        Some(Path {
            start: self.start?,
            blocks: self.blocks.clone(),
            end: self.end?,
        })
    }

    /// The same blocks, of a path of which neither beginning nor end was seen.
    fn without_ends(&self) -> Self {
        Self {
            start: None,
            blocks: self.blocks.clone(),
            end: None,
        }
    }

    /// Whether it is a part of a path, or all of it.
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
