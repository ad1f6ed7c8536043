//! Builds that pleach annotates, instruments and guides.

use super::{own, recording::Recording};
use crate::bench::Bench;
use crate::process::run_measured;
use crate::variant::Variant;
use crate::workload::Workload;
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

/// A build that a recording of the training input guides.
#[derive(Clone, PartialEq, Debug)]
pub struct PleachUse {
    /// Short name.
    pub label: String,
    /// The command.
    pub pleach: Pleach,
    /// How the profile is recorded.
    pub recording: Recording,
    /// More options of the plugin, such as `-pleach-icall-promotion=0`.
    pub plugin_options: Vec<String>,
    /// Which random order the linker puts functions in, instead of the profile's.
    pub function_order: Option<u32>,
}

impl PleachUse {
    /// The defaults of `pleach flags use`.
    pub fn new(pleach: Pleach, recording: Recording) -> Self {
        Self {
            label: "pleach-use".to_owned(),
            pleach,
            recording,
            plugin_options: Vec::new(),
            function_order: None,
        }
    }

    /// The same profile, used with more options of the plugin.
    pub fn with(&self, name: &str, plugin_options: &[String]) -> Self {
        let mut new = self.clone();
        new.label = format!("pleach:{name}");
        new.plugin_options.extend_from_slice(plugin_options);
        new
    }

    /// The flags beside `-O2`, after recording.
    pub fn flags(&self, bench: &Bench, workload: &Workload) -> Result<Vec<String>> {
        let annotated = Variant::Annotated(self.pleach.clone()).produce(bench, workload)?;
        let profile = self.recording.record(bench, workload, &self.pleach, &annotated)?;
        let mut flags = self.pleach.flags(&["use", &profile.display().to_string()])?;
        flags.extend(plugin_flags(&self.plugin_options));
        Ok(flags)
    }

    /// The flags of the link alone.
    pub fn link_flags(&self) -> Vec<String> {
        self.function_order.map(random_order).unwrap_or_default()
    }

    /// Fails where the plugin does not know its options, before hours of recording.
    pub fn check_options(&self) -> Result<()> {
        let mut command = Command::new(crate::tools::Tool::Clang.find()?);
        command
            .args(self.pleach.flags(&["annotate"])?)
            .args(plugin_flags(&self.plugin_options));
        command.args(["-x", "c", "-c", "/dev/null", "-o", "/dev/null"]);
        run_measured(&mut command)?.expect_success(&format!("trying {}", self.plugin_options.join(" ")))?;
        Ok(())
    }
}

/// The linker's flags that put functions in the random order of a seed.
pub fn random_order(seed: u32) -> Vec<String> {
    vec![
        "-Wl,--call-graph-profile-sort=none".to_owned(),
        format!("-Wl,--shuffle-sections=.text*={seed}"),
    ]
}

/// clang's arguments for options of the plugin, in the form that `pleach flags` prints.
pub fn plugin_flags(options: &[String]) -> Vec<String> {
    let words = options
        .iter()
        .flat_map(|option| ["-Xclang", "-mllvm", "-Xclang", option]);
    let all = ["--start-no-unused-arguments"].into_iter().chain(words);
    own(&all.chain(["--end-no-unused-arguments"]).collect::<Vec<_>>())
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
