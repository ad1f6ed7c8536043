//! The profile file.

use crate::input::{Input, with_file};
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::{End, Start};
use pleach_profile::events::{EventPlace, EventProfile, EventSource, PathNode, Place, Step, merge_events};
use pleach_profile::file::{Lookup, ProfileFile};
use pleach_profile::{
    BranchPrediction, CallTargets, Covered, EstimatedPath, Executions, FunctionProfile, PathWindow, Profile,
    Provenance, ValueCounts, ValueSite,
};
use pleach_report::events::{EventOptions, Events};
use pleach_report::names::Names;
use pleach_store::write_profile;
use std::ops::Range;
use std::path::Path;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// As the format has it: where the descriptions of the four sections are, the header's length, an index entry's.
const SECTIONS: usize = 48;
const HEADER: usize = 520;
const ENTRY: usize = 44;
/// Counts of all functions up to which everything is read at once: runs of zeros take next to no bytes.
const FEW: usize = 1 << 20;

/// Raw bytes; or a file whose checksums are put right; or a profile that is written and read.
pub fn profile(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() % 3 {
        0 => with_file(input.0, check),
        1 => {
            let mut bytes = input.0.to_vec();
            repair(&mut bytes);
            with_file(&bytes, check);
        }
        _ => {
            let profile = made_of(&mut input);
            with_file(&[], |path| {
                if write_profile(path, &profile).is_ok() {
                    check(path);
                }
            });
        }
    }
}

fn check(path: &Path) {
    let Ok(file) = ProfileFile::open(path) else { return };
    let mut counts = 0;
    for function in file.functions().flatten() {
        counts += function.blocks.len() + function.edges.len();
        counts += function.paths.iter().map(|p| p.path.blocks.len()).sum::<usize>();
        assert!(
            function
                .paths
                .is_sorted_by(|a, b| EstimatedPath::hottest_first(a, b).is_lt())
        );
        let found = file.lookup(function.id, function.cfg_hash);
        assert!(matches!(found, Ok(Lookup::Found(found)) if found == function));
        let other = file.lookup(function.id, CfgHash(!function.cfg_hash.0));
        assert!(!matches!(other, Ok(Lookup::Absent)));
    }
    if counts > FEW {
        return;
    }
    let Ok(mut profile) = file.read_all() else { return };
    if let Ok(events) = Events::new(&profile, &EventOptions::default()) {
        events.to_json().expect("numbers are finite");
        events.to_text(&Names::default(), None);
    }
    merge_events(&mut profile.events.clone(), profile.events.clone(), u64::MAX);
    // Not sampled ones can't be added up beyond the largest number; times that are no numbers are not written.
    with_file(&[], |path| {
        let times = (
            profile.provenance.program_cpu_seconds,
            profile.provenance.own_cpu_seconds,
        );
        if !(times.0.is_finite() && times.1.is_finite()) {
            profile.provenance = Provenance::default();
        }
        write_profile(path, &profile).expect("what was read can be written");
        let again = ProfileFile::open(path).and_then(|file| file.read_all());
        assert_eq!(again.expect("what was written is read"), profile);
    });
}

/// Corrects the magic, checksums and other header fields, if the input is long enough.
fn repair(bytes: &mut [u8]) {
    if bytes.len() < HEADER {
        return;
    }
    let length = bytes.len();
    bytes[..8].copy_from_slice(b"\x89PLEACH\n");
    bytes[8..12].copy_from_slice(&9u32.to_le_bytes());
    bytes[12..16].copy_from_slice(&0x0102_0304u32.to_le_bytes());
    let mut end = HEADER;
    let mut sections: [Range<usize>; 4] = Default::default();
    for (number, section) in sections.iter_mut().enumerate() {
        let at = SECTIONS + number * 24;
        let rest = length - end;
        let asked = word(bytes, at + 8) as usize;
        let size = match number {
            0 => asked % (rest + 1) / ENTRY * ENTRY,
            3 => rest,
            _ => asked % (rest + 1),
        };
        bytes[at..at + 8].copy_from_slice(&(end as u64).to_le_bytes());
        bytes[at + 8..at + 16].copy_from_slice(&(size as u64).to_le_bytes());
        *section = end..end + size;
        end += size;
    }
    repair_index(bytes, &sections[0], &sections[1]);
    for (number, section) in sections.iter().enumerate().filter(|(number, _)| *number != 1) {
        let check = xxh3_64(&bytes[section.clone()]);
        bytes[SECTIONS + number * 24 + 16..][..8].copy_from_slice(&check.to_le_bytes());
    }
    let check = xxh3_64(&bytes[..HEADER - 8]);
    bytes[HEADER - 8..HEADER].copy_from_slice(&check.to_le_bytes());
}

fn repair_index(bytes: &mut [u8], index: &Range<usize>, records: &Range<usize>) {
    for at in index.clone().step_by(ENTRY) {
        let (offset, length) = (word(bytes, at + 20) as usize, word(bytes, at + 28) as u32 as usize);
        let seed = word(bytes, at)
            ^ word(bytes, at + 12).rotate_left(32)
            ^ (word(bytes, at + 8) & 0xffff_ffff).rotate_left(16);
        let end = offset.checked_add(length);
        let Some(record) = end.and_then(|end| bytes[records.clone()].get(offset..end)) else {
            continue;
        };
        let check = xxh3_64_with_seed(record, seed);
        bytes[at + 32..at + 40].copy_from_slice(&check.to_le_bytes());
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn covered(input: &mut Input) -> Covered {
    Covered::from_u8(input.u8() % 8).expect("a state")
}

/// A path of a function with this many blocks; mostly one that may be written.
fn path(input: &mut Input, blocks: u32) -> EstimatedPath {
    let block = |input: &mut Input| BlockIndex(u32::from(input.u8()) % blocks.max(1));
    EstimatedPath {
        path: pleach_ball_larus::Path {
            start: if input.u8().is_multiple_of(2) {
                Start::Entry
            } else {
                Start::Inside
            },
            blocks: (0..=input.u8() % 6).map(|_| block(input)).collect(),
            end: match input.u8() % 4 {
                0 => End::Exit,
                1 => End::Back(block(input)),
                2 => End::Cut(block(input)),
                _ => End::Call,
            },
        },
        count: input.number() as f64,
        low: input.number() as f64,
        high: input.number() as f64,
        effective: match input.u8() {
            255 => f64::NAN,
            quarters => f64::from(quarters) / 4.0,
        },
    }
}

fn predicted(input: &mut Input, block: u32) -> Option<BranchPrediction> {
    let mut numbers = [0; 3].map(|_: i32| input.u32());
    numbers.sort_unstable();
    let [low, mispredicted, watched] = numbers.map(f64::from);
    input.u8().is_multiple_of(2).then_some(BranchPrediction {
        block: BlockIndex(block),
        watched,
        mispredicted,
        low,
    })
}

/// A function with its graph.
fn with_graph(input: &mut Input) -> FunctionProfile {
    let cfg = input.cfg();
    FunctionProfile {
        id: cfg.id,
        cfg_hash: cfg.hash(),
        samples: input.number(),
        blocks: cfg.blocks.iter().map(|_| input.number()).collect(),
        edges: (0..cfg.edge_count()).map(|_| input.number()).collect(),
        graph: Some(Box::new(cfg)),
        ..FunctionProfile::default()
    }
}

/// The paths to an event.
fn event(input: &mut Input) -> EventProfile {
    let step = |input: &mut Input| Step {
        id: FunctionId {
            guid: FunctionGuid(input.number()),
            module: ModuleHash(input.u8().into()),
        },
        cfg_hash: CfgHash(input.number()),
        block: BlockIndex(input.u8().into()),
        line: input.u8().into(),
    };
    let place = |input: &mut Input| {
        let mut before = Vec::new();
        for _ in 0..input.u8() % 30 {
            before = vec![PathNode {
                step: step(input),
                weight: input.number(),
                bursts: input.number(),
                before,
            }];
        }
        EventPlace {
            place: match input.u8() % 3 {
                0 => Place::Block(step(input)),
                1 => Place::Code(input.text(), input.text()),
                _ => Place::Elsewhere,
            },
            what: input.text(),
            weight: input.number(),
            observations: input.number(),
            passes: input.number(),
            bursts: input.number(),
            squares: input.number(),
            before,
        }
    };
    EventProfile {
        name: input.text(),
        source: EventSource::Kernel,
        weight: input.number(),
        observations: input.number(),
        squares: input.number(),
        left_out: input.number(),
        distances: (input.u32(), input.u32()),
        places: (0..input.u8() % 3).map(|_| place(input)).collect(),
    }
}

/// Operands with values, by site.
fn values(input: &mut Input) -> Vec<ValueCounts> {
    let count = input.u8() % 3;
    let operand = |call| ValueCounts {
        site: ValueSite::from_number(u32::from(call) | u32::from(input.u8() % 3) << 30),
        bursts: input.number(),
        values: (0..input.u8() % 3).map(|_| (input.number(), input.number())).collect(),
        others: input.number(),
    };
    let mut operands: Vec<_> = (0..count).map(operand).collect();
    operands.sort_by_key(|o| o.site);
    operands
}

/// A profile of a few functions.
pub fn made_of(input: &mut Input) -> Profile {
    let functions = (0..input.u8() % 6).map(|_| {
        if input.u8().is_multiple_of(4) {
            return with_graph(input);
        }
        let counts = |input: &mut Input| (0..input.u8()).map(|_| input.number()).collect::<Vec<u64>>();
        let blocks = counts(input);
        let paths: Vec<_> = (0..input.u8() % 8).map(|_| path(input, blocks.len() as u32)).collect();
        let mut window = |_| PathWindow {
            paths: (0..input.u8() % 6)
                .filter_map(|_| Some(paths.get(usize::from(input.u8()) % paths.len().max(1))?.path.clone()))
                .collect(),
            count: f64::from(input.u32()),
        };
        let windows = (0..paths.len()).map(&mut window).collect();
        FunctionProfile {
            id: FunctionId {
                guid: FunctionGuid(input.number()),
                module: ModuleHash(input.u8().into()),
            },
            cfg_hash: CfgHash(input.number()),
            name: input.text(),
            graph: None,
            samples: input.number(),
            edges: counts(input),
            values: values(input),
            call_targets: (0..input.u8() % 3)
                .map(|call| CallTargets {
                    call: call.into(),
                    targets: (0..input.u8() % 3)
                        .map(|_| (FunctionGuid(input.number()), input.number()))
                        .collect(),
                })
                .collect(),
            coverage: match input.u8() % 2 {
                0 => vec![],
                _ => blocks.iter().map(|_| covered(input)).collect(),
            },
            counted: match input.u8() % 2 {
                0 => vec![],
                _ => blocks
                    .iter()
                    .map(|_| Executions {
                        at_least: input.number(),
                        at_most: input.number().checked_sub(1),
                    })
                    .collect(),
            },
            paths,
            windows,
            called: Vec::new(),
            predictions: (0..blocks.len() as u32)
                .filter_map(|block| predicted(input, block))
                .collect(),
            blocks,
            sums: None,
        }
    });
    let mut functions: Vec<_> = functions.collect();
    functions.sort_by_key(|function| (function.id, function.cfg_hash));
    Profile {
        provenance: Provenance {
            commands: vec![input.text()],
            ..Provenance::default()
        },
        scale: f64::from(input.u32()),
        anchor: if input.u8().is_multiple_of(2) {
            Anchor::Early
        } else {
            Anchor::Late
        },
        functions,
        events: (0..input.u8() % 3).map(|_| event(input)).collect(),
        vectors: input.u8().is_multiple_of(2).then(|| input.take(9).to_vec()),
    }
}
