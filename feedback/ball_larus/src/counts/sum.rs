//! From blocks to counts: sums the blocks of each unit.

use super::UnitCounts;
use super::error::Problem;
use super::layout::{BlockKind, FileBlock, PAIR};
use super::unit::{self, Unit, UnitError, UnitFunction, UnitId, read_u64};
use crate::data::Storage;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The counts of all units of a file, from its blocks.
pub(super) fn units(file: &[u8], blocks: &[FileBlock]) -> (BTreeMap<UnitId, (Unit, UnitCounts)>, Vec<Problem>) {
    let of_kind = |kind: BlockKind| blocks.iter().filter(move |b| b.header.kind == kind as u32);
    let mut problems = Vec::new();
    let descriptions = describe(file, of_kind(BlockKind::Unit), &mut problems);
    let mut contents: BTreeMap<UnitId, CounterBlocks<'_>> = BTreeMap::new();
    for block in of_kind(BlockKind::Counters) {
        contents.entry(block.header.unit).or_default().arrays.push(block);
    }
    for block in of_kind(BlockKind::Table) {
        contents.entry(block.header.unit).or_default().tables.push(block);
    }
    for (&unit, content) in contents.iter().filter(|(unit, _)| !descriptions.contains_key(unit)) {
        let all = content.arrays.iter().chain(&content.tables);
        let blocks = all.filter(|b| is_filled(b.content(file))).count() as u64;
        if blocks != 0 {
            problems.push(Problem::NoUnit { unit, blocks });
        }
    }
    let mut units = BTreeMap::new();
    for (id, unit) in descriptions {
        let content = contents.remove(&id).unwrap_or_default();
        let mut sum = Sum {
            file,
            id,
            unit: &unit,
            problems: &mut problems,
        };
        let counts = sum.content(content);
        units.insert(id, (unit, counts));
    }
    (units, problems)
}

/// A unit's counters and hash tables.
#[derive(Default)]
struct CounterBlocks<'b> {
    arrays: Vec<&'b FileBlock>,
    tables: Vec<&'b FileBlock>,
}

fn is_filled(bytes: &[u8]) -> bool {
    bytes.iter().any(|&byte| byte != 0)
}

/// Decodes the descriptions of units. Descriptions repeat, because a child process writes its parent's again.
fn describe<'b>(
    file: &[u8],
    blocks: impl Iterator<Item = &'b FileBlock>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<UnitId, Unit> {
    let mut units = BTreeMap::new();
    for block in blocks {
        let unit = block.header.unit;
        let description = &block.content(file)[..block.header.size as usize];
        let decoded = if UnitId::from_description(description) == unit {
            if units.contains_key(&unit) {
                continue;
            }
            unit::decode(description)
        } else {
            Err(UnitError::Checksum)
        };
        match decoded {
            Ok(decoded) => drop(units.insert(unit, decoded)),
            Err(error) if block.in_use => problems.push(Problem::Unit { unit, error }),
            Err(_) => {}
        }
    }
    units
}

struct Sum<'a> {
    file: &'a [u8],
    id: UnitId,
    unit: &'a Unit,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Sum<'a> {
    fn content(&mut self, content: CounterBlocks<'_>) -> UnitCounts {
        let arrays: Vec<&[u8]> = content.arrays.into_iter().filter_map(|b| self.array(b)).collect();
        let mut tables: BTreeMap<usize, Vec<&FileBlock>> = BTreeMap::new();
        for block in content.tables {
            if let Some(function) = self.function_of_table(block) {
                tables.entry(function).or_default().push(block);
            }
        }
        let unit = self.unit;
        let functions = unit.functions.iter().enumerate().map(|(position, function)| {
            match (function.storage, tables.get(&position)) {
                (Storage::Array, _) => sum_arrays(function, &arrays),
                (Storage::Hash, Some(tables)) => self.sum_tables(function, tables),
                (Storage::Hash, None) => Vec::new(),
            }
        });
        UnitCounts {
            functions: functions.collect(),
        }
    }

    /// One thread's array, if its length is that of the unit.
    fn array(&mut self, block: &FileBlock) -> Option<&'a [u8]> {
        let (found, expected) = (block.header.size, self.unit.words);
        if found == expected {
            return Some(block.content(self.file));
        }
        self.problems.push(Problem::Words {
            offset: block.offset as u64,
            unit: self.id,
            found,
            expected,
        });
        None
    }

    /// Position of the function that a table belongs to, if that function has hash tables.
    fn function_of_table(&mut self, block: &FileBlock) -> Option<usize> {
        let (header, offset) = (&block.header, block.offset as u64);
        let position = usize::try_from(header.function).ok();
        let function = position.and_then(|p| self.unit.functions.get(p));
        let (Some(position), Some(_)) = (position, function.filter(|f| f.storage == Storage::Hash)) else {
            if is_filled(block.content(self.file)) {
                self.problems.push(Problem::NoFunction {
                    offset,
                    unit: self.id,
                    function: header.function,
                });
            }
            return None;
        };
        Some(position)
    }

    fn sum_tables(&mut self, function: &UnitFunction, tables: &[&FileBlock]) -> Vec<(u64, u64)> {
        let mut sums: FxHashMap<u64, u64> = FxHashMap::default();
        let (mut outside, mut numberless) = (Vec::new(), 0);
        for table in tables {
            let pairs = &table.content(self.file)[..table.header.size as usize * PAIR];
            for pair in pairs.chunks_exact(PAIR) {
                let (key, count) = (read_u64(pair, 0), read_u64(pair, 8));
                match key.checked_sub(1) {
                    _ if count == 0 => {}
                    None => numberless += 1,
                    Some(number) if number >= function.counters => outside.push(number),
                    Some(number) => {
                        let sum = sums.entry(number).or_default();
                        *sum = sum.saturating_add(count);
                    }
                }
            }
        }
        let name = &function.cfg.name;
        if let Some(&first) = outside.first() {
            self.problems.push(Problem::Numbers {
                function: name.clone(),
                numbers: outside.len() as u64,
                first,
                counters: function.counters,
            });
        }
        if numberless != 0 {
            self.problems.push(Problem::Numberless {
                function: name.clone(),
                pairs: numberless,
            });
        }
        let mut sorted: Vec<_> = sums.into_iter().collect();
        sorted.sort_unstable();
        sorted
    }
}

fn sum_arrays(function: &UnitFunction, arrays: &[&[u8]]) -> Vec<(u64, u64)> {
    let count = |number: u64| {
        let at = (function.offset + number) as usize * 8;
        arrays
            .iter()
            .fold(0_u64, |sum, array| sum.saturating_add(read_u64(array, at)))
    };
    if arrays.is_empty() {
        return Vec::new();
    }
    (0..function.counters)
        .map(|number| (number, count(number)))
        .filter(|&(_, count)| count != 0)
        .collect()
}
