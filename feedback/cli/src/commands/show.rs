//! `pleach show`: print a profile.

use super::output::{NamesArgs, print};
use anyhow::Result;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::map::AddressMap;
use pleach_decide::support::Support;
use pleach_profile::file::ProfileFile;
use pleach_report::show::{Show, ShowOptions};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print a profile: its origin, its totals and its hottest functions.
#[derive(clap::Args)]
pub struct Args {
    /// The profile.
    profile: PathBuf,
    /// Number of functions to list, hottest first (default: 20; with --json: all).
    #[arg(short = 'n', long, value_name = "N")]
    topn: Option<usize>,
    /// Show one function in detail: its blocks, edges and call targets.
    #[arg(short, long, value_name = "NAME")]
    function: Option<String>,
    /// The annotated binary, for the blocks of edges and the source lines of blocks.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Print JSON, every listed function in detail.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    names: NamesArgs,
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let profile = ProfileFile::open(&args.profile)?.read_all()?;
    let graphs: HashMap<(FunctionId, CfgHash), Cfg> = match &args.binary {
        Some(binary) => AddressMap::read(binary)?
            .functions
            .into_iter()
            .map(|f| ((f.cfg.id, f.hash), f.cfg))
            .collect(),
        None => HashMap::new(),
    };
    let options = ShowOptions {
        top: args.topn.unwrap_or(if args.json { usize::MAX } else { 20 }),
        function: args.function.clone(),
        details: args.json,
    };
    let show = Show::new(&profile, &options, &|id, hash| graphs.get(&(id, hash)))?;
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&show.to_json())?))?;
    } else {
        print(&show.to_text(&args.names.names()))?;
        eprintln!("pleach: {}", Support::from_provenance(&profile.provenance).verdict());
    }
    Ok(ExitCode::SUCCESS)
}
