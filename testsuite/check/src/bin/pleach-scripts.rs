//! `pleach-scripts`: runs random shell scripts with and without a recorder and compares what they do.

use anyhow::{Context, Result};
use clap::Parser;
use pleach_check::random_scripts::{RandomScriptOptions, try_scripts};
use pleach_harness::parallel::default_jobs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Runs random shell scripts of processes, signals, pipes and annotated programs, each alone and recorded, and compares
/// what they write, how they end and the files that they leave. Ends with status 1 where something differs.
#[derive(Parser)]
#[command(name = "testsuite/scripts", version)]
struct Cli {
    /// How many scripts
    scripts: usize,
    /// Seed of the scripts
    #[arg(default_value_t = 1)]
    seed: u64,
    /// Where the annotated programs' sources are
    #[arg(long, value_name = "DIR", default_value = "testsuite/e2e/programs")]
    sources: PathBuf,
    /// How many at a time
    #[arg(long, default_value_t = default_jobs())]
    jobs: usize,
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    let start = Instant::now();
    let executable = std::env::current_exe().context("cannot tell where this program is")?;
    let differences = try_scripts(&RandomScriptOptions {
        scripts: cli.scripts,
        seed: cli.seed,
        pleach: executable.with_file_name("pleach"),
        sources: cli.sources.canonicalize().context("no sources of programs")?,
        jobs: cli.jobs,
    })?;
    println!(
        "{} scripts, {} differ when they are recorded, {:.0} s",
        cli.scripts,
        differences.len(),
        start.elapsed().as_secs_f64()
    );
    Ok(ExitCode::from(u8::from(!differences.is_empty())))
}
