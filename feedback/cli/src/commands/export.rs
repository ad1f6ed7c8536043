//! `pleach export`: branch vectors for other tools.

use super::import::ensure_writable;
use super::inputs::kept_vectors;
use super::output::plural;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use pleach_collector::perf::export::{ExportOptions, perf_data, perf_script, stacks};
use pleach_store::write_bytes;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a profile's raw branch vectors for other tools: perf script, llvm-profgen, perf2bolt.
///
/// The profile must contain raw vectors: use `pleach record --keep-vectors` or `pleach import --keep-vectors`. A burst
/// that is longer than --depth becomes several branch stacks. Each branch is in exactly one stack; the code between two
/// stacks is lost.
///
///   pleach export app.pleach -o perf.data           then: perf script -i perf.data -F ip,brstack
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The profile.
    profile: PathBuf,
    /// Format of the output.
    #[arg(long, value_enum, default_value_t = FormatArg::PerfData)]
    format: FormatArg,
    /// Maximum number of branches in a branch stack.
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2700))]
    depth: u32,
    /// Print only errors.
    #[arg(short, long)]
    quiet: bool,
    /// The file to write; `-` for standard output.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// A perf.data file, like those of `perf record -b`.
    #[value(name = "perf.data")]
    PerfData,
    /// Text, like that of `perf script -F ip,brstack --show-mmap-events`.
    Perfscript,
}

/// A burst may represent many equal ones; with more stacks than this, files have hundreds of gigabytes.
const MAX_STACKS: u64 = 1 << 28;

/// Exports.
pub fn run(args: &Args) -> Result<ExitCode> {
    let to_file = args.output != Path::new("-");
    if to_file {
        ensure_writable(&args.output)?;
    }
    let name = args.profile.display();
    let vectors = kept_vectors(&args.profile)?;
    let options = ExportOptions {
        depth: args.depth as usize,
    };
    let stacks = stacks(&vectors, options);
    if stacks > MAX_STACKS {
        bail!("{name} would become {stacks} branch stacks, more than any tool reads: export with a larger --depth")
    }
    let (out, exported) = match args.format {
        FormatArg::PerfData => perf_data(&vectors, options),
        FormatArg::Perfscript => perf_script(&vectors, options),
    };
    if exported.stacks == 0 {
        // Tools treat a perf.data file without samples as an unfinished one.
        bail!("{name} holds no taken branches of a mapped file: there is nothing to export")
    }
    let written = if to_file {
        write_bytes(&args.output, &out)
    } else {
        std::io::stdout().write_all(&out)
    };
    written.with_context(|| format!("cannot write {}", args.output.display()))?;
    if !args.quiet {
        if exported.unmapped > 0 {
            eprintln!(
                "pleach: warning: left out: {} to or from unmapped addresses",
                plural(exported.unmapped, "branch")
            );
        }
        if exported.period > 1 {
            eprintln!(
                "pleach: the recording was sampled to fit: each branch stack stands for {}",
                exported.period
            );
        }
        eprintln!(
            "pleach: {} in {}; wrote {}",
            plural(exported.branches, "taken branch"),
            plural(exported.stacks, "branch stack"),
            args.output.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}
