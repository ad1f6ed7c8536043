//! Estimated paths and coverage in a function's record.
//!
//! A profile has no graphs, so that paths are stored as blocks and not as Ball and Larus's numbers. They are sorted as
//! [`Path`]s are, and each is what it adds to the one before:
//!
//! ```text
//! paths     n, then n × path
//! path      shared × 8 + end × 2 + start     blocks shared with the path before; see `head`
//!           rest, rest × difference          further blocks, each against the block before it (the first against 0)
//!           difference                       the block that a back edge or cut edge leads to, against the last block
//!           4 × f32                          count, low, high, effective
//! coverage  0 where there is none, else 1 and runs of (length − 1) × 8 + state until all blocks have one
//! ```
//! Numbers and differences are LEB128, differences zigzagged. An `f32` rounds by 6·10⁻⁸ of the value: nothing beside an
//! estimate's interval. What is read is in the order that [`FunctionProfile::paths`] has.

use super::bytes::{Reader, difference, number};
use super::{Covered, EstimatedPath, FunctionProfile};
use crate::ball_larus::{End, Path, Start};
use pleach_annotate::id::BlockIndex;

/// More blocks than the paths of any function have together; it bounds what a record can make us allocate.
const MOST_PATH_BLOCKS: usize = 1 << 24;

/// Why a function's paths or coverage cannot be stored, if so.
pub(super) fn unstorable(function: &FunctionProfile) -> Option<&'static str> {
    let (blocks, paths) = (function.blocks.len(), &function.paths);
    if !function.coverage.is_empty() && function.coverage.len() != blocks {
        return Some("its coverage has other blocks than its counts");
    }
    if paths.iter().map(|p| p.path.blocks.len()).sum::<usize>() > MOST_PATH_BLOCKS {
        return Some("its paths have too many blocks");
    }
    let senseless = |p: &EstimatedPath| {
        let known = |b: &BlockIndex| b.index() < blocks;
        let length = p.path.blocks.len();
        length == 0
            || length > blocks
            || !p.path.blocks.iter().all(known)
            || target(p.path.end).is_some_and(|b| !known(&b))
    };
    if paths.iter().any(senseless) {
        return Some("a path has no blocks, too many, or ones that are not there");
    }
    if !paths.iter().all(is_sensible) {
        return Some("a path's count or interval is no number from 0 on");
    }
    let sorted = in_order(paths);
    let twice = sorted.windows(2).any(|pair| pair[0].path == pair[1].path);
    twice.then_some("a path occurs twice")
}

/// Appends paths and coverage.
pub(super) fn encode(function: &FunctionProfile, out: &mut Vec<u8>) {
    number(out, function.paths.len() as u64);
    let mut before: &[BlockIndex] = &[];
    for estimated in in_order(&function.paths) {
        let Path { start, blocks, end } = &estimated.path;
        let shared = before.iter().zip(blocks).take_while(|(a, b)| a == b).count();
        number(out, (shared as u64) << 3 | head(*start, *end));
        let (known, rest) = blocks.split_at(shared);
        number(out, rest.len() as u64);
        let mut last = known.last().map_or(0, |b| b.0);
        for block in rest {
            difference(out, last, block.0);
            last = block.0;
        }
        if let Some(to) = target(*end) {
            difference(out, last, to.0);
        }
        for value in numbers(estimated) {
            out.extend(stored(value).to_le_bytes());
        }
        before = blocks;
    }
    encode_coverage(&function.coverage, out);
}

/// Reads paths and coverage of a function with this many blocks.
pub(super) fn decode(
    reader: &mut Reader<'_>,
    blocks: usize,
) -> Result<(Vec<EstimatedPath>, Vec<Covered>), &'static str> {
    let count = reader.number()?;
    // Reserves no more than the bytes at hand suggest.
    let mut paths: Vec<EstimatedPath> = Vec::with_capacity((count as usize).min(reader.bytes.len() / 19));
    let mut room = MOST_PATH_BLOCKS;
    for _ in 0..count {
        let before = paths.last().map(|p| &p.path);
        let path = decode_path(reader, before, blocks, &mut room)?;
        if before.is_some_and(|before| *before >= path) {
            return Err("its paths are out of order");
        }
        let mut value = || -> Result<f64, &'static str> {
            let mut raw = [0; 4];
            raw.copy_from_slice(reader.take(4)?);
            Ok(f32::from_le_bytes(raw).into())
        };
        let estimated = EstimatedPath {
            path,
            count: value()?,
            low: value()?,
            high: value()?,
            effective: value()?,
        };
        if !is_sensible(&estimated) {
            return Err("a path's count is no number");
        }
        paths.push(estimated);
    }
    paths.sort_unstable_by(EstimatedPath::hottest_first);
    Ok((paths, decode_coverage(reader, blocks)?))
}

/// A value as the file has it.
pub(super) fn stored(value: f64) -> f32 {
    // A cast alone would make infinity of what is too large.
    if value.is_infinite() {
        f32::INFINITY
    } else {
        (value as f32).min(f32::MAX)
    }
}

fn in_order(paths: &[EstimatedPath]) -> Vec<&EstimatedPath> {
    let mut sorted: Vec<&EstimatedPath> = paths.iter().collect();
    sorted.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    sorted
}

/// Only what is estimated of nothing that varied is worth infinitely many observations.
fn is_sensible(path: &EstimatedPath) -> bool {
    let finite = [path.count, path.low, path.high]
        .iter()
        .all(|n| n.is_finite() && *n >= 0.0);
    finite && path.effective >= 0.0
}

fn numbers(path: &EstimatedPath) -> [f64; 4] {
    [path.count, path.low, path.high, path.effective]
}

fn target(end: End) -> Option<BlockIndex> {
    match end {
        End::Back(to) | End::Cut(to) => Some(to),
        End::Exit | End::Call => None,
    }
}

/// How a path begins (bit 0: inside) and ends (bits 1 and 2).
fn head(start: Start, end: End) -> u64 {
    let end = match end {
        End::Exit => 0,
        End::Back(_) => 1,
        End::Cut(_) => 2,
        End::Call => 3,
    };
    end << 1 | u64::from(start == Start::Inside)
}

fn decode_path(
    reader: &mut Reader<'_>,
    before: Option<&Path>,
    blocks: usize,
    room: &mut usize,
) -> Result<Path, &'static str> {
    let head = reader.number()?;
    let (shared, rest) = (head >> 3, reader.number()?);
    let before = before.map_or(&[][..], |p| &p.blocks);
    let known = usize::try_from(shared).ok().and_then(|n| before.get(..n));
    let known = known.ok_or("a path shares more than there is")?;
    let length = known.len() as u64 + rest.min(u64::from(u32::MAX));
    if length == 0 || length > blocks as u64 {
        return Err("a path has no blocks, or too many");
    }
    *room = room
        .checked_sub(length as usize)
        .ok_or("its paths have too many blocks")?;
    let mut path = Vec::with_capacity(length as usize);
    path.extend_from_slice(known);
    let mut last = known.last().map_or(0, |b| b.0);
    let mut block = |last| match reader.relative(last)? {
        Some(block) if (block as usize) < blocks => Ok(block),
        _ => Err("a path has a block that is not there"),
    };
    for _ in 0..rest {
        last = block(last)?;
        path.push(BlockIndex(last));
    }
    let end = match head >> 1 & 3 {
        0 => End::Exit,
        1 => End::Back(BlockIndex(block(last)?)),
        2 => End::Cut(BlockIndex(block(last)?)),
        _ => End::Call,
    };
    let start = if head & 1 == 0 { Start::Entry } else { Start::Inside };
    Ok(Path {
        start,
        blocks: path,
        end,
    })
}

fn encode_coverage(coverage: &[Covered], out: &mut Vec<u8>) {
    number(out, u64::from(!coverage.is_empty()));
    for run in coverage.chunk_by(|a, b| a == b) {
        number(out, (run.len() as u64 - 1) << 3 | run[0] as u64);
    }
}

fn decode_coverage(reader: &mut Reader<'_>, blocks: usize) -> Result<Vec<Covered>, &'static str> {
    match reader.number()? {
        0 => return Ok(Vec::new()),
        1 if blocks > 0 => {}
        _ => return Err("its coverage is of no known kind"),
    }
    let mut coverage = Vec::with_capacity(blocks);
    while coverage.len() < blocks {
        let run = reader.number()?;
        let state = Covered::from_u8((run & 7) as u8).ok_or("its coverage has an unknown state")?;
        let length = (run >> 3) + 1;
        if length > (blocks - coverage.len()) as u64 {
            return Err("its coverage has more blocks than its counts");
        }
        coverage.resize(coverage.len() + length as usize, state);
    }
    Ok(coverage)
}

#[cfg(test)]
mod tests;
