//! Writes recordings as profiles, and says what is in them.

use super::events::add_event_paths;
use super::inputs::DEFAULT_PROFILE;
use super::output::plural;
use super::profile_output::keep_old;
use anyhow::{Context, Result};
use pleach_analysis::analyse::{Analysis, analyse, without_functions};
use pleach_analysis::program::Program;
use pleach_analysis::time_bias::{Model, Weights};
use pleach_annotate::find::Finder;
use pleach_annotate::map::AddressMap;
use pleach_collector::events::BurstEvent;
use pleach_collector::record::{Convergence, Recording};
use pleach_collector::stats::Stats;
use pleach_collector::vector::VectorSet;
use pleach_collector::verify::Verified;
use pleach_decide::support::{MORE_OVERHEAD, support_summary};
use pleach_profile::error::ProfileError;
use pleach_profile::file::ProfileFile;
use pleach_profile::{Covered, Profile};
use pleach_report::names::Names;
use std::collections::BTreeSet;
use std::path::Path;

/// The status of a recording without a burst, where the command itself succeeded.
pub const NOTHING_SAMPLED: u8 = 4;

/// Where a recording goes.
pub struct Target<'a> {
    /// The profile.
    pub output: &'a Path,
    /// Measurements of the recording, as JSON.
    pub stats: Option<&'a Path>,
    /// Where the recorded binaries are.
    pub finder: Finder,
    /// Keep the raw vectors.
    pub keep_vectors: bool,
    /// Correct the time bias.
    pub correct_time_bias: bool,
    /// Events of which to find the paths in the bursts.
    pub events: &'a [BurstEvent],
    /// Whether a recording without samples is a failure.
    pub needs_samples: bool,
    /// Print only errors.
    pub quiet: bool,
    /// Whether a profile that is there already gets another name.
    pub keeps_old: bool,
    /// What was recorded.
    pub subject: Subject,
    /// The overhead that was asked for.
    pub budget: f64,
}

/// What is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// A command that is started for the recording.
    Command,
    /// Processes that run already.
    Running,
    /// Processes that write to a folder by themselves.
    Folder,
}

impl Target<'_> {
    /// Writes what was recorded. Returns whether anything was sampled.
    pub fn write(&self, recording: &Recording) -> Result<bool> {
        if let Some(verified) = &recording.stats.verified {
            report(verified);
        }
        let weights = if self.correct_time_bias {
            Weights::from_vectors(&recording.vectors, &Model::default())
        } else {
            Weights::equal()
        };
        let sampled = recording.stats.bursts > 0;
        let profile = if sampled || !recording.vectors.coverage.is_empty() {
            analysed(
                &recording.vectors,
                &weights,
                &self.finder,
                self.events,
                self.keep_vectors,
                self.quiet,
            )?
        } else {
            without_functions(&recording.vectors)
        };
        let found = match (sampled || !self.needs_samples, recording.vectors.coverage.is_empty()) {
            (true, _) => RecordingContent::Samples,
            (false, false) => RecordingContent::Coverage,
            (false, true) => RecordingContent::Nothing,
        };
        let fate = OutputAction::of(self.output, found);
        if fate == OutputAction::Written {
            if self.keeps_old {
                keep_old(self.output)?;
            }
            write_or_keep(self.output, &profile, &recording.vectors)?;
        }
        // Behind the profile, which must not be lost where these cannot be written.
        if let Some(path) = self.stats {
            let text = serde_json::to_string_pretty(&recording.stats)?;
            std::fs::write(path, text + "\n").with_context(|| {
                format!(
                    "cannot write {}, but the profile: {}",
                    path.display(),
                    fate.describe(self.output)
                )
            })?;
        }
        if !self.quiet && recording.unreclaimed {
            eprintln!(
                "pleach: warning: the file system of {} cannot punch holes in files, so temporary files were not kept below \
                 --max-size: set TMPDIR to a directory on another file system",
                std::env::temp_dir().display()
            );
        }
        if let Some(compressed) = recording.vectors.compressed.as_ref().filter(|_| !self.quiet) {
            match (compressed.branches, compressed.rate) {
                (branches, 1) => {
                    eprintln!(
                        "pleach: to save memory, bursts were cut into windows of {branches} branches; all are kept"
                    )
                }
                (branches, rate) => {
                    eprintln!("pleach: --max-size was reached: one window of {branches} branches in {rate} was kept");
                }
            }
        }
        if !self.quiet {
            for remark in &recording.remarks {
                eprintln!("pleach: note: {remark}");
            }
            if let Some(convergence) = &recording.convergence {
                eprintln!("pleach: {}", comparison(recording.runs, convergence));
            }
            eprintln!("pleach: {}; {}", summary(&recording.stats), fate.describe(self.output));
            if !recording.vectors.coverage.is_empty() {
                eprintln!("pleach: {}", covered(&profile, &recording.vectors));
            }
            if sampled && !profile.functions.is_empty() {
                eprintln!(
                    "pleach: {}",
                    support_summary(&profile.provenance, profile.functions.len())
                );
            }
        }
        if !sampled && self.needs_samples {
            // The exit status needs an explanation, however quiet.
            eprintln!(
                "pleach: error: nothing was sampled: {}",
                why_nothing(&recording.stats, self.subject, self.budget)
            );
        }
        Ok(sampled)
    }
}

/// Writes a profile; if it cannot be stored, the raw vectors alone, before it fails.
fn write_or_keep(output: &Path, profile: &Profile, vectors: &VectorSet) -> Result<()> {
    let written = pleach_store::write_profile(output, profile);
    if !matches!(written, Err(ProfileError::Unstorable { .. })) {
        return Ok(written?);
    }
    let kept = Profile {
        vectors: Some(vectors.to_bytes()),
        ..without_functions(vectors)
    };
    pleach_store::write_profile(output, &kept)?;
    let advice = format!(
        "the raw vectors are kept in {}; this is a fault of pleach: please report it, and run `pleach analyse` when it \
         is fixed",
        output.display()
    );
    written.context(advice)
}

/// What a recording has, of what was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RecordingContent {
    /// All of it.
    Samples,
    /// No samples, but what breakpoints showed.
    Coverage,
    Nothing,
}

/// What becomes of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OutputAction {
    /// It is written.
    Written,
    /// The profile that is there stays: one without samples would only destroy it.
    Kept,
    /// Nothing is written: nobody asked for an empty profile by name.
    Omitted,
}

impl OutputAction {
    fn of(output: &Path, has: RecordingContent) -> Self {
        match (has, ProfileFile::open(output)) {
            (RecordingContent::Samples, _) => Self::Written,
            (RecordingContent::Nothing, Ok(_)) => Self::Kept,
            (RecordingContent::Coverage, Ok(old)) if has_samples(&old) => Self::Kept,
            (RecordingContent::Nothing, Err(_)) if output == Path::new(DEFAULT_PROFILE) => Self::Omitted,
            _ => Self::Written,
        }
    }

    fn describe(self, output: &Path) -> String {
        match self {
            Self::Written => format!("wrote {}", output.display()),
            Self::Kept => format!("{} stays as it was", output.display()),
            Self::Omitted => "wrote nothing".to_owned(),
        }
    }
}

fn has_samples(profile: &ProfileFile) -> bool {
    profile.samples() > 0 || profile.provenance().is_ok_and(|provenance| provenance.bursts > 0)
}

/// CPU time of the sampler from which on something should have been sampled: that of some fifty bursts.
const ENOUGH_SECONDS: f64 = 0.02;

/// CPU time of processes that did not report which the kernel alone does not take, to make and end them.
const MUCH_SECONDS: f64 = 0.05;

/// Why nothing was sampled, and what to do. `budget`: the overhead that was asked for.
fn why_nothing(stats: &Stats, subject: Subject, budget: f64) -> String {
    let advice = match budget < MORE_OVERHEAD {
        true => "record longer, with `--repeat 20` or `--overhead 5%`",
        false => "record longer, with `--repeat 20`",
    };
    let seconds = stats.program_cpu_seconds;
    match subject {
        Subject::Running => {
            return format!(
                "the processes used {seconds:.3} s of CPU time, too little for a burst at this overhead, or were in the \
                 kernel; record longer, or with `--overhead 5%`, while they have work to do"
            );
        }
        Subject::Folder if stats.processes + stats.unsampled_processes == 0 => {
            return "no process has written to the directory yet, or none since the last --rotate: collect later"
                .into();
        }
        Subject::Folder => {
            return format!(
                "the processes used {seconds:.3} s of CPU time, since the last --rotate if there was one, too little for a \
                 burst at this overhead: collect later"
            );
        }
        Subject::Command => {}
    }
    let took = format!("the command took {seconds:.3} s of CPU time");
    if let Some(confined) = &stats.confined {
        return format!(
            "{took}, but {} (process {}) confined itself by a seccomp filter, and sampling ended there; record it \
             without its sandbox",
            confined.name, confined.process
        );
    }
    let processes = stats.processes + stats.unsampled_processes;
    let unreported = stats.unreported_cpu_seconds;
    let where_it_went = if unreported > MUCH_SECONDS && unreported > seconds / 2.0 {
        format!("{unreported:.3} s of it")
    } else if seconds * budget >= ENOUGH_SECONDS {
        "enough for samples, but all of it in the kernel or".to_owned()
    } else {
        String::new()
    };
    if !where_it_went.is_empty() {
        return format!(
            "{took}, {where_it_went} in processes that cannot be sampled: what the command starts may be static, setuid, \
             of another C library, without its environment, of another user or in another root directory; record it by \
             itself, or with `--engine ptrace`"
        );
    }
    if processes > 1 {
        return format!(
            "{took} in {}, too little for a burst at this overhead; starting and counting them took {:.3} s more; \
             {advice}",
            plural(processes, "process"),
            stats.own_cpu_seconds
        );
    }
    if stats.unannotated {
        return format!(
            "{took}, too little for a burst at this overhead; and none of its files is annotated: build the program with \
             `pleach flags annotate`"
        );
    }
    format!("{took}, too little for a burst at this overhead; {advice}")
}

/// The functions of a file that fit several graphs, a few of them by name; `None`: there are none.
fn ambiguous(map: &AddressMap) -> Option<String> {
    const NAMED: usize = 3;
    let functions = map.functions.iter().map(|function| &function.cfg);
    let functions = functions.filter(|cfg| map.losses.ambiguous.contains(&cfg.id.guid));
    let names: BTreeSet<&str> = functions.map(|cfg| &*cfg.name).collect();
    if names.is_empty() {
        return None;
    }
    // Without their arguments, names may be the same.
    let listed: BTreeSet<String> = names.iter().map(|name| Names::default().called(name)).collect();
    let more = if listed.len() > NAMED { ", …" } else { "" };
    let listed: Vec<String> = listed.into_iter().take(NAMED).collect();
    Some(format!(
        "{} ({}{more})",
        plural(names.len(), "function"),
        listed.join(", ")
    ))
}

/// One line: what breakpoints showed.
fn covered(profile: &Profile, vectors: &VectorSet) -> String {
    let count = |is: fn(Covered) -> bool| {
        let states = profile.functions.iter().flat_map(|function| &function.coverage);
        states.filter(|&&state| is(state)).count()
    };
    let blocks: usize = profile.functions.iter().map(|function| function.blocks.len()).sum();
    let (executed, not_executed) = (
        count(|state| state >= Covered::ByDominance),
        count(|state| state == Covered::NotExecuted),
    );
    let traps: u64 = vectors.coverage.iter().map(|coverage| coverage.traps).sum();
    format!(
        "coverage: of {}, {executed} executed, {not_executed} proved not executed, {} unknown ({} hit)",
        plural(blocks, "block"),
        blocks.saturating_sub(executed + not_executed),
        plural(traps, "breakpoint"),
    )
}

/// One line: what was recorded, and its overhead.
fn summary(stats: &Stats) -> String {
    let at = stats.event.as_ref().map(|event| format!(" at {event}"));
    let all = stats.processes + stats.unsampled_processes;
    let sampled = (stats.unsampled_processes > 0).then(|| format!(", {} of {all} processes sampled", stats.processes));
    format!(
        "{} in {}{}{} ({}), {:.2} s of CPU time at {:.2} % overhead",
        plural(stats.taken_branches, "taken branch"),
        plural(stats.bursts, "burst"),
        at.unwrap_or_default(),
        sampled.unwrap_or_default(),
        stats.engine,
        stats.program_cpu_seconds,
        stats.overhead * 100.0,
    )
}

/// One line: how the runs of `--repeat auto` compare.
fn comparison(runs: u32, convergence: &Convergence) -> String {
    let (runs, bursts) = (plural(runs, "run"), plural(convergence.bursts(), "burst"));
    match convergence.expected_change() {
        Some(change) => format!(
            "{runs}, {bursts}: another recording of the same length would differ in {:.0} % of the branches",
            change * 100.0
        ),
        None => format!("{runs}, {bursts}: too few for a comparison"),
    }
}

/// Says how shadow execution compared.
fn report(verified: &Verified) {
    eprintln!("pleach: {} instructions compared", verified.instructions);
    for (class, count) in &verified.disagreements {
        eprintln!("pleach: {class}: {count}");
    }
    for (way, opcodes) in &verified.opcodes {
        eprintln!("pleach: {} opcodes: {way}", opcodes.len());
    }
    for bug in &verified.bugs {
        eprintln!("pleach: bug: {bug}");
    }
}

/// The profile; for a program without annotations, one that holds raw vectors only.
pub fn analysed(
    vectors: &VectorSet,
    weights: &Weights,
    finder: &Finder,
    events: &[BurstEvent],
    keep_vectors: bool,
    quiet: bool,
) -> Result<Profile> {
    let program = Program::read(&vectors.modules, finder);
    if !quiet {
        for problem in &program.problems {
            eprintln!("pleach: warning: {problem}");
        }
    }
    let add_events = |mut profile| {
        add_event_paths(&mut profile, &program, vectors, weights, events, finder, quiet);
        profile
    };
    match analyse(&program, vectors, weights) {
        Ok(Analysis { mut profile, report }) => {
            profile.vectors = keep_vectors.then(|| vectors.to_bytes());
            for (_, map) in program.annotated().filter(|_| !quiet) {
                if let Some(functions) = ambiguous(map) {
                    eprintln!(
                        "pleach: note: {}: several functions of one name cannot be told apart, so that it is unclear \
                         which of them ran; unless they are hot, that does no harm: {functions}",
                        map.binary.path.display(),
                    );
                }
            }
            if !quiet && report.inconsistent * 100 > report.fall_throughs {
                eprintln!(
                    "pleach: warning: {} of {} sampled fall-through ranges do not match the binary: was it replaced \
                     while it ran?",
                    report.inconsistent, report.fall_throughs
                );
            }
            Ok(add_events(profile))
        }
        Err(error) => {
            eprintln!(
                "pleach: warning: {error}. The raw vectors are kept, but `pleach flags use` cannot use the result"
            );
            Ok(add_events(Profile {
                vectors: Some(vectors.to_bytes()),
                ..without_functions(vectors)
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::id::BlockIndex;
    use pleach_collector::stats::Confined;
    use pleach_profile::{BranchPrediction, FunctionProfile};

    #[test]
    fn what_cannot_be_stored_loses_no_vectors() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("kept.pleach");
        let vectors = VectorSet::default();
        let profile = Profile {
            functions: vec![FunctionProfile {
                predictions: vec![BranchPrediction::none(BlockIndex(0))],
                ..FunctionProfile::default()
            }],
            ..Profile::default()
        };
        let error = write_or_keep(&output, &profile, &vectors).expect_err("a branch of no block");
        let text = format!("{error:#}");
        assert!(text.contains("kept in") && text.contains("pleach analyse"), "{text}");
        let kept = ProfileFile::open(&output).and_then(|file| file.read_all());
        assert_eq!(kept.expect("a profile").vectors, Some(vectors.to_bytes()));
    }

    #[test]
    fn the_summary_names_the_event() {
        let stats = Stats {
            engine: "lbr".to_owned(),
            event: Some("near_taken:u".to_owned()),
            taken_branches: 320,
            bursts: 10,
            program_cpu_seconds: 2.0,
            overhead: 0.0098,
            ..Stats::default()
        };
        insta::assert_snapshot!(summary(&stats), @"320 taken branches in 10 bursts at near_taken:u (lbr), 2.00 s of CPU time at 0.98 % overhead");
        let many = Stats {
            processes: 4,
            unsampled_processes: 46,
            event: None,
            ..stats
        };
        insta::assert_snapshot!(summary(&many), @"320 taken branches in 10 bursts, 4 of 50 processes sampled (lbr), 2.00 s of CPU time at 0.98 % overhead");
    }

    #[test]
    fn an_empty_profile_replaces_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("a.pleach");
        assert_eq!(
            OutputAction::of(&output, RecordingContent::Nothing),
            OutputAction::Written,
            "it was asked for"
        );
        assert_eq!(
            OutputAction::of(Path::new(DEFAULT_PROFILE), RecordingContent::Nothing),
            OutputAction::Omitted
        );
        assert_eq!(
            OutputAction::of(Path::new(DEFAULT_PROFILE), RecordingContent::Samples),
            OutputAction::Written
        );
        std::fs::write(&output, "notes").expect("written");
        assert_eq!(
            OutputAction::of(&output, RecordingContent::Nothing),
            OutputAction::Written,
            "no profile"
        );
        pleach_store::write_profile(&output, &Profile::default()).expect("written");
        assert_eq!(OutputAction::of(&output, RecordingContent::Nothing), OutputAction::Kept);
        assert_eq!(
            OutputAction::of(&output, RecordingContent::Samples),
            OutputAction::Written
        );
    }

    #[test]
    fn why_nothing_was_sampled() {
        let stats = Stats {
            program_cpu_seconds: 0.4,
            own_cpu_seconds: 0.02,
            processes: 1,
            ..Stats::default()
        };
        insta::assert_snapshot!(why_nothing(&stats, Subject::Command, 0.01), @"the command took 0.400 s of CPU time, too little for a burst at this overhead; record longer, with `--repeat 20` or `--overhead 5%`");
        insta::assert_snapshot!(why_nothing(&stats, Subject::Folder, 0.01), @"the processes used 0.400 s of CPU time, since the last --rotate if there was one, too little for a burst at this overhead: collect later");
        insta::assert_snapshot!(why_nothing(&Stats::default(), Subject::Folder, 0.01), @"no process has written to the directory yet, or none since the last --rotate: collect later");
        let many = Stats {
            unsampled_processes: 1600,
            ..stats.clone()
        };
        insta::assert_snapshot!(why_nothing(&many, Subject::Command, 0.01), @"the command took 0.400 s of CPU time in 1601 processes, too little for a burst at this overhead; starting and counting them took 0.020 s more; record longer, with `--repeat 20` or `--overhead 5%`");
        insta::assert_snapshot!(why_nothing(&stats, Subject::Command, 0.04), @"the command took 0.400 s of CPU time, too little for a burst at this overhead; record longer, with `--repeat 20`");
        let long = Stats {
            program_cpu_seconds: 9.4,
            ..stats.clone()
        };
        insta::assert_snapshot!(why_nothing(&long, Subject::Command, 0.05), @"the command took 9.400 s of CPU time, enough for samples, but all of it in the kernel or in processes that cannot be sampled: what the command starts may be static, setuid, of another C library, without its environment, of another user or in another root directory; record it by itself, or with `--engine ptrace`");
        let other_user = Stats {
            unreported_cpu_seconds: 0.3,
            ..stats.clone()
        };
        insta::assert_snapshot!(why_nothing(&other_user, Subject::Command, 0.01), @"the command took 0.400 s of CPU time, 0.300 s of it in processes that cannot be sampled: what the command starts may be static, setuid, of another C library, without its environment, of another user or in another root directory; record it by itself, or with `--engine ptrace`");
        let confined = Stats {
            confined: Some(Confined {
                process: 7,
                name: "box".to_owned(),
                processes: 1,
            }),
            ..stats
        };
        insta::assert_snapshot!(why_nothing(&confined, Subject::Command, 0.01), @"the command took 0.400 s of CPU time, but box (process 7) confined itself by a seccomp filter, and sampling ended there; record it without its sandbox");
    }

    #[test]
    fn too_few_runs_are_not_compared() {
        insta::assert_snapshot!(comparison(3, &Convergence::default()), @"3 runs, 0 bursts: too few for a comparison");
    }
}
