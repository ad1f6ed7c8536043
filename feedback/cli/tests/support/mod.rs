//! Running the command on small files.
#![allow(dead_code, reason = "every test binary uses its own part")]

use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{FunctionGuid, ModuleHash};
use pleach_annotate::manifest::Anchor;
use pleach_annotate::testing;
use pleach_ball_larus::counts::unit::{Unit, UnitFunction, encode};
use pleach_ball_larus::counts::{Counts, UnitCounts};
use pleach_ball_larus::{Mode, NumberingOptions, Storage};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An empty folder of a test's own.
pub fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{test}", env!("CARGO_CRATE_NAME")));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

pub fn pleach(args: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
    command.args(args).current_dir(folder).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The error of a command that has to fail.
pub fn error(args: &[&str], folder: &Path) -> String {
    let output = pleach(args, folder);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty());
    stderr(&output)
}

/// Two blocks in a row.
pub fn cfg(name: &str) -> Cfg {
    let mut cfg = testing::cfg(&[&[1], &[]]);
    cfg.id.guid = FunctionGuid::of_name(name);
    cfg.module = ModuleHash(1);
    cfg.name = name.into();
    cfg.source_file = "a.c".into();
    cfg.blocks.iter_mut().for_each(|block| block.line = 1);
    cfg
}

pub fn counts(of: &[(&str, u64)]) -> Counts {
    let function = |(at, (name, _)): (usize, &(&str, u64))| UnitFunction {
        cfg: cfg(name),
        offset: at as u64,
        counters: 1,
        window: 1,
        storage: Storage::Array,
        chords: vec![],
    };
    let unit = Unit {
        anchor: Anchor::Early,
        options: NumberingOptions {
            mode: Mode::Paths,
            ..NumberingOptions::default()
        },
        words: of.len() as u64,
        functions: of.iter().enumerate().map(function).collect(),
    };
    let functions = of.iter().map(|&(_, count)| vec![(0, count)]).collect();
    Counts {
        units: [(encode(&unit).1, (unit, UnitCounts { functions }))].into(),
        problems: vec![],
    }
}

/// An ELF file that has nothing but a manifest, and perhaps not even that.
pub fn binary(path: &Path, manifest: &[u8]) {
    let names = b"\0.shstrtab\0.pleach_cfg\0";
    let mut out = b"\x7fELF\x02\x01\x01".to_vec();
    out.resize(16, 0);
    let half = |out: &mut Vec<u8>, value: u16| out.extend(value.to_le_bytes());
    let word = |out: &mut Vec<u8>, value: u32| out.extend(value.to_le_bytes());
    let long = |out: &mut Vec<u8>, value: usize| out.extend((value as u64).to_le_bytes());
    half(&mut out, 2);
    half(&mut out, 62);
    word(&mut out, 1);
    // Entry, program headers, section headers.
    let headers_at = 64 + (names.len() + manifest.len()).next_multiple_of(8);
    [0, 0, headers_at].into_iter().for_each(|value| long(&mut out, value));
    word(&mut out, 0);
    let sections = if manifest.is_empty() { 2 } else { 3 };
    [64, 56, 0, 64, sections, 1]
        .into_iter()
        .for_each(|value| half(&mut out, value));
    out.extend(manifest);
    out.extend(names);
    out.resize(headers_at + 64, 0);
    let mut section = |name: u32, kind: u32, at: usize, size: usize| {
        word(&mut out, name);
        word(&mut out, kind);
        [0, 0, at, size, 0, 1, 0]
            .into_iter()
            .for_each(|value| long(&mut out, value));
    };
    section(1, 3, 64 + manifest.len(), names.len());
    if !manifest.is_empty() {
        section(11, 1, 64, manifest.len());
    }
    fs::write(path, out).unwrap();
}
