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
//! windows   n, then n × window               in the order of their positions
//! window    paths, paths × position          of a path in the list above
//!           f32                              count
//! called    n, then n × called path          in the order of caller and position
//! called    guid, module, graph              of the caller: 8, 4 and 8 bytes
//! path      blocks, blocks × difference      each against the block before it
//!           position, f32                    of a path in the list above, count
//! coverage  0 where there is none, else 1 and runs of (length − 1) × 8 + state until all blocks have one
//! ```
//! Numbers and differences are LEB128, differences zigzagged. An `f32` rounds by 6·10⁻⁸ of the value: nothing beside an
//! estimate's interval. What is read is in the order that [`FunctionProfile::paths`] has.

use super::bytes::{Reader, difference, number};
use super::{CalledPath, Caller, Covered, EstimatedPath, FunctionProfile, PathWindow};
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_ball_larus::{End, Path, Start};
use rustc_hash::FxHashMap;

/// More blocks than the paths of any function have together; it bounds what a record can make us allocate.
const MOST_PATH_BLOCKS: usize = 1 << 24;
/// More blocks than are kept of any caller.
const MOST_CALLER_BLOCKS: usize = 64;

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
    if twice {
        return Some("a path occurs twice");
    }
    let positions = positions(&sorted);
    let senseless = |w: &PathWindow| {
        !(2..=PathWindow::LONGEST).contains(&w.paths.len())
            || w.paths.iter().any(|path| !positions.contains_key(path))
            || !(w.count.is_finite() && w.count >= 0.0)
    };
    if function.windows.iter().any(senseless) {
        return Some("a window has too many paths, unknown ones, or a count that is no number from 0 on");
    }
    let windows = windows_in_order(&function.windows, &positions);
    if windows.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Some("a window of paths occurs twice");
    }
    let senseless = |c: &CalledPath| {
        c.caller.before.len() > MOST_CALLER_BLOCKS
            || !positions.contains_key(&c.path)
            || !(c.count.is_finite() && c.count >= 0.0)
    };
    if function.called.iter().any(senseless) {
        return Some(
            "a called path has too many blocks before it, is unknown, or has a count that is no number from 0 on",
        );
    }
    let called = called_in_order(&function.called, &positions);
    let twice = called
        .windows(2)
        .any(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1));
    twice.then_some("a called path occurs twice")
}

/// Where each path is in the file's order.
fn positions<'p>(sorted: &[&'p EstimatedPath]) -> FxHashMap<&'p Path, u32> {
    let numbered = sorted.iter().enumerate();
    numbered.map(|(at, estimated)| (&estimated.path, at as u32)).collect()
}

/// Windows as positions of paths, which they are sorted by, and their counts.
fn windows_in_order(windows: &[PathWindow], positions: &FxHashMap<&Path, u32>) -> Vec<(Vec<u32>, f64)> {
    let of = |w: &PathWindow| w.paths.iter().filter_map(|path| positions.get(path).copied()).collect();
    let mut all: Vec<(Vec<u32>, f64)> = windows.iter().map(|w| (of(w), w.count)).collect();
    all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    all
}

/// Callers, positions of called paths, which they are sorted by, and their counts.
fn called_in_order<'f>(called: &'f [CalledPath], positions: &FxHashMap<&Path, u32>) -> Vec<(&'f Caller, u32, f64)> {
    let of = |c: &'f CalledPath| Some((&c.caller, *positions.get(&c.path)?, c.count));
    let mut all: Vec<_> = called.iter().filter_map(of).collect();
    all.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    all
}

/// Appends paths, windows, called paths and coverage.
pub(super) fn encode(function: &FunctionProfile, out: &mut Vec<u8>) {
    number(out, function.paths.len() as u64);
    let mut before: &[BlockIndex] = &[];
    let sorted = in_order(&function.paths);
    for estimated in &sorted {
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
    number(out, function.windows.len() as u64);
    for (paths, count) in windows_in_order(&function.windows, &positions(&sorted)) {
        number(out, paths.len() as u64);
        paths.iter().for_each(|&path| number(out, path.into()));
        out.extend(stored(count).to_le_bytes());
    }
    number(out, function.called.len() as u64);
    for (caller, path, count) in called_in_order(&function.called, &positions(&sorted)) {
        out.extend(caller.id.guid.0.to_le_bytes());
        out.extend(caller.id.module.0.to_le_bytes());
        out.extend(caller.cfg_hash.0.to_le_bytes());
        number(out, caller.before.len() as u64);
        let mut last = 0;
        for block in &caller.before {
            difference(out, last, block.0);
            last = block.0;
        }
        number(out, path.into());
        out.extend(stored(count).to_le_bytes());
    }
    encode_coverage(&function.coverage, out);
}

/// What [`decode`] reads.
type Decoded = (Vec<EstimatedPath>, Vec<PathWindow>, Vec<CalledPath>, Vec<Covered>);

/// Reads paths, windows, called paths and coverage of a function with this many blocks.
pub(super) fn decode(reader: &mut Reader<'_>, blocks: usize) -> Result<Decoded, &'static str> {
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
        let mut value = || value(reader);
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
    let windows = decode_windows(reader, &paths)?;
    let called = decode_called(reader, &paths)?;
    paths.sort_unstable_by(EstimatedPath::hottest_first);
    Ok((paths, windows, called, decode_coverage(reader, blocks)?))
}

fn decode_called(reader: &mut Reader<'_>, paths: &[EstimatedPath]) -> Result<Vec<CalledPath>, &'static str> {
    let count = reader.number()?;
    let mut called: Vec<CalledPath> = Vec::with_capacity((count as usize).min(reader.bytes.len() / 26));
    let mut before = None;
    for _ in 0..count {
        let id = FunctionId {
            guid: FunctionGuid(u64::from_le_bytes(reader.array()?)),
            module: ModuleHash(u32::from_le_bytes(reader.array()?)),
        };
        let cfg_hash = CfgHash(u64::from_le_bytes(reader.array()?));
        let blocks = reader.number()?;
        if blocks > MOST_CALLER_BLOCKS as u64 {
            return Err("a called path has too many blocks before it");
        }
        let mut last = 0;
        let mut passed = Vec::with_capacity(blocks as usize);
        for _ in 0..blocks {
            last = reader
                .relative(last)?
                .ok_or("a called path comes from a block that cannot be")?;
            passed.push(BlockIndex(last));
        }
        let caller = Caller {
            id,
            cfg_hash,
            before: passed,
        };
        let at = reader.number()?;
        let path = usize::try_from(at).ok().and_then(|at| paths.get(at));
        let path = path.ok_or("a called path is not there")?.path.clone();
        let count = value(reader)?;
        let key = Some((caller.clone(), at));
        if key <= before {
            return Err("its called paths are out of order");
        }
        if !(count.is_finite() && count >= 0.0) {
            return Err("a called path's count is no number");
        }
        before = key;
        called.push(CalledPath { caller, path, count });
    }
    Ok(called)
}

pub(super) fn value(reader: &mut Reader<'_>) -> Result<f64, &'static str> {
    Ok(f32::from_le_bytes(reader.array()?).into())
}

fn decode_windows(reader: &mut Reader<'_>, paths: &[EstimatedPath]) -> Result<Vec<PathWindow>, &'static str> {
    let count = reader.number()?;
    let mut windows = Vec::with_capacity((count as usize).min(reader.bytes.len() / 7));
    let mut before: Vec<u64> = Vec::new();
    for _ in 0..count {
        let length = reader.number()?;
        if !(2..=PathWindow::LONGEST as u64).contains(&length) {
            return Err("a window has too few paths, or too many");
        }
        let positions = (0..length).map(|_| reader.number()).collect::<Result<Vec<u64>, _>>()?;
        let path = |&at: &u64| paths.get(usize::try_from(at).ok()?).map(|p| p.path.clone());
        let of: Option<Vec<Path>> = positions.iter().map(path).collect();
        let window = PathWindow {
            paths: of.ok_or("a window has a path that is not there")?,
            count: value(reader)?,
        };
        if positions <= before {
            return Err("its windows are out of order");
        }
        if !(window.count.is_finite() && window.count >= 0.0) {
            return Err("a window's count is no number");
        }
        before = positions;
        windows.push(window);
    }
    Ok(windows)
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
