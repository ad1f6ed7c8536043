//! `pleach import` and `export` as commands.

use pleach_collector::vector::{
    Branch, Burst, CodeAddress, EndReason, Engine, Module, ModuleId, ModuleMapping, Process, VectorSet,
};
use pleach_profile::Profile;
use pleach_profile::file::ProfileFile;
use pleach_store::write_profile;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of a test's own, with a profile that holds vectors of so many bursts.
fn folder(test: &str, bursts: u64) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("perf-{test}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let profile = Profile {
        vectors: Some(vectors(bursts).to_bytes()),
        ..Profile::default()
    };
    write_profile(&folder.join("a.pleach"), &profile).unwrap();
    folder
}

fn vectors(bursts: u64) -> VectorSet {
    let at = |offset| CodeAddress {
        module: ModuleId(0),
        offset,
    };
    let burst = |time_ns| Burst {
        process: 0,
        thread: 7,
        time_ns,
        engine: Engine::RunAhead,
        start: None,
        branches: (0..20)
            .map(|n| Branch {
                from: at(0x100 + 8 * n),
                to: at(0x104 + 8 * n),
            })
            .collect(),
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
        modules: vec![Module {
            path: "/nowhere/program".into(),
            build_id: None,
            mappings: vec![ModuleMapping {
                process: 0,
                start: 0x1000,
                end: 0x3000,
                file_offset: 0,
            }],
        }],
        processes: vec![Process {
            pid: 7,
            parent: None,
            command: "program".into(),
            program_cpu_seconds: 1.0,
            own_cpu_seconds: 0.0,
            lost: 0,
            declined: 0,
            undisturbed: false,
        }],
        events: Vec::new(),
        bursts: (1..=bursts).map(burst).collect(),
        compressed: None,
        coverage: Vec::new(),
        samples: Vec::new(),
    }
}

fn pleach(args: &[&str], folder: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
    let Output { status, stderr, .. } = command.args(args).current_dir(folder).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

fn bursts(profile: &Path) -> usize {
    let file = ProfileFile::open(profile).unwrap();
    VectorSet::from_bytes(file.vectors().unwrap().unwrap())
        .unwrap()
        .bursts
        .len()
}

#[test]
fn what_can_be_read_of_a_damaged_recording_is_kept() {
    let folder = folder("damaged", 50);
    assert_eq!(
        pleach(&["export", "-q", "a.pleach", "-o", "perf.data"], &folder).0,
        Some(0)
    );
    assert_eq!(
        pleach(&["import", "-q", "perf.data", "-o", "whole.pleach"], &folder).0,
        Some(0)
    );
    assert_eq!(bursts(&folder.join("whole.pleach")), 50);
    let whole = fs::read(folder.join("perf.data")).unwrap();
    fs::write(folder.join("cut.data"), &whole[..whole.len() / 2]).unwrap();
    for quiet in [&["-q"][..], &[]] {
        let args = [&["import", "cut.data", "-o", "cut.pleach"], quiet].concat();
        let (status, messages) = pleach(&args, &folder);
        assert_eq!(status, Some(3), "{messages}");
        let kept = bursts(&folder.join("cut.pleach"));
        assert!((15..35).contains(&kept), "{kept}");
        let expected = format!(
            "at byte {}; the {kept} samples up to there are used: record again",
            whole.len() / 2
        );
        assert!(
            messages.contains("cut.data: ") && messages.contains(&expected),
            "{messages}"
        );
    }
    // Nothing can be read of it: that is an error, and the profile that was there stays.
    fs::write(folder.join("stub.data"), &whole[..60]).unwrap();
    let before = fs::read(folder.join("cut.pleach")).unwrap();
    let (status, messages) = pleach(&["import", "stub.data", "-o", "cut.pleach"], &folder);
    assert_eq!(
        (status, fs::read(folder.join("cut.pleach")).unwrap()),
        (Some(1), before),
        "{messages}"
    );
}

#[test]
fn records_without_cycles_have_no_time_bias_to_correct() {
    let folder = folder("cycles", 3);
    assert_eq!(
        pleach(&["export", "-q", "a.pleach", "-o", "perf.data"], &folder).0,
        Some(0)
    );
    let (status, messages) = pleach(
        &["import", "perf.data", "--correct-time-bias", "-o", "b.pleach"],
        &folder,
    );
    assert_eq!(status, Some(0), "{messages}");
    assert!(messages.contains("note: no time bias was corrected: "), "{messages}");
    let (_, messages) = pleach(&["import", "perf.data", "-o", "b.pleach"], &folder);
    assert!(!messages.contains("time bias"), "{messages}");
}

#[test]
fn exports_take_a_files_place_wholly() {
    let folder = folder("whole", 3);
    // The name may be a link, and the file in use.
    fs::write(folder.join("target"), "before").unwrap();
    symlink("target", folder.join("link")).unwrap();
    let open = fs::File::open(folder.join("target")).unwrap();
    assert_eq!(pleach(&["export", "-q", "a.pleach", "-o", "link"], &folder).0, Some(0));
    assert!(folder.join("link").is_symlink());
    assert!(fs::read(folder.join("target")).unwrap().starts_with(b"PERFILE2"));
    assert_eq!(std::io::read_to_string(open).unwrap(), "before");
    let left: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
    assert_eq!(
        pleach(&["export", "-q", "a.pleach", "-o", "/dev/null"], &folder),
        (Some(0), String::new())
    );
    let (status, message) = pleach(&["export", "a.pleach", "-o", "no/where"], &folder);
    assert!(
        status == Some(1) && message.contains("cannot write no/where"),
        "{message}"
    );
}

#[test]
fn nothing_is_not_exported() {
    let folder = folder("nothing", 0);
    let (status, message) = pleach(&["export", "a.pleach", "-o", "perf.data"], &folder);
    assert!(
        status == Some(1) && message.contains("a.pleach holds no taken branches"),
        "{message}"
    );
    assert!(!folder.join("perf.data").exists());
}

#[test]
fn the_exit_status_is_documented() {
    let output = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .args(["import", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(
        help.contains("Exit status: 0") && help.contains("3 if the recording is damaged"),
        "{help}"
    );
}
