//! Random programs, compiled with random profiles: a program must compute the same with any profile.
//!
//! `csmith` makes C programs without undefined behaviour that print a checksum of their variables, our own generator
//! C++ programs ([`Language`]). Each is compiled without optimisation and without the plugin, and then at every level
//! and anchor with a random profile ([`OPTIONS`]). Programs that run long unoptimised are replaced. The inputs of a
//! wrong build are kept.
//!
//! Or the profile is the program's own: counted before its source was edited at random ([`edit`]), so that what is
//! salvaged must be as harmless; or recorded, and then the recorded program must do as it does alone.

mod build;
mod cpp;
pub mod edit;
mod failure;
mod language;
mod recorded;

use crate::summary_lines::SummaryLines;
use anyhow::{Context, Result, bail};
use build::{Limits, Made, Ran, compile, counted, make, run};
use edit::{Edits, edit};
pub use failure::Failure;
pub use language::Language;
use pleach_harness::pleach_command::{Pleach, plugin_flags as passed};
use pleach_harness::tools::find_in_path;
use pleach_harness::{parallel, progress};
use recorded::record;
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

/// Options of the plugin beside a program's own profile.
const OPTIONS_OF_OWN: [&str; 3] = ["-pleach-summary", "-pleach-superblocks-aggressive", "-pleach-verify"];
/// Flags that end a program whose edits made it undefined.
const DEFINED: [&str; 3] = ["-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// The profiles that programs are compiled with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Profiles {
    /// Random counts.
    Random,
    /// Exact counts of the program before it was edited, made by this `pleach`.
    BeforeEdits(PathBuf),
    /// A recording of the program.
    Recorded {
        /// The `pleach` that records it.
        pleach: PathBuf,
        /// Number of recordings of each annotated build.
        recordings: usize,
    },
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct RandomProgramOptions {
    /// Number of programs.
    pub programs: usize,
    /// Their language.
    pub language: Language,
    /// Seed of programs and profiles.
    pub seed: u64,
    /// The plugin.
    pub plugin: PathBuf,
    /// The profiles.
    pub profiles: Profiles,
    /// Number of builds of each program: this many of the levels and anchors, from program to program the next ones.
    pub builds: usize,
    /// Options of the plugin beside [`OPTIONS`].
    pub also: Vec<String>,
    /// Options of clang for builds with profiles.
    pub flags: Vec<String>,
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
    /// Programs that were replaced because they run too long, or edits left nothing or made them undefined.
    pub replaced: usize,
    /// Edits of the programs, if they were edited.
    pub edits: Edits,
    /// Runs that were recorded and compared with one that was not.
    pub recordings: usize,
    /// Builds with a profile that were compared with the one without.
    pub builds: usize,
    /// Functions that got counts, in all builds.
    pub functions: u64,
    /// Functions whose counts are salvaged from another version, in all builds.
    pub salvaged: u64,
    /// Superblocks formed in all builds, as the plugin reports them.
    pub superblocks: u64,
    /// Branches that selects replaced in all builds.
    pub branches: u64,
    /// Selects that branches replaced in all builds.
    pub selects: u64,
    /// Switches that compare with some cases first, in all builds.
    pub switches: u64,
    /// Builds that failed or whose program computed something else.
    pub failures: Vec<Failure>,
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.programs += other.programs;
        self.replaced += other.replaced;
        self.recordings += other.recordings;
        self.builds += other.builds;
        self.edits += other.edits;
        self.functions += other.functions;
        self.salvaged += other.salvaged;
        self.superblocks += other.superblocks;
        self.branches += other.branches;
        self.selects += other.selects;
        self.switches += other.switches;
        self.failures.extend(other.failures);
    }
}

/// Tries random programs.
///
/// # Errors
/// A program could not be tried: a missing tool, a full disk. A wrong build is no error, but part of the summary.
pub fn try_programs(options: &RandomProgramOptions) -> Result<Summary> {
    if options.language == Language::C && find_in_path("csmith").is_none() {
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
        let Made::Source(source) = make(options.language, folder.path(), seed)? else {
            summary.replaced += 1;
            continue;
        };
        let Some(case) = prepare(options, &source, seed, &mut summary)? else {
            summary.replaced += 1;
            continue;
        };
        summary.edits += case.edits;
        for variant in variants(options.builds, number) {
            try_build(options, &case, seed, variant, &mut summary)?;
        }
        return Ok(summary);
    }
    bail!(
        "program {number} of seed {}: {MAX_ATTEMPTS} programs in a row were of no use",
        options.seed
    )
}

/// A program, and how it is compiled with a profile.
struct Case {
    source: PathBuf,
    /// What it does when it is not optimised.
    expected: Ran,
    edits: Edits,
    /// Flags for each anchor.
    flags: [Vec<String>; ANCHORS.len()],
}

/// `None`: the program runs too long, or it is of no use.
fn prepare(options: &RandomProgramOptions, source: &Path, seed: u64, summary: &mut Summary) -> Result<Option<Case>> {
    let Some(expected) = expectation(options.language, source)? else {
        return Ok(None);
    };
    let case = Case {
        source: source.to_owned(),
        expected,
        edits: Edits::default(),
        flags: ANCHORS.map(|anchor| plugin_flags(&options.plugin, seed, anchor, &options.also)),
    };
    match &options.profiles {
        Profiles::Random => Ok(Some(case)),
        Profiles::BeforeEdits(pleach) => prepare_edited(options, pleach, case, seed),
        Profiles::Recorded { pleach, recordings } => {
            prepare_recorded(options, pleach, *recordings, case, seed, summary)
        }
    }
}

/// Counts a program, and then edits it. `None`: the edits are of no use.
fn prepare_edited(options: &RandomProgramOptions, pleach: &Path, case: Case, seed: u64) -> Result<Option<Case>> {
    let (language, source) = (options.language, &case.source);
    let mut flags = ANCHORS.map(|_| Vec::new());
    for (anchor, flags) in ANCHORS.iter().zip(&mut flags) {
        let pleach = at_anchor(pleach, anchor);
        let profile = counted(&pleach, language, source, anchor)?;
        *flags = flags_of_own(&pleach, &profile, options)?;
    }
    let text = std::fs::read_to_string(source).context("cannot read the program")?;
    let (text, edits) = edit(&text, seed, language.truth());
    std::fs::write(source, text).context("cannot edit the program")?;
    if edits.statements == 0 || !is_defined(language, source)? {
        return Ok(None);
    }
    Ok(expectation(language, source)?.map(|expected| Case {
        expected,
        edits,
        flags,
        ..case
    }))
}

/// Records a program. `None`: a recording that went wrong left no profile.
fn prepare_recorded(
    options: &RandomProgramOptions,
    pleach: &Path,
    recordings: usize,
    mut case: Case,
    seed: u64,
    summary: &mut Summary,
) -> Result<Option<Case>> {
    for (anchor, flags) in ANCHORS.iter().zip(&mut case.flags) {
        let pleach = at_anchor(pleach, anchor);
        let recorded = record(
            &pleach,
            options.language,
            &case.source,
            anchor,
            recordings,
            &case.expected,
        )?;
        summary.recordings += recordings;
        for (number, what) in recorded.wrong.into_iter().enumerate() {
            let folder = options.keep.join(format!("{seed}-{anchor}-recorded-{number}"));
            let failure = Failure::keep(folder, &case.source, recorded.command.clone(), what)?;
            summary.failures.push(failure);
        }
        if !recorded.profile.is_file() {
            return Ok(None);
        }
        *flags = flags_of_own(&pleach, &recorded.profile, options)?;
    }
    Ok(Some(case))
}

fn at_anchor(pleach: &Path, anchor: &str) -> Pleach {
    Pleach {
        command: pleach.to_owned(),
        options: ["--anchor", anchor].map(str::to_owned).to_vec(),
    }
}

/// clang's flags for a program's own profile.
fn flags_of_own(pleach: &Pleach, profile: &Path, options: &RandomProgramOptions) -> Result<Vec<String>> {
    let mut flags = pleach.flags(&["use", &profile.display().to_string()])?;
    let own = OPTIONS_OF_OWN.iter().map(|&option| option.to_owned());
    let all: Vec<String> = own.chain(options.also.iter().cloned()).collect();
    flags.extend(passed(&all));
    Ok(flags)
}

/// Whether an edited program runs without undefined behaviour that sanitizers see.
fn is_defined(language: Language, source: &Path) -> Result<bool> {
    let program = source.with_file_name("sanitized");
    let (_, compiled) = compile(language, source, &program, &DEFINED.map(str::to_owned))?;
    Ok(compiled.success() && run(&program, Limits::SANITIZED)?.success())
}

/// What a program does when it is not optimised; `None` where that takes too long.
fn expectation(language: Language, source: &Path) -> Result<Option<Ran>> {
    let program = source.with_file_name("expected");
    let (command, compiled) = compile(language, source, &program, &["-O0".to_owned()])?;
    if !compiled.success() {
        bail!("{command}: {}", compiled.describe());
    }
    let ran = run(&program, Limits::EXPECTED)?;
    Ok(ran.success().then_some(ran))
}

/// A level, and the index of an anchor.
type Variant = (&'static str, usize);

/// The levels and anchors that a program is compiled with: `builds` of all, so that the next programs get the others.
fn variants(builds: usize, number: usize) -> impl Iterator<Item = Variant> {
    let all = LEVELS.len() * ANCHORS.len();
    let builds = builds.clamp(1, all);
    (0..builds).map(move |build| {
        let variant = (number * builds + build) % all;
        (LEVELS[variant / ANCHORS.len()], variant % ANCHORS.len())
    })
}

fn try_build(
    options: &RandomProgramOptions,
    case: &Case,
    seed: u64,
    (level, anchor): Variant,
    summary: &mut Summary,
) -> Result<()> {
    let program = case.source.with_file_name("program");
    let (flags, anchor) = (&case.flags[anchor], ANCHORS[anchor]);
    let flags = [&[level.to_owned()], &options.flags[..], flags].concat();
    let (command, compiled) = compile(options.language, &case.source, &program, &flags)?;
    summary.builds += 1;
    let summary_lines = SummaryLines::from_stderr(&compiled.stderr);
    summary.functions += summary_lines.functions;
    summary.salvaged += summary_lines.salvaged;
    summary.superblocks += summary_lines.superblocks;
    summary.branches += summary_lines.branches;
    summary.selects += summary_lines.selects;
    summary.switches += summary_lines.switches;
    let what = if !compiled.success() {
        format!("the compiler {}", compiled.describe())
    } else {
        let ran = run(&program, Limits::OPTIMISED)?;
        if ran.does_as(&case.expected) {
            return Ok(());
        }
        format!("{}, not {}", ran.describe(), case.expected.describe())
    };
    let folder = options.keep.join(format!("{seed}{level}-{anchor}"));
    summary
        .failures
        .push(Failure::keep(folder, &case.source, command, what)?);
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
    fn programs_in_turn_are_compiled_at_every_level_and_anchor() {
        let of = |builds, programs| (0..programs).flat_map(move |number| variants(builds, number));
        let all: std::collections::BTreeSet<Variant> = of(8, 1).collect();
        assert_eq!(all.len(), 8);
        for builds in [1, 2, 3, 5] {
            assert_eq!(of(builds, 1).count(), builds);
            assert_eq!(
                of(builds, 8).collect::<std::collections::BTreeSet<_>>(),
                all,
                "{builds}"
            );
        }
    }

    #[test]
    fn seeds_differ_and_are_not_zero() {
        let seeds = (0..100).flat_map(|number| (0..3).map(move |attempt| program_seed(1, number, attempt)));
        let seeds: std::collections::BTreeSet<u64> = seeds.collect();
        assert_eq!(seeds.len(), 300);
        assert!(!seeds.contains(&0));
        assert_ne!(program_seed(1, 0, 0), program_seed(2, 0, 0));
    }
}
