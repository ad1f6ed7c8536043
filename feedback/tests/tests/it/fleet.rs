//! Profiles as tables: nothing is lost, and a folder of several runs is their sum.

use crate::merge_order::{Files, bytes, profile};
use pleach_fleet::error::FleetError;
use pleach_fleet::folder::{Folder, Partition};
use pleach_fleet::import::import;
use pleach_fleet::schema::{PATHS, RUNS};
use pleach_profile::Profile;
use pleach_profile::file::ProfileFile;
use pleach_profile::merge::merge;
use proptest::prelude::*;
use std::fs;

fn partition(build: &str, day: &str) -> Partition {
    Partition {
        build: build.into(),
        day: day.into(),
    }
}

/// Exports a profile as a command would.
fn export(folder: &Folder, profile: &Profile, build: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("profile");
    fs::write(&path, bytes(profile)).unwrap();
    let run = ProfileFile::open(&path).unwrap().digest().to_string();
    folder.export(profile, &run, &partition(build, "2026-11-26")).unwrap();
}

fn imported(folder: &Folder) -> Vec<u8> {
    bytes(&import(folder, &|_, _| {}).unwrap().profile)
}

/// A profile as files give it: lists in order.
fn normal(files: &Files, profile: &Profile) -> Profile {
    let mut profile = files.read(&bytes(profile));
    for function in &mut profile.functions {
        for operand in &mut function.values {
            operand.keep_most_frequent();
        }
        for site in &mut function.call_targets {
            site.targets
                .sort_by_key(|&(guid, count)| (std::cmp::Reverse(count), guid));
        }
    }
    profile
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_profile_comes_back_with_the_same_bytes(profile in profile()) {
        let files = Files::new();
        let profile = normal(&files, &profile);
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        export(&folder, &profile, "b1");
        prop_assert_eq!(imported(&folder), bytes(&profile));
    }

    #[test]
    fn a_folder_of_runs_is_their_sum(profiles in prop::collection::vec(profile(), 4)) {
        let files = Files::new();
        let mut parts: Vec<Profile> = profiles.iter().map(|profile| normal(&files, profile)).collect();
        // One of them is a sum already.
        let (third, fourth) = (parts.remove(2), parts.remove(2));
        parts.push(merge(vec![(third, 1.0), (fourth, 1.0)]).unwrap().profile);
        parts.dedup_by_key(|profile| bytes(profile));
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        for (at, part) in parts.iter().enumerate() {
            export(&folder, part, if at == 1 { "b1" } else { "unknown" });
        }
        let merged = merge(parts.into_iter().map(|part| (part, 1.0)).collect()).unwrap().profile;
        prop_assert_eq!(imported(&folder), bytes(&merged));
        // A sum alone comes back, too.
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        export(&folder, &merged, "b1");
        prop_assert_eq!(imported(&folder), bytes(&merged));
    }
}

#[test]
fn what_is_wrong_with_a_folder_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::new(dir.path());
    let error = |folder: &Folder| import(folder, &|_, _| {}).unwrap_err();
    assert!(matches!(error(&folder), FleetError::Foreign { .. }));
    let profile = Profile {
        scale: 3.0,
        ..Profile::default()
    };
    let run = "0123456789abcdef";
    folder.export(&profile, run, &partition("b1", "2026-11-26")).unwrap();
    // The same again is no change; on another day, it would count twice.
    folder.export(&profile, run, &partition("b1", "2026-11-26")).unwrap();
    let twice = folder
        .export(&profile, run, &partition("b1", "2026-11-27"))
        .unwrap_err();
    assert!(
        twice.to_string().contains("the same profile is there already"),
        "{twice}"
    );
    let [file] = &folder.files(RUNS).unwrap()[..] else {
        panic!("one run");
    };
    let copy = dir.path().join("runs/0123456789abcdef.parquet");
    fs::copy(file, &copy).unwrap();
    assert!(error(&folder).to_string().contains("two partitions"));
    fs::remove_file(copy).unwrap();
    // An export that did not end.
    let other = dir.path().join("paths/build_id=b1/fedcba9876543210.parquet");
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    fs::copy(file, &other).unwrap();
    assert!(error(&folder).to_string().contains("did not end"));
    // Another table, and no table.
    let name = dir.path().join("paths/any.parquet");
    fs::rename(&other, &name).unwrap();
    assert!(matches!(error(&folder), FleetError::Column { table, column: "guid", .. } if table == PATHS.name));
    fs::write(&name, b"PAR1 or not").unwrap();
    assert!(matches!(error(&folder), FleetError::Parquet { path, .. } if path == name));
    fs::remove_file(&name).unwrap();
    let whole = fs::read(file).unwrap();
    for cut in [0, 4, whole.len() / 2, whole.len() - 1] {
        fs::write(file, &whole[..cut]).unwrap();
        assert!(matches!(error(&folder), FleetError::Parquet { .. }), "{cut}");
    }
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        fs::write(file, damaged).unwrap();
        // An error or another profile, but no panic.
        let _ = import(&folder, &|_, _| {});
    }
}
