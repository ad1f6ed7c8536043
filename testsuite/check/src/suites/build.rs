//! Compiling a library and its test programs.

use crate::summary_lines::SummaryLines;
use anyhow::{Context, Result};
use pleach_harness::bench::Bench;
use pleach_harness::build::{is_cxx, part_sources};
use pleach_harness::parallel;
use pleach_harness::process::run_measured;
use pleach_harness::suite::Suite;
use pleach_harness::tools::Tool;
use pleach_harness::workload::Workload;
use std::path::{Path, PathBuf};
use std::process::Command;

/// CPU-seconds that a compilation may take.
const COMPILE_SECONDS: u32 = 900;

/// The inputs of the compiler, the same for all builds of a suite.
pub(super) struct Plan {
    library: Vec<PathBuf>,
    /// Names, and sources.
    programs: Vec<(String, Vec<PathBuf>)>,
    flags: Vec<String>,
    libs: Vec<String>,
}

/// A finished build.
#[derive(Default)]
pub(super) struct Built {
    /// The plugin's summary.
    pub summary_lines: SummaryLines,
    /// The commands, for people, to be run in the folder of the build.
    pub commands: Vec<String>,
    /// The first error; without one, all programs are there.
    pub error: Option<String>,
}

impl Plan {
    pub fn new(bench: &Bench, workload: &Workload, suite: &Suite) -> Result<Self> {
        let folder = bench.packages().folder(&suite.package)?.join(&suite.folder);
        let mut library = Vec::new();
        let mut include: Vec<PathBuf> = workload.include.iter().map(|sub| workload.dir.join(sub)).collect();
        for part in workload.sources.iter().chain(&suite.library) {
            library.extend(part_sources(part, bench.packages())?);
            let folder = bench.packages().folder(&part.package)?.join(&part.folder);
            include.extend(part.include.iter().map(|sub| folder.join(sub)));
        }
        include.extend(suite.include.iter().map(|sub| folder.join(sub)));
        let program = |program: &pleach_harness::suite::Program| {
            let sources = program.files.iter().map(|file| folder.join(file)).collect();
            (program.name.clone(), sources)
        };
        let defines = suite.defines.as_ref().unwrap_or(&workload.defines);
        let defines = defines.iter().map(|define| format!("-D{define}"));
        Ok(Self {
            library,
            programs: suite.programs.iter().map(program).collect(),
            flags: defines
                .chain(include.iter().map(|folder| format!("-I{}", folder.display())))
                .collect(),
            libs: workload.libs.clone(),
        })
    }

    /// Builds all programs in a folder.
    pub fn build(&self, folder: &Path, level: &str, plugin: &[String], jobs: usize) -> Result<Built> {
        let mut sources = self.library.clone();
        sources.extend(self.programs.iter().flat_map(|(_, files)| files.clone()));
        sources.sort();
        sources.dedup();
        let object = |source: &PathBuf| -> Result<String> {
            let index = sources.binary_search(source).ok().context("every source is compiled")?;
            let stem = source.file_stem().unwrap_or_default().to_string_lossy();
            Ok(format!("{index:03}-{stem}.o")) // two folders may have files of one name
        };
        let (cc, cxx) = (Tool::Clang.find()?, Tool::ClangCxx.find()?);
        let compiler = |is_cxx: bool| if is_cxx { &cxx } else { &cc }.display().to_string();
        let mut built = Built::default();

        let compilations = parallel::map(&sources, jobs, |source| {
            let mut words = vec![compiler(is_cxx(source)), level.to_owned(), "-w".to_owned()];
            words.extend_from_slice(plugin);
            words.extend_from_slice(&self.flags);
            words.extend(["-c".to_owned(), source.display().to_string()]);
            words.extend(["-o".to_owned(), object(source)?]);
            run(words, folder)
        })?;
        for (command, summary_lines, error) in compilations {
            built.summary_lines += summary_lines;
            built.commands.push(command);
            built.error = built.error.or(error);
        }
        if built.error.is_some() {
            return Ok(built);
        }
        for (name, files) in &self.programs {
            let all = || self.library.iter().chain(files);
            let mut words = vec![compiler(all().any(|source| is_cxx(source))), level.to_owned()];
            words.extend(all().map(object).collect::<Result<Vec<_>>>()?);
            words.extend(["-fuse-ld=lld".to_owned(), "-o".to_owned(), name.clone()]);
            words.extend_from_slice(&self.libs);
            let (command, _, error) = run(words, folder)?;
            built.commands.push(command);
            built.error = built.error.or(error);
        }
        Ok(built)
    }
}

/// The command for people, the plugin's summary, and the error, if any.
fn run(words: Vec<String>, folder: &Path) -> Result<(String, SummaryLines, Option<String>)> {
    let mut command = Command::new("prlimit");
    command.args([format!("--cpu={COMPILE_SECONDS}"), "--core=0".to_owned()]);
    let finished = run_measured(command.args(&words).current_dir(folder))?;
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let command = words.join(" ");
    let summary_lines = SummaryLines::from_stderr(&finished.stderr);
    let error = finished.expect_success(&command).err();
    Ok((command, summary_lines, error.map(|error| error.to_string())))
}

/// A word, quoted for a shell.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+,:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_survive_a_shell() {
        for word in ["-DX=1", "luai_makeseed(L)=1u", "it's", ""] {
            let command = format!("printf %s {}", quoted(word));
            let output = std::process::Command::new("sh").args(["-c", &command]).output();
            assert_eq!(output.unwrap().stdout, word.as_bytes());
        }
    }
}
