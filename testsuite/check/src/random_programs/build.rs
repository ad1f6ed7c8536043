//! Making, compiling and running one program, each within limits.

use super::cpp;
use super::language::Language;
use anyhow::{Context, Result, ensure};
use pleach_harness::pleach_command::Pleach;
use pleach_harness::process::{Finished, run_measured};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// csmith's options: small programs with every kind of control flow.
const CSMITH: [&str; 8] = [
    "--max-funcs",
    "6",
    "--max-block-depth",
    "4",
    "--max-block-size",
    "5",
    "--max-expr-complexity",
    "6",
];

/// CPU-seconds, which other work on the machine does not lengthen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits(u32);

impl Limits {
    const MAKE: Self = Self(20);
    const COMPILE: Self = Self(300);
    /// A program without optimisation.
    pub const EXPECTED: Self = Self(2);
    /// A program without optimisation, with sanitizers.
    pub const SANITIZED: Self = Self(20);
    /// The optimised program: far more, so that the limit means an endless loop.
    pub const OPTIMISED: Self = Self(20);

    pub(super) fn command(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("prlimit");
        command
            .args([format!("--cpu={}", self.0), "--core=0".to_owned()])
            .arg(program);
        command
    }
}

/// A program that was generated.
pub(super) enum Made {
    /// A program.
    Source(PathBuf),
    /// Nothing in time.
    TooLong,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    code: Option<i32>,
    signal: Option<i32>,
    stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    pub fn does_as(&self, other: &Self) -> bool {
        (self.code, self.signal, &self.stdout) == (other.code, other.signal, &other.stdout)
    }

    pub fn code(&self) -> Option<i32> {
        self.code
    }

    pub fn prints_as(&self, other: &Self) -> bool {
        self.stdout == other.stdout
    }

    /// One line for people, and what was printed to the error stream where it failed.
    pub fn describe(&self) -> String {
        let first = self.stdout.lines().next().unwrap_or("nothing");
        match (self.code, self.signal) {
            (Some(0), _) => format!("printed '{first}'"),
            (Some(code), _) => format!("ended with status {code}\n{}", self.stderr),
            (_, Some(libc::SIGXCPU | libc::SIGKILL)) => "did not end in time".into(),
            (_, signal) => format!("was killed by signal {}\n{}", signal.unwrap_or(0), self.stderr),
        }
    }
}

impl From<Finished> for Ran {
    fn from(finished: Finished) -> Self {
        Self {
            code: finished.status.code(),
            signal: finished.status.signal(),
            stdout: finished.stdout,
            stderr: finished.stderr,
        }
    }
}

/// Generates a program.
pub(super) fn make(language: Language, folder: &Path, seed: u64) -> Result<Made> {
    let source = folder.join(language.source());
    match language {
        Language::C => make_with_csmith(folder, source, seed),
        Language::Cxx => {
            std::fs::write(&source, cpp::program(seed)).context("cannot write a program")?;
            Ok(Made::Source(source))
        }
    }
}

fn make_with_csmith(folder: &Path, source: PathBuf, seed: u64) -> Result<Made> {
    let mut command = Limits::MAKE.command("csmith");
    command
        .current_dir(folder)
        .arg("--seed")
        .arg(seed.to_string())
        .args(CSMITH);
    let finished = run_measured(command.arg("--output").arg(&source))?;
    if finished.status.signal().is_some() {
        return Ok(Made::TooLong);
    }
    finished.expect_success("csmith")?;
    ensure!(source.is_file(), "csmith wrote no program");
    Ok(Made::Source(source))
}

/// Compiles and links; returns the command, for people, and how it went.
pub(super) fn compile(language: Language, source: &Path, program: &Path, flags: &[String]) -> Result<(String, Ran)> {
    let clang = language.compiler().find()?;
    let mut words = vec![clang.display().to_string()];
    words.extend_from_slice(flags);
    words.extend(language.flags().iter().map(|&flag| flag.to_owned()));
    // Named without its folder, so that nothing in the object depends on it.
    let (folder, name) = (source.parent(), source.file_name());
    let (folder, name) = folder.zip(name).context("a source is a file in a folder")?;
    let mut command = Limits::COMPILE.command(&words[0]);
    command.args(&words[1..]).arg(name).arg("-o").arg(program);
    let shown = format!("{} {} -o program", words.join(" "), name.display());
    let finished = run_measured(command.current_dir(folder))?;
    Ok((shown, finished.into()))
}

/// Runs a program.
pub(super) fn run(program: &Path, limits: Limits) -> Result<Ran> {
    run_command(&mut limits.command(program))
}

/// Runs a command, which has limits.
pub(super) fn run_command(command: &mut Command) -> Result<Ran> {
    Ok(run_measured(command)?.into())
}

/// Counts a program's paths exactly, in a file beside it, which is named after the anchor.
pub(super) fn counted(pleach: &Pleach, language: Language, source: &Path, anchor: &str) -> Result<PathBuf> {
    let [program, counts, profile] =
        ["counted", "plcnt", "pleach"].map(|end| source.with_file_name(format!("{anchor}.{end}")));
    let flags = [vec!["-O2".to_owned()], pleach.flags(&["instrument"])?].concat();
    let (command, compiled) = compile(language, source, &program, &flags)?;
    ensure!(compiled.success(), "{command}: {}", compiled.describe());
    let mut command = Limits::OPTIMISED.command(&program);
    run_measured(command.env("PLEACH_COUNTS", &counts))?.expect_success("the instrumented program")?;
    let mut import = Command::new(&pleach.command);
    import.arg("import").arg(&counts).arg("-o").arg(&profile);
    run_measured(&mut import)?.expect_success("pleach import")?;
    Ok(profile)
}
