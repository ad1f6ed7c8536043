//! How far a partial path extends without a choice (thesis §3.5.1), before it is split at regions.

use pleach_analysis::partial_path::PartialPath;
use pleach_analysis::regions::Regions;
use pleach_analysis::regions::split::{Leave, Portion};
use pleach_annotate::id::BlockIndex;

/// Splits what bursts show of a path. With `extend`, first up to a join and down to a branch where the path's own ends
/// were not seen; downwards that may lead into regions that no burst has seen.
pub fn split_partial_path(regions: &Regions, piece: &PartialPath, extend: bool) -> Vec<Portion> {
    let end = piece.end.map(Leave::from);
    if !extend {
        return regions.split(&piece.blocks, end);
    }
    let (blocks, left) = extended(regions, piece.start.is_none(), &piece.blocks, end.is_none());
    regions.split(&blocks, end.or(left.then_some(Leave::Out)))
}

/// Blocks with those before them up to a join and those after them down to a branch, and whether the extension
/// downwards ends where the function does.
pub fn extended(regions: &Regions, up: bool, blocks: &[BlockIndex], down: bool) -> (Vec<BlockIndex>, bool) {
    let known = |&&block: &&BlockIndex| regions.region_of(block).is_some();
    let mut all = Vec::new();
    if let Some(&first) = blocks.first().filter(known).filter(|_| up) {
        all = before(regions, first);
    }
    all.extend_from_slice(blocks);
    let Some(&last) = blocks.last().filter(known).filter(|_| down) else {
        return (all, false);
    };
    let (after, left) = after(regions, last);
    all.extend(after);
    (all, left)
}

/// The blocks that must have come before a block, nearest last, up to a join.
fn before(regions: &Regions, block: BlockIndex) -> Vec<BlockIndex> {
    let mut before = Vec::new();
    let mut at = block;
    while let &[only] = regions.predecessors(at) {
        // A path may also begin there. No cycle is without such a block.
        if regions.may_begin(at) {
            break;
        }
        before.push(only);
        at = only;
    }
    before.reverse();
    before
}

/// The blocks that must come after a block has been entered, down to a branch, a call that may not return or a block
/// that was already passed; and whether the last of them leaves the function.
fn after(regions: &Regions, block: BlockIndex) -> (Vec<BlockIndex>, bool) {
    let mut after = Vec::new();
    let mut at = block;
    while let (&[only], false) = (regions.successors(at), regions.may_end_in_call(at)) {
        if only == block || after.contains(&only) {
            break;
        }
        after.push(only);
        at = only;
    }
    (after, regions.successors(at).is_empty())
}
