//! `pleach export`: profiles for other tools.

mod branch_stacks;
mod call_stacks;
mod fdata;
mod probe_profile;
mod program;
mod propeller;
mod sample_profile;
mod tables;

use super::binaries::RecordedFiles;
use super::import::ensure_writable;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use pleach_fleet::folder::is_day;
use pleach_store::write_bytes;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a profile for other tools: stock clang, BOLT, perf, viewers of call stacks, SQL engines.
///
/// All formats but llvm-sample and parquet need the raw vectors: use `pleach record --keep-vectors`, or `pleach import
/// --keep-vectors`.
///
///   clang -O2 -g1 -fdebug-info-for-profiling $(pleach flags annotate) ...     then: pleach record --keep-vectors
///   pleach export app.pleach --format llvm-sample -o app.afdo
///   clang -O2 -g1 -fdebug-info-for-profiling -fprofile-sample-use=app.afdo ...
///
///   clang -O2 -fpseudo-probe-for-profiling ...                  without pleach's flags; then: pleach record --keep-vectors
///   pleach export app.pleach --format llvm-sample-probe -o app.afdo
///   clang -O2 -fpseudo-probe-for-profiling -fprofile-sample-use=app.afdo ...
///
///   pleach export app.pleach --format bolt-fdata -o app.fdata   then: llvm-bolt app -data app.fdata -o app.bolt ...
///   pleach export app.pleach --format propeller -o prop   of a build with -fbasic-block-address-map, without pleach's flags
///   clang -O2 -fbasic-block-sections=list=prop/cc_profile.txt ... -fuse-ld=lld
///       -Wl,--symbol-ordering-file=prop/ld_profile.txt,--no-warn-symbol-ordering
///   pleach export app.pleach --format pprof -o app.pb.gz        then: go tool pprof -top app.pb.gz
///   pleach export app.pleach --format firefox -o app.json       then: open it in profiler.firefox.com
///   pleach export *.pleach --format parquet -o tables           then: pleach import tables -o all.pleach
///   pleach export app.pleach -o perf.data                       then: perf script -i perf.data -F ip,brstack
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The profile.
    profile: PathBuf,
    /// Further profiles, for parquet.
    #[arg(value_name = "PROFILE")]
    more: Vec<PathBuf>,
    /// Format of the output.
    #[arg(long, value_enum, default_value_t = FormatArg::PerfData)]
    format: FormatArg,
    /// Maximum number of branches in a branch stack, for perf.data and perfscript. A burst that is longer becomes
    /// several branch stacks. Each branch is in exactly one stack; the code between two stacks is lost (default: 32).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2700))]
    depth: Option<u32>,
    #[command(flatten)]
    files: RecordedFiles,
    /// Leave inline stacks out, for llvm-sample: a function's counts are summed over all of its inlined copies.
    #[arg(long)]
    flat: bool,
    /// Partition of the tables, for parquet: a day like 2026-11-26 (default: when the profile was written, UTC).
    #[arg(long, value_name = "DAY", value_parser = day)]
    day: Option<String>,
    /// Print only errors.
    #[arg(short, long)]
    quiet: bool,
    /// The file to write; `-` for standard output. For parquet and propeller: the directory. That of parquet may already
    /// contain other runs.
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
    /// Text for clang's -fprofile-sample-use: inferred counts by function, line and discriminator.
    LlvmSample,
    /// The same by probe, without inference, of a program built with clang's -fpseudo-probe-for-profiling in place of
    /// pleach's flags.
    LlvmSampleProbe,
    /// Text for `llvm-bolt -data`: branches with their counts.
    BoltFdata,
    /// A directory with two files: cc_profile.txt for clang's -fbasic-block-sections=list=, ld_profile.txt for lld's
    /// --symbol-ordering-file=.
    Propeller,
    /// Call stacks for `go tool pprof` (profile.proto, compressed).
    Pprof,
    /// Call stacks over time for the Firefox Profiler (JSON).
    Firefox,
    /// A directory of Parquet tables, by build-id and day, for DuckDB, Spark and the like; nothing is lost.
    Parquet,
}

fn day(text: &str) -> Result<String, String> {
    match is_day(text) {
        true => Ok(text.to_owned()),
        false => Err("expected a day like 2026-11-26".into()),
    }
}

/// What an export wrote.
struct Export {
    bytes: Vec<u8>,
    /// What people want to know of it, without an end.
    summary: String,
}

/// Exports.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.flat && args.format != FormatArg::LlvmSample {
        bail!("--flat is for --format llvm-sample: other formats have no counts of functions");
    }
    let has_depth = matches!(args.format, FormatArg::PerfData | FormatArg::Perfscript);
    if args.depth.is_some() && !has_depth {
        bail!("--depth is for --format perf.data and perfscript: other formats have no branch stacks");
    }
    if args.format == FormatArg::Parquet {
        return tables::export(args);
    }
    if let Some(second) = args.more.first() {
        bail!(
            "{}: only --format parquet takes several profiles: merge them first, with `pleach merge`",
            second.display()
        );
    }
    if args.day.is_some() {
        bail!("--day is for --format parquet: other formats have no partitions");
    }
    if args.format == FormatArg::Propeller {
        return propeller::export(args);
    }
    let to_file = args.output != Path::new("-");
    if to_file {
        ensure_writable(&args.output)?;
    }
    let export = match args.format {
        FormatArg::PerfData | FormatArg::Perfscript => branch_stacks::export(args)?,
        FormatArg::LlvmSample => sample_profile::export(args)?,
        FormatArg::LlvmSampleProbe => probe_profile::export(args)?,
        FormatArg::BoltFdata => fdata::export(args)?,
        FormatArg::Pprof | FormatArg::Firefox => call_stacks::export(args)?,
        FormatArg::Parquet | FormatArg::Propeller => bail!("this format is a directory: name one with --output"),
    };
    let written = if to_file {
        write_bytes(&args.output, &export.bytes)
    } else {
        std::io::stdout().write_all(&export.bytes)
    };
    written.with_context(|| format!("cannot write {}", args.output.display()))?;
    if !args.quiet {
        eprintln!("pleach: {}; wrote {}", export.summary, args.output.display());
    }
    Ok(ExitCode::SUCCESS)
}
