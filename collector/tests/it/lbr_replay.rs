//! The records of a file, dealt out to the buffers of several processors, become the vectors that the file becomes.

use crate::lbr_kernel::{Kernel, buffer};
use crate::perf_sets::*;
use pleach_collector::engines::lbr::attr::{Sampling, Scope, Tracking};
use pleach_collector::engines::lbr::record_reader::RecordReader;
use pleach_collector::engines::lbr::ring::Ring;
use pleach_collector::perf::export::{ExportOptions, perf_data};
use pleach_collector::perf::live::LiveEvent;
use pleach_collector::perf::{Imported, Report, import_bytes};
use pleach_collector::vector::{Engine, VectorSet};
use proptest::prelude::*;
use std::path::Path;

const CPUS: usize = 3;

/// Events of a file.
fn events(file: &[u8], names: &[String]) -> Vec<LiveEvent> {
    let (each, attrs) = (word(file, 16), word(file, 24));
    let event = |(position, name): (usize, &String)| {
        let entry = &file[attrs + position * each..][..each];
        let ids = word(entry, each - 16);
        LiveEvent {
            attr: entry[..each - 16].to_vec(),
            name: name.clone(),
            ids: vec![word(file, ids) as u64],
        }
    };
    names.iter().enumerate().map(event).collect()
}

/// Time of a record as our exporter writes it: in samples the fourth word, in others the last but one.
fn time_of(kind: u32, body: &[u8]) -> usize {
    word(body, if kind == 9 { 24 } else { body.len() - 16 })
}

/// Plays a file's records; `deal` says for each moment which processor, and whether to read all buffers before.
fn replay(file: &[u8], names: &[String], deal: &[(usize, bool)], root: u32) -> (VectorSet, Report) {
    let (mut kernels, rings): (Vec<Kernel>, Vec<Ring>) = (0..CPUS).map(|_| buffer(1 << 14, 0)).unzip();
    let mut set = VectorSet::default();
    let mut reader = RecordReader::new(&mut set, Engine::Perf, &events(file, names));
    let (mut at, end) = (word(file, 40), word(file, 40) + word(file, 48));
    let (mut last, mut moment) = (0, 0);
    while at < end {
        let head = word(file, at);
        let (kind, misc, size) = (head as u32, (head >> 32) as u16, head >> 48);
        let body = &file[at + 8..at + size];
        // What has the same time comes from the same processor: a mapping and the first sample in it.
        if time_of(kind, body) != last {
            (last, moment) = (time_of(kind, body), moment + 1);
        }
        let (cpu, read) = deal[moment % deal.len()];
        if read || kernels[cpu].free_space() < size as u64 {
            reader.round(&rings);
        }
        assert!(kernels[cpu].write(kind, misc, body));
        at += size;
    }
    reader.round(&rings);
    let report = reader.finish(root, 0.0, 0.0);
    (set, report)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn live_records_become_what_imported_ones_become(
        set in set(),
        deal in prop::collection::vec((0..CPUS, prop::bool::weighted(0.3)), 1..12),
    ) {
        let file = perf_data(&set, ExportOptions { depth: 64 }).0;
        let Imported { vectors, report } = import_bytes(Path::new("some/perf.data"), &file, None).unwrap();
        let (live, live_report) = replay(&file, &set.events, &deal, vectors.processes[0].pid);
        prop_assert_eq!(live, vectors);
        prop_assert_eq!(live_report, report);
    }
}

/// Writes what a kernel writes for our own attributes.
struct Script {
    kernels: Vec<Kernel>,
}

const SAMPLER: u64 = 70;
const TRACKER: u64 = 80;

impl Script {
    /// A record other than a sample: its fields, a name, and who it is of and when.
    ///
    /// That is the processor, the process and the time.
    fn tell(&mut self, (cpu, pid, time): (usize, u32, u64), kind: u32, misc: u16, words: &[u64], name: Option<&str>) {
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        if let Some(name) = name {
            body.extend(name.as_bytes());
            body.resize((body.len() + 1).next_multiple_of(8), 0);
        }
        // TID, TIME, CPU, IDENTIFIER.
        for word in [pair(pid, pid), time, cpu as u64, TRACKER + cpu as u64] {
            body.extend(word.to_ne_bytes());
        }
        assert!(self.kernels[cpu].write(kind, misc, &body));
    }

    fn sample(&mut self, cpu: usize, ids: (u32, u32), time: u64, period: u64, newest_first: &[(u64, u64, u64)]) {
        // IDENTIFIER, IP, TID, TIME, CPU, PERIOD, number of branches, hardware index.
        let head = [
            SAMPLER + cpu as u64,
            0x401010,
            pair(ids.0, ids.1),
            time,
            cpu as u64,
            period,
        ];
        let mut words = head.to_vec();
        words.extend([newest_first.len() as u64, 0]);
        words.extend(newest_first.iter().flat_map(|(from, to, flags)| [*from, *to, *flags]));
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert!(self.kernels[cpu].write(9, 2, &body));
    }
}

fn pair(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << 32
}

/// As on a machine with branch records: everything but the kernel itself is what a recording uses.
#[test]
fn a_recording_by_our_own_attributes_is_read() {
    let sampling = Sampling {
        kind: 4,
        config: 0x20c4,
        period: 1_000,
        scope: Scope::FromExec,
        branches: true,
        hardware_index: true,
    };
    let tracking = Tracking {
        scope: Scope::FromExec,
        watermark: 4096,
        build_ids: true,
    };
    let event = |attr, name: &str, first: u64| LiveEvent {
        attr,
        name: name.to_owned(),
        ids: (first..first + CPUS as u64).collect(),
    };
    let events = [
        event(sampling.to_bytes(), "near_taken:u", SAMPLER),
        event(tracking.to_bytes(), "task-clock:u", TRACKER),
    ];
    let (kernels, rings): (Vec<Kernel>, Vec<Ring>) = (0..CPUS).map(|_| buffer(1 << 14, 0)).unzip();
    let mut script = Script { kernels };
    let mut set = VectorSet::default();
    let mut reader = RecordReader::new(&mut set, Engine::Lbr, &events);

    const EXEC: u16 = 1 << 13;
    const BUILD_ID: u16 = 1 << 14;
    script.tell((0, 5, 10), 3, EXEC, &[pair(5, 5)], Some("program"));
    // MMAP2: process, address, length, offset, size of the build-id with 20 bytes of it, protection and flags, name.
    let build = |pid, start: u64| {
        [
            pair(pid, pid),
            start,
            0x1000,
            0x400,
            8 | 0x0302_0100 << 32,
            0x0706_0504,
            0,
            pair(5, 2),
        ]
    };
    script.tell((0, 5, 11), 10, BUILD_ID, &build(5, 0x40_1000), Some("/nowhere/program"));
    script.sample(
        0,
        (5, 5),
        20,
        1_003,
        &[
            (0x40_1020, 0x40_1030, 2 | 7 << 4),
            (0x40_1010, 0x40_1018, 1 | 9 << 4),
            (0, 0, 0),
        ],
    );
    // A thread, a child on another processor, its end; the buffers are read while that goes on.
    script.tell((0, 5, 21), 7, 0, &[pair(5, 5), pair(6, 5), 21], None);
    reader.round(&rings);
    script.sample(2, (5, 6), 30, 1_003, &[(0x40_1040, 0x40_1000, 2)]);
    script.tell((1, 5, 35), 7, 0, &[pair(8, 5), pair(8, 5), 35], None);
    reader.round(&rings);
    script.sample(2, (8, 8), 40, 2_001, &[(0x40_1044, 0x40_1004, 2)]);
    script.tell((2, 8, 50), 3, EXEC, &[pair(8, 8)], Some("other"));
    script.sample(2, (8, 8), 51, 2_001, &[(0x40_1044, 0x40_1004, 2)]);
    // THROTTLE: time, event, stream. Then the buffer was full.
    script.tell((1, 5, 52), 5, 0, &[52, SAMPLER + 1, SAMPLER + 1], None);
    script.tell((1, 5, 53), 2, 0, &[TRACKER + 1, 4], None);
    script.tell((2, 8, 60), 4, 0, &[pair(8, 5), pair(8, 5), 60], None);
    reader.round(&rings);

    let arrived = reader.arrived();
    assert_eq!(
        (arrived.records, arrived.samples, arrived.events, arrived.lost),
        (12, 4, 6_008, 4)
    );
    let report = reader.finish(5, 1.5, 0.25);
    assert_eq!((report.samples, report.vectors, report.branches), (4, 4, 5));
    assert_eq!((report.lost, report.throttled, report.empty_entries), (4, 1, 1));
    assert_eq!((report.malformed, report.damage), (0, None));
    let lines: Vec<String> = set
        .bursts
        .iter()
        .map(|burst| {
            let process = &set.processes[burst.process as usize];
            let hardware = burst.hardware.as_ref().unwrap();
            let branches: Vec<String> = (burst.branches.iter().zip(&hardware.facts))
                .map(|(branch, fact)| {
                    let at = |address: pleach_collector::vector::CodeAddress| match set
                        .modules
                        .get(address.module.0 as usize)
                    {
                        Some(module) => format!("{}+{:#x}", module.path.display(), address.offset),
                        None => format!("{:#x}", address.offset),
                    };
                    format!(
                        "{} > {} {:?} {}",
                        at(branch.from),
                        at(branch.to),
                        fact.prediction,
                        fact.cycles
                    )
                })
                .collect();
            format!(
                "{} {} {}/{} {} {}: {}",
                burst.time_ns,
                burst.engine.name(),
                process.pid,
                burst.thread,
                process.command,
                set.events[hardware.event.0 as usize],
                branches.join(", ")
            )
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    20 lbr 5/5 program near_taken:u: /nowhere/program+0x410 > /nowhere/program+0x418 Mispredicted 9, /nowhere/program+0x420 > /nowhere/program+0x430 Predicted 7
    30 lbr 5/6 program near_taken:u: /nowhere/program+0x440 > /nowhere/program+0x400 Predicted 0
    40 lbr 8/8 program near_taken:u: /nowhere/program+0x444 > /nowhere/program+0x404 Predicted 0
    51 lbr 8/8 other near_taken:u: 0x401044 > 0x401004 Predicted 0
    ");
    assert_eq!(
        set.modules[0].build_id.as_ref().map(ToString::to_string).as_deref(),
        Some("0001020304050607")
    );
    assert_eq!(
        (
            set.processes[1].parent,
            set.processes[0].program_cpu_seconds,
            set.processes[0].lost
        ),
        (Some(0), 1.5, 4)
    );
}
