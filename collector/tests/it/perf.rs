//! Exported vectors are imported unchanged, in every form that perf writes; damage is reported, and intact parts are
//! kept.

use crate::perf_sets::*;
use pleach_collector::perf::export::{ExportOptions, perf_data, perf_script};
use pleach_collector::perf::{Imported, PerfError, import, import_bytes};
use pleach_collector::vector::{Branch, Burst, CodeAddress, EndReason, Engine, ModuleId, VectorSet};
use proptest::prelude::*;
use std::path::Path;

/// What a burst says, without positions in its set.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Told {
    time: u64,
    process: (u32, String),
    thread: u32,
    event: String,
    ip: String,
    branches: Vec<String>,
}

fn told(set: &VectorSet) -> Vec<Told> {
    let at = |address: CodeAddress| match set.modules.get(address.module.0 as usize) {
        Some(module) => format!("{:?} {:?} {:#x}", module.path, module.build_id, address.offset),
        None => format!("{:#x}", address.offset),
    };
    let one = |burst: &Burst| {
        let process = &set.processes[burst.process as usize];
        let hardware = burst.hardware.as_ref().unwrap();
        let branch = |(position, branch): (usize, &Branch)| {
            let fact = hardware.facts.get(position).copied().unwrap_or_default();
            format!("{} -> {} {fact:?}", at(branch.from), at(branch.to))
        };
        Told {
            time: burst.time_ns,
            process: (process.pid, process.command.clone()),
            thread: burst.thread,
            event: set.events[hardware.event.0 as usize].clone(),
            ip: at(hardware.ip),
            branches: burst.branches.iter().enumerate().map(branch).collect(),
        }
    };
    let mut told: Vec<Told> = set.bursts.iter().map(one).collect();
    told.sort();
    told
}

const DEEP: ExportOptions = ExportOptions { depth: 64 };

fn read(bytes: &[u8]) -> Result<Imported, PerfError> {
    import_bytes(Path::new("some/perf.data"), bytes, None)
}

/// The data of a file, and the same events as records for a pipe.
fn parts(file: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (each, attrs, size) = (word(file, 16), word(file, 24), word(file, 32));
    let (data, data_size) = (word(file, 40), word(file, 48));
    let mut events = Vec::new();
    for entry in file[attrs..attrs + size].chunks(each) {
        let ids = word(entry, each - 16);
        events.extend(record(64, &[&entry[..each - 16], &file[ids..ids + 8]].concat()));
    }
    // EVENT_DESC is the second section.
    let table = data + data_size + 16;
    let (names, names_size) = (word(file, table), word(file, table + 8));
    let feature = [&12u64.to_le_bytes(), &file[names..names + names_size]].concat();
    events.extend(record(80, &feature));
    (file[data..data + data_size].to_vec(), events)
}

fn piped(records: &[&[u8]]) -> Vec<u8> {
    [b"PERFILE2".as_slice(), &16u64.to_le_bytes(), &records.concat()].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_exported_is_imported(set in set()) {
        let (file, exported) = perf_data(&set, DEEP);
        let Imported { vectors, report } = read(&file).unwrap();
        prop_assert_eq!(told(&vectors), told(&set));
        prop_assert_eq!((report.vectors, report.branches), (exported.stacks, exported.branches));
        prop_assert_eq!((report.malformed, report.damage), (0, None));
    }

    #[test]
    fn pipes_and_compression_change_nothing(set in set(), size in 20usize..400) {
        let (data, events) = parts(&perf_data(&set, DEEP).0);
        prop_assert_eq!(told(&read(&piped(&[&events, &data])).unwrap().vectors), told(&set));
        // One stream over records of any size, each flushed, as perf does.
        let mut stream = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        for kind in [81, 83] {
            let mut records = events.clone();
            for piece in data.chunks(size) {
                use std::io::Write;
                stream.write_all(piece).unwrap();
                stream.flush().unwrap();
                let out = std::mem::take(stream.get_mut());
                let body = match kind {
                    81 => out,
                    _ => [&(out.len() as u64).to_le_bytes()[..], &out, &vec![0; out.len().wrapping_neg() % 8]].concat(),
                };
                records.extend(record(kind, &body));
            }
            prop_assert_eq!(told(&read(&piped(&[&records])).unwrap().vectors), told(&set));
            stream = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        }
    }

    /// The layout has no process, thread, time and event.
    #[test]
    fn text_keeps_the_branches(mut set in set()) {
        set.bursts.retain(|burst| burst.process == 0);
        let (text, exported) = perf_script(&set, DEEP);
        if exported.stacks == 0 {
            return Ok(());
        }
        let Imported { vectors, report } = read(&text).unwrap();
        prop_assert_eq!(report.malformed, 0, "{:?}", report.first_malformed);
        set.bursts.sort_by_key(|burst| burst.time_ns);
        let branches = |set: &VectorSet| -> Vec<(String, Vec<String>)> {
            let mut set = set.clone();
            // Keeps the order.
            for (position, burst) in set.bursts.iter_mut().enumerate() {
                burst.time_ns = position as u64;
            }
            told(&set).into_iter().map(|told| (told.ip, told.branches)).collect()
        };
        prop_assert_eq!(branches(&vectors), branches(&set));
    }

    /// Every branch is in one stack, whatever the depth.
    #[test]
    fn cutting_loses_no_branch(set in set(), depth in 1usize..10) {
        let (file, exported) = perf_data(&set, ExportOptions { depth });
        let all: usize = set.bursts.iter().map(|burst| burst.branches.len()).sum();
        prop_assert_eq!((exported.branches, exported.unmapped), (all as u64, 0));
        let imported = read(&file).unwrap();
        let longest = imported.vectors.bursts.iter().map(|burst| burst.branches.len()).max();
        prop_assert!(longest <= Some(depth));
    }

    #[test]
    fn damage_is_survived(
        set in set(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
        form in 0..3,
    ) {
        let mut file = perf_data(&set, DEEP).0;
        if form > 0 {
            let (data, events) = parts(&file);
            let packed = record(81, &zstd::bulk::compress(&data[..data.len().min(60_000)], 1).unwrap());
            file = if form == 1 { piped(&[&events, &data]) } else { piped(&[&events, &packed]) };
        }
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        file.truncate(cut.index(file.len()) + 1);
        match read(&file) {
            // Never more branches than the given depth.
            Ok(Imported { report, .. }) => prop_assert!(form == 2 || report.branches as usize <= file.len() / 24),
            Err(error) => prop_assert!(error.to_string().contains("some/perf.data"), "{}", error),
        }
    }

    #[test]
    fn noise_in_text_is_survived(set in set(), at in any::<prop::sample::Index>(), noise in "[ -~\n]{0,30}") {
        let mut text = perf_script(&set, DEEP).0;
        let at = at.index(text.len());
        text.splice(at..at, noise.bytes());
        let _ = read(&text);
    }
}

fn example() -> VectorSet {
    let at = |offset| CodeAddress {
        module: ModuleId(1),
        offset: FILE_OFFSET + offset,
    };
    let burst = |time_ns| Burst {
        process: 0,
        thread: 7,
        time_ns,
        engine: Engine::Perf,
        start: None,
        branches: vec![
            Branch {
                from: at(8),
                to: at(16),
            },
            Branch {
                from: at(32),
                to: at(4),
            },
        ],
        end: None,
        end_reason: EndReason::Budget,
        instructions: 0,
        count: 1,
        proved: true,
        system_call: None,
        hardware: None,
        values: Vec::new(),
        timing: None,
    };
    VectorSet {
        modules: modules(),
        processes: (0..PROCESSES).map(process).collect(),
        events: Vec::new(),
        bursts: (1..=3).map(burst).collect(),
        compressed: None,
        coverage: Vec::new(),
        samples: Vec::new(),
    }
}

#[test]
fn what_is_intact_before_the_damage_is_kept() {
    let file = perf_data(&example(), DEEP).0;
    let (data, size) = (word(&file, 40), word(&file, 48));
    let imported = read(&file[..data + size - 1]).unwrap();
    assert_eq!(imported.vectors.bursts.len(), 2);
    insta::assert_snapshot!(imported.report.damage.unwrap(), @"1 bytes of data are missing at byte 935");

    // Killed before the header was completed: nothing but the size is missing.
    let mut unfinished = file.clone();
    unfinished[48..56].fill(0);
    unfinished.truncate(data + size);
    let imported = read(&unfinished).unwrap();
    assert_eq!(imported.vectors.bursts.len(), 3);
    insta::assert_snapshot!(imported.report.damage.unwrap(), @"`perf record` did not finish the file, so that its size of data is 0 at byte 48");

    // The last record says that it is shorter than its head.
    let mut short = file.clone();
    let last = data + size - (8 + 48 + 2 * 24);
    short[last + 6..last + 8].fill(0);
    let imported = read(&short).unwrap();
    assert_eq!(imported.vectors.bursts.len(), 2);
    insta::assert_snapshot!(imported.report.damage.unwrap(), @"a record is shorter than its head at byte 832");
}

#[test]
fn errors_name_the_file_and_what_to_do() {
    let file = perf_data(&example(), DEEP).0;
    let error = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    let attr = word(&file, 24);
    let mut filtered = file.clone();
    filtered[attr + 72] = 16;
    let mut plain = file.clone();
    plain[attr + 25] &= !8;
    let mut far = file.clone();
    far[40..48].fill(0x7f);
    let mut wordless = file.clone();
    wordless[8] = 9;
    let texts = [
        error(b""),
        error(b"int main() {}\n"),
        error(b"2ELIFREP"),
        error(&file[..50]),
        error(&wordless),
        error(&far),
        error(&filtered),
        error(&plain),
        import(Path::new("/nowhere/perf.data"), None).unwrap_err().to_string(),
        import_bytes(Path::new("some/perf.data"), &file, Some(Path::new("/nowhere/a.out")))
            .unwrap_err()
            .to_string(),
    ];
    insta::assert_snapshot!(texts.join("\n"), @r"
    some/perf.data is neither a perf.data file nor `perf script` text with branch stacks: record with `perf record -b`
    some/perf.data is neither a perf.data file nor `perf script` text with branch stacks: record with `perf record -b`
    some/perf.data was recorded on a big-endian machine: convert it there with `perf script -F ip,brstack --show-mmap-events`
    some/perf.data is damaged and nothing of it can be read: it ends in its header at byte 50; copy it again, or record again
    some/perf.data is damaged and nothing of it can be read: the size of the header is impossible at byte 8; copy it again, or record again
    some/perf.data is damaged and nothing of it can be read: the data lie behind the end of the file at byte 40; copy it again, or record again
    some/perf.data has only branches of the kind any_call, so that what ran between them is not known: record with `perf record -b`
    some/perf.data was recorded without branch stacks: record with `perf record -b`
    /nowhere/perf.data: No such file or directory (os error 2)
    /nowhere/a.out: No such file or directory (os error 2)
    ");
}

/// What real texts have: comments, a call chain above the branches, layouts with more fields, new and old flags.
#[test]
fn layouts_of_text_are_understood() {
    let text = "\
# captured by perf
PERF_RECORD_MMAP2 7/7: [0x400000(0x1000) @ 0x2000 00:1d 123 5]: r-xp /nowhere/a b
PERF_RECORD_MMAP2 7/7: [0x500000(0x1000) @ 0 <0102030405060708>]: r-xp /nowhere/c
PERF_RECORD_MMAP2 7/7: [0x600000(0x1000) @ 0 00:1d 124 5]: r--p /nowhere/data
PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x1000) @ 0xffffffff81000000]: x [kernel.kallsyms]_text

\t          400010
\t          400020
 0x400030/0x400040/P/-/-/9  0x400020/0x500030/M/X/A/-

my prog     7/9     [001] 12.000000345:       1000 cycles:u:            400abc main+0x1 (/nowhere/a b) 0x400030/0x400040/P/-/-/3/COND/- 0x1/0x2/PN/-/-/0
   400010 0x400050/0x400060/-/-/-/70000 0x70/0x80/P/-/-/1/COND/SPEC_WRONG_PATH 0x90/zzz/P/-/-/1
what is this
";
    let Imported { vectors, report } = read(text.as_bytes()).unwrap();
    let lines: Vec<String> = told(&vectors).iter().map(|told| format!("{told:?}")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    Told { time: 0, process: (7, ""), thread: 0, event: "unknown", ip: "\"/nowhere/a b\" None 0x2010", branches: ["\"/nowhere/a b\" None 0x2020 -> \"/nowhere/c\" Some(BuildId(0102030405060708)) 0x30 BranchFacts { prediction: Mispredicted, cycles: 0 }", "\"/nowhere/a b\" None 0x2030 -> \"/nowhere/a b\" None 0x2040 BranchFacts { prediction: Predicted, cycles: 9 }"] }
    Told { time: 0, process: (7, ""), thread: 0, event: "unknown", ip: "\"/nowhere/a b\" None 0x2010", branches: ["\"/nowhere/a b\" None 0x2050 -> \"/nowhere/a b\" None 0x2060 BranchFacts { prediction: Unknown, cycles: 65535 }"] }
    Told { time: 12000000345, process: (7, ""), thread: 9, event: "cycles:u", ip: "\"/nowhere/a b\" None 0x2abc", branches: ["\"/nowhere/a b\" None 0x2030 -> \"/nowhere/a b\" None 0x2040 BranchFacts { prediction: Predicted, cycles: 3 }"] }
    "#);
    assert_eq!((report.samples, report.wrong_path, report.malformed), (3, 1, 2));
    assert_eq!(
        report.first_malformed.unwrap().to_string(),
        "an entry that is not a branch in line 12"
    );
}

/// Skylake's habit, beside loops that look the same.
#[test]
fn branches_recorded_twice_go() {
    let set = |stacks: &dyn Fn(u64) -> Vec<(u64, u64)>| {
        let mut set = example();
        set.bursts = (1..=20)
            .map(|time_ns| {
                let mut burst = Burst {
                    time_ns,
                    ..set.bursts[0].clone()
                };
                let at = |offset| CodeAddress {
                    module: ModuleId(1),
                    offset: FILE_OFFSET + offset,
                };
                burst.branches = stacks(time_ns)
                    .iter()
                    .map(|(from, to)| Branch {
                        from: at(*from),
                        to: at(*to),
                    })
                    .collect();
                burst
            })
            .collect();
        read(&perf_data(&set, DEEP).0).unwrap().report.duplicates
    };
    // A loop: any two neighbours are equal.
    assert_eq!(set(&|_| vec![(9, 5); 6]), 0);
    // Forwards: it cannot have happened.
    assert_eq!(set(&|_| vec![(1, 2), (9, 50), (9, 50)]), 20);
    // Backwards, but only ever the newest two.
    assert_eq!(set(&|_| vec![(9, 5), (8, 4), (7, 3), (7, 3)]), 20);
    assert_eq!(
        set(&|time| if time < 4 {
            vec![(8, 4), (7, 3), (7, 3)]
        } else {
            vec![(8, 4), (7, 3)]
        }),
        0
    );
}

/// Buffers of two processors: the mapping is in the second one, the sample before it in the file.
#[test]
fn rounds_are_put_in_order() {
    let (data, events) = parts(&perf_data(&example(), DEEP).0);
    let mut records = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let size = usize::from(u16::from_le_bytes([data[at + 6], data[at + 7]]));
        records.push(data[at..at + size].to_vec());
        at += size;
    }
    let round = record(68, &[]);
    // Samples of times 2 and 3 come first; everything of time 1 in a round of its own.
    let late = records.split_off(records.len() - 2);
    let stream = [&events, &late.concat(), &round, &records.concat(), &round, &round];
    let stream: Vec<&[u8]> = stream.iter().map(|part| part.as_slice()).collect();
    let vectors = read(&piped(&stream)).unwrap().vectors;
    assert_eq!(
        vectors.bursts.iter().map(|burst| burst.time_ns).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert!(
        vectors
            .bursts
            .iter()
            .all(|burst| burst.branches[0].from.module != ModuleId::EXTERNAL)
    );
}
