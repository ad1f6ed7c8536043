use super::*;
use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId, ModuleHash};
use proptest::prelude::*;
use std::collections::BTreeMap;

const BLOCKS: u32 = 40;

fn path() -> impl Strategy<Value = Path> {
    let block = || (0..BLOCKS).prop_map(BlockIndex);
    let end = prop_oneof![
        Just(End::Exit),
        block().prop_map(End::Back),
        block().prop_map(End::Cut),
        Just(End::Call)
    ];
    let start = prop_oneof![Just(Start::Entry), Just(Start::Inside)];
    // Few different first blocks, so that paths share prefixes.
    (start, 0u32..2, prop::collection::vec(block(), 0..8), end).prop_map(|(start, first, rest, end)| Path {
        start,
        blocks: [BlockIndex(first)].into_iter().chain(rest).collect(),
        end,
    })
}

fn function(paths: Vec<(Path, [f64; 4])>, coverage: Vec<Covered>) -> FunctionProfile {
    let estimated = |(path, [count, low, high, effective]): (Path, [f64; 4])| EstimatedPath {
        path,
        count,
        low,
        high,
        effective,
    };
    FunctionProfile {
        id: FunctionId {
            guid: FunctionGuid(1),
            module: ModuleHash(0),
        },
        cfg_hash: CfgHash(0),
        name: String::new(),
        samples: 0,
        blocks: vec![0; BLOCKS as usize],
        edges: vec![],
        paths: paths.into_iter().map(estimated).collect(),
        coverage,
        ..FunctionProfile::default()
    }
}

fn any_function() -> impl Strategy<Value = FunctionProfile> {
    let value = || prop_oneof![Just(0.0), 0.0..5.0, 0.0..1e12, Just(f64::MAX)];
    let effective = prop_oneof![3 => value(), 1 => Just(f64::INFINITY)];
    let paths = prop::collection::btree_map(path(), (value(), value(), value(), effective), 0..30);
    let state = (0u8..8).prop_map(|s| Covered::from_u8(s).expect("a state"));
    let coverage = prop_oneof![
        Just(vec![]),
        prop::collection::vec(state, BLOCKS as usize..=BLOCKS as usize)
    ];
    let windows = prop::collection::vec(
        (
            prop::collection::vec(any::<prop::sample::Index>(), 2..=PathWindow::MAX_PATHS),
            value(),
        ),
        0..10,
    );
    let caller = (
        any::<[u64; 2]>(),
        prop::collection::vec((0..1u32 << 20).prop_map(BlockIndex), 0..5),
    );
    let caller = caller.prop_map(|([guid, hash], before)| Caller {
        id: FunctionId {
            guid: FunctionGuid(guid % 3),
            module: ModuleHash(hash as u32 % 2),
        },
        cfg_hash: CfgHash(hash),
        before,
    });
    let called = prop::collection::vec((caller, any::<prop::sample::Index>(), value()), 0..10);
    let counted = prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(executions(), BLOCKS as usize..=BLOCKS as usize)
    ];
    (paths, windows, called, coverage, counted).prop_map(|(paths, windows, called, coverage, counted)| {
        let values = |(path, (a, b, c, d))| (path, [a, b, c, d]);
        let mut function = function(paths.into_iter().map(values).collect(), coverage);
        let path = |at: prop::sample::Index| at.get(&function.paths).path.clone();
        let windows = windows.into_iter().filter(|_| !function.paths.is_empty());
        let windows: BTreeMap<Vec<Path>, f64> = windows
            .map(|(paths, count)| (paths.into_iter().map(path).collect(), count))
            .collect();
        let window = |(paths, count)| PathWindow { paths, count };
        function.windows = windows.into_iter().map(window).collect();
        let called = called.into_iter().filter(|_| !function.paths.is_empty());
        let called: BTreeMap<(Caller, Path), f64> =
            called.map(|(caller, at, count)| ((caller, path(at)), count)).collect();
        let one = |((caller, path), count)| CallCrossingPath { caller, path, count };
        function.called = called.into_iter().map(one).collect();
        function.counted = counted;
        function
    })
}

fn executions() -> impl Strategy<Value = Executions> {
    let most = any::<Option<u32>>().prop_map(|most| most.map(u64::from));
    (prop_oneof![Just(0), any::<u64>()], most).prop_map(|(at_least, at_most)| Executions { at_least, at_most })
}

fn encoded(function: &FunctionProfile) -> Vec<u8> {
    let mut out = Vec::new();
    encode(function, &mut out);
    out
}

fn decoded(bytes: &[u8]) -> Result<Estimates, &'static str> {
    let mut reader = RecordReader { bytes };
    let read = decode(&mut reader, BLOCKS as usize)?;
    if reader.bytes.is_empty() {
        Ok(read)
    } else {
        Err("bytes left over")
    }
}

proptest! {
    #[test]
    fn what_was_written_is_read_up_to_rounding(function in any_function()) {
        prop_assert_eq!(unstorable(&function), None);
        let bytes = encoded(&function);
        let Estimates { paths, windows, called, coverage, counted } = decoded(&bytes).unwrap();
        prop_assert!(paths.is_sorted_by(|a, b| EstimatedPath::hottest_first(a, b).is_lt()));
        let mut expected = function.paths.clone();
        for p in &mut expected {
            for value in [&mut p.count, &mut p.low, &mut p.high, &mut p.effective] {
                *value = stored(*value).into();
            }
        }
        expected.sort_by(EstimatedPath::hottest_first);
        prop_assert_eq!(&paths, &expected);
        prop_assert_eq!(&coverage, &function.coverage);
        prop_assert_eq!(&counted, &function.counted);
        let mut expected = function.windows.clone();
        expected.iter_mut().for_each(|w| w.count = stored(w.count).into());
        prop_assert_eq!(&windows, &expected);
        let mut expected = function.called.clone();
        expected.iter_mut().for_each(|c| c.count = stored(c.count).into());
        prop_assert_eq!(&called, &expected);
        // Rounding happens once.
        let again = FunctionProfile { paths, windows, called, coverage, counted, ..function };
        prop_assert_eq!(encoded(&again), &bytes[..]);
        for end in 0..bytes.len() {
            prop_assert!(decoded(&bytes[..end]).is_err());
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Estimates { paths, windows, called, coverage, counted }) = decoded(&bytes) {
            let mut read = function(vec![], coverage);
            (read.paths, read.windows, read.called, read.counted) = (paths, windows, called, counted);
            prop_assert_eq!(unstorable(&read), None);
        }
    }
}

fn simple(blocks: &[u32]) -> (Path, [f64; 4]) {
    let path = Path {
        start: Start::Entry,
        blocks: blocks.iter().map(|&b| BlockIndex(b)).collect(),
        end: End::Exit,
    };
    (path, [1.0; 4])
}

#[test]
fn what_makes_no_sense_is_not_stored() {
    let says = |function: &FunctionProfile| unstorable(function).expect("unstorable");
    let with = |paths| function(paths, vec![]);
    assert!(says(&function(vec![], vec![Covered::Proved])).contains("coverage"));
    assert!(says(&with(vec![simple(&[])])).contains("no blocks"));
    assert!(says(&with(vec![simple(&[BLOCKS])])).contains("not there"));
    assert!(says(&with(vec![simple(&[0; BLOCKS as usize + 1])])).contains("too many"));
    assert!(says(&with(vec![simple(&[1]), simple(&[1])])).contains("twice"));
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        let (path, _) = simple(&[1]);
        assert!(says(&with(vec![(path, [1.0, 1.0, bad, 1.0])])).contains("negative or not finite"));
    }
    for bad in [f64::NAN, -1.0] {
        let (path, _) = simple(&[1]);
        assert!(says(&with(vec![(path, [1.0, 1.0, 1.0, bad])])).contains("negative or not finite"));
    }
}

#[test]
fn windows_are_of_paths_that_are_there() {
    let mut function = function(vec![simple(&[1]), simple(&[2])], vec![]);
    let mut says = |windows: &[&[u32]], count| {
        let window = |paths: &&[u32]| PathWindow {
            paths: paths.iter().map(|&b| simple(&[b]).0).collect(),
            count,
        };
        function.windows = windows.iter().map(window).collect();
        unstorable(&function)
    };
    assert_eq!(says(&[&[1, 2], &[2, 1, 1, 1]], 0.0), None);
    assert!(says(&[&[1, 3]], 1.0).unwrap().contains("unknown"));
    assert!(says(&[&[1]], 1.0).is_some() && says(&[&[1; 5]], 1.0).is_some() && says(&[&[1, 2]], f64::NAN).is_some());
    assert!(says(&[&[1, 2], &[1, 2]], 1.0).unwrap().contains("twice"));
}

#[test]
fn shared_prefixes_cannot_claim_gigabytes() {
    // One path of all blocks of a large function, then thousands that share it and add one more.
    let blocks = 1 << 20;
    let mut bytes = Vec::new();
    push_number(&mut bytes, 100_000);
    push_number(&mut bytes, 0);
    push_number(&mut bytes, blocks - 1);
    (1..blocks).for_each(|_| bytes.push(2));
    bytes.extend([0; 16]);
    for _ in 0..1000 {
        push_number(&mut bytes, (blocks - 1) << 3 | 6);
        bytes.push(0);
        bytes.extend([0; 16]);
    }
    let error = decode(&mut RecordReader { bytes: &bytes }, blocks as usize).unwrap_err();
    assert_eq!(error, "its paths are out of order");
    // In order this time.
    let mut bytes = Vec::new();
    push_number(&mut bytes, 100_000);
    for shared in 0..blocks {
        push_number(&mut bytes, shared << 3);
        bytes.extend([1, 2]);
        bytes.extend([0; 16]);
    }
    let error = decode(&mut RecordReader { bytes: &bytes }, blocks as usize).unwrap_err();
    assert_eq!(error, "its paths have too many blocks");
}

#[test]
fn a_path_more_takes_a_few_bytes_more() {
    let long: Vec<u32> = (0..30).collect();
    let other: Vec<u32> = (0..29).chain([31]).collect();
    let one = encoded(&function(vec![simple(&long)], vec![])).len();
    let two = encoded(&function(vec![simple(&long), simple(&other)], vec![])).len();
    // Head (shared 29 blocks: two bytes), one block, four values.
    assert_eq!(two - one, 2 + 1 + 1 + 16);
}
