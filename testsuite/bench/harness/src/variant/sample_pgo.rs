//! clang's own sample profiles, from pleach's vectors: AutoFDO's by debug information, CSSPGO's by pseudo-probes.

use super::recording::{Export, Recording, export};
use super::{Variant, own};
use crate::bench::Bench;
use crate::pleach_command::Pleach;
use crate::process::run_measured;
use crate::tools::Tool;
use crate::workload::Workload;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Flags for clang's pseudo-probes, which need line tables for what is inlined.
pub const PROBES: [&str; 2] = ["-fpseudo-probe-for-profiling", "-g1"];

/// Flags that clang's manual recommends for mapping samples by debug information.
const LINES: [&str; 3] = [
    "-gline-tables-only",
    "-fdebug-info-for-profiling",
    "-funique-internal-linkage-names",
];

/// Options that match functions which changed, or have other names, with those of the profile.
const SALVAGE: [&str; 2] = ["-salvage-stale-profile", "-salvage-unused-profile"];

/// How samples are mapped to the sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SampleProfile {
    /// By lines and discriminators, as AutoFDO does.
    Lines,
    /// By pseudo-probes, as CSSPGO does. The profile is flat: contexts need call stacks, which vectors do not have.
    Probes,
}

/// A build guided by a sample profile of clang's own.
#[derive(Clone, PartialEq, Debug)]
pub struct SamplePgo {
    /// How samples are mapped.
    pub profile: SampleProfile,
    /// The command that records.
    pub pleach: Pleach,
    /// How it records.
    pub recording: Recording,
}

impl SamplePgo {
    /// A short name.
    pub fn label(&self) -> &'static str {
        match self.profile {
            SampleProfile::Lines => "autofdo",
            SampleProfile::Probes => "csspgo-flat",
        }
    }

    /// The flags beside `-O2`, after recording.
    pub fn flags(&self, bench: &Bench, workload: &Workload) -> Result<Vec<String>> {
        let first = match self.profile {
            SampleProfile::Lines => own(&LINES),
            SampleProfile::Probes => own(&PROBES),
        };
        let plain = Variant::Flags {
            label: format!("{}-recorded", self.label()),
            cflags: first.clone(),
            ldflags: Vec::new(),
        };
        let is_older = bench.is_trained_on_others();
        let (bench, workload) = bench.training(workload)?;
        let binary = plain.produce(bench, workload)?;
        let recorded = self.recording.record(bench, workload, &self.pleach, &binary)?;
        let profile = recorded.with_extension(self.label());
        // llvm-profgen's log is kept beside the profile.
        let log = recorded.with_extension(format!("{}.log", self.label()));
        if self.recording.kept.is_none() || !profile.is_file() {
            generate(&self.pleach, &binary.path, &recorded, &profile, &log)?;
        }
        let mut flags = first;
        flags.push(format!("-fprofile-sample-use={}", profile.display()));
        if is_older {
            flags.extend(SALVAGE.iter().flat_map(|option| own(&["-mllvm", option])));
        }
        Ok(flags)
    }
}

fn generate(pleach: &Pleach, binary: &Path, recorded: &Path, profile: &Path, log: &Path) -> Result<()> {
    let folder = tempfile::tempdir_in(profile.parent().context("a profile is in a folder")?)?;
    let (script, unfinished) = (folder.path().join("script"), folder.path().join("profile"));
    export(pleach, recorded, Export::PerfScript, &script)?;
    let mut command = Command::new(Tool::ProfGen.find()?);
    let option = |name: &str, file: &Path| format!("--{name}={}", file.display());
    command.args([
        option("binary", binary),
        option("perfscript", &script),
        option("output", &unfinished),
    ]);
    let finished = run_measured(&mut command)?.expect_success("llvm-profgen")?;
    fs::write(log, finished.stderr).with_context(|| format!("cannot write {}", log.display()))?;
    let functions = functions(&unfinished)?;
    ensure!(functions > 0, "llvm-profgen's profile is empty: see {}", log.display());
    fs::rename(&unfinished, profile).with_context(|| format!("cannot write {}", profile.display()))
}

/// The number of functions in a sample profile.
fn functions(profile: &Path) -> Result<usize> {
    let mut show = Command::new(Tool::ProfData.find()?);
    show.args(["show", "--sample"]).arg(profile);
    let shown = run_measured(&mut show)?.expect_success("reading the sample profile")?;
    Ok(shown
        .stdout
        .lines()
        .filter(|line| line.starts_with("Function: "))
        .count())
}
