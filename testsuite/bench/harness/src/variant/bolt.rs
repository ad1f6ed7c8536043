//! BOLT: optimisation of another variant's code after linking.

use super::recording::{Export, Recording, export};
use super::{Variant, training_key};
use crate::bench::Bench;
use crate::build::{Binary, BuildConfig, BuildReport};
use crate::pleach_command::Pleach;
use crate::process::{Finished, run_measured};
use crate::run::run_with;
use crate::tools::Tool;
use crate::workload::{InputKind, Workload};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options from BOLT's guide to optimising clang.
const OPTIONS: [&str; 7] = [
    "-reorder-blocks=ext-tsp",
    "-reorder-functions=cdsort",
    "-split-functions",
    "-split-all-cold",
    "-split-eh",
    "-icf=1",
    "-dyno-stats",
];

/// What matches a profile of another version: functions by name, hash or callers, their blocks by hash, and the rest by
/// inference.
const STALE: [&str; 4] = [
    "-infer-stale-profile=1",
    "-match-profile-with-function-hash",
    "-match-with-call-graph",
    "-name-similarity-function-matching-threshold=20",
];

/// The source of BOLT's profile.
#[derive(Clone, PartialEq, Debug)]
pub enum BoltData {
    /// Exact counts of a build that BOLT instruments.
    Instrumented,
    /// The samples of `pleach record`.
    Vectors(Pleach, Recording),
}

/// A build that BOLT optimises.
#[derive(Clone, PartialEq, Debug)]
pub struct Bolt {
    /// The variant that BOLT optimises.
    pub base: Box<Variant>,
    /// Its profile.
    pub data: BoltData,
}

impl Bolt {
    /// A short name.
    pub fn label(&self) -> String {
        let name = match self.data {
            BoltData::Instrumented => "bolt-exact",
            BoltData::Vectors(..) => "bolt",
        };
        match &*self.base {
            Variant::O2 => name.to_owned(),
            base => format!("{}+{name}", base.label()),
        }
    }

    /// Whether it samples a running program.
    pub fn samples(&self) -> bool {
        self.base.samples() || matches!(self.data, BoltData::Vectors(..))
    }

    /// The configuration of the build that BOLT rewrites.
    pub fn base_config(&self, bench: &Bench, workload: &Workload) -> Result<BuildConfig> {
        let mut config = self.base.config(bench, workload)?;
        config.label = format!("{}-relocations", self.base.label());
        config.ldflags.push("-Wl,--emit-relocs".to_owned());
        Ok(config)
    }

    /// Builds, trains, and has BOLT rewrite the binary.
    pub fn produce(&self, bench: &Bench, workload: &Workload) -> Result<Binary> {
        let base = bench.build(workload, &self.base_config(bench, workload)?)?;
        let mut options = OPTIONS.to_vec();
        let profile = if bench.is_trained_on_others() {
            options.extend(STALE);
            let (bench, workload) = bench.training(workload)?;
            let trained = bench.build(workload, &self.base_config(bench, workload)?)?;
            with_hashes(&trained.path, &self.profile(bench, workload, &trained)?)?
        } else {
            self.profile(bench, workload, &base)?
        };
        let key = [base.path.as_path(), &profile];
        bench.derive(workload, &self.label(), &key, &options, |folder| {
            let mut command = Command::new(Tool::Bolt.find()?);
            command.arg(&base.path).arg("-o").arg(folder.join(&workload.name));
            command.arg(format!("-data={}", profile.display())).args(&options);
            let finished = run_measured(&mut command)?.expect_success("llvm-bolt")?;
            write_log(&finished, &folder.join("bolt.log"))?;
            let mut report = BuildReport { ..base.report.clone() };
            report.link += finished.usage;
            Ok(report)
        })
    }

    /// BOLT's profile of the training input.
    fn profile(&self, bench: &Bench, workload: &Workload, base: &Binary) -> Result<PathBuf> {
        match &self.data {
            BoltData::Instrumented => instrumented_profile(bench, workload, base),
            BoltData::Vectors(pleach, recording) => {
                let recorded = recording.record(bench, workload, pleach, base)?;
                let profile = recorded.with_extension("fdata");
                if recording.kept.is_none() || !profile.is_file() {
                    convert(pleach, &base.path, &recorded, &profile)?;
                }
                Ok(profile)
            }
        }
    }
}

fn instrumented_profile(bench: &Bench, workload: &Workload, base: &Binary) -> Result<PathBuf> {
    let invocation = bench.invocation(workload, InputKind::Train)?;
    let folder = bench.scratch_dir(workload)?;
    let profile = folder.join(format!("{}.fdata", training_key(base, &invocation)?));
    if !profile.is_file() {
        let unfinished = tempfile::tempdir_in(&folder)?;
        let counts = unfinished.path().join("counts.fdata");
        let instrumented = Binary {
            path: unfinished.path().join(&workload.name),
            ..base.clone()
        };
        let mut command = Command::new(Tool::Bolt.find()?);
        command.arg(&base.path).arg("-o").arg(&instrumented.path);
        command
            .arg("-instrument")
            .arg(format!("-instrumentation-file={}", counts.display()));
        run_measured(&mut command)?.expect_success("llvm-bolt -instrument")?;
        run_with(&instrumented, &invocation, &[], &[])?.expect_checksum(&instrumented, &invocation)?;
        keep(&counts, &profile, "BOLT's instrumented build")?;
    }
    Ok(profile)
}

/// perf2bolt has `perf` read the vectors.
fn convert(pleach: &Pleach, binary: &Path, recorded: &Path, profile: &Path) -> Result<()> {
    Tool::Perf.find()?;
    let folder = tempfile::tempdir_in(profile.parent().context("a profile is in a folder")?)?;
    let (data, converted) = (folder.path().join("perf.data"), folder.path().join("fdata"));
    export(pleach, recorded, Export::PerfData, &data)?;
    let mut command = Command::new(Tool::PerfToBolt.find()?);
    command
        .arg("-p")
        .arg(&data)
        .arg("-o")
        .arg(&converted)
        .arg(binary)
        .current_dir(folder.path());
    let finished = run_measured(&mut command)?.expect_success("perf2bolt")?;
    write_log(&finished, &recorded.with_extension("perf2bolt.log"))?;
    keep(&converted, profile, "perf2bolt")
}

/// The same profile with the hashes of blocks, which matching needs: BOLT takes them from the recorded binary.
fn with_hashes(binary: &Path, profile: &Path) -> Result<PathBuf> {
    let hashed = profile.with_extension("yaml");
    let folder = tempfile::tempdir_in(profile.parent().context("a profile is in a folder")?)?;
    let [unfinished, rewritten] = ["yaml", "rewritten"].map(|name| folder.path().join(name));
    let mut command = Command::new(Tool::Bolt.find()?);
    command
        .arg(binary)
        .arg(format!("-data={}", profile.display()))
        .arg("-w")
        .arg(&unfinished)
        .arg("-o")
        .arg(&rewritten);
    run_measured(&mut command)?.expect_success("llvm-bolt -w")?;
    keep(&unfinished, &hashed, "llvm-bolt -w")?;
    Ok(hashed)
}

fn keep(made: &Path, profile: &Path, by: &str) -> Result<()> {
    let size = fs::metadata(made).map_or(0, |metadata| metadata.len());
    ensure!(size > 0, "{by} left no profile");
    fs::rename(made, profile).with_context(|| format!("cannot write {}", profile.display()))
}

/// A tool's log: how much of the profile it matched, and what it optimised.
fn write_log(finished: &Finished, to: &Path) -> Result<()> {
    let text = format!("{}{}", finished.stdout, finished.stderr);
    fs::write(to, text).with_context(|| format!("cannot write {}", to.display()))
}
