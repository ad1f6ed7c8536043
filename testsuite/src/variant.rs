//! Variants: the ways to get from a workload's sources to a binary that is worth comparing.
//!
//! Some need nothing but flags; others build an instrumented or annotated binary first, run it on the training input
//! and build again with the profile. What a variant leaves behind is always a [`Binary`], so measures need not know.

use crate::bench::Bench;
use crate::build::{Binary, BuildConfig};
use crate::process::run_measured;
use crate::run::{Invocation, run_with};
use crate::tools::Tool;
use crate::workload::{InputKind, Workload};
use anyhow::{Context, Result, ensure};
use pleach_feedback::ball_larus::Mode;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xxhash_rust::xxh3::xxh3_64;

/// The level that all variants share.
pub const BASE_FLAGS: [&str; 1] = ["-O2"];

const NO_PREINLINE: [&str; 5] = [
    "-fprofile-generate",
    "-Xclang",
    "-mllvm",
    "-Xclang",
    "-disable-preinline",
];

/// A way to build a workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Variant {
    /// Plain `-O2`.
    O2,
    /// `-O2` and more flags, nothing trained.
    Flags {
        /// Short name.
        label: String,
        /// Flags of every compilation and of the link.
        cflags: Vec<String>,
        /// Flags of the link alone.
        ldflags: Vec<String>,
    },
    /// `-O2` with clang's own pseudo-probes, the peer of annotating.
    ClangProbes,
    /// `-O2` instrumented for IR-level profiles.
    IrPgoInstrumented,
    /// `-O2` guided by exact IR-level counts of the training input.
    IrPgo,
    /// `-O2` instrumented to count paths or edges exactly.
    Counted(Pleach, Mode),
    /// `-O2` annotated: normal speed is the aim.
    Annotated(Pleach),
    /// `-O2` guided by what `pleach record` sampled on the training input.
    PleachUse(Pleach, Recording),
}

/// The `pleach` command and the options that its flags are asked with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pleach {
    /// The executable.
    pub command: PathBuf,
    /// Options of `pleach flags annotate`, `instrument` and `use` alike, such as `--anchor late`.
    pub options: Vec<String>,
}

/// How a profile is recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recording {
    /// Options of `pleach record`, such as `--overhead 1%` or `--repeat 5`.
    pub options: Vec<String>,
}

impl Variant {
    /// [`Variant::IrPgoInstrumented`] without the inlining that clang does before it instruments, so that the functions
    /// that the early anchor sees are counted.
    pub fn instrumented_without_preinlining() -> Self {
        Self::Flags {
            label: format!("{}-no-preinline", Self::IrPgoInstrumented.label()),
            cflags: own(&NO_PREINLINE),
            ldflags: Vec::new(),
        }
    }

    /// The same, with every function's first counter counting its calls.
    pub fn counting_calls() -> Self {
        let entries = ["-Xclang", "-mllvm", "-Xclang", "-pgo-instrument-entry"];
        Self::Flags {
            label: "ir-pgo-calls".to_owned(),
            cflags: own(&[&NO_PREINLINE[..], &entries].concat()),
            ldflags: Vec::new(),
        }
    }

    /// A short name for tables and folders.
    pub fn label(&self) -> String {
        match self {
            Self::O2 => "O2".to_owned(),
            Self::Flags { label, .. } => label.clone(),
            Self::ClangProbes => "clang-probes".to_owned(),
            Self::IrPgoInstrumented => "ir-pgo-instrumented".to_owned(),
            Self::IrPgo => "ir-pgo".to_owned(),
            Self::Counted(_, Mode::Paths) => "paths".to_owned(),
            Self::Counted(_, Mode::Edges) => "edges".to_owned(),
            Self::Annotated(_) => "annotated".to_owned(),
            Self::PleachUse(..) => "pleach-use".to_owned(),
        }
    }

    /// Whether training samples a running program, and so wants the machine to itself.
    pub fn samples(&self) -> bool {
        matches!(self, Self::PleachUse(..))
    }

    /// Builds the workload, after training where the variant has any.
    pub fn produce(&self, bench: &Bench, workload: &Workload) -> Result<Binary> {
        let produced = match self {
            Self::O2 => bench.build(workload, &self.config(bench, &[])?),
            Self::Flags { cflags, ldflags, .. } => {
                let mut config = self.config(bench, cflags)?;
                config.ldflags.clone_from(ldflags);
                bench.build(workload, &config)
            }
            Self::ClangProbes => bench.build(
                workload,
                &self.config(bench, &own(&["-fpseudo-probe-for-profiling", "-g1"]))?,
            ),
            Self::IrPgoInstrumented => bench.build(workload, &self.config(bench, &own(&["-fprofile-generate"]))?),
            Self::IrPgo => bench.build(workload, &self.config(bench, &Self::ir_pgo_flags(bench, workload)?)?),
            Self::Counted(pleach, mode) => {
                let words = match mode {
                    Mode::Paths => &["instrument"][..],
                    Mode::Edges => &["instrument", "--edges"],
                };
                bench.build(workload, &self.config(bench, &pleach.flags(words)?)?)
            }
            Self::Annotated(pleach) => bench.build(workload, &self.config(bench, &pleach.flags(&["annotate"])?)?),
            Self::PleachUse(pleach, recording) => self.produce_pleach_use(bench, workload, pleach, recording),
        };
        produced.with_context(|| format!("{} as '{}'", workload.name, self.label()))
    }

    fn config(&self, bench: &Bench, more: &[String]) -> Result<BuildConfig> {
        let mut config = bench.config(&self.label(), &BASE_FLAGS)?;
        config.cflags.extend_from_slice(more);
        Ok(config)
    }

    /// The flags of [`Variant::IrPgo`] beside `-O2`, after training.
    pub fn ir_pgo_flags(bench: &Bench, workload: &Workload) -> Result<Vec<String>> {
        let instrumented = Self::IrPgoInstrumented.produce(bench, workload)?;
        let invocation = bench.invocation(workload, InputKind::Train)?;
        let profile = bench
            .scratch_dir(workload)?
            .join(training_key(&instrumented, &invocation)?);
        let profile = profile.with_extension("profdata");
        if !profile.is_file() {
            let unfinished = tempfile::tempdir()?;
            let (raw, merged) = (unfinished.path().join("raw"), unfinished.path().join("merged"));
            run_with(&instrumented, &invocation, &[], &[("LLVM_PROFILE_FILE", &raw)])?
                .expect_checksum(&instrumented, &invocation)?;
            let mut merge = Command::new(Tool::ProfData.find()?);
            merge.arg("merge").arg("-o").arg(&merged).arg(&raw);
            run_measured(&mut merge)?.expect_success("merging the profile")?;
            fs::copy(&merged, &profile)?;
        }
        Ok(own(&[
            &format!("-fprofile-use={}", profile.display()),
            // Functions that the training input never reaches have no counts, and need none.
            "-Wno-profile-instr-unprofiled",
            "-Wno-profile-instr-out-of-date",
            "-Wno-backend-plugin",
        ]))
    }

    fn produce_pleach_use(
        &self,
        bench: &Bench,
        workload: &Workload,
        pleach: &Pleach,
        recording: &Recording,
    ) -> Result<Binary> {
        let annotated = Self::Annotated(pleach.clone()).produce(bench, workload)?;
        let folder = bench.scratch_dir(workload)?;
        let invocation = bench.invocation(workload, InputKind::Train)?;
        let profile = folder.join("train.pleach");
        let mut wrapper = vec![pleach.command.display().to_string(), "record".to_owned()];
        wrapper.extend(recording.options.iter().cloned());
        wrapper.extend(own(&["-o", &profile.display().to_string(), "--"]));
        // Recorded anew each time: a sampled profile differs from run to run, and so must what is measured.
        run_with(&annotated, &invocation, &wrapper, &[])?;
        let flags = pleach.flags(&["use", &profile.display().to_string()])?;
        bench.build(workload, &self.config(bench, &flags)?)
    }
}

impl Pleach {
    /// What `pleach flags …` prints, split as a shell would.
    pub fn flags(&self, words: &[&str]) -> Result<Vec<String>> {
        let mut command = Command::new(&self.command);
        command.arg("flags").args(words).args(&self.options);
        let finished = run_measured(&mut command)?.expect_success("pleach flags")?;
        let flags = split_words(finished.stdout.trim())?;
        ensure!(!flags.is_empty(), "pleach flags printed nothing");
        Ok(flags)
    }
}

/// A file name for what comes out of training: the same for the same binary on the same input.
fn training_key(binary: &Binary, invocation: &Invocation) -> Result<String> {
    // The build's folder has the key of everything that went into the binary in its name.
    let folder = binary
        .path
        .parent()
        .and_then(Path::file_name)
        .context("a binary has a folder")?;
    let input = xxh3_64(format!("{invocation:?}").as_bytes());
    Ok(format!("{}-{input:016x}", folder.to_string_lossy()))
}

fn own(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Splits a line into words as a POSIX shell would, with quotes and backslashes but without expansions.
pub fn split_words(line: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next().context("a quote is not closed")? {
                        end if end == c => break,
                        '\\' if c == '"' => word.push(characters.next().context("a backslash ends the line")?),
                        inside => word.push(inside),
                    }
                }
            }
            '\\' => word
                .get_or_insert_default()
                .push(characters.next().context("a backslash ends the line")?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        assert_eq!(split_words("-O2  -fx=y").unwrap(), ["-O2", "-fx=y"]);
        assert_eq!(
            split_words(r#"-fp='a b' "c\"d" e\ f ''"#).unwrap(),
            ["-fp=a b", "c\"d", "e f", ""]
        );
        assert!(split_words("").unwrap().is_empty());
        assert!(split_words("'open").is_err());
    }
}
