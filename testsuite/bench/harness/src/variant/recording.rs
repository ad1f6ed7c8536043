//! Recordings of the training input: the same engine, budget and CPU time for pleach and for every peer that samples,
//! each on the binary that it needs.

use super::{Variant, own, training_key};
use crate::bench::Bench;
use crate::build::Binary;
use crate::pleach_command::Pleach;
use crate::process::run_measured;
use crate::recorder::record_profile;
use crate::run::{Invocation, run};
use crate::workload::{InputKind, Workload};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xxhash_rust::xxh3::Xxh3;

/// How a profile is recorded.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recording {
    /// Options of `pleach record`, such as `--overhead 1%` or `--repeat 5`.
    pub options: Vec<String>,
    /// CPU-seconds of the program to record; the input is repeated until then. `None`: once, or as the options say.
    pub cpu_seconds: Option<f64>,
    /// Recordings with a number are made once and kept, so that variants share them. Others are made for each build:
    /// sampled profiles differ between runs, and measurements should show it.
    pub kept: Option<u32>,
}

/// A format of `pleach export`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Export {
    /// A file as of `perf record -b`.
    PerfData,
    /// Its text, as `perf script` prints it.
    PerfScript,
}

impl Recording {
    /// Records a binary on its training input, and returns the profile.
    pub fn record(&self, bench: &Bench, workload: &Workload, pleach: &Pleach, binary: &Binary) -> Result<PathBuf> {
        let invocation = bench.invocation(workload, InputKind::Train)?;
        let mut options = self.options.clone();
        if let Some(seconds) = self.cpu_seconds {
            let repeats = (seconds / train_seconds(bench, workload, &invocation)?).ceil().max(1.0);
            options.extend(own(&["--repeat", &format!("{repeats:.0}")]));
        }
        let folder = bench.scratch_dir(workload)?;
        let file = match self.kept {
            None => folder.join("train.pleach"),
            Some(number) => {
                let key = key(&options, pleach, binary)?;
                let name = training_key(binary, &invocation)?;
                folder.join(format!("{name}-{key:016x}-{number}.pleach"))
            }
        };
        if self.kept.is_some() && file.is_file() {
            return Ok(file);
        }
        let unfinished = tempfile::tempdir_in(&folder)?;
        let profile = unfinished.path().join("recorded.pleach");
        record_profile(binary, &invocation, pleach, &options, &profile)?;
        fs::rename(&profile, &file).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }
}

/// Writes a profile's raw vectors for another tool.
pub fn export(pleach: &Pleach, profile: &Path, format: Export, to: &Path) -> Result<()> {
    let format = match format {
        Export::PerfData => "perf.data",
        Export::PerfScript => "perfscript",
    };
    let mut command = Command::new(&pleach.command);
    command
        .args(["export", "--quiet", "--format", format, "-o"])
        .arg(to)
        .arg(profile);
    run_measured(&mut command)?.expect_success("pleach export")?;
    Ok(())
}

/// CPU-seconds of plain `-O2` on the training input. Measured once and kept, so that all recordings have the same
/// number of runs.
fn train_seconds(bench: &Bench, workload: &Workload, invocation: &Invocation) -> Result<f64> {
    let plain = Variant::O2.produce(bench, workload)?;
    let name = training_key(&plain, invocation)?;
    let file = bench.scratch_dir(workload)?.join(format!("{name}.seconds"));
    let known = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
    let seconds = match known {
        Some(seconds) => seconds,
        None => {
            let seconds = run(&plain, invocation)?.expect_checksum(&plain, invocation)?.usage.cpu;
            fs::write(&file, format!("{seconds}\n")).with_context(|| format!("cannot write {}", file.display()))?;
            seconds
        }
    };
    ensure!(seconds > 0.0, "{}: {seconds} CPU-seconds", file.display());
    Ok(seconds)
}

/// The part of a recording's key beside binary and input: options, the sampler and, for annotated programs, `pleach`.
fn key(options: &[String], pleach: &Pleach, binary: &Binary) -> Result<u64> {
    let libraries = ["libpleach_preload.so", "libpleach_stub.so"];
    let mut files: Vec<_> = libraries
        .iter()
        .map(|name| pleach.command.with_file_name(name))
        .collect();
    let is_annotated = pleach_annotate::binary::Binary::open(&binary.path)?.is_annotated();
    files.extend(is_annotated.then(|| pleach.command.clone()));
    let mut hasher = Xxh3::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    options.iter().for_each(|option| add(option.as_bytes()));
    for file in files {
        add(&fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    Ok(hasher.digest())
}
