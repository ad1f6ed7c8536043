//! Exact counts of instrumented builds on an input: pleach's path and edge counts, and clang's function entries.

use crate::bench::Bench;
use crate::build::Binary;
use crate::pleach_command::Pleach;
use crate::process::run_measured;
use crate::recorder::recorder;
use crate::run::run_with;
use crate::tools::Tool;
use crate::workload::InputKind;
use anyhow::{Context, Result, ensure};
use pleach_ball_larus::counts::Counts;
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_ball_larus::counts::file::CountFile;
use pleach_ball_larus::counts::merge::merge;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Counts of one run of a [`crate::Variant::Counted`] build.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The counters, over all of the run's processes.
    pub counts: Counts,
    /// Paths, blocks and edges, decoded from the counters.
    pub exact: ExactProfile,
}

impl Counted {
    /// All errors of reading and decoding.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        let unread = self.counts.problems.iter().map(ToString::to_string);
        unread.chain(self.exact.problems.iter().map(ToString::to_string))
    }
}

/// Runs a build that counts paths or edges, and reads what it counted.
pub fn count(bench: &Bench, binary: &Binary, kind: InputKind) -> Result<Counted> {
    count_under(bench, binary, kind, &[])
}

/// [`count`] under `pleach record`: where blocks depend on addresses, as those that compare pointers do, the same ones are
/// executed as in a recording.
pub fn count_recorded(bench: &Bench, binary: &Binary, kind: InputKind, pleach: &Pleach) -> Result<Counted> {
    let folder = tempfile::tempdir()?;
    let wrapper = recorder(pleach, &["--quiet".into()], &folder.path().join("recorded.pleach"));
    count_under(bench, binary, kind, &wrapper)
}

fn count_under(bench: &Bench, binary: &Binary, kind: InputKind, wrapper: &[String]) -> Result<Counted> {
    let folder = tempfile::tempdir()?;
    let pattern = folder.path().join("%p.plcnt");
    run_into(bench, binary, kind, wrapper, ("PLEACH_COUNTS", &pattern))?;
    let counts = files_in(folder.path())?
        .iter()
        .map(CountFile::open)
        .collect::<Result<Vec<_>, _>>()?;
    ensure!(
        !counts.is_empty(),
        "{} ({}) left no counts",
        binary.workload,
        binary.label
    );
    let counts = merge(counts);
    Ok(Counted {
        exact: ExactProfile::from_counts(&counts),
        counts,
    })
}

/// Runs a build of [`crate::Variant::counting_calls`], and returns how often each function was called, by LLVM's name
/// for it: local functions have their file's before, and a semicolon.
pub fn count_calls(bench: &Bench, binary: &Binary, kind: InputKind) -> Result<BTreeMap<String, u64>> {
    let folder = tempfile::tempdir()?;
    run_into(
        bench,
        binary,
        kind,
        &[],
        ("LLVM_PROFILE_FILE", &folder.path().join("%p.profraw")),
    )?;
    let raw = files_in(folder.path())?;
    let merged = folder.path().join("merged.profdata");
    let mut merge = Command::new(Tool::ProfData.find()?);
    merge.arg("merge").arg("-o").arg(&merged).args(&raw);
    run_measured(&mut merge)?.expect_success("merging the profile")?;
    let mut show = Command::new(Tool::ProfData.find()?);
    show.args(["show", "--all-functions", "--counts"]).arg(&merged);
    let shown = run_measured(&mut show)?.expect_success("reading the profile")?;
    parse_calls(&shown.stdout)
}

fn run_into(bench: &Bench, binary: &Binary, kind: InputKind, wrapper: &[String], counts: (&str, &Path)) -> Result<()> {
    let invocation = bench.invocation(bench.workload(&binary.workload)?, kind)?;
    run_with(binary, &invocation, wrapper, &[counts])?.expect_checksum(binary, &invocation)?;
    Ok(())
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// First counters by function.
fn parse_calls(shown: &str) -> Result<BTreeMap<String, u64>> {
    ensure!(
        shown.lines().any(|line| line.contains("entry_first = 1")),
        "the profile's first counters are not those of calls"
    );
    let mut calls = BTreeMap::new();
    let mut name = None;
    for line in shown.lines() {
        if let Some(counters) = line.trim().strip_prefix("Block counts: [") {
            let name: &str = name.context("counts without a function")?;
            let first = counters.split([',', ']']).next().unwrap_or_default();
            let first: u64 = first
                .parse()
                .with_context(|| format!("{name} was called '{first}' times"))?;
            // Two of one name have different hashes, and a place each.
            *calls.entry(name.to_owned()).or_default() += first;
        } else if let Some(function) = line
            .strip_prefix("  ")
            .filter(|rest| !rest.starts_with(' '))
            .and_then(|rest| rest.strip_suffix(':'))
        {
            name = Some(function);
        }
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_first_counters() {
        let shown = "Counters:\n  a.c;rec:\n    Hash: 0x0a\n    Counters: 2\n    Block counts: [177, 88]\n  \
                     main:\n    Hash: 0x0b\n    Counters: 1\n    Block counts: [1]\n\
                     Instrumentation level: IR  entry_first = 1\n";
        let calls = parse_calls(shown).unwrap();
        assert_eq!(calls["a.c;rec"], 177);
        assert_eq!(calls["main"], 1);
        assert!(parse_calls(&shown.replace("= 1", "= 0")).is_err());
    }
}
