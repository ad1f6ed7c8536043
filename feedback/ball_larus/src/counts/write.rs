//! Encodes counts as a file's content. `pleach-store` writes it.

use super::Counts;
use super::UnitCounts;
use super::layout::{BLOCK_HEADER, BlockHeader, BlockKind, MAGIC, PAGE, PAIR, SEGMENT_HEADER, SegmentHeader, VERSION};
use super::unit::{self, Unit, UnitId};
use crate::data::Storage;
use std::io::{self, BufWriter, Write};

/// Capacity of the smallest hash table, in pairs; the same as in an instrumented program.
const MIN_TABLE_PAIRS: usize = 256;

/// Checks that a file can hold these counts.
///
/// # Errors
/// Fails if a count belongs to a counter that its function does not have.
pub fn check(counts: &Counts) -> Result<(), String> {
    counts
        .units
        .values()
        .try_for_each(|(unit, counts)| check_unit(unit, counts))
}

fn check_unit(unit: &Unit, counts: &UnitCounts) -> Result<(), String> {
    if unit.functions.len() != counts.functions.len() {
        let (has, counted) = (unit.functions.len(), counts.functions.len());
        return Err(format!("{counted} functions are counted where a unit has {has}"));
    }
    for (function, counts) in unit.functions.iter().zip(&counts.functions) {
        let name = &function.cfg.name;
        if let Some((number, _)) = counts.iter().find(|(number, _)| *number >= function.counters) {
            return Err(format!("function {name} has no counter {number}"));
        }
        let end = match function.storage {
            Storage::Array => function.offset.checked_add(function.counters),
            Storage::Hash => Some(0),
        };
        if end.is_none_or(|end| end > unit.words) {
            return Err(format!("function {name} has counters outside of its unit's"));
        }
    }
    Ok(())
}

/// Writes counts, in one segment for each unit. Problems are not written.
pub fn encode(out: impl Write, counts: &Counts) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    let mut header = vec![0; PAGE];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&(PAGE as u32).to_le_bytes());
    // The identifier of the program's start stays zero. No program has it, so none will append to this file.
    out.write_all(&header)?;
    for (unit, counts) in counts.units.values() {
        let blocks = segment(unit, counts);
        let used = SEGMENT_HEADER + blocks.len();
        let length = used.next_multiple_of(PAGE);
        let header = SegmentHeader {
            length: length as u64,
            used: used as u64,
        };
        out.write_all(&header.encode())?;
        out.write_all(&blocks)?;
        out.write_all(&[0; PAGE][..length - used])?;
    }
    out.flush()
}

/// All blocks of a unit.
fn segment(unit: &Unit, counts: &UnitCounts) -> Vec<u8> {
    let (description, id) = unit::encode(unit);
    let mut out = Vec::new();
    push(
        &mut out,
        BlockHeader::new(BlockKind::Unit, id, description.len() as u64),
        &description,
    );
    let functions = || unit.functions.iter().zip(&counts.functions);
    let in_arrays = || functions().filter(|(f, counts)| f.storage == Storage::Array && !counts.is_empty());
    if in_arrays().next().is_some() {
        let mut words = vec![0; unit.words as usize * 8];
        for (function, counts) in in_arrays() {
            for &(number, count) in counts {
                let at = (function.offset + number) as usize * 8;
                words[at..at + 8].copy_from_slice(&count.to_le_bytes());
            }
        }
        push(&mut out, BlockHeader::new(BlockKind::Counters, id, unit.words), &words);
    }
    for (position, (function, counts)) in functions().enumerate() {
        if function.storage == Storage::Hash && !counts.is_empty() {
            table(&mut out, id, position, counts);
        }
    }
    out
}

fn table(out: &mut Vec<u8>, unit: UnitId, position: usize, counts: &[(u64, u64)]) {
    let capacity = (counts.len() * 2).next_power_of_two().max(MIN_TABLE_PAIRS);
    let mut pairs = vec![0; capacity * PAIR];
    for &(number, count) in counts {
        // An instrumented program would search from here; readers read all slots.
        let mut slot = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % capacity;
        while pairs[slot * PAIR..slot * PAIR + 8] != [0; 8] {
            slot = (slot + 1) % capacity;
        }
        let pair = &mut pairs[slot * PAIR..(slot + 1) * PAIR];
        pair[..8].copy_from_slice(&(number + 1).to_le_bytes());
        pair[8..].copy_from_slice(&count.to_le_bytes());
    }
    let header = BlockHeader {
        function: position as u64,
        ..BlockHeader::new(BlockKind::Table, unit, capacity as u64)
    };
    push(out, header, &pairs);
}

fn push(out: &mut Vec<u8>, header: BlockHeader, content: &[u8]) {
    out.extend_from_slice(&header.encode());
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(BLOCK_HEADER), 0);
}
