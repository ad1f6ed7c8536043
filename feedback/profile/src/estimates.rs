//! Estimated paths and coverage in a function's record.
//!
//! A profile has no graphs, so paths are stored as blocks and not as Ball and Larus's numbers. They are sorted like
//! [`Path`], and each is stored as its difference from the path before it:
//!
//! ```text
//! paths        n, n × path
//! path         shared × 8 + end × 2 + start   number of first blocks shared with the path before; see `head`
//!              rest, rest × difference        further blocks, relative to the block before (the first relative to 0)
//!              difference                     target of the back edge or cut edge, relative to the last block; only
//!                                             for such ends
//!              4 × f32                        count, low, high, effective sample size
//! windows      n, n × window                  ordered by their positions
//! window       paths, paths × position        position of a path in the list above
//!              f32                            count
//! called       n, n × called path             ordered by caller and position
//! called path  GUID, module, graph hash       of the caller: 8, 4 and 8 bytes
//!              blocks, blocks × difference    relative to the block before
//!              position, f32                  position of a path in the list above, count
//! coverage     0 if there is none, else 1 and runs of (length − 1) × 8 + state until all blocks have one
//! counted      0 if there are none, else 1 and runs of length − 1, least number, largest number + 1 or 0 if unknown,
//!              until all blocks have one
//! ```
//! Numbers are unsigned LEB128, differences zigzag LEB128. Rounding to `f32` changes a value by at most 6·10⁻⁸ of it,
//! which is negligible against an estimate's interval. The decoder returns paths in the order of
//! [`FunctionProfile::paths`].

use super::bytes::{RecordReader, push_difference, push_number, stored};
use super::data::{CallCrossingPath, Caller, Covered, EstimatedPath, Executions, FunctionProfile, PathWindow};
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_ball_larus::{End, Path, Start};
use rustc_hash::FxHashMap;

/// Limit on the number of blocks of a function's paths together, which bounds the memory that a corrupt record can make
/// the decoder allocate.
const MAX_PATH_BLOCKS: usize = 1 << 24;
/// Limit on the number of blocks of a caller.
const MAX_CALLER_BLOCKS: usize = 64;

/// Why a function's paths or coverage cannot be stored.
pub(super) fn unstorable(function: &FunctionProfile) -> Option<&'static str> {
    let (blocks, paths) = (function.blocks.len(), &function.paths);
    if !function.coverage.is_empty() && function.coverage.len() != blocks {
        return Some("its coverage and its counts have different numbers of blocks");
    }
    if !function.counted.is_empty() && function.counted.len() != blocks {
        return Some("its counted executions and its counts have different numbers of blocks");
    }
    if paths.iter().map(|p| p.path.blocks.len()).sum::<usize>() > MAX_PATH_BLOCKS {
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
        return Some("a path has no blocks, too many blocks, or blocks that are not there");
    }
    if !paths.iter().all(is_sensible) {
        return Some("a path's count or interval is negative or not finite");
    }
    let sorted = in_order(paths);
    let twice = sorted.windows(2).any(|pair| pair[0].path == pair[1].path);
    if twice {
        return Some("a path occurs twice");
    }
    let positions = positions(&sorted);
    let senseless = |w: &PathWindow| {
        !(2..=PathWindow::MAX_PATHS).contains(&w.paths.len())
            || w.paths.iter().any(|path| !positions.contains_key(path))
            || !(w.count.is_finite() && w.count >= 0.0)
    };
    if function.windows.iter().any(senseless) {
        return Some("a window has too few, too many or unknown paths, or its count is negative or not finite");
    }
    let windows = windows_in_order(&function.windows, &positions);
    if windows.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Some("a window of paths occurs twice");
    }
    let senseless = |c: &CallCrossingPath| {
        c.caller.before.len() > MAX_CALLER_BLOCKS
            || !positions.contains_key(&c.path)
            || !(c.count.is_finite() && c.count >= 0.0)
    };
    if function.called.iter().any(senseless) {
        return Some(
            "a called path has too many blocks before it or is unknown, or its count is negative or not finite",
        );
    }
    let called = called_in_order(&function.called, &positions);
    let twice = called
        .windows(2)
        .any(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1));
    twice.then_some("a called path occurs twice")
}

/// Position of each path in the file's order.
fn positions<'p>(sorted: &[&'p EstimatedPath]) -> FxHashMap<&'p Path, u32> {
    let numbered = sorted.iter().enumerate();
    numbered.map(|(at, estimated)| (&estimated.path, at as u32)).collect()
}

/// Windows as positions of paths, sorted by them, with their counts.
fn windows_in_order(windows: &[PathWindow], positions: &FxHashMap<&Path, u32>) -> Vec<(Vec<u32>, f64)> {
    let positions_of = |w: &PathWindow| w.paths.iter().filter_map(|path| positions.get(path).copied()).collect();
    let mut all: Vec<(Vec<u32>, f64)> = windows.iter().map(|w| (positions_of(w), w.count)).collect();
    all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    all
}

/// Called paths as callers and positions of paths, sorted by them, with their counts.
fn called_in_order<'f>(
    called: &'f [CallCrossingPath],
    positions: &FxHashMap<&Path, u32>,
) -> Vec<(&'f Caller, u32, f64)> {
    let entry = |c: &'f CallCrossingPath| Some((&c.caller, *positions.get(&c.path)?, c.count));
    let mut all: Vec<_> = called.iter().filter_map(entry).collect();
    all.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    all
}

/// Appends paths, windows, called paths and coverage.
pub(super) fn encode(function: &FunctionProfile, out: &mut Vec<u8>) {
    push_number(out, function.paths.len() as u64);
    let mut before: &[BlockIndex] = &[];
    let sorted = in_order(&function.paths);
    for estimated in &sorted {
        let Path { start, blocks, end } = &estimated.path;
        let shared = before.iter().zip(blocks).take_while(|(a, b)| a == b).count();
        push_number(out, (shared as u64) << 3 | head(*start, *end));
        let (known, rest) = blocks.split_at(shared);
        push_number(out, rest.len() as u64);
        let mut last = known.last().map_or(0, |b| b.0);
        for block in rest {
            push_difference(out, last, block.0);
            last = block.0;
        }
        if let Some(to) = target(*end) {
            push_difference(out, last, to.0);
        }
        for value in numbers(estimated) {
            out.extend(stored(value).to_le_bytes());
        }
        before = blocks;
    }
    push_number(out, function.windows.len() as u64);
    for (paths, count) in windows_in_order(&function.windows, &positions(&sorted)) {
        push_number(out, paths.len() as u64);
        paths.iter().for_each(|&path| push_number(out, path.into()));
        out.extend(stored(count).to_le_bytes());
    }
    push_number(out, function.called.len() as u64);
    for (caller, path, count) in called_in_order(&function.called, &positions(&sorted)) {
        out.extend(caller.id.guid.0.to_le_bytes());
        out.extend(caller.id.module.0.to_le_bytes());
        out.extend(caller.cfg_hash.0.to_le_bytes());
        push_number(out, caller.before.len() as u64);
        let mut last = 0;
        for block in &caller.before {
            push_difference(out, last, block.0);
            last = block.0;
        }
        push_number(out, path.into());
        out.extend(stored(count).to_le_bytes());
    }
    encode_coverage(&function.coverage, out);
    encode_counted(&function.counted, out);
}

/// The estimates in a record; see [`FunctionProfile`].
#[derive(Debug)]
pub(super) struct Estimates {
    pub paths: Vec<EstimatedPath>,
    pub windows: Vec<PathWindow>,
    pub called: Vec<CallCrossingPath>,
    pub coverage: Vec<Covered>,
    pub counted: Vec<Executions>,
}

/// Decodes paths, windows, called paths and coverage of a function with `blocks` blocks.
pub(super) fn decode(reader: &mut RecordReader<'_>, blocks: usize) -> Result<Estimates, &'static str> {
    let count = reader.number()?;
    // Reserves no more than the remaining bytes suggest.
    let mut paths: Vec<EstimatedPath> = Vec::with_capacity((count as usize).min(reader.bytes.len() / 19));
    let mut blocks_left = MAX_PATH_BLOCKS;
    for _ in 0..count {
        let before = paths.last().map(|p| &p.path);
        let path = decode_path(reader, before, blocks, &mut blocks_left)?;
        if before.is_some_and(|before| *before >= path) {
            return Err("its paths are out of order");
        }
        let estimated = EstimatedPath {
            path,
            count: reader.value()?,
            low: reader.value()?,
            high: reader.value()?,
            effective: reader.value()?,
        };
        if !is_sensible(&estimated) {
            return Err("a path's count is not a number");
        }
        paths.push(estimated);
    }
    let windows = decode_windows(reader, &paths)?;
    let called = decode_called(reader, &paths)?;
    paths.sort_unstable_by(EstimatedPath::hottest_first);
    Ok(Estimates {
        paths,
        windows,
        called,
        coverage: decode_coverage(reader, blocks)?,
        counted: decode_counted(reader, blocks)?,
    })
}

fn decode_called(
    reader: &mut RecordReader<'_>,
    paths: &[EstimatedPath],
) -> Result<Vec<CallCrossingPath>, &'static str> {
    let count = reader.number()?;
    let mut called: Vec<CallCrossingPath> = Vec::with_capacity((count as usize).min(reader.bytes.len() / 26));
    let mut before = None;
    for _ in 0..count {
        let id = FunctionId {
            guid: FunctionGuid(u64::from_le_bytes(reader.array()?)),
            module: ModuleHash(u32::from_le_bytes(reader.array()?)),
        };
        let cfg_hash = CfgHash(u64::from_le_bytes(reader.array()?));
        let blocks = reader.number()?;
        if blocks > MAX_CALLER_BLOCKS as u64 {
            return Err("a called path has too many blocks before it");
        }
        let mut last = 0;
        let mut passed = Vec::with_capacity(blocks as usize);
        for _ in 0..blocks {
            last = reader
                .relative(last)?
                .ok_or("a called path comes from an impossible block")?;
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
        let count = reader.value()?;
        let key = Some((caller.clone(), at));
        if key <= before {
            return Err("its called paths are out of order");
        }
        if !(count.is_finite() && count >= 0.0) {
            return Err("a called path's count is not a number");
        }
        before = key;
        called.push(CallCrossingPath { caller, path, count });
    }
    Ok(called)
}

fn decode_windows(reader: &mut RecordReader<'_>, paths: &[EstimatedPath]) -> Result<Vec<PathWindow>, &'static str> {
    let count = reader.number()?;
    let mut windows = Vec::with_capacity((count as usize).min(reader.bytes.len() / 7));
    let mut before: Vec<u64> = Vec::new();
    for _ in 0..count {
        let length = reader.number()?;
        if !(2..=PathWindow::MAX_PATHS as u64).contains(&length) {
            return Err("a window has too few paths, or too many");
        }
        let positions = (0..length).map(|_| reader.number()).collect::<Result<Vec<u64>, _>>()?;
        let path = |&at: &u64| paths.get(usize::try_from(at).ok()?).map(|p| p.path.clone());
        let found: Option<Vec<Path>> = positions.iter().map(path).collect();
        let window = PathWindow {
            paths: found.ok_or("a window has a path that is not there")?,
            count: reader.value()?,
        };
        if positions <= before {
            return Err("its windows are out of order");
        }
        if !(window.count.is_finite() && window.count >= 0.0) {
            return Err("a window's count is not a number");
        }
        before = positions;
        windows.push(window);
    }
    Ok(windows)
}

fn in_order(paths: &[EstimatedPath]) -> Vec<&EstimatedPath> {
    let mut sorted: Vec<&EstimatedPath> = paths.iter().collect();
    sorted.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    sorted
}

/// Only the effective sample size may be infinite: that of an estimate without variance.
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

/// Encodes how a path begins (bit 0: inside) and ends (bits 1 and 2).
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
    reader: &mut RecordReader<'_>,
    before: Option<&Path>,
    blocks: usize,
    blocks_left: &mut usize,
) -> Result<Path, &'static str> {
    let head = reader.number()?;
    let (shared, rest) = (head >> 3, reader.number()?);
    let before = before.map_or(&[][..], |p| &p.blocks);
    let known = usize::try_from(shared).ok().and_then(|n| before.get(..n));
    let known = known.ok_or("a path shares more blocks than the path before it has")?;
    let length = known.len() as u64 + rest.min(u64::from(u32::MAX));
    if length == 0 || length > blocks as u64 {
        return Err("a path has no blocks, or too many");
    }
    *blocks_left = blocks_left
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
    push_number(out, u64::from(!coverage.is_empty()));
    for run in coverage.chunk_by(|a, b| a == b) {
        push_number(out, (run.len() as u64 - 1) << 3 | run[0] as u64);
    }
}

fn decode_coverage(reader: &mut RecordReader<'_>, blocks: usize) -> Result<Vec<Covered>, &'static str> {
    match reader.number()? {
        0 => return Ok(Vec::new()),
        1 if blocks > 0 => {}
        _ => return Err("its coverage is of an unknown kind"),
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

fn encode_counted(counted: &[Executions], out: &mut Vec<u8>) {
    push_number(out, u64::from(!counted.is_empty()));
    for run in counted.chunk_by(|a, b| a == b) {
        push_number(out, run.len() as u64 - 1);
        push_number(out, run[0].at_least);
        push_number(out, run[0].at_most.map_or(0, |most| most.saturating_add(1)));
    }
}

fn decode_counted(reader: &mut RecordReader<'_>, blocks: usize) -> Result<Vec<Executions>, &'static str> {
    match reader.number()? {
        0 => return Ok(Vec::new()),
        1 if blocks > 0 => {}
        _ => return Err("its counted executions are of an unknown kind"),
    }
    let mut counted = Vec::with_capacity(blocks);
    while counted.len() < blocks {
        let length = reader.number()?;
        let executions = Executions {
            at_least: reader.number()?,
            at_most: reader.number()?.checked_sub(1),
        };
        if length >= (blocks - counted.len()) as u64 {
            return Err("it has more counted executions than counts");
        }
        counted.resize(counted.len() + length as usize + 1, executions);
    }
    Ok(counted)
}

#[cfg(test)]
mod tests;
