//! Count files: what was written is read, by unit and function.

use pleach_feedback_tests::counts_support;

use counts_support::{PAGE, example, file, options, parse, read_bytes, set, spin, unit, varied, word, written};
use pleach_ball_larus::counts::Counts;
use pleach_ball_larus::counts::file::CountFile;
use pleach_ball_larus::counts::merge::merge;
use pleach_ball_larus::counts::unit::{Unit, UnitId, encode};
use pleach_ball_larus::{Mode, NumberingOptions, Storage};
use pleach_store::write_counts;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A segment in the runtime's way, of blocks given by kind, unit, function, size and content.
fn segment(blocks: &[([u64; 4], Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for ([kind, unit, function, size], content) in blocks {
        let length = (64 + content.len()).next_multiple_of(64) as u64;
        let words = [0x4b42_4c50 | kind << 32, length, *unit, *function, *size, 0, 0, 9];
        let start = body.len();
        body.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        body.extend(content);
        body.resize(start + length as usize, 0);
    }
    let length = (64 + body.len()).next_multiple_of(PAGE);
    let words = [
        word(b"PLSEGMT1", 0),
        length as u64,
        64 + body.len() as u64,
        77,
        0,
        0,
        0,
        0,
    ];
    let mut out: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    out.extend(body);
    out.resize(length, 0);
    out
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn problems(counts: &Counts) -> Vec<String> {
    let tail = |p: &pleach_ball_larus::counts::error::CountProblem| p.what.to_string();
    counts.problems.iter().map(tail).collect()
}

#[test]
fn what_was_written_is_read() {
    for counts in [Counts::default(), example(), varied()] {
        let (dir, path) = written(&counts);
        assert_eq!(CountFile::open(&path).unwrap(), counts);
        assert!(CountFile::is_count_file(&path).unwrap());
        // Nothing is left behind, and the same counts are the same file.
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let bytes = fs::read(&path).unwrap();
        write_counts(&path, &CountFile::open(&path).unwrap()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn threads_and_tables_are_summed() {
    let unit = Unit {
        words: 10,
        ..unit(
            NumberingOptions {
                hash_above: 3,
                ..options(Mode::Paths, 1)
            },
            &[spin(), parse()],
        )
    };
    let (description, UnitId(id)) = encode(&unit);
    let spins = unit.functions[0].counters as usize;
    assert_eq!((spins, unit.functions[1].storage), (2, Storage::Hash));
    let thread = |first: u64| {
        // After the counters, what the runtime keeps for the table.
        let content = words(&[first, 1, 0xdead, 0xbeef, 0, 0, 0, 0, 0, 0]);
        ([2, id, 0, 10], content)
    };
    let table = |pairs: &[u64]| ([3, id, 1, pairs.len() as u64 / 2], words(pairs));
    let describe = || ([1, id, 0, description.len() as u64], description.clone());
    let bytes = file(&[
        segment(&[
            describe(),
            table(&[5, 100, 0, 0]),
            table(&[0, 0, 1, 7, 5, 3, 0, 0]),
            thread(40),
        ]),
        // A child process, whose description is there again.
        segment(&[describe(), thread(u64::MAX - 10), table(&[1, 1, 0, 0])]),
    ]);
    let dir = TempDir::new().unwrap();
    let counts = read_bytes(&dir.path().join("a.plcnt"), &bytes).unwrap();
    assert_eq!(problems(&counts), [""; 0]);
    assert_eq!(
        counts.units[&UnitId(id)].1.functions,
        [vec![(0, u64::MAX), (1, 2)], vec![(0, 8), (4, 103)]]
    );
}

#[test]
fn every_problem_is_named_and_loses_only_its_part() {
    let unit = unit(
        NumberingOptions {
            hash_above: 3,
            ..options(Mode::Paths, 1)
        },
        &[spin(), parse()],
    );
    let (description, UnitId(id)) = encode(&unit);
    let size = description.len() as u64;
    let mut damaged = description.clone();
    damaged[100] ^= 1;
    let good = || ([2, id, 0, unit.words], words(&[4, 5, 0, 0]));
    let mut broken_block = segment(&[good(), good(), good()]);
    // The length of the second block.
    set(&mut broken_block, 64 + 128 + 8, 1 << 40);
    let bytes = file(&[
        segment(&[
            ([1, id, 0, size], description.clone()),
            good(),
            ([2, id, 0, unit.words + 1], words(&[1; 5])),
            ([2, 0xabc, 0, 2], words(&[1, 1])),
            ([3, 0xabc, 0, 2], words(&[1, 1, 0, 0])),
            ([1, 0xdef, 0, size], damaged),
            ([9, id, 0, 3], words(&[1; 3])),
            ([3, id, 1, 4], words(&[1, 6, 99, 8, 98, 8, 0, 2])),
            ([3, id, 0, 2], words(&[1, 1, 0, 0])),
            ([3, id, 9, 2], words(&[1, 1, 0, 0])),
        ]),
        [vec![0; PAGE], vec![7; PAGE]].concat(),
        broken_block,
        segment(&[good()]),
    ]);
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.plcnt");
    let counts = read_bytes(&path, &bytes).unwrap();
    assert_eq!(counts.units.len(), 1);
    // Four whole arrays, the broken one missing.
    assert_eq!(
        counts.units[&UnitId(id)].1.functions,
        [vec![(0, 16), (1, 20)], vec![(0, 6)]]
    );
    insta::assert_snapshot!(problems(&counts).join("\n"));
    // The file is named before each.
    assert!(counts.problems[0].to_string().starts_with(&path.display().to_string()));
}

#[test]
fn files_without_counts_are_no_error() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.plcnt");
    let header = file(&[]);
    // What a program leaves that is killed at its start: with and without the header's page, and with room for
    // counters.
    for bytes in [&header[..32], &header, &[&header[..], &[0; 2 * PAGE]].concat()] {
        assert_eq!(read_bytes(&path, bytes).unwrap(), Counts::default());
    }
}

#[test]
fn what_is_no_count_file_is_named() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("x");
    let says = |content: &[u8], expected: &str| {
        let message = read_bytes(&path, content).unwrap_err().to_string();
        assert!(message.starts_with(&path.display().to_string()), "{message}");
        assert!(message.contains(expected), "{message}");
    };
    says(b"", "empty");
    says(b"\x89PLEACH\n\x01\0\0\0", "`pleach show` prints it");
    says(b"\x7fELF\x02\x01\x01", "program or object file");
    says(b"\x81rforpl\xff\x09\0\0\0\0\0\0\0", ".profraw");
    says(&[0; 4096], "does not begin like one");
    says(b"PLEACHC1\x02\0\0\0", "count format 2, but this pleach reads format 1");
    let error = |path: &Path| CountFile::open(path).unwrap_err().to_string();
    assert!(error(&dir.path().join("missing")).contains("No such file"));
    assert!(error(dir.path()).contains("a directory"));
    assert!(error(Path::new("/dev/null")).contains("device"));
    assert!(!CountFile::is_count_file("/dev/null").unwrap());
}

#[test]
fn counts_that_cannot_be_stored_leave_the_old_file() {
    let (dir, path) = written(&example());
    let before = fs::read(&path).unwrap();
    let mut counts = example();
    let content = counts.units.values_mut().next().unwrap();
    content.1.functions[0] = vec![(1 << 40, 1)];
    let error = write_counts(&path, &counts).unwrap_err().to_string();
    assert!(error.contains("function parse has no counter 1099511627776"), "{error}");
    let missing = dir.path().join("missing/a.plcnt");
    assert!(
        write_counts(&missing, &example())
            .unwrap_err()
            .to_string()
            .contains("No such file")
    );
    assert!(
        write_counts(dir.path(), &example())
            .unwrap_err()
            .to_string()
            .contains("a directory")
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn merging_sums_by_unit_and_number() {
    let (a, b) = (varied(), example());
    let merged = merge([a.clone(), b.clone(), Counts::default()]);
    assert_eq!(merged.units.len(), 3);
    let (id, (_, once)) = b.units.iter().next().unwrap();
    for (sum, once) in merged.units[id].1.functions.iter().zip(&once.functions) {
        let twice: Vec<_> = once.iter().map(|&(number, count)| (number, 2 * count)).collect();
        assert_eq!(*sum, twice);
    }
    // The largest count stays.
    assert_eq!(
        merge([a.clone(), a.clone()])
            .units
            .values()
            .flat_map(|u| &u.1.functions)
            .flatten()
            .max_by_key(|c| c.1)
            .unwrap()
            .1,
        u64::MAX
    );
    assert_eq!(merge([a.clone()]), a);
}
