//! `pleach report`: where a program spends its executions.

use super::inputs::sampled;
use super::output::print;
use anyhow::Result;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::map::AddressMap;
use pleach_feedback::report::functions::{Report, ReportOptions};
use pleach_feedback::support::Support;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Report where a program spends its executions: functions by share, and each one's hottest path.
///
/// Shares are of executed blocks; with --binary also of executed IR instructions, which is closer to where time goes. As
/// `perf report` does for time, but by function as it was in the source, whatever it was inlined into.
///
///   pleach report app.pleach                          the hottest functions
///   pleach report app.pleach --percent-limit 1        those with 1 % at least
///   pleach report app.pleach --binary ./app           by instructions
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The profile; several are added up.
    #[arg(required = true, value_name = "FILE")]
    profiles: Vec<PathBuf>,
    /// List this many functions, hottest first; 0 for all (default: 20; with --json: all).
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Leave out functions with a smaller share, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    percent_limit: f64,
    /// Report one function only.
    #[arg(short, long, value_name = "NAME")]
    function: Option<String>,
    /// The annotated program, or one of its libraries: its graphs say how many instructions each block has.
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let profile = sampled(&args.profiles)?;
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
    print(&if args.json { report.to_json()? } else { report.to_text() })?;
    if !args.json {
        eprintln!("pleach: {}", Support::of(&profile.provenance).verdict());
    }
    Ok(ExitCode::SUCCESS)
}
