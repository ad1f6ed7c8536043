//! `pleach-random`: compiles random programs with random profiles and compares what they compute.

use anyhow::{Context, Result};
use clap::Parser;
use pleach_check::random_programs::{ANCHORS, LEVELS, Language, Profiles, RandomProgramOptions, try_programs};
use pleach_harness::parallel::default_jobs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Compiles random programs with random profiles, at every level and anchor, and compares their output
/// with that of the unoptimised program. Ends with status 1 where something differs.
#[derive(Parser)]
#[command(name = "testsuite/random", version)]
struct Cli {
    /// How many programs
    programs: usize,
    /// Seed of programs and profiles
    #[arg(default_value_t = 1)]
    seed: u64,
    /// Their language: C from csmith, or C++ with exceptions, virtual calls, floating-point numbers and interpreters
    #[arg(long, value_enum, default_value_t = Language::C)]
    language: Language,
    /// Not random profiles, but each program's own exact counts, from before its source was edited at random
    #[arg(long)]
    edited: bool,
    /// Not random profiles, but each program's own recording: the first of so many, at various overheads, in all of which
    /// it must do as it does alone
    #[arg(long, value_name = "RECORDINGS", conflicts_with = "edited")]
    recorded: Option<usize>,
    /// How many of the eight levels and anchors each program is compiled with; the next programs get the others
    #[arg(long, value_name = "N", default_value_t = LEVELS.len() * ANCHORS.len())]
    builds: usize,
    /// Another option for clang when it compiles with profiles, as `-flto`; may be repeated
    #[arg(long = "flag", value_name = "FLAG", allow_hyphen_values = true)]
    flags: Vec<String>,
    /// Another option for the plugin, as `-pleach-superblocks=0`; may be repeated
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,
    /// Where to keep what is wrong, each in a folder of its own
    #[arg(long, value_name = "DIR", default_value = "target/pleach-random")]
    keep: PathBuf,
    /// How many programs at a time
    #[arg(long, default_value_t = default_jobs())]
    jobs: usize,
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    let start = Instant::now();
    let executable = std::env::current_exe().context("cannot tell where this program is")?;
    let options = RandomProgramOptions {
        programs: cli.programs,
        language: cli.language,
        seed: cli.seed,
        plugin: executable.with_file_name("libpleach_pass.so"),
        profiles: match (cli.recorded, cli.edited) {
            (Some(recordings), _) => Profiles::Recorded {
                pleach: executable.with_file_name("pleach"),
                recordings,
            },
            (None, true) => Profiles::BeforeEdits(executable.with_file_name("pleach")),
            (None, false) => Profiles::Random,
        },
        builds: cli.builds,
        also: cli.options,
        flags: cli.flags,
        keep: cli.keep,
        jobs: cli.jobs,
    };
    let summary = try_programs(&options)?;
    println!(
        "{} programs ({} more were of no use), {} statements edited, {} functions renamed, {} runs recorded, {} builds with profiles for {} functions, {} of them salvaged, {} superblocks, {} branches replaced by selects, {} selects by branches, {} switches changed, {} failures, {:.0} s",
        summary.programs,
        summary.replaced,
        summary.edits.statements,
        summary.edits.functions,
        summary.recordings,
        summary.builds,
        summary.functions,
        summary.salvaged,
        summary.superblocks,
        summary.branches,
        summary.selects,
        summary.switches,
        summary.failures.len(),
        start.elapsed().as_secs_f64()
    );
    for failure in &summary.failures {
        println!("{failure}");
    }
    Ok(ExitCode::from(u8::from(!summary.failures.is_empty())))
}
