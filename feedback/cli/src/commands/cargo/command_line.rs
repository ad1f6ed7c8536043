//! Command lines of cargo.

use anyhow::{Result, bail, ensure};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// A command line of cargo's, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// `+TOOLCHAIN`, if any.
    pub toolchain: Option<OsString>,
    /// The command, such as `build`.
    pub command: &'static str,
    /// The value of `--target`.
    pub target: Option<String>,
    /// The value of `--manifest-path`, or of `install`'s `--path`.
    pub manifest: Option<PathBuf>,
    /// Whether it prints cargo's help only.
    pub asks_for_help: bool,
    /// Whether a profile of cargo's is named, or the command has an optimised one by itself.
    has_profile: bool,
    /// What follows the command.
    rest: Vec<OsString>,
}

impl CommandLine {
    /// Parses what follows `cargo`.
    ///
    /// # Errors
    /// A command that does not compile, or an option that contradicts pleach's own.
    pub fn parse(words: &[OsString]) -> Result<Self> {
        let mut words = words.iter();
        let mut first = words.next();
        let toolchain = first.filter(|word| word.as_encoded_bytes().starts_with(b"+")).cloned();
        if toolchain.is_some() {
            first = words.next();
        }
        let Some(command) = first.and_then(|word| canonical(word)) else {
            bail!("expected a command of cargo that compiles: build, run, test, bench, rustc or install")
        };
        let rest: Vec<OsString> = words.cloned().collect();
        // What follows `--` is the program's.
        let own: Vec<&str> = rest
            .iter()
            .take_while(|word| *word != "--")
            .filter_map(|word| word.to_str())
            .collect();
        ensure!(
            value(&own, "--target-dir").is_none(),
            "pleach keeps its builds in cargo's target directory: choose another by CARGO_TARGET_DIR, not by --target-dir"
        );
        let has = |options: &[&str]| own.iter().any(|word| options.contains(word));
        let package = value(&own, "--path").filter(|_| command == "install");
        Ok(Self {
            target: value(&own, "--target").map(str::to_owned),
            manifest: value(&own, "--manifest-path")
                .map(PathBuf::from)
                .or_else(|| Some(PathBuf::from(package?).join("Cargo.toml"))),
            has_profile: has(&["--release", "-r", "--debug"])
                || value(&own, "--profile").is_some()
                || matches!(command, "bench" | "install"),
            asks_for_help: has(&["--help", "-h"]),
            toolchain,
            command,
            rest,
        })
    }

    /// Whether cargo runs programs of the package.
    pub fn runs_programs(&self) -> bool {
        matches!(self.command, "run" | "test" | "bench")
    }

    /// The arguments for cargo, after the toolchain. With a target, cargo keeps what runs during the build apart from
    /// what it builds.
    pub fn arguments(&self, target: &str) -> Vec<OsString> {
        let mut arguments = vec![OsString::from(self.command)];
        if !self.has_profile {
            arguments.push("--release".into());
        }
        if self.target.is_none() {
            arguments.extend(["--target".into(), target.into()]);
        }
        arguments.extend(self.rest.iter().cloned());
        arguments
    }
}

/// A command's full name.
fn canonical(word: &OsStr) -> Option<&'static str> {
    Some(match word.to_str()? {
        "build" | "b" => "build",
        "run" | "r" => "run",
        "test" | "t" => "test",
        "bench" => "bench",
        "rustc" => "rustc",
        "install" => "install",
        _ => return None,
    })
}

/// The value of an option, as `--name VALUE` or `--name=VALUE`.
fn value<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(at, word)| {
        let rest = word.strip_prefix(name)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value),
            None if rest.is_empty() => words.get(at + 1).copied(),
            None => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<CommandLine> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        CommandLine::parse(&words)
    }

    fn arguments(line: &str) -> String {
        let arguments = parsed(line).expect("a command line").arguments("host");
        let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
        words.join(" ")
    }

    #[test]
    fn a_profile_and_a_target_are_added_where_none_is_named() {
        assert_eq!(arguments("build --bin app"), "build --release --target host --bin app");
        assert_eq!(arguments("b -r"), "build --target host -r");
        assert_eq!(
            arguments("run --profile=dist -- -r"),
            "run --target host --profile=dist -- -r"
        );
        assert_eq!(
            arguments("run -- --release"),
            "run --release --target host -- --release"
        );
        assert_eq!(arguments("bench"), "bench --target host");
        assert_eq!(arguments("test --target x"), "test --release --target x");
    }

    #[test]
    fn toolchain_target_and_manifest_are_found() {
        let line = parsed("+1.95 build --target=x --manifest-path sub/Cargo.toml").expect("a command line");
        assert_eq!(line.toolchain, Some("+1.95".into()));
        assert_eq!(line.target.as_deref(), Some("x"));
        assert_eq!(line.manifest, Some("sub/Cargo.toml".into()));
        let line = parsed("install --path tool").expect("a command line");
        assert_eq!(line.manifest, Some("tool/Cargo.toml".into()));
    }

    #[test]
    fn what_does_not_compile_is_refused() {
        for line in [
            "check",
            "+1.95",
            "--release",
            "build --target-dir x",
            "build --target-dir=x",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
        assert!(parsed("build").expect("a command line").target.is_none());
    }
}
