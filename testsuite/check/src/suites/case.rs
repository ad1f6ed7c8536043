//! One run of a test program: its inputs and all of its results.

use super::build::quoted;
use anyhow::{Context, Result, bail, ensure};
use pleach_harness::fetch::matching_files;
use pleach_harness::suite::{Case, Suite};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xxhash_rust::xxh3::xxh3_64;

/// CPU-seconds that a process of a case may take: far more than any needs, so that the limit means an endless loop.
const RUN_SECONDS: u32 = 120;

/// A case with its files found.
pub(super) struct Prepared {
    run: Vec<String>,
    dir: Option<String>,
    copy: Vec<PathBuf>,
    stdin: Option<PathBuf>,
    expected: Option<PathBuf>,
}

/// All that a run did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Observed {
    /// Exit status or signal.
    ended: String,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// Hashes of the files that are there afterwards.
    files: BTreeMap<PathBuf, u64>,
}

/// The cases of a suite, in order.
pub(super) fn prepare(suite: &Suite, folder: &Path) -> Result<Vec<Prepared>> {
    let plain = suite.programs.iter().map(|program| Case {
        run: vec![format!("./{}", program.name)],
        each: Vec::new(),
        copy: Vec::new(),
        dir: None,
        stdin: None,
        expected: None,
    });
    let cases: Vec<Case> = if suite.cases.is_empty() {
        plain.collect()
    } else {
        suite.cases.clone()
    };
    let mut prepared = Vec::new();
    for case in &cases {
        if case.each.is_empty() {
            prepared.push(prepared_case(case, folder, Path::new("")));
        }
        for file in matching_files(folder, &case.each)? {
            prepared.push(prepared_case(case, folder, file.strip_prefix(folder)?));
        }
    }
    Ok(prepared)
}

fn prepared_case(case: &Case, folder: &Path, file: &Path) -> Prepared {
    let path = file.to_string_lossy();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let text = |text: &String| text.replace("{file}", &path).replace("{name}", &name);
    let whole = |text_of: &String| folder.join(text(text_of));
    Prepared {
        run: case.run.iter().map(text).collect(),
        dir: case.dir.clone(),
        copy: case.copy.iter().map(whole).collect(),
        stdin: case.stdin.as_ref().map(whole),
        // Not every file of a pattern has a result to compare with.
        expected: case
            .expected
            .as_ref()
            .map(whole)
            .filter(|file| case.each.is_empty() || file.is_file()),
    }
}

impl Prepared {
    /// The command, for people.
    pub fn command(&self) -> String {
        let words: Vec<String> = self.run.iter().map(|word| quoted(word)).collect();
        let stdin = self.stdin.as_ref();
        let stdin = stdin.map(|file| format!(" < {}", quoted(&file.display().to_string())));
        format!("{}{}", words.join(" "), stdin.unwrap_or_default())
    }

    /// The commands that bring a folder with the programs into the state that the case is run in.
    pub fn preparation(&self) -> Vec<String> {
        let quote = |file: &PathBuf| quoted(&file.display().to_string());
        let copies = self.copy.iter().map(|from| format!("cp -r {} .", quote(from)));
        copies.chain(self.dir.iter().map(|dir| format!("cd {dir}"))).collect()
    }

    /// Runs the case with the programs of a build.
    pub fn observe(&self, suite: &Suite, programs: &Path) -> Result<Observed> {
        let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
        for program in &suite.programs {
            symlink(programs.join(&program.name), scratch.path().join(&program.name))?;
        }
        for from in &self.copy {
            let name = from.file_name().context("what is copied has a name")?;
            copy(from, &scratch.path().join(name))?;
        }
        let mut command = Command::new("prlimit");
        command
            .args([format!("--cpu={RUN_SECONDS}"), "--core=0".to_owned()])
            .args(&self.run)
            .current_dir(scratch.path().join(self.dir.as_deref().unwrap_or_default()))
            .env("LC_ALL", "C");
        match &self.stdin {
            Some(file) => command.stdin(File::open(file).with_context(|| format!("cannot read {}", file.display()))?),
            None => command.stdin(Stdio::null()),
        };
        let output = command.output().context("cannot run prlimit")?;
        let ended = match (output.status.code(), output.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or(0)),
        };
        let mut files = BTreeMap::new();
        hashes(scratch.path(), Path::new(""), &mut files)?;
        Ok(Observed {
            ended,
            stdout: compared(output.stdout, &suite.ignore),
            stderr: compared(output.stderr, &suite.ignore),
            files,
        })
    }

    /// Number of checks that succeeded, by the program's output or by its expected output.
    pub fn checks(&self, suite: &Suite, observed: &Observed) -> Result<u64> {
        let text = String::from_utf8_lossy(&observed.stdout);
        for word in &suite.failed {
            let failed = number_after(&text, word);
            ensure!(failed == Some(0), "{}: '{word}' is {failed:?}, not 0", self.command());
        }
        if let Some(word) = &suite.succeeded {
            return number_after(&text, word).with_context(|| format!("{} prints no '{word}'", self.command()));
        }
        Ok(u64::from(match &self.expected {
            Some(file) => fs::read(file).with_context(|| format!("cannot read {}", file.display()))? == observed.stdout,
            None => observed.ended == "exit status 0",
        }))
    }
}

impl Observed {
    /// The first difference from the expected result, if any.
    pub fn difference(&self, expected: &Self) -> Option<String> {
        if self == expected {
            return None;
        }
        if self.ended != expected.ended {
            let stderr = String::from_utf8_lossy(&self.stderr);
            return Some(format!("{}, not {}\n{stderr}", self.ended, expected.ended));
        }
        let streams = [
            ("standard output", &self.stdout, &expected.stdout),
            ("standard error", &self.stderr, &expected.stderr),
        ];
        for (name, is, should) in streams {
            if is != should {
                return Some(format!("{name}: {}", first_difference(is, should)));
            }
        }
        let paths = self.files.keys().chain(expected.files.keys());
        let mut differing = paths.filter(|path| self.files.get(*path) != expected.files.get(*path));
        let path = differing.next().map(|path| path.display().to_string());
        Some(format!("the file {} differs", path.unwrap_or_default()))
    }
}

fn first_difference(is: &[u8], should: &[u8]) -> String {
    let [is, should] = [is, should].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let [mut is, mut should] = [is.lines(), should.lines()];
    for line in 1.. {
        let (a, b) = (is.next(), should.next());
        if a != b {
            let shown = |line: Option<&str>| line.map_or("nothing".into(), |line| format!("'{line}'"));
            return format!("line {line} is {}, not {}", shown(a), shown(b));
        }
        if a.is_none() {
            break;
        }
    }
    "other ends of lines".to_owned()
}

/// Output without the lines that are not compared.
fn compared(output: Vec<u8>, ignore: &[String]) -> Vec<u8> {
    if ignore.is_empty() {
        return output;
    }
    let text = String::from_utf8_lossy(&output);
    let kept = text
        .split_inclusive('\n')
        .filter(|line| !ignore.iter().any(|word| line.contains(word)));
    kept.collect::<String>().into_bytes()
}

/// The number that follows the last occurrence of a text.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(word)?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Copies a file, or a folder with all in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
        return Ok(());
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Hashes of all files below a folder, but not of programs, which are links.
fn hashes(root: &Path, below: &Path, found: &mut BTreeMap<PathBuf, u64>) -> Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            hashes(root, &path, found)?;
        } else if kind.is_file() {
            found.insert(path, xxh3_64(&fs::read(entry.path())?));
        } else if !kind.is_symlink() {
            bail!("{} is neither a file nor a folder", entry.path().display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(stdout: &str) -> Observed {
        Observed {
            ended: "exit status 0".into(),
            stdout: stdout.into(),
            stderr: Vec::new(),
            files: BTreeMap::from([("out".into(), 1)]),
        }
    }

    #[test]
    fn what_differs_is_named() {
        let expected = observed("a\nb\n");
        assert_eq!(expected.difference(&expected), None);
        let of = |other: &Observed| other.difference(&expected).unwrap();
        assert!(of(&observed("a\nc\n")).contains("line 2 is 'c', not 'b'"));
        assert!(of(&observed("a\n")).contains("line 2 is nothing"));
        assert!(of(&observed("a\nb")).contains("ends of lines"));
        let (mut killed, mut written) = (expected.clone(), expected.clone());
        killed.ended = "signal 11".into();
        assert!(of(&killed).contains("signal 11, not exit status 0"));
        written.files.insert("more".into(), 2);
        assert!(of(&written).contains("file more"));
    }

    #[test]
    fn lines_about_the_run_are_left_out() {
        let output = b"cut 5\ntime: 2 sec\nend".to_vec();
        assert_eq!(compared(output.clone(), &["sec".into()]), b"cut 5\nend");
        assert_eq!(compared(output.clone(), &[]), output);
    }

    #[test]
    fn numbers_after_words() {
        let text = "SUCC: 1\nRESULT   SUCC:   12,  FAIL: 0";
        assert_eq!(number_after(text, "SUCC:"), Some(12));
        assert_eq!(number_after(text, "FAIL:"), Some(0));
        assert_eq!(number_after(text, "ERROR:"), None);
    }
}
