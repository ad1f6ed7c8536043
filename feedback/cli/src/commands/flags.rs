//! `pleach flags`: flags for a compiler's command line.

use super::output::print;
use crate::install;
use anyhow::{Context, Result, bail};
use clap::{Subcommand, ValueEnum};
use pleach_decide::support::{NOT_ANNOTATED, Support};
use pleach_profile::Anchor;
use pleach_profile::file::ProfileFile;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Print compiler flags, for $(…) on a clang command line.
///
/// The flags work for compiling, assembling and linking C and C++ at every -O level, and cause no warnings. Use the
/// same anchor, -O level and clang for `annotate`, `instrument` and `use`. After an error, compilers refuse what is printed,
/// so that no build goes on without its profile.
///
///   clang -O2 $(pleach flags annotate) app.c -o app          1. build for recording
///   clang -O2 $(pleach flags use app.pleach) app.c -o app    2. build with the profile
///   clang -O2 $(pleach flags annotate --after app.pleach) …  3. optional: build again to record the optimised program
///   clang -O2 $(pleach flags use app.pleach second.pleach) … 4. optional: build with both profiles
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Attach identifiers of IR blocks to the emitted code; the program runs at normal speed.
    ///
    ///   clang -O2 $(pleach flags annotate) a.c b.c -o app
    #[command(verbatim_doc_comment)]
    Annotate {
        /// Optimise with this profile, and annotate the optimised code: its recording is a second profile for `use`.
        #[arg(long, value_name = "PROFILE", conflicts_with = "anchor")]
        after: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
    },
    Instrument(Instrument),
    /// Optimise with a recorded profile.
    ///
    ///   clang -O2 $(pleach flags use app.pleach) a.c b.c -o app
    ///
    /// If a program is slower than without: each optimisation can be turned off beside these flags, such as superblocks
    /// by `-Xclang -mllvm -Xclang -pleach-superblocks=0`, or by PLEACH_OPTIONS=-pleach-superblocks=0 in the environment.
    /// The guide lists them all.
    #[command(verbatim_doc_comment)]
    Use {
        /// A profile from `pleach record` or `pleach merge`.
        profile: PathBuf,
        /// A second profile, of a program that was built with `annotate --after` the first. It decides where code
        /// is placed.
        #[arg(conflicts_with = "anchor")]
        second: Option<PathBuf>,
        /// Print a summary line for each compiled file.
        #[arg(long)]
        summary: bool,
        #[command(flatten)]
        common: Common,
    },
}

/// Instrument the program: it counts every path that it executes, exactly, and runs slower
///
///   clang -O2 $(pleach flags instrument) …    build
///   ./app …                                   run: writes default-PROCESS.plcnt
///   pleach paths default-*.plcnt              print the paths
///
/// The environment variable PLEACH_COUNTS sets another file name. %p in it is replaced by the process identifier, so
/// that child processes write files of their own. Counts survive if the program is killed. `pleach merge` merges files.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
struct Instrument {
    /// Count edges instead of paths: fewer counters, and a faster program. `pleach paths --edges` prints the counts.
    #[arg(long)]
    edges: bool,
    /// Number of consecutive paths to count together, 1 to 4: paths across loop iterations.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=4))]
    iterations: u8,
    /// A sampled profile: counters are placed on edges that are rarely taken in it.
    #[arg(long, value_name = "PROFILE")]
    weights: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

impl Instrument {
    fn options(&self) -> Result<Vec<String>> {
        if self.edges && self.iterations > 1 {
            bail!(
                "--edges counts no paths, so that --iterations {} has no meaning with it",
                self.iterations
            );
        }
        let what = if self.edges { "edges" } else { "paths" };
        let mut options = vec![format!("-pleach-instrument={what}")];
        if self.iterations != 1 {
            options.push(format!("-pleach-iterations={}", self.iterations));
        }
        if let Some(profile) = &self.weights {
            options.push(format!("-pleach-weights={}", absolute(profile)?));
        }
        Ok(options)
    }
}

#[derive(clap::Args)]
struct Common {
    /// When, in the compiler's pipeline, blocks get their identifiers.
    #[arg(long, value_enum, default_value_t = AnchorArg::Early)]
    anchor: AnchorArg,
    /// Print a clang configuration file (for clang's --config=FILE) instead of flags.
    #[arg(long)]
    config: bool,
    /// Do not name profile and plugin in dependency files (`-MD`). Bazel needs this: it rejects dependency files that name
    /// undeclared inputs. It still compiles again when a profile changes, because the flags change.
    #[arg(long)]
    no_depfile: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AnchorArg {
    /// Before the inliner.
    Early,
    /// The graph as code generation gets it.
    Late,
}

/// In place of flags that cannot be given. A shell goes on after a `$(…)` that failed; a compiler refuses this one.
const NO_FLAGS: &str = "-pleach-gave-no-flags";

/// Prints the flags. Where there are none, so that `$(…)` would be empty, prints one that compilers refuse: otherwise a
/// build would go on without what it was to have.
pub fn run(args: &Args) -> Result<ExitCode> {
    let flags = print_flags(args);
    if flags.is_err() && !io::stdout().is_terminal() {
        print(&format!("{NO_FLAGS}\n"))?;
    }
    flags
}

fn print_flags(args: &Args) -> Result<ExitCode> {
    let plugin = install::library(install::PLUGIN)?;
    // What objects depend on beside their sources: named in dependency files, so that builds see a change.
    let mut inputs = vec![shell_safe(&plugin)?];
    let mut id = Xxh3::new();
    id.update(&digest_of_plugin(&plugin)?.to_le_bytes());
    let (mut options, common) = match &args.what {
        What::Annotate { after: None, common } => (vec!["-pleach-annotate".to_owned()], common),
        What::Annotate {
            after: Some(profile),
            common,
        } => {
            let file = profile_at(profile, Anchor::Early)?;
            say_support(profile, &file, false)?;
            let options = [
                use_option("use", profile, &file, &mut id, &mut inputs)?,
                "-pleach-annotate-late".into(),
            ];
            (options.to_vec(), common)
        }
        What::Instrument(instrument) => {
            if let Some(profile) = &instrument.weights {
                id.update(&ProfileFile::open(profile)?.digest().0.to_le_bytes());
                inputs.push(absolute(profile)?);
            }
            (instrument.options()?, &instrument.common)
        }
        What::Use {
            profile,
            second,
            summary,
            common,
        } => {
            let file = match second {
                Some(_) => profile_at(profile, Anchor::Early)?,
                None => ProfileFile::open(profile)?,
            };
            let mut options = vec![use_option("use", profile, &file, &mut id, &mut inputs)?];
            say_support(profile, &file, *summary)?;
            if let Some(second) = second {
                let file = profile_at(second, Anchor::Late)?;
                options.push(use_option("use-second", second, &file, &mut id, &mut inputs)?);
                say_support(second, &file, *summary)?;
            }
            if *summary {
                options.push("-pleach-summary".into());
            }
            (options, common)
        }
    };
    options.push(format!("-pleach-id={:016x}", id.digest()));
    let mut words = vec![
        "--start-no-unused-arguments".to_owned(),
        format!("-fpass-plugin={}", shell_safe(&plugin)?),
    ];
    let anchor = (common.anchor == AnchorArg::Late).then(|| "-pleach-anchor=late".to_owned());
    for option in options.into_iter().chain(anchor) {
        // With -Xclang, because the assembler stage would reject a plain -mllvm: it does not load the plugin.
        words.extend(["-Xclang".into(), "-mllvm".into(), "-Xclang".into(), option]);
    }
    for input in inputs.into_iter().filter(|_| !common.no_depfile) {
        // With -Xpreprocessor, because sccache caches nothing that has an option behind -Xclang which it does not know.
        words.extend(["-Xpreprocessor".into(), format!("-fdepfile-entry={input}")]);
    }
    words.push("--end-no-unused-arguments".into());
    print(&format!("{}\n", words.join(if common.config { "\n" } else { " " })))?;
    Ok(ExitCode::SUCCESS)
}

/// A profile of one anchor.
fn profile_at(path: &Path, anchor: Anchor) -> Result<ProfileFile> {
    let file = ProfileFile::open(path)?;
    if file.anchor() != anchor {
        bail!(
            "{}: recorded at the {} anchor: the first profile is of a build with `pleach flags annotate`, the second of \
             one with `pleach flags annotate --after FIRST`",
            path.display(),
            file.anchor().name()
        );
    }
    Ok(file)
}

/// The plugin's option that names a profile, which becomes an input of the build.
fn use_option(name: &str, path: &Path, file: &ProfileFile, id: &mut Xxh3, inputs: &mut Vec<String>) -> Result<String> {
    id.update(&file.digest().0.to_le_bytes());
    let path = absolute(path)?;
    inputs.push(path.clone());
    Ok(format!("-pleach-{name}={path}"))
}

/// The profile's absolute path.
fn absolute(profile: &Path) -> Result<String> {
    let absolute = profile
        .canonicalize()
        .with_context(|| format!("cannot resolve {}", profile.display()))?;
    shell_safe(&absolute)
}

/// The plugin's digest.
pub fn digest_of_plugin(plugin: &Path) -> Result<u64> {
    let bytes = fs::read(plugin).with_context(|| format!("cannot read {}", plugin.display()))?;
    Ok(xxh3_64(&bytes))
}

/// A path as text that a shell takes as it is; an error if it does not.
pub fn shell_safe(path: &Path) -> Result<String> {
    let Some(text) = path.to_str() else {
        bail!("{} is not valid UTF-8", path.display())
    };
    if text.contains(|c: char| c.is_whitespace() || "'\"\\$`*?[]".contains(c)) {
        bail!(
            "{text}: the path contains a space or another character that a shell would split at or expand: move the file"
        );
    }
    Ok(text.to_owned())
}

/// Says what a profile supports, if that is asked for or nothing.
///
/// # Errors
/// The profile is of programs that are not annotated.
pub fn say_support(path: &Path, file: &ProfileFile, is_asked: bool) -> Result<()> {
    let support = Support::from_provenance(&file.provenance()?);
    if file.is_empty() && support.weights() {
        bail!("{}: {NOT_ANNOTATED}", path.display());
    }
    if is_asked || !support.weights() {
        eprintln!("pleach: {}: {}", path.display(), support.summary());
    }
    Ok(())
}
