//! Shards, vectors and recordings that were made to do harm: they cost neither endless time nor memory.

#![allow(unsafe_code, reason = "system calls")]

use pleach_collector::convert::convert;
use pleach_collector::perf::export::{ExportOptions, perf_data, stacks};
use pleach_collector::perf::import_bytes;
use pleach_collector::vector::{
    Branch, Burst, CodeAddress, EndReason, Engine, Module, ModuleId, ModuleMapping, Process, VectorSet,
};
use pleach_wire::shard::{BurstHead, Counters, Encoder, FrameKind};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

fn frame(kind: FrameKind, fill: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut buffer = [0; 1024];
    let mut encoder = Encoder::new(&mut buffer);
    fill(&mut encoder);
    encoder.finish(kind).unwrap().to_vec()
}

fn process(base_cpu_ns: u64) -> Vec<u8> {
    frame(FrameKind::Process, |e| {
        e.u32(4);
        e.u32(1);
        e.u64(1);
        e.u64(base_cpu_ns);
        [b"".as_slice(), b"/a", b"a\0"].iter().for_each(|text| e.string(text));
    })
}

#[test]
fn times_and_counters_that_do_not_fit_stay_at_the_largest() {
    let counters = Counters {
        own_ns: 1,
        threads: u32::MAX,
        unsampled_threads: u32::MAX,
        ..Counters::default()
    };
    let burst = |thread| {
        let head = BurstHead {
            thread,
            thread_cpu_ns: u64::MAX,
            counters,
            ..BurstHead::default()
        };
        frame(FrameKind::Burst, |e| e.bytes(&head.to_bytes()))
    };
    let shard = [process(u64::MAX), burst(1), burst(2)].concat();
    let mut set = VectorSet::default();
    let found = convert(&[(b"a".to_vec(), shard.clone()), (b"b".to_vec(), shard)], &mut set);
    assert_eq!((found.shards, found.threads), (2, 2 * u64::from(u32::MAX)));
    assert!(set.processes.iter().all(|process| process.program_cpu_seconds > 1e10));
}

#[test]
fn a_pipe_under_a_mappings_name_is_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let name = CString::new(pipe.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name is terminated.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let inode = pipe.metadata().unwrap().ino();
    let mappings = frame(FrameKind::Mappings, |e| {
        e.u8(0);
        [0x1000, 0x2000, 0, inode].iter().for_each(|word| e.u64(*word));
        e.string(pipe.as_os_str().as_bytes());
        e.string(b"");
    });
    let shard = [process(0), mappings].concat();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut set = VectorSet::default();
        convert(&[(b"a".to_vec(), shard)], &mut set);
        sender.send(set.modules.len()).unwrap();
    });
    assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(1));
}

fn set(processes: u32, parent: impl Fn(u32) -> Option<u32>, count: u64) -> VectorSet {
    let at = |offset| CodeAddress {
        module: ModuleId(0),
        offset,
    };
    VectorSet {
        modules: vec![Module {
            path: "/a".into(),
            build_id: None,
            mappings: vec![ModuleMapping {
                process: processes - 1,
                start: 0x1000,
                end: 0x2000,
                file_offset: 0,
            }],
        }],
        processes: (0..processes)
            .map(|position| Process {
                pid: position + 1,
                parent: parent(position),
                command: "a".into(),
                program_cpu_seconds: 0.0,
                own_cpu_seconds: 0.0,
                lost: 0,
                declined: 0,
                undisturbed: false,
            })
            .collect(),
        events: Vec::new(),
        bursts: vec![Burst {
            process: processes - 1,
            thread: 1,
            time_ns: 1,
            engine: Engine::RunAhead,
            start: None,
            branches: vec![Branch { from: at(8), to: at(4) }; 3],
            end: None,
            end_reason: EndReason::Budget,
            instructions: 0,
            count,
            proved: true,
            system_call: None,
            hardware: None,
            values: Vec::new(),
            timing: None,
        }],
        compressed: None,
        coverage: Vec::new(),
        samples: Vec::new(),
    }
}

#[test]
fn generations_without_end_are_exported() {
    const MANY: u32 = 200_000;
    let options = ExportOptions::default();
    let (file, exported) = perf_data(&set(MANY, |position| position.checked_sub(1), 1), options);
    assert_eq!((exported.stacks, exported.branches), (1, 3));
    // A circle, too.
    perf_data(&set(2, |position| Some(1 - position), 1), options);
    let imported = import_bytes(Path::new("exported"), &file, None).unwrap();
    assert_eq!((imported.report.vectors, imported.report.damage), (1, None));
}

#[test]
fn what_an_export_takes_is_known_before() {
    let stacks = |count, depth| stacks(&set(1, |_| None, count), ExportOptions { depth });
    assert_eq!((stacks(1, 32), stacks(5, 2), stacks(5, 0)), (1, 10, 15));
    assert_eq!(stacks(u64::MAX, 1), u64::MAX);
}

#[test]
fn lists_of_ids_that_overlap_are_damage() {
    let mut file = perf_data(&set(1, |_| None, 1), ExportOptions::default()).0;
    let word = |file: &[u8], at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    // The file has one event; three say that all of the file is their ids.
    let (each, attrs) = (word(&file, 16), word(&file, 24));
    let attr = file[attrs..attrs + each - 16].to_vec();
    let at = file.len() as u64;
    for _ in 0..3 {
        file.extend(&attr);
        file.extend(0u64.to_le_bytes());
        file.extend(at.to_le_bytes());
    }
    file[24..32].copy_from_slice(&at.to_le_bytes());
    file[32..40].copy_from_slice(&(3 * each as u64).to_le_bytes());
    let error = import_bytes(Path::new("file"), &file, None).unwrap_err().to_string();
    assert!(error.contains("the lists of the events' ids overlap"), "{error}");
}
