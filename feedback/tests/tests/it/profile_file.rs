//! The profile file: what is written is read, and whatever is wrong with a file is said clearly.

use pleach_feedback_tests::support;

use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_ball_larus::{End, Start};
use pleach_profile::error::ProfileError;
use pleach_profile::events::{EventPlace, EventProfile, EventSource, Place};
use pleach_profile::file::{Lookup, ProfileFile, SourceHash};
use pleach_profile::{
    Anchor, CallTargets, Covered, EstimatedPath, Executions, FunctionProfile, Profile, Provenance, RecordedModule,
};
use pleach_store::{probe_writable, write_profile};
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use support::{Random, synthetic_profile};
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

fn function(guid: u64, module: u32, hash: u64, counts: &[u64]) -> FunctionProfile {
    FunctionProfile {
        id: FunctionId {
            guid: FunctionGuid(guid),
            module: ModuleHash(module),
        },
        cfg_hash: CfgHash(hash),
        name: format!("function_{guid}"),
        samples: counts.iter().sum(),
        blocks: counts.to_vec(),
        edges: counts[..counts.len() - 1].to_vec(),
        call_targets: vec![CallTargets {
            call: 1,
            targets: vec![(FunctionGuid(guid + 1), 9), (FunctionGuid(3), 2)],
        }],
        paths: vec![
            estimated(Start::Entry, &[0, 1], End::Exit, counts[0] as f64),
            estimated(Start::Inside, &[1], End::Back(BlockIndex(1)), 0.25),
        ],
        counted: counts
            .iter()
            .map(|count| Executions {
                at_least: count / 2,
                at_most: count.checked_sub(1),
            })
            .collect(),
        coverage: counts
            .iter()
            .map(|&c| if c > 0 { Covered::Proved } else { Covered::Predicted })
            .collect(),
        ..FunctionProfile::default()
    }
}

/// Of values that a file holds exactly.
fn estimated(start: Start, blocks: &[u32], end: End, count: f64) -> EstimatedPath {
    EstimatedPath {
        path: pleach_ball_larus::Path {
            start,
            blocks: blocks.iter().map(|&b| BlockIndex(b)).collect(),
            end,
        },
        count,
        low: count / 2.0,
        high: count * 2.0,
        effective: 3.5,
    }
}

fn profile() -> Profile {
    Profile {
        provenance: Provenance {
            sums: None,
            commands: vec!["./app --fast".into(), "./app \"ü\"".into()],
            engines: vec!["step".into()],
            program_cpu_seconds: 1.1,
            own_cpu_seconds: 0.1 + 0.2,
            bursts: 12,
            taken_branches: 3456,
            hot_instance_count: 7_654,
            modules: vec![RecordedModule {
                path: "/opt/app".into(),
                build_id: "00ff".into(),
            }],
        },
        scale: 1000.0,
        anchor: Anchor::Late,
        functions: vec![
            function(4, 0, 40, &[5000, 4000, 0, 0, 1000, 5000]),
            FunctionProfile {
                paths: vec![],
                coverage: vec![],
                counted: Vec::new(),
                ..function(4, 7, 41, &[0, 0, 0])
            },
            function(9, 0, 90, &[1, 2]),
            function(9, 0, 91, &[3, 3, 3]),
        ],
        events: Vec::new(),
        vectors: Some(b"opaque vectors".to_vec()),
    }
}

fn written(profile: &Profile) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("p.pleach");
    write_profile(&path, profile).unwrap();
    (dir, path)
}

fn error_of(path: &Path) -> String {
    let message = ProfileFile::open(path).unwrap_err().to_string();
    assert!(message.starts_with(&path.display().to_string()), "{message}");
    message
}

#[test]
fn what_was_written_is_read() {
    let profile = profile();
    let (_dir, path) = written(&profile);
    let file = ProfileFile::open(&path).unwrap();
    assert_eq!(file.read_all().unwrap(), profile);
    assert_eq!((file.len(), file.anchor(), file.scale()), (4, Anchor::Late, 1000.0));
    assert_eq!(file.summary().total_count, 15_012);
    assert_eq!(file.samples(), 15_012);
    let flow = 5000.0 + 1.0 + 3.0 + 3.0 * 0.25;
    assert_eq!((file.path_flow(), profile.path_flow()), (flow, flow));
}

/// Events are a section of their own, in a version of their own; a file without them has the version of before.
#[test]
fn events_are_written_and_read() {
    let plain = profile();
    let with_events = Profile {
        events: vec![EventProfile {
            name: "page-faults".to_owned(),
            source: EventSource::Kernel,
            weight: 7_000,
            observations: 3,
            squares: 9,
            left_out: 1,
            distances: (16, 99),
            places: vec![EventPlace {
                place: Place::Code("libc.so.6".to_owned(), "read".to_owned()),
                what: String::new(),
                weight: 7_000,
                observations: 3,
                passes: 0,
                bursts: 0,
                squares: 0,
                before: Vec::new(),
            }],
        }],
        ..plain.clone()
    };
    let (_dir, path) = written(&plain);
    assert_eq!(fs::read(&path).unwrap()[8], 12);
    let (_dir, path) = written(&with_events);
    let mut bytes = fs::read(&path).unwrap();
    assert_eq!(bytes[8], 14);
    let file = ProfileFile::open(&path).unwrap();
    assert_eq!(file.read_all().unwrap(), with_events);
    assert_eq!(
        file.lookup(plain.functions[0].id, plain.functions[0].cfg_hash).unwrap(),
        Lookup::Found(plain.functions[0].clone())
    );
    // Damage is noticed where it is, and only there.
    let at = bytes.windows(11).position(|part| part == b"page-faults").unwrap();
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let file = ProfileFile::open(&path).unwrap();
    assert!(
        file.events()
            .unwrap_err()
            .to_string()
            .contains("events: wrong checksum")
    );
    assert_eq!(file.vectors().unwrap(), plain.vectors.as_deref());
    // Every bit of the header is checked.
    for bit in 0..544 * 8 {
        let mut broken = bytes.clone();
        broken[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &broken).unwrap();
        assert!(ProfileFile::open(&path).is_err(), "bit {bit}");
    }
}

#[test]
fn lookup_tells_found_stale_and_absent_apart() {
    let profile = profile();
    let (_dir, path) = written(&profile);
    let file = ProfileFile::open(&path).unwrap();
    for function in &profile.functions {
        assert_eq!(
            file.lookup(function.id, function.cfg_hash).unwrap(),
            Lookup::Found(function.clone())
        );
    }
    let id = |guid, module| FunctionId {
        guid: FunctionGuid(guid),
        module: ModuleHash(module),
    };
    assert_eq!(
        file.lookup(id(4, 7), CfgHash(40)).unwrap(),
        Lookup::Stale {
            profile_hash: CfgHash(41)
        }
    );
    assert_eq!(
        file.lookup(id(9, 0), CfgHash(1)).unwrap(),
        Lookup::Stale {
            profile_hash: CfgHash(90)
        }
    );
    for absent in [id(0, 0), id(4, 1), id(5, 0), id(10, 0)] {
        assert_eq!(file.lookup(absent, CfgHash(42)).unwrap(), Lookup::Absent);
        assert!(!file.has(absent, CfgHash(42)));
    }
    // It has become local, and another source file has it.
    assert_eq!(
        file.lookup(id(4, 1), CfgHash(40)).unwrap(),
        Lookup::Found(profile.functions[0].clone())
    );
    assert!(file.has(id(4, 1), CfgHash(40)) && !file.has(id(4, 0), CfgHash(41)));
    // Both have the name, and only records with a graph have a source file.
    let keys: Vec<_> = file.keys_of(FunctionGuid(4)).map(|key| (key.id, key.source)).collect();
    assert_eq!(keys, [(id(4, 0), None), (id(4, 7), None)]);
    assert_eq!(file.keys().count(), 4);
}

#[test]
fn graphs_are_kept_and_found_by_source_file() {
    let cfg = pleach_annotate::testing::cfg(&[&[1, 2], &[2], &[]]);
    let with_graph = FunctionProfile {
        id: cfg.id,
        cfg_hash: cfg.hash(),
        blocks: vec![3, 1, 3],
        edges: vec![1, 2, 1],
        graph: Some(Box::new(cfg.clone())),
        ..FunctionProfile::default()
    };
    let profile = Profile {
        functions: vec![with_graph.clone()],
        ..Profile::default()
    };
    let (_dir, path) = written(&profile);
    let file = ProfileFile::open(&path).unwrap();
    let key = file.keys().next().unwrap();
    assert_eq!(key.source, Some(SourceHash::of_name(&cfg.source_file)));
    assert_eq!(file.record(key).unwrap(), with_graph);
    // A graph that is not the record's.
    let mut other = profile.clone();
    other.functions[0].edges.pop();
    let (_dir, path) = written(&other);
    let file = ProfileFile::open(&path).unwrap();
    let error = file.record(file.keys().next().unwrap()).unwrap_err();
    assert!(error.to_string().contains("its graph is another"), "{error}");
}

#[test]
fn an_empty_profile_is_a_profile() {
    let (_dir, path) = written(&Profile::default());
    let file = ProfileFile::open(&path).unwrap();
    assert!(file.is_empty());
    assert_eq!(file.read_all().unwrap(), Profile::default());
    let id = FunctionId {
        guid: FunctionGuid(0),
        module: ModuleHash(0),
    };
    assert_eq!(file.lookup(id, CfgHash(0)).unwrap(), Lookup::Absent);
}

#[test]
fn the_digest_identifies_the_content() {
    let digest = |change: &dyn Fn(&mut Profile)| {
        let mut profile = profile();
        change(&mut profile);
        let (_dir, path) = written(&profile);
        ProfileFile::open(&path).unwrap().digest()
    };
    let same = digest(&|_| {});
    assert_eq!(digest(&|_| {}), same);
    assert_eq!(digest(&|p| p.functions.reverse()), same);
    assert_ne!(digest(&|p| p.functions[1].name.push('x')), same);
    assert_ne!(digest(&|p| p.provenance.bursts += 1), same);
    assert_ne!(digest(&|p| p.vectors = None), same);
    assert_ne!(digest(&|p| p.vectors = Some(b"opaque vectorz".to_vec())), same);
}

/// Reads everything that there is to read.
fn read_everything(path: &Path) -> Result<Profile, ProfileError> {
    ProfileFile::open(path)?.read_all()
}

#[test]
fn no_flipped_bit_goes_unnoticed() {
    let (_dir, path) = written(&profile());
    let good = fs::read(&path).unwrap();
    // In place: file systems flush a file that is truncated and written again.
    let bad = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for bit in 0..good.len() * 8 {
        let (byte, at) = (good[bit / 8], bit as u64 / 8);
        bad.write_all_at(&[byte ^ 1 << (bit % 8)], at).unwrap();
        let error = read_everything(&path).expect_err(&format!("bit {bit}")).to_string();
        assert!(error.starts_with(&path.display().to_string()), "{error}");
        bad.write_all_at(&[byte], at).unwrap();
    }
    assert_eq!(read_everything(&path).unwrap(), profile());
}

#[test]
fn no_truncation_goes_unnoticed() {
    let (_dir, path) = written(&profile());
    let bad = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let length = bad.metadata().unwrap().len();
    bad.write_all_at(b"x", length).unwrap();
    assert!(error_of(&path).contains("appended"));
    for length in (0..length).rev() {
        bad.set_len(length).unwrap();
        // On opening already: a compiler must not find out in the middle of its work.
        let error = error_of(&path);
        assert!(
            error.contains("cut off") || error.contains("empty"),
            "{length}: {error}"
        );
    }
}

#[test]
fn what_is_no_profile_is_named() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("x");
    let says = |content: &[u8], expected: &str| {
        fs::write(&path, content).unwrap();
        let message = error_of(&path);
        assert!(message.contains(expected), "{message}");
    };
    says(b"", "empty");
    says(b"\xfflprofi\x81\x0c\0\0\0\0\0\0\0", ".profdata");
    says(b"\x81rforpl\xff\x09\0\0\0\0\0\0\0", ".profraw");
    says(
        b"PLEACHC1\x01\0\0\0",
        "exact counts: make a profile of them with `pleach import",
    );
    says(b"PERFILE2\x68\0\0\0", "pleach import");
    says(b"\x7fELF\x02\x01\x01", "program or object file");
    says(b"main 1234 cycles: ffff\n", "text file");
    says(&[0; 4096], "does not begin like one");
    assert!(error_of(&dir.path().join("missing")).contains("No such file"));
    assert!(error_of(dir.path()).contains("a directory"));
    assert!(error_of(Path::new("/dev/null")).contains("device"));
}

#[test]
fn other_versions_and_byte_orders_are_named() {
    let (dir, path) = written(&profile());
    let good = fs::read(&path).unwrap();
    let bad = dir.path().join("bad.pleach");
    // A later version may have another header: only magic, version and byte order stay where they are.
    fs::write(
        &bad,
        [b"\x89PLEACH\n".as_slice(), &[15, 0, 0, 0], &good[12..16], &[7; 100]].concat(),
    )
    .unwrap();
    assert!(error_of(&bad).contains("profile format 15, but this pleach reads format 14"));
    // Format 1 had a header of 512 bytes, and neither paths nor coverage.
    let old = [b"\x89PLEACH\n\x01\0\0\0".as_slice(), &good[12..16], &[0; 496]].concat();
    fs::write(&bad, old).unwrap();
    let message = error_of(&bad);
    assert!(
        message.contains("profile format 1, but this pleach reads format 14: record again"),
        "{message}"
    );
    // Formats 9 to 11 differ in nothing that these profiles have.
    let mut older = good.clone();
    assert_eq!(older[8], 12);
    older[8] = 9;
    let checksum = xxh3_64(&older[..512]);
    older[512..520].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&bad, older).unwrap();
    assert_eq!(ProfileFile::open(&bad).unwrap().read_all().unwrap(), profile());
    let mut swapped = good;
    swapped[8..12].reverse();
    swapped[12..16].reverse();
    fs::write(&bad, swapped).unwrap();
    assert!(error_of(&bad).contains("other byte order"));
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let (dir, path) = written(&profile());
    let before = fs::read(&path).unwrap();
    let mut twice = profile();
    twice.functions.push(twice.functions[0].clone());
    assert!(
        write_profile(&path, &twice)
            .unwrap_err()
            .to_string()
            .contains("occurs twice")
    );
    let senseless = Profile {
        scale: f64::NAN,
        ..profile()
    };
    assert!(
        write_profile(&path, &senseless)
            .unwrap_err()
            .to_string()
            .contains("scale")
    );
    let mut senseless = profile();
    senseless.functions[2].coverage.pop();
    let message = write_profile(&path, &senseless).unwrap_err().to_string();
    assert!(message.contains("function function_9: its coverage"), "{message}");
    let missing = dir.path().join("missing/p.pleach");
    assert!(
        write_profile(&missing, &profile())
            .unwrap_err()
            .to_string()
            .contains("No such file")
    );
    assert!(
        write_profile(dir.path(), &profile())
            .unwrap_err()
            .to_string()
            .contains("a directory")
    );
    assert!(
        write_profile(Path::new("/dev/full"), &profile())
            .unwrap_err()
            .to_string()
            .contains("device")
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_write_follows_links_and_gives_usual_permissions() {
    let (dir, path) = written(&profile());
    let link = dir.path().join("link");
    symlink("p.pleach", &link).unwrap();
    write_profile(&link, &Profile::default()).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(ProfileFile::open(&path).unwrap().is_empty());
    // What the umask leaves of rw-rw-rw-, as for any new file.
    let usual = dir.path().join("usual");
    fs::write(&usual, "").unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&usual));
}

#[test]
fn a_reader_keeps_the_profile_it_opened() {
    let (_dir, path) = written(&profile());
    let file = ProfileFile::open(&path).unwrap();
    write_profile(&path, &Profile::default()).unwrap();
    assert_eq!(file.read_all().unwrap(), profile());
}

#[test]
fn writability_is_probed_without_a_trace() {
    let dir = TempDir::new().unwrap();
    probe_writable(dir.path()).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    probe_writable(&dir.path().join("missing")).unwrap_err();
}

#[test]
fn many_functions_are_found() {
    let profile = synthetic_profile(&mut Random(3), 3000, 12);
    let (_dir, path) = written(&profile);
    let file = ProfileFile::open(&path).unwrap();
    for function in profile.functions.iter().step_by(7) {
        assert_eq!(
            file.lookup(function.id, function.cfg_hash).unwrap(),
            Lookup::Found(function.clone())
        );
    }
    // Names included, and paths of a fifth of them.
    let size = path.metadata().unwrap().len();
    assert!(size < 3000 * 180, "{size}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    /// Damage beyond a bit, and checksums do not save a header that was never right.
    #[test]
    fn any_bytes_after_the_magic_are_survived(tail in prop::collection::vec(any::<u8>(), 0..900)) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, [b"\x89PLEACH\n\x02\0\0\0\x04\x03\x02\x01".as_slice(), &tail].concat()).unwrap();
        prop_assert!(ProfileFile::open(&path).is_err());
    }
}
