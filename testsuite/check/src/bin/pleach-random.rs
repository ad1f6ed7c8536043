//! `pleach-random`: compiles random C programs with random profiles and compares what they compute.

use anyhow::{Context, Result};
use clap::Parser;
use pleach_check::random_programs::{Profiles, RandomProgramOptions, try_programs};
use pleach_harness::parallel::default_jobs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Compiles random C programs from csmith with random profiles, at every level and anchor, and compares their output
/// with that of the unoptimised program. Ends with status 1 where something differs.
#[derive(Parser)]
#[command(name = "testsuite/random", version)]
struct Cli {
    /// How many programs
    programs: usize,
    /// Seed of programs and profiles
    #[arg(default_value_t = 1)]
    seed: u64,
    /// Not random profiles, but each program's own exact counts, from before its source was edited at random
    #[arg(long)]
    edited: bool,
    /// Another option for the plugin, as `-pleach-superblocks=0`; may be repeated
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,
    /// Where to keep what is wrong, each in a folder of its own
    #[arg(long, value_name = "FOLDER", default_value = "target/pleach-random")]
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
        seed: cli.seed,
        plugin: executable.with_file_name("libpleach_pass.so"),
        profiles: match cli.edited {
            true => Profiles::BeforeEdits(executable.with_file_name("pleach")),
            false => Profiles::Random,
        },
        also: cli.options,
        keep: cli.keep,
        jobs: cli.jobs,
    };
    let summary = try_programs(&options)?;
    println!(
        "{} programs ({} more were of no use), {} statements edited, {} functions renamed, {} builds with profiles for {} functions, {} of them salvaged, {} superblocks, {} branches replaced by selects, {} selects by branches, {} failures, {:.0} s",
        summary.programs,
        summary.replaced,
        summary.edits.statements,
        summary.edits.functions,
        summary.builds,
        summary.functions,
        summary.salvaged,
        summary.superblocks,
        summary.branches,
        summary.selects,
        summary.failures.len(),
        start.elapsed().as_secs_f64()
    );
    for failure in &summary.failures {
        println!("{failure}");
    }
    Ok(ExitCode::from(u8::from(!summary.failures.is_empty())))
}
