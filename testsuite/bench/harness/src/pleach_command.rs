//! The `pleach` command: the compiler flags that it prints.

use crate::process::run_measured;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;

/// The `pleach` command and options of `pleach flags`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pleach {
    /// The executable.
    pub command: PathBuf,
    /// Options of `pleach flags annotate`, `instrument` and `use` alike, such as `--anchor late`.
    pub options: Vec<String>,
}

impl Pleach {
    /// The flags that `pleach flags …` prints, split as a shell would.
    ///
    /// # Errors
    /// The command fails, prints nothing, or prints an open quote.
    pub fn flags(&self, words: &[&str]) -> Result<Vec<String>> {
        let mut command = Command::new(&self.command);
        command.arg("flags").args(words).args(&self.options);
        let finished = run_measured(&mut command)?.expect_success("pleach flags")?;
        let flags = split_words(finished.stdout.trim())?;
        ensure!(!flags.is_empty(), "pleach flags printed nothing");
        Ok(flags)
    }
}

/// clang's arguments for options of the plugin, in the form that `pleach flags` prints.
pub fn plugin_flags(options: &[String]) -> Vec<String> {
    let words = options
        .iter()
        .flat_map(|option| ["-Xclang", "-mllvm", "-Xclang", option]);
    let all = ["--start-no-unused-arguments"].into_iter().chain(words);
    all.chain(["--end-no-unused-arguments"]).map(str::to_owned).collect()
}

/// Splits a line into words as a POSIX shell would, with quotes and backslashes but without expansions.
///
/// # Errors
/// A quote is not closed, or a backslash ends the line.
pub fn split_words(line: &str) -> Result<Vec<String>> {
    shlex::split(line).with_context(|| format!("a quote or a backslash is left open in '{line}'"))
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
