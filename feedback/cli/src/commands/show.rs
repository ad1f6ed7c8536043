//! `pleach show`: print a profile.

use super::inputs::{ExcludeArgs, or_default, sampled};
use super::output::{NamesArgs, print, print_json, print_report};
use anyhow::Result;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::map::AddressMap;
use pleach_decide::support::support_summary;
use pleach_report::profile_text;
use pleach_report::show::{Show, ShowOptions};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print a profile: its origin, its totals and its hottest functions.
///
///   pleach show app.pleach                        totals, and the 20 hottest functions
///   pleach show app.pleach --function parse       blocks, edges, call targets and mispredictions of one function
///   pleach show app.pleach --text > app.txt       all of it as text, which `pleach import` reads
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Sampled profiles (.pleach), or exact counts (.plcnt); several are merged (default: default.pleach).
    #[arg(value_name = "FILE")]
    profiles: Vec<PathBuf>,
    /// Number of functions to list, hottest first; 0 lists all (default: 20; with --json: all).
    #[arg(short = 'n', long, alias = "topn", value_name = "N")]
    top: Option<usize>,
    /// Show one function in detail: its blocks, edges and call targets.
    #[arg(short, long, value_name = "NAME")]
    function: Option<String>,
    /// The annotated binary: names the two blocks of each edge and the source line of each block, where the profile has
    /// no graph of the function.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Print JSON, every listed function in detail.
    #[arg(long)]
    json: bool,
    /// Print the complete profile as text: a line of JSON for its head and for each function. `pleach import` reads it.
    #[arg(long, conflicts_with_all = ["json", "function", "top", "binary"])]
    text: bool,
    #[command(flatten)]
    exclude: ExcludeArgs,
    #[command(flatten)]
    names: NamesArgs,
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let names = args.names.names();
    let mut profile = sampled(&or_default(&args.profiles)?)?;
    args.exclude.apply(&mut profile, &names)?;
    if args.text {
        print(&profile_text::to_text(&profile)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let graphs: HashMap<(FunctionId, CfgHash), Cfg> = match &args.binary {
        Some(binary) => AddressMap::read(binary)?
            .functions
            .into_iter()
            .map(|f| ((f.cfg.id, f.hash), f.cfg))
            .collect(),
        None => HashMap::new(),
    };
    let options = ShowOptions {
        top: args.top.unwrap_or(if args.json { usize::MAX } else { 20 }),
        function: args.function.clone(),
        details: args.json,
    };
    let show = Show::new(&profile, &options, &|id, hash| graphs.get(&(id, hash)))?;
    if args.json {
        print_json("show", "profile", &serde_json::to_string_pretty(&show.to_json())?)?;
    } else {
        print_report(&show.to_text(&names))?;
        eprintln!(
            "pleach: {}",
            support_summary(&profile.provenance, profile.functions.len())
        );
    }
    Ok(ExitCode::SUCCESS)
}
