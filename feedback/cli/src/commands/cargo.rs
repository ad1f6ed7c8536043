//! `pleach cargo`: the three steps for programs that cargo builds.

mod command_line;
mod settings;
mod wrapper;

use super::flags::{digest_of_plugin, say_support, shell_safe};
use super::output::plural;
use super::record::repeat;
use super::recorded::NOTHING_SAMPLED;
use super::sampling::percentage;
use crate::install;
use anyhow::{Context, Result, bail, ensure};
use clap::Subcommand;
use command_line::CommandLine;
use pleach_decide::support::{Support, support_summary};
use pleach_profile::file::ProfileFile;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use wrapper::Stage;
use xxhash_rust::xxh3::xxh3_64;

/// The major version of the LLVM that the plugin is for.
const LLVM: &str = "22";

/// Build, record and optimise programs that cargo builds.
///
///   pleach cargo annotate build                     build with identifiers, at normal speed
///   pleach cargo record -o app.pleach run -- ARGS   the same, then run the program and record it
///   pleach cargo use app.pleach build               build again, with the profile
///
/// Each is followed by a command line of cargo: build, run, test, bench, rustc or install, with their options. Programs
/// are built with --release, unless --profile (a Cargo build profile) is given. Dependencies are annotated and
/// optimised, too; build scripts and procedural macros are as usual, and so is the standard library, unless cargo
/// builds it (-Zbuild-std).
///
/// Builds are kept in `pleach` in cargo's target directory: builds without pleach stay as they are. rustc must have
/// LLVM 22 (`rustc -vV`), such as Rust 1.95.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Build with identifiers of IR blocks in the code. The program runs at normal speed.
    ///
    ///   pleach cargo annotate build
    #[command(verbatim_doc_comment)]
    Annotate {
        #[command(flatten)]
        cargo: CargoArgs,
    },
    /// Build with identifiers, run what cargo runs (run, test, bench), and record it as a profile.
    ///
    ///   pleach cargo record -o app.pleach run -- ARGS
    #[command(verbatim_doc_comment)]
    Record {
        /// CPU time to spend on sampling, as a percentage of the program's: 1%, 0.5%.
        #[arg(long, default_value = "1%", value_parser = checked(percentage))]
        overhead: String,
        /// Number of times to run each program, or `auto`.
        #[arg(long, default_value = "1", value_name = "N|auto", value_parser = checked(repeat))]
        repeat: String,
        /// The profile to write.
        #[arg(short, long, default_value = "default.pleach", value_name = "FILE")]
        output: PathBuf,
        #[command(flatten)]
        cargo: CargoArgs,
    },
    /// Optimise with a recorded profile.
    ///
    ///   pleach cargo use app.pleach build
    #[command(verbatim_doc_comment)]
    Use {
        /// A profile from `pleach cargo record`, `pleach record` or `pleach merge`.
        profile: PathBuf,
        /// Print a summary line for each compiled module.
        #[arg(long)]
        summary: bool,
        #[command(flatten)]
        cargo: CargoArgs,
    },
}

#[derive(clap::Args)]
struct CargoArgs {
    /// A command line of cargo: build, run, test, bench, rustc or install, with its options.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "CARGO"
    )]
    words: Vec<OsString>,
}

/// An option that is passed on as it is, once it was parsed.
fn checked<T>(parse: fn(&str) -> Result<T, String>) -> impl Fn(&str) -> Result<String, String> + Clone {
    move |text| parse(text).map(|_| text.to_owned())
}

/// Builds, and records.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::Annotate { cargo } => {
            let line = CommandLine::parse(&cargo.words)?;
            run_cargo(&line, &annotated()?, None)
        }
        What::Record {
            overhead,
            repeat,
            output,
            cargo,
        } => {
            let line = CommandLine::parse(&cargo.words)?;
            ensure!(
                line.runs_programs(),
                "`cargo {}` runs no program: record `run`, `test` or `bench`",
                line.command
            );
            record(&line, &format!("--overhead {overhead} --repeat {repeat}"), output)
        }
        What::Use {
            profile,
            summary,
            cargo,
        } => {
            let line = CommandLine::parse(&cargo.words)?;
            let file = ProfileFile::open(profile)?;
            say_support(profile, &file, *summary)?;
            let annotated = annotated()?;
            let path = profile
                .canonicalize()
                .with_context(|| format!("cannot resolve {}", profile.display()))?;
            let stage = Stage {
                folder: "optimised",
                digest: annotated.digest ^ file.digest().0,
                environment: vec![
                    ("PLEACH_USE", shell_safe(&path)?),
                    ("PLEACH_SUMMARY", u8::from(*summary).to_string()),
                ],
                keeps_symbols: false,
                ..annotated
            };
            if let Ok(folder) = target_folder(&line) {
                settings::warn_of_others(&folder.join("pleach").join(ANNOTATED));
            }
            run_cargo(&line, &stage, None)
        }
    }
}

/// The folder of annotated builds.
const ANNOTATED: &str = "annotated";

/// The stage that annotates.
fn annotated() -> Result<Stage> {
    let plugin = install::library(install::PLUGIN)?;
    Ok(Stage {
        folder: ANNOTATED,
        digest: digest_of_plugin(&plugin)? ^ digest_of_options(),
        plugin: shell_safe(&plugin)?,
        environment: vec![("PLEACH_ANNOTATE", "1".into())],
        keeps_symbols: true,
    })
}

/// The digest of the plugin's options in the environment; 0 of none.
fn digest_of_options() -> u64 {
    match std::env::var("PLEACH_OPTIONS") {
        Ok(options) if !options.trim().is_empty() => xxh3_64(options.as_bytes()),
        _ => 0,
    }
}

/// Runs cargo, and each program that it runs under `pleach record`.
fn record(line: &CommandLine, options: &str, output: &Path) -> Result<ExitCode> {
    // Not among temporary files, where programs may be forbidden.
    let folder = target_folder(line)?.join("pleach");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let scratch = tempfile::tempdir_in(folder).context("cannot make a temporary directory")?;
    let stage = annotated()?;
    if line.command == "run" {
        let profile = shell_safe(&std::path::absolute(output)?)?;
        let runner = wrapper::write_runner(scratch.path(), options, &profile)?;
        return run_cargo(line, &stage, Some(&runner));
    }
    // Several programs may run: a profile each, by the number of the process, then all in one.
    let each = format!("{}/$$.pleach", shell_safe(scratch.path())?);
    let runner = wrapper::write_runner(scratch.path(), &format!("{options} --part --quiet"), &each)?;
    let code = run_cargo(line, &stage, Some(&runner))?;
    let files = fs::read_dir(scratch.path())?.map(|entry| Ok(entry?.path()));
    let mut profiles = files.collect::<Result<Vec<PathBuf>>>()?;
    profiles.retain(|path| path.extension().is_some_and(|extension| extension == "pleach"));
    profiles.sort();
    if profiles.is_empty() {
        ensure!(
            code != ExitCode::SUCCESS,
            "cargo ran no program, so that nothing was recorded"
        );
        return Ok(code);
    }
    let mut merge = Command::new(std::env::current_exe()?);
    let merged = merge.args(["merge", "-o"]).arg(output).args(&profiles).status()?;
    if !merged.success() {
        return Ok(ExitCode::FAILURE);
    }
    let file = ProfileFile::open(output)?;
    let provenance = file.provenance()?;
    let support = Support::from_provenance(&provenance);
    let programs = plural(profiles.len(), "program");
    eprintln!(
        "pleach: recorded {programs}; {}",
        support_summary(&provenance, file.len())
    );
    Ok(if code == ExitCode::SUCCESS && !support.weights() {
        ExitCode::from(NOTHING_SAMPLED)
    } else {
        code
    })
}

/// Runs cargo with rustc wrapped, in a folder of its own.
fn run_cargo(line: &CommandLine, stage: &Stage, runner: Option<&Path>) -> Result<ExitCode> {
    if line.asks_for_help {
        let status = Command::new(cargo_program()).arg(line.command).arg("--help").status();
        status.context("cannot run cargo")?;
        return Ok(ExitCode::SUCCESS);
    }
    let rustc = Rustc::ask(line)?;
    let configured = std::env::var("CARGO_BUILD_TARGET").ok();
    let target = line.target.clone().or(configured).unwrap_or(rustc.host);
    let folder = target_folder(line)?.join("pleach").join(stage.folder);
    let wrapper = stage.prepare(&folder)?;
    if stage.folder == ANNOTATED {
        settings::write(&folder)?;
    }
    let mut cargo = Command::new(cargo_program());
    cargo
        .args(&line.toolchain)
        .args(line.arguments(&target))
        .env("RUSTC_WRAPPER", wrapper)
        .env("CARGO_TARGET_DIR", &folder);
    if let Some(runner) = runner {
        let name = target.to_uppercase().replace(['-', '.'], "_");
        cargo.env(format!("CARGO_TARGET_{name}_RUNNER"), runner);
    }
    let status = cargo.status().context("cannot run cargo")?;
    if status.success() && line.command == "build" {
        eprintln!("pleach: built in {}", folder.join(target).display());
    }
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// What is known about the compiler that cargo will run.
struct Rustc {
    host: String,
}

impl Rustc {
    /// Asks rustc; an error if the plugin cannot be loaded into it.
    fn ask(line: &CommandLine) -> Result<Self> {
        let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(&program)
            .args(&line.toolchain)
            .arg("-vV")
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let field = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let (Some(host), Some(release)) = (field("host"), field("release")) else {
            bail!("`{} -vV` does not say what it compiles for", program.display())
        };
        let version = field("LLVM version").unwrap_or("unknown");
        ensure!(
            version.split('.').next() == Some(LLVM),
            "rustc {release} has LLVM {version}, and the plugin is for LLVM {LLVM}: use a toolchain with it, such as \
             `rustup toolchain install 1.95` and `pleach cargo … +1.95 …`"
        );
        Ok(Self { host: host.to_owned() })
    }
}

/// Cargo's target folder.
fn target_folder(line: &CommandLine) -> Result<PathBuf> {
    let mut cargo = Command::new(cargo_program());
    cargo
        .args(&line.toolchain)
        .args(["metadata", "--no-deps", "--format-version=1"]);
    if let Some(manifest) = &line.manifest {
        cargo.arg("--manifest-path").arg(manifest);
    }
    let output = cargo.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    ensure!(
        output.status.success(),
        "cargo cannot tell its target directory: run pleach in the package's directory, or name it with --manifest-path"
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cannot read cargo's metadata")?;
    let folder = metadata["target_directory"].as_str();
    folder.map(PathBuf::from).context("cargo names no target directory")
}
