//! Small well-formed inputs, from which fuzzing starts.

use crate::input::{Input, with_file};
use crate::{counts, profile};
use pleach_annotate::cfg::{Block, Call, Callee, Cfg, Terminator};
use pleach_annotate::id::{BlockIndex, FunctionGuid, FunctionId, ModuleHash};
use pleach_annotate::manifest::{self, Anchor};
use pleach_collector::perf::export::{ExportOptions, perf_data, perf_script};
use pleach_collector::vector::coverage::{Failure, ModuleCoverage, SegmentCoverage, SegmentState};
use pleach_collector::vector::*;
use pleach_report::profile_text::to_text;
use pleach_wire::shard::{BurstHead, BurstTimingFrame, Counters, Encoder, FrameKind};

/// A seed: its target, its name, its contents.
pub type Seed = (&'static str, &'static str, Vec<u8>);

/// All seeds.
pub fn all() -> Vec<Seed> {
    let set = vectors();
    let file = set.to_bytes();
    let payload = zstd::decode_all(&file[24..]).expect("compressed just now");
    let options = ExportOptions { depth: 2 };
    let with_mode = |mode: u8, bytes: &[u8]| [&[mode], bytes].concat();
    let entry = manifest::encode(&graph(), Anchor::Early);
    let noise = noise(30_000);
    let profile_file = with_file(&[], |path| {
        let of_several = (0..).map(|skip| profile::made_of(&mut Input(&noise[skip..])));
        let written = of_several.take(20_000).any(|profile| {
            let paths: usize = profile.functions.iter().map(|f| f.paths.len()).sum();
            paths > 4 && pleach_store::write_profile(path, &profile).is_ok()
        });
        assert!(written);
        std::fs::read(path).expect("read")
    });
    let count_file = with_file(&[], |path| {
        let of_one = (0..).map(|skip| counts::made_of(&mut Input(&noise[skip..])));
        let written = of_one
            .take(2000)
            .any(|counts| pleach_store::write_counts(path, &counts).is_ok());
        assert!(written);
        std::fs::read(path).expect("read")
    });
    let profile_text = to_text(&profile::made_of(&mut Input(&noise))).expect("printable");
    vec![
        ("vector_file", "file", with_mode(0, &file)),
        ("vector_file", "payload", with_mode(2, &payload)),
        ("shard", "frames", with_mode(0, &shard())),
        ("shard", "payloads", with_mode(1, &noise[..400])),
        ("perf_data", "exported", perf_data(&set, options).0[8..].to_vec()),
        ("perf_script", "exported", perf_script(&set, options).0),
        ("perf_script", "written", SCRIPT.into()),
        ("manifest", "entry", with_mode(0, &entry)),
        ("manifest", "graphs", with_mode(1, &noise[..300])),
        ("block_addresses", "function", BLOCK_ADDRESSES.to_vec()),
        ("pseudo_probe", "trees", probes()),
        ("elf", "program", elf(&entry)[4..].to_vec()),
        ("profile", "file", with_mode(0, &profile_file)),
        ("profile", "repaired", with_mode(1, &profile_file)),
        ("profile", "made", with_mode(2, &noise[..700])),
        ("profile_text", "text", with_mode(0, profile_text.as_bytes())),
        ("profile_text", "made", with_mode(1, &noise[..700])),
        ("sample_profile", "nested", SAMPLE_PROFILE.into()),
        ("decide", "noise", noise[..2000].to_vec()),
        ("decide", "more noise", noise[1000..].to_vec()),
        ("phases", "noise", noise[..1500].to_vec()),
        ("phases", "fixed", with_mode(1, &noise[2000..3500])),
        (
            "count_file",
            "blocks",
            with_mode(1, count_file[4096 + 64..].trim_ascii_end()),
        ),
        ("exact_counts", "noise", noise[..500].to_vec()),
        ("exact_counts", "more", noise[500..1200].to_vec()),
    ]
}

/// The same noise every time.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn graph() -> Cfg {
    let block = |successors: &[u32], terminator| Block {
        successors: successors.iter().map(|block| BlockIndex(*block)).collect(),
        terminator,
        is_eh_pad: false,
        instructions: 3,
        line: 7,
    };
    Cfg {
        id: FunctionId {
            guid: FunctionGuid::of_name("a"),
            module: ModuleHash(0),
        },
        module: ModuleHash(5),
        name: "a".into(),
        source_file: "a.c".into(),
        blocks: vec![
            block(&[1, 2], Terminator::Branch),
            block(&[0], Terminator::Branch),
            block(&[], Terminator::Return),
        ],
        calls: vec![Call {
            block: BlockIndex(1),
            callee: Callee::Direct(FunctionGuid(9)),
            may_not_return: true,
        }],
    }
}

fn vectors() -> VectorSet {
    let at = |module, offset| CodeAddress {
        module: ModuleId(module),
        offset,
    };
    let burst = |time_ns, hardware| Burst {
        process: 0,
        thread: 4,
        time_ns,
        engine: Engine::RunAhead,
        start: Some(at(0, 0x10)),
        branches: vec![
            Branch {
                from: at(0, 0x20),
                to: at(0, 0x18),
            };
            3
        ],
        values: vec![
            ObservedValue {
                branch: 1,
                division: None,
                value: 300,
            },
            ObservedValue {
                branch: 2,
                division: Some(at(0, 0x1a)),
                value: 7,
            },
        ],
        end: Some(at(u32::MAX, 0x7000)),
        end_reason: EndReason::SystemCall,
        system_call: Some(1),
        instructions: 30,
        count: 1,
        proved: true,
        hardware,
        timing: (time_ns == 7).then_some(BurstTiming {
            branches: 1200.0,
            nanoseconds: 3500.0,
        }),
    };
    let hardware = HardwareSample {
        event: EventId(0),
        ip: at(0, 0x1c),
        facts: Box::new(
            [BranchFacts {
                prediction: Prediction::Predicted,
                cycles: 5,
            }; 3],
        ),
    };
    let process = |parent| Process {
        pid: 4,
        parent,
        command: "a b".into(),
        program_cpu_seconds: 1.5,
        own_cpu_seconds: 0.5,
        lost: 1,
        declined: 2,
        undisturbed: false,
    };
    VectorSet {
        modules: vec![Module {
            path: "/a".into(),
            build_id: Some(BuildId(vec![1, 2, 3, 4])),
            mappings: vec![ModuleMapping {
                process: 0,
                start: 0x1000,
                end: 0x2000,
                file_offset: 0,
            }],
        }],
        processes: vec![process(None), process(Some(0))],
        events: vec!["cycles:u".into()],
        samples: vec![EventSample {
            event: EventId(0),
            thread: 4,
            time_ns: 8,
            at: at(0, 0x18),
            period: 3,
        }],
        bursts: vec![burst(7, None), burst(9, Some(Box::new(hardware)))],
        compressed: None,
        coverage: vec![ModuleCoverage {
            module: ModuleId(0),
            processes: 2,
            traps: 3,
            completed: true,
            failures: vec![(Failure::Traced, 1)],
            segments: vec![SegmentCoverage {
                start: 0x10,
                end: 0x20,
                state: SegmentState::Hit,
                hits: 3,
                at_most: Some(7),
                first_hit_ns: Some(11),
            }],
        }],
    }
}

fn shard() -> Vec<u8> {
    let frame = |kind, fill: &dyn Fn(&mut Encoder)| {
        let mut buffer = [0; 512];
        let mut encoder = Encoder::new(&mut buffer);
        fill(&mut encoder);
        encoder.finish(kind).expect("room").to_vec()
    };
    let head = BurstHead {
        thread: 4,
        start: 0x1010,
        end: 0x1020,
        branches: 2,
        ..BurstHead::default()
    };
    let frames = [
        frame(FrameKind::Process, &|e| {
            e.u32(4);
            e.u32(1);
            e.u64(1);
            e.u64(0);
            e.string(b"b.shard");
            e.string(b"/a");
            e.string(b"a\0b\0");
        }),
        frame(FrameKind::Mappings, &|e| {
            e.u8(0);
            [0x1000, 0x2000, 0, 7].iter().for_each(|word| e.u64(*word));
            e.string(b"/a");
            e.string(&[1, 2, 3]);
        }),
        frame(FrameKind::Burst, &|e| {
            e.bytes(&head.to_bytes());
            e.delta(0x1010, 0x1018);
            e.delta(0x1018, 0x1010);
            e.delta(0x1010, 0x1018);
            e.delta(0x1018, 0x1010);
        }),
        frame(FrameKind::BurstTiming, &|e| {
            let clock = BurstTimingFrame {
                thread: 4,
                passes: 4,
                distance_16: 5000,
                elapsed_ns: 3000,
                ..BurstTimingFrame::default()
            };
            clock.encode(e);
        }),
        frame(FrameKind::Verified, &|e| e.u32(20)),
        frame(FrameKind::Final, &|e| {
            e.u64(99);
            e.bytes(&Counters::default().to_bytes());
            e.u8(1);
        }),
    ];
    frames.concat()
}

const SAMPLE_PROFILE: &str =
    "main:12:1\n 2: 0\n 2.3: 5 exit:1 puts:4\n 4.1: helper:7\n  1: 7\n !CFGChecksum: 7\n[main:3 @ f]:8:2\n 1: 2\n";

const SCRIPT: &str = "\
PERF_RECORD_MMAP2 7/7: [0x1000(0x1000) @ 0 08:01 9 1]: r-xp /a
PERF_RECORD_COMM exec: a:7/7
PERF_RECORD_FORK(8:8):(7:7)
a     7/7     1.000000001:     100003 cycles:u:
            1018 f+0x8 (/a)
            1010 main (/a)
 0x1018/0x1010/P/-/-/3/COND/-  0x1018/0x1010/M/-/-/0  0x0/0x0/-/-/-/0
            1018  0x1018/0x1010/PN/-/-/3
PERF_RECORD_LOST 4
";

/// Trees of `a`, with `b` inlined, and of a part of `b`.
fn probes() -> Vec<u8> {
    let mut section = FunctionGuid::of_name("a").0.to_le_bytes().to_vec();
    section.extend([2, 1, 1, 0x80, 0, 4, 0x82, 12, 4]);
    section.extend(FunctionGuid::of_name("b").0.to_le_bytes());
    section.extend([1, 0, 1, 0xc0, 4, 3]);
    section.extend(FunctionGuid::of_name("b").0.to_le_bytes());
    section.extend([2, 0, 0, 0x20]);
    section.extend(FunctionGuid::of_name("a").0.to_le_bytes());
    section.extend([1, 0x80, 8]);
    section
}

/// A function of two blocks, the first of which has a call.
const BLOCK_ADDRESSES: [u8; 23] = [
    5, 0x20, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 2, 0, 0, 1, 7, 8, 8, 3, 0, 0, 3, 1,
];

/// A program of one segment and the sections that are read.
fn elf(manifest: &[u8]) -> Vec<u8> {
    const HEADER: usize = 64;
    const SEGMENT: usize = 56;
    let names = b"\0.text\0.symtab\0.strtab\0.pleach_cfg\0.pseudo_probe\0";
    let name = |wanted: &[u8]| names.windows(wanted.len()).position(|at| at == wanted).expect("a name") as u32;
    let mut symbols = vec![0; 24];
    symbols.extend(1u32.to_le_bytes());
    // A function, global, in section 1.
    symbols.extend([0x12, 0, 1, 0]);
    symbols.extend(0x1000u64.to_le_bytes());
    symbols.extend(16u64.to_le_bytes());
    let strings = b"\0a\0".to_vec();
    let code = [0x90, 0x90, 0x74, 0xfc, 0xe8, 0, 0, 0, 0, 0xc3].to_vec();
    /// Name, kind, contents, link and size of an entry.
    type Section<'a> = (&'a [u8], u32, Vec<u8>, u32, u64);
    let contents: [Section<'_>; 5] = [
        (b".text", 1, code, 0, 0),
        (b".symtab", 2, symbols, 3, 24),
        (b".strtab", 3, [&strings[..], names].concat(), 0, 0),
        (b".pleach_cfg", 1, manifest.to_vec(), 0, 0),
        (b".pseudo_probe", 1, probes(), 0, 0),
    ];
    let mut bodies: Vec<u8> = Vec::new();
    let mut table = vec![0; 64];
    for (section, kind, body, link, each) in &contents {
        let at = HEADER + SEGMENT + bodies.len();
        let address = if *section == b".text" { 0x1000 } else { 0u64 };
        table.extend((name(section) + strings.len() as u32).to_le_bytes());
        table.extend(kind.to_le_bytes());
        for word in [6, address, at as u64, body.len() as u64] {
            table.extend(word.to_le_bytes());
        }
        table.extend(link.to_le_bytes());
        table.extend(1u32.to_le_bytes());
        table.extend(1u64.to_le_bytes());
        table.extend(each.to_le_bytes());
        bodies.extend(body);
    }
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    for word in [0x1000, HEADER as u64, (HEADER + SEGMENT + bodies.len()) as u64] {
        out.extend(word.to_le_bytes());
    }
    out.extend(0u32.to_le_bytes());
    for half in [64u16, 56, 1, 64, 6, 3] {
        out.extend(half.to_le_bytes());
    }
    out.extend(1u32.to_le_bytes());
    out.extend(5u32.to_le_bytes());
    for word in [(HEADER + SEGMENT) as u64, 0x1000, 0x1000, 10, 10, 4096] {
        out.extend(word.to_le_bytes());
    }
    out.extend(bodies);
    out.extend(table);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TARGETS;
    use pleach_annotate::map::AddressMap;

    #[test]
    fn every_target_has_seeds_and_passes_them() {
        let seeds = all();
        for (target, run) in TARGETS {
            let own: Vec<_> = seeds.iter().filter(|(of, ..)| *of == target).collect();
            assert!(!own.is_empty(), "{target}");
            own.iter().for_each(|(_, _, bytes)| run(bytes));
        }
    }

    /// A little of what a fuzzer does, without one: bytes that are changed, inserted, left out, and cut off.
    #[test]
    fn every_target_passes_changed_seeds() {
        const ROUNDS: u64 = 100;
        for (target, run) in TARGETS {
            for (of, name, seed) in all().iter().filter(|(of, ..)| *of == target) {
                for round in 0..ROUNDS {
                    let mut state = round + 1;
                    let mut number = |below: usize| {
                        // Knuth's generator.
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        (state >> 33) as usize % below.max(1)
                    };
                    let mut bytes = seed.clone();
                    for _ in 0..=number(4) {
                        let at = number(bytes.len());
                        match number(5) {
                            0 => bytes.truncate(at),
                            1 => bytes.insert(at, number(256) as u8),
                            2 if !bytes.is_empty() => drop(bytes.remove(at)),
                            _ => bytes
                                .iter_mut()
                                .skip(at)
                                .take(1)
                                .for_each(|byte| *byte = number(256) as u8),
                        }
                    }
                    let passed = std::panic::catch_unwind(|| run(&bytes));
                    assert!(passed.is_ok(), "{of}: {name}, round {round}");
                }
            }
        }
    }

    #[test]
    fn the_program_is_understood() {
        let map = with_file(&elf(&manifest::encode(&graph(), Anchor::Early)), AddressMap::read).expect("a map");
        assert_eq!((map.functions.len(), map.probes.len()), (1, 2));
    }
}
