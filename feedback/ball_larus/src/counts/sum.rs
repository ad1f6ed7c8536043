//! From blocks to counts: what belongs to one unit is summed.

use super::UnitCounts;
use super::error::Problem;
use super::file::Found;
use super::layout::{Kind, PAIR, read_u64};
use super::unit::{self, Unit, UnitError, UnitFunction, UnitId};
use crate::Storage;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The counts of all units of a file, from its blocks.
pub(super) fn units(file: &[u8], blocks: &[Found]) -> (BTreeMap<UnitId, (Unit, UnitCounts)>, Vec<Problem>) {
    let of_kind = |kind: Kind| blocks.iter().filter(move |b| b.header.kind == kind as u32);
    let mut problems = Vec::new();
    let descriptions = describe(file, of_kind(Kind::Unit), &mut problems);
    let mut contents: BTreeMap<UnitId, Content<'_>> = BTreeMap::new();
    for block in of_kind(Kind::Counters) {
        contents.entry(block.header.unit).or_default().arrays.push(block);
    }
    for block in of_kind(Kind::Table) {
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

/// A unit's blocks.
#[derive(Default)]
struct Content<'b> {
    arrays: Vec<&'b Found>,
    tables: Vec<&'b Found>,
}

fn is_filled(bytes: &[u8]) -> bool {
    bytes.iter().any(|&byte| byte != 0)
}

/// Reads descriptions. A child process repeats its parent's.
fn describe<'b>(
    file: &[u8],
    blocks: impl Iterator<Item = &'b Found>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<UnitId, Unit> {
    let mut units = BTreeMap::new();
    for block in blocks {
        let unit = block.header.unit;
        let description = &block.content(file)[..block.header.size as usize];
        let decoded = if UnitId::of(description) == unit {
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
    fn content(&mut self, content: Content<'_>) -> UnitCounts {
        let arrays: Vec<&[u8]> = content.arrays.into_iter().filter_map(|b| self.array(b)).collect();
        let mut tables: BTreeMap<usize, Vec<&Found>> = BTreeMap::new();
        for block in content.tables {
            if let Some(function) = self.table_of(block) {
                tables.entry(function).or_default().push(block);
            }
        }
        let unit = self.unit;
        let functions = unit.functions.iter().enumerate().map(|(position, function)| {
            match (function.storage, tables.get(&position)) {
                (Storage::Array, _) => of_arrays(function, &arrays),
                (Storage::Hash, Some(tables)) => self.of_tables(function, tables),
                (Storage::Hash, None) => Vec::new(),
            }
        });
        UnitCounts {
            functions: functions.collect(),
        }
    }

    /// One thread's words, if they are as many as the unit has.
    fn array(&mut self, block: &Found) -> Option<&'a [u8]> {
        let (found, expected) = (block.header.size, self.unit.words);
        if found == expected {
            return Some(block.content(self.file));
        }
        self.problems.push(Problem::Words {
            offset: block.at as u64,
            unit: self.id,
            found,
            expected,
        });
        None
    }

    /// The function that a table is of, if its counts are to be taken.
    fn table_of(&mut self, block: &Found) -> Option<usize> {
        let (header, offset) = (&block.header, block.at as u64);
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

    fn of_tables(&mut self, function: &UnitFunction, tables: &[&Found]) -> Vec<(u64, u64)> {
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

fn of_arrays(function: &UnitFunction, arrays: &[&[u8]]) -> Vec<(u64, u64)> {
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
