//! Random C programs, compiled with random profiles: a program must compute the same with any profile.
//!
//! `csmith` makes programs without undefined behaviour that print a checksum of their variables. Each is compiled
//! without optimisation and without the plugin, and then at every level and anchor with a random profile ([`OPTIONS`]).
//! Programs that run long unoptimised are replaced. The inputs of a wrong build are kept.

mod build;
mod failure;

use crate::summary_lines::SummaryLines;
use anyhow::{Context, Result, bail};
use build::{Limits, Made, Ran, compile, make, run};
pub use failure::Failure;
use pleach_harness::tools::find_in_path;
use pleach_harness::{parallel, progress};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Levels that programs are compiled at.
pub const LEVELS: [&str; 4] = ["-O1", "-O2", "-O3", "-Os"];
/// Anchors at which profiles are used.
pub const ANCHORS: [&str; 2] = ["early", "late"];
/// Options of the plugin beside the anchor; `SEED` is replaced by the program's seed.
pub const OPTIONS: [&str; 4] = [
    "-pleach-random=SEED",
    "-pleach-summary",
    "-pleach-superblocks-aggressive",
    "-pleach-verify",
];
/// An option for every other seed: it leaves fewer branches for superblocks to copy.
const ALTERNATE: &str = "-pleach-if-conversion-aggressive";
/// Maximum number of replacements for a program that runs too long.
const MAX_ATTEMPTS: u64 = 20;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct RandomProgramOptions {
    /// Number of programs.
    pub programs: usize,
    /// Seed of programs and profiles.
    pub seed: u64,
    /// The plugin.
    pub plugin: PathBuf,
    /// Options of the plugin beside [`OPTIONS`].
    pub also: Vec<String>,
    /// The folder for failures, each in a folder of its own.
    pub keep: PathBuf,
    /// Number of programs at a time.
    pub jobs: usize,
}

/// The result.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Programs that were tried.
    pub programs: usize,
    /// Programs that were replaced because they run too long.
    pub replaced: usize,
    /// Builds with a profile that were compared with the one without.
    pub builds: usize,
    /// Functions that got counts, in all builds.
    pub functions: u64,
    /// Superblocks formed in all builds, as the plugin reports them.
    pub superblocks: u64,
    /// Branches that selects replaced in all builds.
    pub branches: u64,
    /// Selects that branches replaced in all builds.
    pub selects: u64,
    /// Builds that failed or whose program computed something else.
    pub failures: Vec<Failure>,
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.programs += other.programs;
        self.replaced += other.replaced;
        self.builds += other.builds;
        self.functions += other.functions;
        self.superblocks += other.superblocks;
        self.branches += other.branches;
        self.selects += other.selects;
        self.failures.extend(other.failures);
    }
}

/// Tries random programs.
///
/// # Errors
/// A program could not be tried: a missing tool, a full disk. A wrong build is no error, but part of the summary.
pub fn try_programs(options: &RandomProgramOptions) -> Result<Summary> {
    if find_in_path("csmith").is_none() {
        bail!("csmith is not in PATH; on Debian: apt-get install csmith libcsmith-dev");
    }
    let bar = progress::bar(options.programs, "programs");
    let numbers: Vec<usize> = (0..options.programs).collect();
    let summaries = parallel::map(&numbers, options.jobs, |&number| {
        let summary = try_program(options, number)?;
        for failure in &summary.failures {
            bar.suspend(|| eprintln!("{failure}"));
        }
        bar.inc(1);
        Ok(summary)
    })?;
    bar.finish_and_clear();
    let mut all = Summary::default();
    summaries.into_iter().for_each(|summary| all += summary);
    Ok(all)
}

fn try_program(options: &RandomProgramOptions, number: usize) -> Result<Summary> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut summary = Summary {
        programs: 1,
        ..Summary::default()
    };
    for attempt in 0..MAX_ATTEMPTS {
        let seed = program_seed(options.seed, number, attempt);
        let made = make(folder.path(), seed)?;
        if let Some((source, expected)) = expectation(made, folder.path())? {
            for level in LEVELS {
                for anchor in ANCHORS {
                    try_build(options, &source, seed, &[level, anchor], &expected, &mut summary)?;
                }
            }
            return Ok(summary);
        }
        summary.replaced += 1;
    }
    bail!(
        "program {number} of seed {}: {MAX_ATTEMPTS} programs in a row run too long",
        options.seed
    )
}

/// The source, and what it does when it is not optimised; `None` where that takes too long.
fn expectation(made: Made, folder: &Path) -> Result<Option<(PathBuf, Ran)>> {
    let Made::Source(source) = made else { return Ok(None) };
    let program = folder.join("expected");
    let (command, compiled) = compile(&source, &program, &["-O0".to_owned()])?;
    if !compiled.success() {
        bail!("{command}: {}", compiled.describe());
    }
    let ran = run(&program, Limits::EXPECTED)?;
    Ok(ran.success().then_some((source, ran)))
}

fn try_build(
    options: &RandomProgramOptions,
    source: &Path,
    seed: u64,
    [level, anchor]: &[&str; 2],
    expected: &Ran,
    summary: &mut Summary,
) -> Result<()> {
    let program = source.with_file_name("program");
    let mut flags = vec![(*level).to_owned()];
    flags.extend(plugin_flags(&options.plugin, seed, anchor, &options.also));
    let (command, compiled) = compile(source, &program, &flags)?;
    summary.builds += 1;
    let summary_lines = SummaryLines::from_stderr(&compiled.stderr);
    summary.functions += summary_lines.functions;
    summary.superblocks += summary_lines.superblocks;
    summary.branches += summary_lines.branches;
    summary.selects += summary_lines.selects;
    let what = if !compiled.success() {
        format!("the compiler {}", compiled.describe())
    } else {
        let ran = run(&program, Limits::OPTIMISED)?;
        if ran.does_as(expected) {
            return Ok(());
        }
        format!("{}, not {}", ran.describe(), expected.describe())
    };
    let folder = options.keep.join(format!("{seed}{level}-{anchor}"));
    summary.failures.push(Failure::keep(folder, source, command, what)?);
    Ok(())
}

/// clang's flags for a random profile: the plugin with [`OPTIONS`], for some seeds [`ALTERNATE`], an anchor, and more.
pub(crate) fn plugin_flags(plugin: &Path, seed: u64, anchor: &str, also: &[String]) -> Vec<String> {
    let options = OPTIONS.iter().map(|o| o.replace("SEED", &seed.to_string()));
    let options = options
        .chain((seed & 2 == 0).then(|| ALTERNATE.to_owned()))
        .chain([format!("-pleach-anchor={anchor}")])
        .chain(also.iter().cloned());
    let options = options.flat_map(|option| ["-mllvm".to_owned(), option]);
    [format!("-fpass-plugin={}", plugin.display())]
        .into_iter()
        .chain(options)
        .collect()
}

/// Seeds of csmith and of the profile: 32 bits and not 0, which would be no seed.
fn program_seed(seed: u64, number: usize, attempt: u64) -> u64 {
    let bytes = [(number as u64).to_le_bytes(), attempt.to_le_bytes()].concat();
    xxh3_64_with_seed(&bytes, seed) >> 32 | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ_and_are_not_zero() {
        let seeds = (0..100).flat_map(|number| (0..3).map(move |attempt| program_seed(1, number, attempt)));
        let seeds: std::collections::BTreeSet<u64> = seeds.collect();
        assert_eq!(seeds.len(), 300);
        assert!(!seeds.contains(&0));
        assert_ne!(program_seed(1, 0, 0), program_seed(2, 0, 0));
    }
}
