//! Programs' own test suites, compiled with random profiles: they must give the same results with any profile as
//! without.
//!
//! Each suite ([`Suite`]) is built without the plugin and run: the number of checks in its recipe must succeed. Then it
//! is built with random profiles, and superblocks wherever they are legal
//! ([`OPTIONS`](crate::random_programs::OPTIONS)); output, files and status of every case must be as before.

mod build;
mod case;

use crate::random_programs::plugin_flags;
use crate::summary_lines::SummaryLines;
use anyhow::{Context, Result, bail, ensure};
use build::{Built, Plan};
use case::{Observed, Prepared, prepare};
use indicatif::ProgressBar;
use pleach_harness::bench::Bench;
use pleach_harness::suite::Suite;
use pleach_harness::table::{Cell, Section, Table};
use pleach_harness::workload::Workload;
use pleach_harness::{parallel, progress};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Options of a check.
#[derive(Clone, Debug)]
pub struct SuiteOptions {
    /// Only suites of these names; all where there are none.
    pub only: Vec<String>,
    /// Seeds of the random profiles, each a build.
    pub seeds: Vec<u64>,
    /// Levels of optimisation, each with all seeds; `-O2` and the like.
    pub levels: Vec<String>,
    /// Anchors at which profiles are used, each with all seeds: `early`, `late`.
    pub anchors: Vec<String>,
    /// The plugin.
    pub plugin: PathBuf,
    /// Options of the plugin beside those of random programs.
    pub also: Vec<String>,
    /// The folder for failures, each in a folder of its own.
    pub keep: PathBuf,
    /// Compilations, and runs, at a time.
    pub jobs: usize,
}

/// The result of one suite, or why there is none.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// The program.
    pub workload: String,
    /// The suite's name; `None` where the program brings no tests.
    pub suite: Option<String>,
    /// Why there are no tests.
    pub note: String,
    /// Runs of each build.
    pub cases: usize,
    /// Checks in these runs that succeed without pleach.
    pub checks: u64,
    /// Builds with random profiles.
    pub builds: usize,
    /// The plugin's summary over all of them.
    pub summary_lines: SummaryLines,
    /// Builds that failed, and cases whose results differ.
    pub failures: Vec<Failure>,
}

/// A failure, kept to be reproduced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The folder of `reproduce.sh` and `what.txt`.
    pub folder: PathBuf,
    /// The failure.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.folder.display(), self.what.trim_end())
    }
}

/// Builds and runs the suites of some workloads.
///
/// # Errors
/// A suite that is not built or does not succeed without the plugin, or whose name is not known; a missing tool. A
/// wrong build is no error, but part of the result.
pub fn check(bench: &Bench, workloads: &[&Workload], options: &SuiteOptions) -> Result<Vec<Checked>> {
    let wanted = |suite: &&Suite| options.only.is_empty() || options.only.contains(&suite.name);
    let chosen: Vec<(&Workload, &Suite)> = workloads
        .iter()
        .flat_map(|workload| {
            workload
                .suites
                .iter()
                .filter(wanted)
                .map(move |suite| (*workload, suite))
        })
        .collect();
    ensure!(
        options.only.is_empty() || !chosen.is_empty(),
        "no suite of these programs is called {}",
        options.only.join(" or ")
    );
    let builds = options.seeds.len() * options.levels.len() * options.anchors.len();
    let bar = progress::bar(chosen.len() * (builds + 1), "builds");
    let mut checked = Vec::new();
    for (workload, suite) in chosen {
        let context = || format!("the suite '{}' of {}", suite.name, workload.name);
        checked.push(check_suite(bench, workload, suite, options, &bar).with_context(context)?);
    }
    bar.finish_and_clear();
    let absent = workloads.iter().filter_map(|workload| {
        Some(Checked {
            workload: workload.name.clone(),
            note: workload.no_suite.clone().filter(|_| options.only.is_empty())?,
            ..Checked::default()
        })
    });
    checked.extend(absent);
    Ok(checked)
}

fn check_suite(
    bench: &Bench,
    workload: &Workload,
    suite: &Suite,
    options: &SuiteOptions,
    bar: &ProgressBar,
) -> Result<Checked> {
    bar.set_message(format!("{} {}", workload.name, suite.name));
    let plan = Plan::new(bench, workload, suite)?;
    let cases = prepare(suite, &bench.packages().folder(&suite.package)?.join(&suite.folder))?;
    let expected = expectation(&plan, suite, &cases, options.jobs)?;
    bar.inc(1);
    let mut checked = Checked {
        workload: workload.name.clone(),
        suite: Some(suite.name.clone()),
        cases: cases.len(),
        checks: suite.checks,
        ..Checked::default()
    };
    for level in &options.levels {
        for anchor in &options.anchors {
            for seed in &options.seeds {
                let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
                let flags = plugin_flags(&options.plugin, *seed, anchor, &options.also);
                let built = plan.build(folder.path(), level, &flags, options.jobs)?;
                checked.builds += 1;
                checked.summary_lines += built.summary_lines;
                let name = format!("{}-{}{level}-{anchor}-{seed}", workload.name, suite.name);
                for (number, what, case) in differences(suite, &cases, &expected, &built, folder.path(), options.jobs)?
                {
                    let failure = keep(options.keep.join(format!("{name}-{number}")), &built, case, what)?;
                    bar.suspend(|| eprintln!("{failure}"));
                    checked.failures.push(failure);
                }
                bar.inc(1);
            }
        }
    }
    Ok(checked)
}

/// The failure of a build: the case's number, a description and the case; number 0 and no case if it was not built.
fn differences<'a>(
    suite: &Suite,
    cases: &'a [Prepared],
    expected: &[Observed],
    built: &Built,
    folder: &Path,
    jobs: usize,
) -> Result<Vec<(usize, String, Option<&'a Prepared>)>> {
    if let Some(error) = &built.error {
        return Ok(vec![(0, error.clone(), None)]);
    }
    let pairs: Vec<(&Prepared, &Observed)> = cases.iter().zip(expected).collect();
    let found = parallel::map(&pairs, jobs, |(case, expected)| {
        let difference = case.observe(suite, folder)?.difference(expected);
        Ok(difference.map(|what| format!("{}: {what}", case.command())))
    })?;
    let wrong = found.into_iter().zip(cases).enumerate();
    Ok(wrong
        .filter_map(|(index, (what, case))| Some((index + 1, what?, Some(case))))
        .collect())
}

/// Writes `reproduce.sh`, which builds and runs again in that folder, and `what.txt`.
fn keep(folder: PathBuf, built: &Built, case: Option<&Prepared>, what: String) -> Result<Failure> {
    let mut script = vec!["cd \"$(dirname \"$0\")\" || exit".to_owned()];
    script.extend(built.commands.iter().cloned());
    if let Some(case) = case {
        script.extend(case.preparation());
        script.push(case.command());
    }
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("reproduce.sh"), script.join("\n") + "\n")?;
        fs::write(folder.join("what.txt"), format!("{what}\n"))
    };
    write().with_context(|| format!("{}: cannot keep a failure there", folder.display()))?;
    Ok(Failure { folder, what })
}

/// The results of the cases without the plugin.
fn expectation(plan: &Plan, suite: &Suite, cases: &[Prepared], jobs: usize) -> Result<Vec<Observed>> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let built = plan.build(folder.path(), "-O2", &[], jobs)?;
    if let Some(error) = built.error {
        bail!("without the plugin: {error}");
    }
    let observed = parallel::map(cases, jobs, |case| case.observe(suite, folder.path()))?;
    let checks: Vec<u64> = cases
        .iter()
        .zip(&observed)
        .map(|(case, observed)| case.checks(suite, observed))
        .collect::<Result<_>>()?;
    let sum: u64 = checks.iter().sum();
    let without = cases.iter().zip(&checks).filter(|(_, checks)| **checks == 0);
    let without: Vec<String> = without.map(|(case, _)| format!("\n{}", case.command())).collect();
    ensure!(
        sum == suite.checks,
        "without the plugin {sum} checks succeed, not {} as workload.toml says; none of:{}",
        suite.checks,
        without.concat()
    );
    Ok(observed)
}

/// A row for each suite, and for each program without.
pub fn sections(checked: &[Checked]) -> Vec<Section> {
    let mut suites = Table::new([
        ("workload", "workload"),
        ("suite", "suite"),
        ("cases", "cases"),
        ("checks", "checks"),
        ("builds", "builds"),
        ("functions", "functions with counts"),
        ("superblocks", "superblocks"),
        ("changed", "in functions"),
        ("branches", "branches replaced"),
        ("selects", "selects replaced"),
        ("failures", "failures"),
    ]);
    let mut absent = Table::new([("workload", "workload"), ("note", "without tests of its own")]);
    for row in checked {
        match &row.suite {
            Some(suite) => suites.push([
                row.workload.as_str().into(),
                suite.as_str().into(),
                Cell::Count(row.cases as u64),
                row.checks.into(),
                Cell::Count(row.builds as u64),
                row.summary_lines.functions.into(),
                row.summary_lines.superblocks.into(),
                row.summary_lines.changed.into(),
                row.summary_lines.branches.into(),
                row.summary_lines.selects.into(),
                Cell::Count(row.failures.len() as u64),
            ]),
            None => absent.push([row.workload.as_str().into(), row.note.as_str().into()]),
        }
    }
    vec![Section::new("suites", "", suites), Section::new("absent", "", absent)]
}
