//! Hand-made counts.
#![allow(dead_code, reason = "every test binary uses its own part")]

use pleach_annotate::cfg::{Call, Callee, Cfg};
use pleach_annotate::id::{BlockIndex, FunctionGuid, ModuleHash};
use pleach_annotate::manifest::Anchor;
use pleach_annotate::testing;
use pleach_ball_larus as ball_larus;
use pleach_ball_larus::counts::error::CountError;
use pleach_ball_larus::counts::file::CountFile;
use pleach_ball_larus::counts::unit::{HASH_WORDS, Unit, UnitFunction};
use pleach_ball_larus::counts::{Counts, UnitCounts, unit};
use pleach_ball_larus::graph::PathGraph;
use pleach_ball_larus::{End, Mode, NumberingOptions, Path, Start, Storage, weights};
use pleach_store::write_counts;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

pub fn cfg(name: &str, successors: &[&[u32]]) -> Cfg {
    let mut cfg = testing::cfg(successors);
    cfg.id.guid = FunctionGuid::of_name(name);
    cfg.module = ModuleHash(1);
    cfg.name = name.into();
    cfg.source_file = "parse.c".into();
    for block in &mut cfg.blocks {
        (block.instructions, block.line) = (2, 7);
    }
    cfg
}

/// A loop around a diamond, one side of which calls something that may not return.
pub fn parse() -> Cfg {
    let mut cfg = cfg("parse", &[&[1], &[2, 3], &[4], &[4], &[1, 5], &[]]);
    cfg.calls = vec![Call {
        block: BlockIndex(3),
        callee: Callee::Indirect,
        may_not_return: true,
    }];
    cfg
}

/// A block that repeats itself, then a return.
pub fn spin() -> Cfg {
    cfg("spin", &[&[1], &[1, 2], &[]])
}

pub fn options(mode: Mode, iterations: u8) -> NumberingOptions {
    NumberingOptions {
        mode,
        iterations,
        ..NumberingOptions::default()
    }
}

pub fn path(start: Start, blocks: &[u32], end: End) -> Path {
    Path {
        start,
        blocks: blocks.iter().map(|&b| BlockIndex(b)).collect(),
        end,
    }
}

/// What the compiler plugin would do.
pub fn unit(options: NumberingOptions, cfgs: &[Cfg]) -> Unit {
    let mut words = 0;
    let mut function = |cfg: &Cfg| {
        let plan = ball_larus::plan(cfg, &options, |graph| weights::static_weights(cfg, graph));
        let offset = words;
        words += match plan.storage {
            Storage::Array => plan.counters,
            Storage::Hash => HASH_WORDS,
        };
        UnitFunction {
            cfg: cfg.clone(),
            offset,
            counters: plan.counters,
            window: plan.window,
            storage: plan.storage,
            chords: plan.chords,
        }
    };
    let functions = cfgs.iter().map(&mut function).collect();
    Unit {
        anchor: Anchor::Early,
        options,
        words,
        functions,
    }
}

pub fn of_units(units: impl IntoIterator<Item = (Unit, Vec<Vec<(u64, u64)>>)>) -> Counts {
    let units = units
        .into_iter()
        .map(|(unit, functions)| (unit::encode(&unit).1, (unit, UnitCounts { functions })));
    Counts {
        units: units.collect(),
        problems: vec![],
    }
}

/// The numbers of paths, as the reader of counts wants them.
pub fn numbered(cfg: &Cfg, options: NumberingOptions, paths: &[(Path, u64)]) -> Vec<(u64, u64)> {
    let graph = PathGraph::new(cfg, &options);
    let mut counts = BTreeMap::new();
    for (path, count) in paths {
        let number = graph
            .number_of(path)
            .unwrap_or_else(|| panic!("{path:?} has no number"));
        *counts.entry(number).or_insert(0) += count;
    }
    counts.into_iter().collect()
}

/// 13 calls of `parse`: 200 iterations one way, 20 the other, one of which ends in its call.
pub fn parse_paths() -> Vec<(Path, u64)> {
    let back = End::Back(BlockIndex(1));
    vec![
        (path(Start::Entry, &[0, 1, 2, 4], back), 10),
        (path(Start::Entry, &[0, 1, 3, 4], back), 2),
        (path(Start::Entry, &[0, 1, 3], End::Call), 1),
        (path(Start::Inside, &[1, 2, 4], back), 180),
        (path(Start::Inside, &[1, 3, 4], back), 15),
        (path(Start::Inside, &[1, 2, 4, 5], End::Exit), 10),
        (path(Start::Inside, &[1, 3, 4, 5], End::Exit), 2),
    ]
}

pub fn spin_paths() -> Vec<(Path, u64)> {
    vec![
        (path(Start::Entry, &[0, 1, 2], End::Exit), 3),
        (path(Start::Inside, &[1], End::Back(BlockIndex(1))), 90),
    ]
}

/// Two functions that ran and one that did not.
pub fn example() -> Counts {
    let options = options(Mode::Paths, 1);
    let cfgs = [parse(), spin(), cfg("never", &[&[1], &[]])];
    let counts = vec![
        numbered(&cfgs[0], options, &parse_paths()),
        numbered(&cfgs[1], options, &spin_paths()),
        vec![],
    ];
    of_units([(unit(options, &cfgs), counts)])
}

/// A page of a count file.
pub const PAGE: usize = 4096;

/// Three units: arrays, a hash table, windows in a hash table.
pub fn varied() -> Counts {
    let hashed = NumberingOptions {
        hash_above: 3,
        ..options(Mode::Paths, 1)
    };
    let windows = NumberingOptions {
        hash_above: 1000,
        ..options(Mode::Paths, 4)
    };
    let mut counts = example();
    let cfgs = [parse(), spin()];
    let more = of_units([
        (
            unit(hashed, &cfgs),
            vec![
                numbered(&cfgs[0], hashed, &parse_paths()),
                numbered(&cfgs[1], hashed, &spin_paths()),
            ],
        ),
        (unit(windows, &cfgs[..1]), vec![vec![(3, 5), (75, u64::MAX)]]),
    ]);
    counts.units.extend(more.units);
    let functions = || counts.units.values().flat_map(|(unit, _)| &unit.functions);
    assert_eq!(counts.units.len(), 3);
    assert_eq!(functions().filter(|f| f.storage == Storage::Hash).count(), 2);
    counts
}

pub fn written(counts: &Counts) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.plcnt");
    write_counts(&path, counts).unwrap();
    (dir, path)
}

pub fn read_bytes(path: &std::path::Path, bytes: &[u8]) -> Result<Counts, CountError> {
    fs::write(path, bytes).unwrap();
    CountFile::open(path)
}

pub fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

pub fn set(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Where blocks begin, and their kinds, by segment.
pub fn layout(bytes: &[u8]) -> Vec<(usize, Vec<(usize, u64)>)> {
    let mut segments = Vec::new();
    let mut at = PAGE;
    while at < bytes.len() {
        let mut blocks = Vec::new();
        let mut block = at + 64;
        while block < at + word(bytes, at + 16) as usize {
            blocks.push((block, word(bytes, block) >> 32));
            block += word(bytes, block + 8) as usize;
        }
        segments.push((at, blocks));
        at += word(bytes, at + 8) as usize;
    }
    segments
}

pub fn file(segments: &[Vec<u8>]) -> Vec<u8> {
    let mut out = b"PLEACHC1".to_vec();
    out.extend([1, 0, 0, 0, 0, 16, 0, 0]);
    out.extend([5; 16]);
    out.resize(PAGE, 0);
    out.extend(segments.concat());
    out
}
