//! Damaged count files: what is damaged is noticed, and loses only itself.

use pleach_feedback_tests::counts_support;

use counts_support::{PAGE, cfg, example, file, layout, options, read_bytes, set, unit, varied, word, written};
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::Mode;
use pleach_ball_larus::counts::Counts;
use pleach_ball_larus::counts::error::CountError;
use pleach_ball_larus::counts::file::CountFile;
use pleach_ball_larus::counts::unit::{Unit, UnitId, decode, encode};
use proptest::prelude::*;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use tempfile::TempDir;

#[test]
fn headers_with_every_bit_flipped() {
    let counts = varied();
    let (_dir, path) = written(&counts);
    let good = fs::read(&path).unwrap();
    let bad = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let bits = |at: usize| (0..8).map(move |bit| (at, bit));
    for (at, bit) in (0..40).chain(headers(&good)).flat_map(bits) {
        bad.write_all_at(&[good[at] ^ 1 << bit], at as u64).unwrap();
        check_damage(&counts, CountFile::open(&path), &good, at);
        bad.write_all_at(&[good[at]], at as u64).unwrap();
    }
}

/// Every byte of the headers of segments and blocks.
fn headers(bytes: &[u8]) -> Vec<usize> {
    let starts = |(at, blocks): (usize, Vec<(usize, u64)>)| [at].into_iter().chain(blocks.into_iter().map(|b| b.0));
    layout(bytes)
        .into_iter()
        .flat_map(starts)
        .flat_map(|at| at..at + 64)
        .collect()
}

/// Damage at an offset is noticed or does no harm, and other segments' units are whole.
fn check_damage(counts: &Counts, read: Result<Counts, CountError>, good: &[u8], at: usize) {
    let read = match read {
        Ok(read) => read,
        Err(error) => {
            // Magic and version.
            assert!(at < 12, "{at:#x}: {error}");
            return;
        }
    };
    assert!(read.units == counts.units || !read.problems.is_empty(), "{at:#x}");
    let segments = layout(good);
    for (unit, content) in &counts.units {
        let segment = segments
            .iter()
            .find(|(_, blocks)| word(good, blocks[0].0 + 16) == unit.0);
        let start = segment.unwrap().0;
        if !(start..start + word(good, start + 8) as usize).contains(&at) {
            assert_eq!(read.units.get(unit), Some(content), "{at:#x}");
        }
    }
}

#[test]
fn truncated_files_keep_what_is_whole() {
    let counts = varied();
    let (_dir, path) = written(&counts);
    let good = fs::read(&path).unwrap();
    let starts: Vec<usize> = layout(&good).iter().map(|s| s.0).collect();
    for length in (0..good.len()).step_by(24).chain(starts.iter().copied()) {
        match read_bytes(&path, &good[..length]) {
            Err(error) => assert!(length < 8, "{length}: {error}"),
            Ok(read) => {
                let whole = starts
                    .iter()
                    .filter(|&&at| at + word(&good, at + 8) as usize <= length)
                    .count();
                let kept = read
                    .units
                    .iter()
                    .filter(|&(id, unit)| counts.units.get(id) == Some(unit))
                    .count();
                assert!(kept >= whole, "{length}");
                // Where a segment begins nobody can tell that there was one.
                let is_noticed = !read.problems.is_empty() || starts.contains(&length) || length <= PAGE;
                assert!(is_noticed || read.units == counts.units, "{length}");
            }
        }
    }
}

#[test]
fn whole_blocks_beyond_what_is_in_use_are_read() {
    let counts = example();
    let (_dir, path) = written(&counts);
    let mut bytes = fs::read(&path).unwrap();
    for used in [128, 64] {
        set(&mut bytes, PAGE + 16, used);
        assert_eq!(read_bytes(&path, &bytes).unwrap(), counts);
    }
    // A description that is still being copied.
    bytes[PAGE + 64 + 80] ^= 1;
    let read = read_bytes(&path, &bytes).unwrap();
    assert!(read.units.is_empty());
    assert_eq!(read.problems.len(), 1);
    assert!(read.problems[0].to_string().contains("has no description"));
}

/// What holds counts, where a changed bit is a changed count.
fn count_bytes(bytes: &[u8]) -> Vec<Range<usize>> {
    let blocks = layout(bytes).into_iter().flat_map(|(_, blocks)| blocks);
    blocks
        .filter(|&(_, kind)| kind != 1)
        .map(|(at, _)| at + 64..at + word(bytes, at + 8) as usize)
        .collect()
}

fn any_unit() -> impl Strategy<Value = Unit> {
    let function = prop::collection::vec(prop::collection::vec(0u32..6, 0..3), 6);
    let functions = prop::collection::vec(function, 0..4);
    (functions, any::<bool>(), 1u8..=4, any::<bool>()).prop_map(|(functions, is_edges, iterations, is_late)| {
        let options = if is_edges {
            options(Mode::Edges, 1)
        } else {
            options(Mode::Paths, iterations)
        };
        let named = |(at, successors): (usize, Vec<Vec<u32>>)| {
            let successors: Vec<&[u32]> = successors.iter().map(Vec::as_slice).collect();
            cfg(&format!("f{at}"), &successors)
        };
        let cfgs: Vec<_> = functions.into_iter().enumerate().map(named).collect();
        Unit {
            anchor: if is_late { Anchor::Late } else { Anchor::Early },
            ..unit(options, &cfgs)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_description_is_decoded_to_what_it_was(unit in any_unit()) {
        let (bytes, id) = encode(&unit);
        prop_assert_eq!(UnitId::from_description(&bytes), id);
        prop_assert_eq!(decode(&bytes), Ok(unit));
    }

    #[test]
    fn a_damaged_description_is_never_another(unit in any_unit(), at in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>()) {
        let (bytes, id) = encode(&unit);
        prop_assert!(decode(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert!(decode(&[&bytes[..], &[0]].concat()).is_err());
        for bit in 0..8 {
            let mut bad = bytes.clone();
            bad[at.index(bytes.len())] ^= 1 << bit;
            prop_assert_ne!(UnitId::from_description(&bad), id);
            // What the checksum does not cover is what it says.
            if let Ok(other) = decode(&bad) {
                prop_assert_eq!(encode(&other).0, bad);
            }
        }
    }

    #[test]
    fn any_description_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&[b"PLUNIT01".as_slice(), &bytes].concat());
    }

    #[test]
    fn a_flipped_bit_is_noticed_or_harmless(at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let counts = varied();
        let (_dir, path) = written(&counts);
        let good = fs::read(&path).unwrap();
        let at = at.index(good.len());
        let mut bad = good.clone();
        bad[at] ^= 1 << bit;
        let read = read_bytes(&path, &bad);
        if count_bytes(&good).iter().any(|range| range.contains(&at)) {
            prop_assert!(read.is_ok());
        } else {
            check_damage(&counts, read, &good, at);
        }
    }

    #[test]
    fn any_damage_is_survived(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40), cut in any::<prop::sample::Index>()) {
        let (_dir, path) = written(&varied());
        let mut bytes = fs::read(&path).unwrap();
        let headers = headers(&bytes);
        for (at, value) in changes {
            bytes[headers[at.index(headers.len())]] = value;
        }
        bytes.truncate(bytes.len() - cut.index(PAGE));
        let _ = read_bytes(&path, &bytes);
    }

    #[test]
    fn any_bytes_after_the_header_are_survived(tail in prop::collection::vec(any::<u8>(), 0..9000)) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("x");
        let _ = read_bytes(&path, &file(std::slice::from_ref(&tail)));
        let _ = read_bytes(&path, &file(&[[b"PLSEGMT1".as_slice(), &[0, 32, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0], &tail].concat()]));
    }
}

#[test]
fn functions_that_share_counters_are_refused() {
    let mut shared = unit(
        options(Mode::Paths, 1),
        &[cfg("a", &[&[1, 2], &[2], &[]]), cfg("b", &[&[1], &[]])],
    );
    assert_eq!(decode(&encode(&shared).0).as_ref(), Ok(&shared));
    shared.functions[1].offset -= 1;
    let error = decode(&encode(&shared).0).unwrap_err().to_string();
    assert_eq!(error, "function 1: its counters overlap another function's");
}
