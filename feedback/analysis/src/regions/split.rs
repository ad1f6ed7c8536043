//! Paths split where regions end (thesis §3.5.3).

use super::{RegionIndex, Regions};
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::{End, Path};

/// How control left a region.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Leave {
    /// Along the edge to this block.
    To(BlockIndex),
    /// Out of the function: from a block without successors, or in a call that did not return.
    Out,
}

/// The part of a partial path that lies in one region.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Portion {
    /// The region.
    pub region: RegionIndex,
    /// The blocks passed, at least one, without gaps.
    pub blocks: Vec<BlockIndex>,
    /// How control left the region after them, if that was observed.
    pub leave: Option<Leave>,
}

impl Regions {
    /// Splits consecutive blocks. `end` says how control left the last of them, where that is known.
    ///
    /// Where no edge leads to the next block, a portion ends without its end being known. Blocks that cannot be reached
    /// are in no region and are left out.
    pub fn split(&self, blocks: &[BlockIndex], end: Option<Leave>) -> Vec<Portion> {
        let mut portions: Vec<Portion> = Vec::new();
        for &block in blocks {
            let Some(region) = self.region_of(block) else { continue };
            let last = portions.last_mut();
            let from = last.as_ref().and_then(|portion| portion.blocks.last().copied());
            let is_edge = from.is_some_and(|from| self.is_edge(from, block));
            match (last, from) {
                (Some(last), Some(from)) if is_edge && !self.crosses(from, block) => last.blocks.push(block),
                (last, _) => {
                    if let Some(last) = last {
                        last.leave = is_edge.then_some(Leave::To(block));
                    }
                    portions.push(Portion {
                        region,
                        blocks: vec![block],
                        leave: None,
                    });
                }
            }
        }
        if let Some(last) = portions.last_mut() {
            last.leave = end;
        }
        portions
    }

    /// Splits a whole path.
    pub fn split_path(&self, path: &Path) -> Vec<Portion> {
        self.split(&path.blocks, Some(path.end.into()))
    }
}

impl From<End> for Leave {
    fn from(end: End) -> Self {
        match end {
            End::Back(to) | End::Cut(to) => Self::To(to),
            End::Exit | End::Call => Self::Out,
        }
    }
}
