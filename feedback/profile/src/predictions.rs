//! Predictions of branches in a function's record:
//!
//! ```text
//! predictions  n, n × prediction     in block order
//! prediction   difference            the block, relative to the one before (the first relative to 0), zigzag LEB128
//!              3 × f32               executions with a known direction, mispredicted ones, lower bound of the interval
//! ```

use super::bytes::{RecordReader, push_difference, push_number, stored};
use super::data::{BranchPrediction, FunctionProfile};
use pleach_annotate::id::BlockIndex;

/// Why a function's predictions cannot be stored.
pub(super) fn unstorable(function: &FunctionProfile) -> Option<&'static str> {
    let all = &function.predictions;
    if all.iter().any(|p| p.block.index() >= function.blocks.len()) || !all.is_sorted_by(|a, b| a.block < b.block) {
        return Some("its predicted branches are of blocks that are not there, or out of order");
    }
    let senseless = all.iter().any(|p| !is_sensible(p));
    senseless.then_some(
        "a branch is mispredicted more often than it is executed, or its count of mispredictions is negative or not finite",
    )
}

fn is_sensible(p: &BranchPrediction) -> bool {
    p.watched.is_finite() && 0.0 <= p.low && p.low <= p.mispredicted && p.mispredicted <= p.watched
}

/// Appends predictions.
pub(super) fn encode(predictions: &[BranchPrediction], out: &mut Vec<u8>) {
    push_number(out, predictions.len() as u64);
    let mut last = 0;
    for p in predictions {
        push_difference(out, last, p.block.0);
        last = p.block.0;
        for value in [p.watched, p.mispredicted, p.low] {
            out.extend(stored(value).to_le_bytes());
        }
    }
}

/// Decodes predictions of a function with `blocks` blocks.
pub(super) fn decode(reader: &mut RecordReader<'_>, blocks: usize) -> Result<Vec<BranchPrediction>, &'static str> {
    let count = reader.number()?;
    let mut all: Vec<BranchPrediction> = Vec::with_capacity((count as usize).min(reader.bytes.len() / 13));
    for _ in 0..count {
        let last = all.last().map(|p| p.block);
        let block = reader.relative(last.map_or(0, |b| b.0))?.map(BlockIndex);
        let block = block.filter(|b| b.index() < blocks && last.is_none_or(|last| last < *b));
        let prediction = BranchPrediction {
            block: block.ok_or("its predicted branches are of blocks that are not there, or out of order")?,
            watched: reader.value()?,
            mispredicted: reader.value()?,
            low: reader.value()?,
        };
        if !is_sensible(&prediction) {
            return Err("a branch is mispredicted more often than it is executed");
        }
        all.push(prediction);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const BLOCKS: usize = 300;

    fn predictions() -> impl Strategy<Value = Vec<BranchPrediction>> {
        let shares = (0.0..1e12, 0.0..=1.0f64, 0.0..=1.0f64);
        prop::collection::btree_map(0..BLOCKS as u32, shares, 0..20).prop_map(|all: BTreeMap<_, _>| {
            let prediction = |(block, (watched, rate, low)): (u32, (f64, f64, f64))| BranchPrediction {
                block: BlockIndex(block),
                watched,
                mispredicted: watched * rate,
                low: watched * rate * low,
            };
            all.into_iter().map(prediction).collect()
        })
    }

    fn decoded(bytes: &[u8]) -> Result<Vec<BranchPrediction>, &'static str> {
        let mut reader = RecordReader { bytes };
        let read = decode(&mut reader, BLOCKS)?;
        if reader.bytes.is_empty() {
            Ok(read)
        } else {
            Err("bytes left over")
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_up_to_rounding(written in predictions()) {
            let mut bytes = Vec::new();
            encode(&written, &mut bytes);
            let read = decoded(&bytes).unwrap();
            for (read, written) in read.iter().zip(&written) {
                prop_assert_eq!(read.block, written.block);
                prop_assert!((read.mispredicted - written.mispredicted).abs() <= written.mispredicted * 1e-7);
            }
            let mut again = Vec::new();
            encode(&read, &mut again);
            prop_assert_eq!(&again, &bytes);
            for end in 0..bytes.len() {
                prop_assert!(decoded(&bytes[..end]).is_err());
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(read) = decoded(&bytes) {
                prop_assert!(read.iter().all(|p| p.block.index() < BLOCKS && is_sensible(p)));
            }
        }
    }
}
