//! Counts of instrumented programs: the file, and the paths that they stand for.

use crate::input::{Input, with_file};
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_ball_larus::counts::file::CountFile;
use pleach_ball_larus::counts::unit::{Unit, UnitFunction, UnitId};
use pleach_ball_larus::counts::{Counts, UnitCounts, unit};
use pleach_ball_larus::graph::PathGraph;
use pleach_ball_larus::{Mode, NumberingOptions, Storage};
use pleach_store::write_counts;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const PAGE: usize = 4096;
const BLOCK_HEADER: usize = 64;

/// The blocks of one segment; or a whole file.
pub fn count_file(data: &[u8]) {
    let mut input = Input(data);
    if input.u8() % 4 == 0 {
        return with_file(input.0, check);
    }
    let mut blocks = input.0.to_vec();
    repair(&mut blocks);
    with_file(&file(&blocks), check);
}

/// A file of one segment.
pub fn file(blocks: &[u8]) -> Vec<u8> {
    let mut bytes = b"PLEACHC1".to_vec();
    bytes.extend(1u32.to_le_bytes());
    bytes.extend((PAGE as u32).to_le_bytes());
    bytes.resize(PAGE, 0);
    let used = 64 + blocks.len();
    bytes.extend(b"PLSEGMT1");
    bytes.extend((used.next_multiple_of(PAGE) as u64).to_le_bytes());
    bytes.extend((used as u64).to_le_bytes());
    bytes.resize(PAGE + 64, 0);
    bytes.extend(blocks);
    bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
    bytes
}

/// Puts the checksums of descriptions right, and names all blocks behind one after it.
fn repair(blocks: &mut [u8]) {
    let (mut at, mut unit) = (0usize, None);
    while at.saturating_add(BLOCK_HEADER) <= blocks.len() {
        let word = |at: usize| u64::from_le_bytes(blocks[at..at + 8].try_into().expect("eight bytes"));
        let (length, size) = (word(at + 8) as usize, word(at + 32) as usize);
        if blocks[at..].starts_with(b"PLBK\x01\0\0\0") {
            let end = (at + BLOCK_HEADER).checked_add(size).filter(|end| *end <= blocks.len());
            let Some(description) = end.map(|end| &mut blocks[at + BLOCK_HEADER..end]) else {
                return;
            };
            if let Some((header, body)) = description.split_at_mut_checked(64) {
                header[48..56].copy_from_slice(&(body.len() as u64).to_le_bytes());
                header[56..64].copy_from_slice(&xxh3_64(body).to_le_bytes());
            }
            unit = Some(UnitId::from_description(description));
        }
        if let Some(unit) = unit {
            blocks[at + 16..at + 24].copy_from_slice(&unit.0.to_le_bytes());
        }
        at = match length.max(BLOCK_HEADER).checked_next_multiple_of(BLOCK_HEADER) {
            Some(length) => at.saturating_add(length),
            None => return,
        };
    }
}

fn check(path: &Path) {
    let Ok(mut counts) = CountFile::open(path) else { return };
    counts.problems.clear();
    for (id, (unit, _)) in &counts.units {
        assert_eq!(unit::decode(&unit::encode(unit).0).as_ref(), Ok(unit), "{id}");
    }
    let _ = ExactProfile::from_counts(&counts);
    // A description may have been written in another way, and has another identity then.
    let ids: Vec<UnitId> = counts.units.keys().copied().collect();
    if ids.iter().all(|id| unit::encode(&counts.units[id].0).1 == *id) && write_counts(path, &counts).is_ok() {
        assert_eq!(CountFile::open(path).expect("what was written is read"), counts);
    }
}

/// A unit made of the input, with counts: written, read, and turned into paths.
pub fn exact_counts(data: &[u8]) {
    let counts = made_of(&mut Input(data));
    for (unit, _) in counts.units.values() {
        assert_eq!(unit::decode(&unit::encode(unit).0).as_ref(), Ok(unit));
    }
    with_file(&[], |path| {
        if write_counts(path, &counts).is_ok() {
            assert_eq!(CountFile::open(path).expect("what was written is read"), counts);
        }
    });
    let exact = ExactProfile::from_counts(&counts);
    for function in &exact.functions {
        let _ = (function.acyclic(), function.is_executed());
        let blocks = function.cfg.blocks.len();
        let inside = function
            .paths
            .iter()
            .flat_map(|path| &path.path)
            .flat_map(|path| &path.blocks);
        assert!(inside.into_iter().all(|block| block.index() < blocks));
    }
}

/// Counts of one unit, whose functions have as many counters as their graphs say, or not quite.
pub fn made_of(input: &mut Input) -> Counts {
    let options = NumberingOptions {
        mode: if input.u8().is_multiple_of(4) {
            Mode::Edges
        } else {
            Mode::Paths
        },
        iterations: input.u8() % 5,
        max_paths: input.number(),
        hash_above: input.number() % 5000,
    };
    let (mut functions, mut all_counts, mut words) = (Vec::new(), Vec::new(), 0u64);
    for _ in 0..input.u8() % 3 + 1 {
        let cfg = input.cfg();
        let window = input.u8() % options.iterations.max(1) + 1;
        let graph = PathGraph::new(&cfg, &options);
        let numbers = match window {
            1 => graph.numbers(),
            _ => graph.numbers().saturating_add(1).saturating_pow(window.into()),
        };
        let chords: Vec<u32> = match options.mode {
            Mode::Edges => (0..input.u8() % 20).map(|_| input.u8().into()).collect(),
            Mode::Paths => Vec::new(),
        };
        let counters = match (options.mode, input.u8() % 8) {
            (Mode::Edges, _) => chords.len() as u64,
            (_, 0) => input.number(),
            _ => numbers,
        };
        let storage = if counters > options.hash_above {
            Storage::Hash
        } else {
            Storage::Array
        };
        let used = if storage == Storage::Hash {
            unit::HASH_WORDS
        } else {
            counters
        };
        let mut counts: Vec<(u64, u64)> = (0..input.u8() % 20)
            .map(|_| (input.number() % counters.max(1), input.number().max(1)))
            .filter(|(number, _)| *number < counters)
            .collect();
        counts.sort_unstable();
        counts.dedup_by_key(|(number, _)| *number);
        functions.push(UnitFunction {
            cfg,
            offset: words,
            counters,
            window,
            storage,
            chords,
        });
        all_counts.push(counts);
        words += used;
    }
    let unit = Unit {
        anchor: Anchor::Early,
        options,
        words,
        functions,
    };
    let id = unit::encode(&unit).1;
    let counts = UnitCounts { functions: all_counts };
    Counts {
        units: [(id, (unit, counts))].into(),
        problems: Vec::new(),
    }
}
