//! The sums of a merged function, at the end of its record; records of single recordings have none:
//!
//! ```text
//! sums         n, n × (position of a path, count, low, high, effective, certain, kish),
//!              n, n × (position of a window, count),
//!              n, n × (position of a called path, count),
//!              n, n × (position of a prediction, watched, mispredicted, low)
//! ```
//! Positions are those of the record's lists, in ascending order, as LEB128. `certain` is LEB128; the others are sums of
//! [`sums`](crate::sums): two LEB128 numbers, the low 64 bits first.

use super::bytes::{RecordReader, push_number};
use super::data::{CallCrossingPath, FunctionProfile, PathWindow};
use super::sums::{FunctionSums, MAX_SUM, PathSum, PredictionSum};
use pleach_ball_larus::Path;
use std::collections::BTreeMap;

/// Why a function's sums cannot be stored.
pub(super) fn unstorable(function: &FunctionProfile) -> Option<&'static str> {
    let sums = function.sums.as_deref()?;
    let numbers = [
        (sums.paths.len(), function.paths.len()),
        (sums.windows.len(), function.windows.len()),
        (sums.called.len(), function.called.len()),
        (sums.predictions.len(), function.predictions.len()),
    ];
    let of_nothing = numbers.iter().any(|(sums, estimates)| sums > estimates);
    of_nothing.then_some("it has sums of estimates that are not there")
}

/// Appends a function's sums, if it has any.
pub(super) fn encode(function: &FunctionProfile, out: &mut Vec<u8>) {
    let Some(sums) = function.sums.as_deref().filter(|sums| !sums.is_empty()) else {
        return;
    };
    let mut paths: Vec<&Path> = function.paths.iter().map(|p| &p.path).collect();
    paths.sort_unstable();
    push_sums(out, paths.iter().map(|path| sums.paths.get(path)), |out, sum| {
        for value in [sum.count, sum.low, sum.high, sum.effective] {
            push_wide(out, value);
        }
        push_number(out, sum.certain);
        push_wide(out, sum.kish);
    });
    // The record's order is that of positions of paths, and these are sorted like the paths.
    let mut windows: Vec<&PathWindow> = function.windows.iter().collect();
    windows.sort_unstable_by(|a, b| a.paths.cmp(&b.paths));
    push_sums(out, windows.iter().map(|w| sums.windows.get(&w.paths)), |out, sum| {
        push_wide(out, *sum)
    });
    let mut called: Vec<&CallCrossingPath> = function.called.iter().collect();
    called.sort_unstable_by(|a, b| (&a.caller, &a.path).cmp(&(&b.caller, &b.path)));
    let by_key: BTreeMap<_, _> = sums
        .called
        .iter()
        .map(|((caller, path), sum)| ((caller, path), sum))
        .collect();
    push_sums(
        out,
        called.iter().map(|c| by_key.get(&(&c.caller, &c.path)).copied()),
        |out, sum| push_wide(out, *sum),
    );
    push_sums(
        out,
        function.predictions.iter().map(|p| sums.predictions.get(&p.block)),
        |out, sum| {
            for value in [sum.watched, sum.mispredicted, sum.low] {
                push_wide(out, value);
            }
        },
    );
}

/// Appends the sums of a list's elements that have one.
fn push_sums<S>(out: &mut Vec<u8>, sums: impl Iterator<Item = Option<S>>, mut push: impl FnMut(&mut Vec<u8>, S)) {
    let present: Vec<(usize, S)> = sums.enumerate().filter_map(|(at, sum)| Some((at, sum?))).collect();
    push_number(out, present.len() as u64);
    for (at, sum) in present {
        push_number(out, at as u64);
        push(out, sum);
    }
}

fn push_wide(out: &mut Vec<u8>, value: u128) {
    push_number(out, value as u64);
    push_number(out, (value >> 64) as u64);
}

/// Decodes the rest of the record of `function`.
pub(super) fn decode(reader: &mut RecordReader<'_>, function: &FunctionProfile) -> Result<FunctionSums, &'static str> {
    let mut sums = FunctionSums::default();
    let mut paths: Vec<&Path> = function.paths.iter().map(|p| &p.path).collect();
    paths.sort_unstable();
    read_sums(reader, paths.len(), |reader, at| {
        let sum = PathSum {
            count: wide(reader)?,
            low: wide(reader)?,
            high: wide(reader)?,
            effective: wide(reader)?,
            certain: reader.number()?,
            kish: wide(reader)?,
        };
        sums.paths.insert(paths[at].clone(), sum);
        Ok(())
    })?;
    read_sums(reader, function.windows.len(), |reader, at| {
        sums.windows.insert(function.windows[at].paths.clone(), wide(reader)?);
        Ok(())
    })?;
    read_sums(reader, function.called.len(), |reader, at| {
        let CallCrossingPath { caller, path, .. } = function.called[at].clone();
        sums.called.insert((caller, path), wide(reader)?);
        Ok(())
    })?;
    read_sums(reader, function.predictions.len(), |reader, at| {
        let sum = PredictionSum {
            watched: wide(reader)?,
            mispredicted: wide(reader)?,
            low: wide(reader)?,
        };
        sums.predictions.insert(function.predictions[at].block, sum);
        Ok(())
    })?;
    if sums.is_empty() {
        return Err("bytes left over");
    }
    Ok(sums)
}

/// Reads sums of a list of `length` elements.
fn read_sums<'r>(
    reader: &mut RecordReader<'r>,
    length: usize,
    mut read: impl FnMut(&mut RecordReader<'r>, usize) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    let mut next = 0;
    for _ in 0..reader.number()? {
        let at = usize::try_from(reader.number()?)
            .ok()
            .filter(|at| (next..length).contains(at));
        let at = at.ok_or("a sum is of an estimate that is not there, or out of order")?;
        read(reader, at)?;
        next = at + 1;
    }
    Ok(())
}

fn wide(reader: &mut RecordReader<'_>) -> Result<u128, &'static str> {
    let low = u128::from(reader.number()?);
    let value = u128::from(reader.number()?) << 64 | low;
    if value > MAX_SUM {
        return Err("a sum is too large");
    }
    Ok(value)
}
