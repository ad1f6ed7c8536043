//! The vector file: written sets are read unchanged, and any other contents are refused without harm.

use pleach_collector::file::FileError;
use pleach_collector::vector::coverage::{Failure, ModuleCoverage, SegmentCoverage, SegmentState};
use pleach_collector::vector::{
    Branch, BranchFacts, BuildId, Burst, BurstTiming, CodeAddress, Compressed, EndReason, Engine, Epoch, EventId,
    EventSample, HardwareSample, Module, ModuleId, ModuleMapping, ObservedValue, Prediction, Process, VectorSet,
    Window,
};
use proptest::prelude::*;
use std::path::PathBuf;

const MODULES: u32 = 3;
const PROCESSES: u32 = 4;
const EVENTS: u32 = 2;

fn address() -> impl Strategy<Value = CodeAddress> {
    let module = prop_oneof![(0..MODULES).prop_map(ModuleId), Just(ModuleId::EXTERNAL)];
    let offset = prop_oneof![0u64..10_000, any::<u64>()];
    (module, offset).prop_map(|(module, offset)| CodeAddress { module, offset })
}

/// Hardware facts for a number of branches; those of a branch are made of these numbers.
fn hardware(branches: usize, event: u32, ip: CodeAddress, numbers: &[u32]) -> Box<HardwareSample> {
    let fact = |i: usize| {
        let number = numbers[i % numbers.len()];
        BranchFacts {
            prediction: Prediction::from_u8((number >> 16) as u8 % 3).unwrap(),
            cycles: number as u16,
        }
    };
    let branches = if numbers.is_empty() { 0 } else { branches };
    Box::new(HardwareSample {
        event: EventId(event),
        ip,
        facts: (0..branches).map(fact).collect(),
    })
}

fn burst() -> impl Strategy<Value = Burst> {
    let branch = (address(), address()).prop_map(|(from, to)| Branch { from, to });
    let head = (0..PROCESSES, any::<u32>(), any::<u64>(), 0u8..4, 0u8..5);
    let body = (
        prop::option::of(address()),
        prop::collection::vec(branch, 0..20),
        prop::option::of(address()),
    );
    let timing = prop::option::of(
        (1e-6f32..1e9, 0f32..1e15).prop_map(|(branches, nanoseconds)| BurstTiming { branches, nanoseconds }),
    );
    let sample = prop::option::of((0..EVENTS, address(), prop::collection::vec(any::<u32>(), 0..5)));
    let values = prop::collection::vec((any::<u32>(), prop::option::of(address()), any::<u64>()), 0..4);
    let facts = (sample, timing, values, any::<Option<u32>>());
    (head, body, any::<u32>(), any::<(u64, bool)>(), facts).prop_map(
        |(head, (start, branches, end), instructions, (count, proved), (sample, timing, values, system_call))| Burst {
            process: head.0,
            thread: head.1,
            time_ns: head.2,
            engine: Engine::from_u8(head.3).unwrap(),
            end_reason: EndReason::from_u8(head.4).unwrap(),
            start,
            values: values
                .iter()
                .filter(|_| !branches.is_empty())
                .map(|&(at, division, value)| ObservedValue {
                    branch: at % branches.len() as u32,
                    division,
                    value,
                })
                .collect(),
            system_call,
            hardware: sample.map(|(event, ip, numbers)| hardware(branches.len(), event, ip, &numbers)),
            branches,
            end,
            instructions,
            count,
            proved,
            timing,
        },
    )
}

fn compressed() -> impl Strategy<Value = Compressed> {
    let counted = prop::collection::btree_map(0u8..4, any::<u64>(), 0..4);
    let ended = prop::collection::btree_map(0u8..10, any::<u64>(), 0..4);
    let epoch = (any::<[u64; 8]>(), counted, ended).prop_map(|(numbers, counted, ended)| {
        let engine = |(engine, bursts)| (Engine::from_u8(engine).unwrap(), bursts);
        let reason = |(reason, bursts)| (EndReason::from_u8(reason).unwrap(), bursts);
        Epoch {
            rate: numbers[0],
            first_ns: numbers[1],
            last_ns: numbers[2],
            bursts: numbers[3],
            empty_bursts: numbers[4],
            branches: numbers[5],
            windows: numbers[6],
            instructions: numbers[7],
            engines: counted.into_iter().map(engine).collect(),
            end_reasons: ended.into_iter().map(reason).collect(),
        }
    });
    let branch = || (address(), address()).prop_map(|(from, to)| Branch { from, to });
    let window = (
        (0..2u32, 0..PROCESSES),
        prop::option::of(branch()),
        prop::collection::vec(branch(), 0..9),
        prop::option::of(address()),
        (any::<bool>(), any::<bool>()),
        any::<u32>(),
    );
    let window = window.prop_map(
        |((epoch, process), lead, branches, end, (last, proved), messages)| Window {
            epoch,
            process,
            lead,
            branches,
            end,
            last,
            weight: u64::from(messages),
            proved,
        },
    );
    let settings = (1u64..1 << 30, any::<u32>(), any::<u32>());
    let lists = (prop::collection::vec(epoch, 2..4), prop::collection::vec(window, 0..6));
    (settings, lists).prop_map(|((rate, strata, branches), (epochs, mut windows))| {
        windows.iter_mut().for_each(|window| window.weight *= rate);
        Compressed {
            rate,
            strata,
            branches,
            epochs,
            windows,
        }
    })
}

fn set() -> impl Strategy<Value = VectorSet> {
    let mapping =
        (0..PROCESSES, any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(process, start, end, file_offset)| {
            ModuleMapping {
                process,
                start,
                end,
                file_offset,
            }
        });
    let id = prop::option::of(prop::collection::vec(any::<u8>(), 0..24).prop_map(BuildId));
    let module = (".{0,20}", id, prop::collection::vec(mapping, 0..4)).prop_map(|(path, build_id, mappings)| Module {
        path: PathBuf::from(path),
        build_id,
        mappings,
    });
    let numbers = (
        any::<u32>(),
        prop::option::of(0..PROCESSES),
        any::<u64>(),
        any::<(u64, bool)>(),
    );
    let process = (numbers, ".{0,20}", 0.0..1e9, 0.0..1e9).prop_map(
        |((pid, parent, lost, (declined, undisturbed)), command, a, b)| Process {
            pid,
            parent,
            command,
            program_cpu_seconds: a,
            own_cpu_seconds: b,
            lost,
            declined,
            undisturbed,
        },
    );
    (
        prop::collection::vec(module, MODULES as usize),
        prop::collection::vec(process, PROCESSES as usize),
        prop::collection::vec(burst(), 0..12),
        prop::option::of(compressed()),
        prop::collection::vec(coverage(), 0..3),
        prop::collection::vec(sample(), 0..5),
    )
        .prop_map(
            |(modules, processes, bursts, compressed, coverage, samples)| VectorSet {
                modules,
                processes,
                events: vec!["cycles:u".to_owned(); EVENTS as usize],
                bursts,
                compressed,
                coverage,
                samples,
            },
        )
}

fn sample() -> impl Strategy<Value = EventSample> {
    let numbers = (0..EVENTS, any::<u32>(), any::<u64>(), address(), any::<u64>());
    numbers.prop_map(|(event, thread, time_ns, at, period)| EventSample {
        event: EventId(event),
        thread,
        time_ns,
        at,
        period,
    })
}

fn coverage() -> impl Strategy<Value = ModuleCoverage> {
    let most = any::<Option<u32>>();
    let numbers = (
        any::<u32>(),
        0u64..100,
        0u8..4,
        any::<u32>(),
        most,
        any::<Option<u64>>(),
    );
    let segment = numbers.prop_map(|(start, length, state, hits, most, first_hit_ns)| SegmentCoverage {
        start: start.into(),
        end: u64::from(start) + length,
        state: SegmentState::from_u8(state).unwrap_or_default(),
        hits,
        at_most: most.map(u64::from),
        first_hit_ns,
    });
    let failure = (prop::sample::select(&Failure::ALL[..]), any::<u64>());
    (
        (0..MODULES, any::<u64>(), any::<u64>(), any::<bool>()),
        prop::collection::vec(failure, 0..3),
        prop::collection::vec(segment, 0..9),
    )
        .prop_map(
            |((module, processes, traps, completed), failures, segments)| ModuleCoverage {
                module: ModuleId(module),
                processes,
                traps,
                completed,
                failures,
                segments,
            },
        )
}

#[test]
fn another_version_is_noticed() {
    let bytes = VectorSet::default().to_bytes();
    for bit in 0..8 {
        let mut changed = bytes.clone();
        changed[7] ^= 1 << bit;
        assert!(VectorSet::from_bytes(&changed).is_err(), "{}", changed[7]);
    }
    for older in b'1'..=b'9' {
        let mut changed = bytes.clone();
        changed[7] = older;
        assert!(VectorSet::from_bytes(&changed).is_err(), "{older}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(set in set()) {
        prop_assert_eq!(VectorSet::from_bytes(&set.to_bytes()).unwrap(), set);
    }

    #[test]
    fn any_change_is_noticed(set in set(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = set.to_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(VectorSet::from_bytes(&bytes).is_err());
    }

    #[test]
    fn any_cut_is_noticed(set in set(), at in any::<prop::sample::Index>()) {
        let bytes = set.to_bytes();
        prop_assert!(VectorSet::from_bytes(&bytes[..at.index(bytes.len())]).is_err());
    }

    /// Behind a checksum that matches, too.
    #[test]
    fn a_wrong_payload_is_refused_or_read(set in set(), at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut payload = payload_of(&set.to_bytes());
        let at = at.index(payload.len());
        payload[at] = value;
        match VectorSet::from_bytes(&sealed(&payload)) {
            Ok(other) => prop_assert!(VectorSet::from_bytes(&other.to_bytes()).is_ok()),
            Err(error) => prop_assert!(matches!(error, FileError::Malformed { .. }), "{}", error),
        }
    }

    #[test]
    fn noise_is_refused_or_read(payload in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = VectorSet::from_bytes(&payload);
        let _ = VectorSet::from_bytes(&sealed(&payload));
    }
}

fn payload_of(file: &[u8]) -> Vec<u8> {
    zstd::stream::decode_all(&file[24..]).unwrap()
}

fn sealed(payload: &[u8]) -> Vec<u8> {
    sealed_as(b"PLEACHV9", payload)
}

fn sealed_as(magic: &[u8; 8], payload: &[u8]) -> Vec<u8> {
    let compressed = zstd::bulk::compress(payload, 1).unwrap();
    let length = (payload.len() as u64).to_le_bytes();
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    hash.update(&length);
    hash.update(&compressed);
    [magic.as_slice(), &length, &hash.digest().to_le_bytes(), &compressed].concat()
}

/// No modules, one process, one burst of it with a branch outside of every module.
#[test]
fn files_from_before_hardware_are_read() {
    let process = [&[7, 0, 0][..], &[0; 16], &[0, 0]].concat();
    let burst = [0, 7, 0, Engine::Lbr as u8, 0, 0, 1, 0, 1, 0, 2, 0, 2, 0];
    let payload = [&[0, 1][..], &process, &[1], &burst].concat();
    let set = VectorSet::from_bytes(&sealed_as(b"PLEACHV1", &payload)).unwrap();
    assert_eq!((set.events.len(), set.bursts.len()), (0, 1));
    assert_eq!(set.bursts[0].branches.len(), 1);
    assert_eq!(set.bursts[0].hardware, None);
    // The bit that now marks hardware facts made an invalid engine then.
    let at = payload.len() - burst.len() + 3;
    let mut changed = payload;
    changed[at] |= 0x80;
    assert!(VectorSet::from_bytes(&sealed_as(b"PLEACHV1", &changed)).is_err());
}

/// No modules, one process, one burst of it without branches.
#[test]
fn files_from_before_clocks_are_read() {
    let process = [&[7, 0, 0][..], &[0; 16], &[0, 0]].concat();
    let burst = [0, 7, 0, Engine::RunAhead as u8, 0, 0, 1, 0, 0, 0];
    let old = [&[0, 1][..], &process, &[0, 1], &burst, &[0]].concat();
    let before = VectorSet::from_bytes(&sealed_as(b"PLEACHV3", &old)).unwrap();
    assert_eq!((before.bursts.len(), before.bursts[0].timing), (1, None));
    // The bit that now marks a time measurement made an invalid engine then.
    let with_sign = |mut payload: Vec<u8>, after: usize| {
        let at = payload.len() - after - burst.len() + 3;
        payload[at] |= 0x20;
        payload
    };
    assert!(VectorSet::from_bytes(&sealed_as(b"PLEACHV3", &with_sign(old, 1))).is_err());
    // Numbers of lengths, of windows, of modules with coverage, and of samples.
    let payload = with_sign(payload_of(&before.to_bytes()), 4);
    let end = payload.len() - 4;
    for (branches, nanoseconds, is_read) in [
        (100f32, 5f32, true),
        (0.0, 5.0, false),
        (1.0, -1.0, false),
        (f32::NAN, 1.0, false),
        (1.0, f32::INFINITY, false),
    ] {
        let timing = [branches.to_le_bytes(), nanoseconds.to_le_bytes()].concat();
        let timed = [&payload[..end], &timing, &payload[end..]].concat();
        let read = VectorSet::from_bytes(&sealed(&timed));
        let expected = is_read.then_some(Some(BurstTiming { branches, nanoseconds }));
        assert_eq!(read.ok().map(|set| set.bursts[0].timing), expected);
    }
}

/// They end with their last burst.
#[test]
fn files_from_before_compression_and_coverage_are_read() {
    let set = VectorSet {
        events: vec!["cycles".to_owned()],
        ..VectorSet::default()
    };
    let payload = payload_of(&set.to_bytes());
    // Neither coverage nor samples.
    let without_coverage = &payload[..payload.len() - 2];
    assert_eq!(
        VectorSet::from_bytes(&sealed_as(b"PLEACHV4", without_coverage)).unwrap(),
        set
    );
    assert!(VectorSet::from_bytes(&sealed_as(b"PLEACHV4", &payload)).is_err());
    assert!(VectorSet::from_bytes(&sealed(without_coverage)).is_err());
    let before = &payload[..payload.len() - 3];
    assert_eq!(VectorSet::from_bytes(&sealed_as(b"PLEACHV2", before)).unwrap(), set);
    assert!(VectorSet::from_bytes(&sealed_as(b"PLEACHV2", &payload)).is_err());
    assert!(VectorSet::from_bytes(&sealed(before)).is_err());
}

/// Engines without hardware facts pay nothing for those of other engines.
#[test]
fn bursts_without_hardware_take_no_more_bytes() {
    let mut set = VectorSet::default();
    let empty = payload_of(&set.to_bytes()).len();
    set.events = vec![String::new()];
    assert_eq!(payload_of(&set.to_bytes()).len(), empty + 1);
    assert!(size_of::<Option<Box<HardwareSample>>>() == size_of::<usize>() && size_of::<BranchFacts>() == 4);
}

#[test]
fn errors_name_what_is_wrong() {
    let bytes = VectorSet::default().to_bytes();
    let error = |bytes: &[u8]| VectorSet::from_bytes(bytes).unwrap_err().to_string();
    assert_eq!(error(b""), "not a vector file");
    assert_eq!(error(b"ELF"), "not a vector file");
    assert!(error(b"PLEACHV:........................").contains("version ':'"));
    assert!(error(&bytes[..10]).contains("ends in its header"));
    assert!(error(&bytes[..bytes.len() - 1]).contains("checksum"));
    // Four thousand million modules in three bytes.
    let claim = sealed(&[0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert!(error(&claim).contains("more items than bytes"), "{}", error(&claim));
}

#[test]
fn files_are_replaced_in_one_step() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("vectors");
    let set = VectorSet::default();
    set.write_to(&path).unwrap();
    set.write_to(&path).unwrap();
    assert_eq!(VectorSet::read_from(&path).unwrap(), set);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    let nowhere = directory.path().join("missing/vectors");
    assert!(
        set.write_to(&nowhere)
            .unwrap_err()
            .to_string()
            .contains("missing/vectors")
    );
    assert!(VectorSet::read_from(&nowhere).is_err());
}
