//! `pleach report`: the functions with the most executions, and the page.

mod html;

use super::binaries::{Root, named_or_recorded_quietly, profile_names};
use super::inputs::{ExcludeArgs, or_default, sampled};
use super::output::{NamesArgs, print_json, print_report};
use anyhow::Result;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::map::AddressMap;
use pleach_decide::support::support_summary;
use pleach_report::functions::{Report, ReportOptions};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// List the functions with the largest shares of all executions, each with its hottest path.
///
/// Shares refer to executed blocks; with --binary also to executed IR instructions, which are closer to time. Unlike
/// `perf report`, this command counts a function's inlined code as the function's own.
///
///   pleach report app.pleach                          the hottest functions
///   pleach report app.pleach --percent-limit 1        those with 1 % at least
///   pleach report app.pleach --binary ./app           by instructions
///   pleach report --exclude-function spin             without the code of a thread that spins
///   pleach report app.pleach --html app.html          a page: functions, graphs with paths, sources, coverage
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Sampled profiles (.pleach), or exact counts (.plcnt); several are merged (default: default.pleach).
    #[arg(value_name = "FILE")]
    profiles: Vec<PathBuf>,
    /// Number of functions to list, hottest first; 0 lists all (default: 20; with --json: all). With --html: number of
    /// functions shown in detail (default: 200).
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Leave out functions with a smaller share than this, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    percent_limit: f64,
    /// Report only this function: its name, linkage name or identifier.
    #[arg(short, long, value_name = "NAME")]
    function: Option<String>,
    /// The annotated program, or one of its libraries, for the instructions of blocks; may be repeated. With --html also
    /// for sources and assembly (default: the recorded programs).
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    #[command(flatten)]
    root: Root,
    /// Print numbers of blocks, not source lines.
    #[arg(long)]
    blocks: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write one self-contained page for a browser, with everything on each function.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "function", "percent_limit"])]
    html: Option<PathBuf>,
    /// With --html: also show what the second build did, from its optimisation records or directories of them; may be
    /// repeated.
    #[arg(long, value_name = "PATH", requires = "html")]
    summary: Vec<PathBuf>,
    /// With --html: also show the changes from this earlier profile, or file of exact counts.
    #[arg(long, value_name = "FILE", requires = "html")]
    against: Option<PathBuf>,
    /// With --html: also look for sources in this directory, by file name; may be repeated.
    #[arg(long, value_name = "DIR", requires = "html")]
    source_dir: Vec<PathBuf>,
    #[command(flatten)]
    exclude: ExcludeArgs,
    #[command(flatten)]
    names: NamesArgs,
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(page) = &args.html {
        return html::run(args, page);
    }
    let names = args.names.names();
    let mut profile = sampled(&or_default(&args.profiles)?)?;
    args.exclude.apply(&mut profile, &names)?;
    let mut graphs: HashMap<(FunctionId, CfgHash), Cfg> = HashMap::new();
    for binary in &args.binary {
        let functions = AddressMap::read(binary)?.functions.into_iter();
        graphs.extend(functions.map(|f| ((f.cfg.id, f.hash), f.cfg)));
    }
    let default = if args.json { 0 } else { 20 };
    let options = ReportOptions {
        top: Some(args.top.unwrap_or(default)).filter(|&top| top != 0),
        least: args.percent_limit / 100.0,
        function: args.function.clone(),
    };
    let report = Report::new(&profile, &options, &|id, hash| graphs.get(&(id, hash)))?;
    if args.json {
        print_json("report", "functions", &report.to_json()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    print_report(&match args.blocks {
        true => report.to_text(&names),
        false => {
            let binaries = named_or_recorded_quietly(&args.binary, &args.root, &profile);
            report.to_source_text(&names, &profile_names(&binaries, &profile))
        }
    })?;
    eprintln!(
        "pleach: {}",
        support_summary(&profile.provenance, profile.functions.len())
    );
    Ok(ExitCode::SUCCESS)
}
