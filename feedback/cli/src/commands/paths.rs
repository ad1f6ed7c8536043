//! `pleach paths`: print exactly counted or estimated paths.

use super::inputs::{self, Input};
use super::output::{NamesArgs, print};
use anyhow::{Result, bail};
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_profile::Profile;
use pleach_report::estimated::EstimatedPaths;
use pleach_report::foreign::{Foreign, take_foreign, take_foreign_estimates};
use pleach_report::paths::{Edges, Paths, PathsOptions};
use std::path::PathBuf;
use std::process::ExitCode;

/// Print the paths that a program executed, most executed first.
///
/// For a sampled profile (.pleach), counts are estimates. Each path is printed with its share of the executions of all
/// paths and the interval that contains the true share with 90 % probability. Paths are acyclic (Ball and Larus): they
/// begin at a function's entry or at a loop's next iteration, and end at the function's exit or at a back edge.
///
/// For exact counts (.plcnt), build the program with $(pleach flags instrument) and run it.
///
/// Several files of one kind are merged. Blocks are numbered in the function's order at the anchor.
///
///   pleach paths app.pleach                          the 20 hottest paths
///   pleach paths app.pleach --function parse --top 0     all of one function
///   pleach paths app.pleach --json | jq length           for scripts
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Sampled profiles (.pleach), or files of exact counts (.plcnt).
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Number of paths or edges to list, most executed first; 0 lists all (default: 20; with --json: all).
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Show only this function: its name, linkage name or identifier.
    #[arg(short, long, value_name = "NAME")]
    function: Option<String>,
    /// Print exact counts of edges instead of paths. With --json: all edges, by function.
    #[arg(long)]
    edges: bool,
    /// The program, or one of its libraries; may be repeated. Counts of functions that it does not have, or has with
    /// other control flow, are left out, and the exit status is 1.
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    names: NamesArgs,
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut input = inputs::read(&args.files)?;
    let mut foreign = Vec::new();
    if !args.binary.is_empty() {
        foreign = leave_out_foreign(&mut input, args)?;
    }
    // Printed first, because a function that is not found below may have been left out here.
    for function in &foreign {
        eprintln!("pleach: error: {function}");
    }
    let default = if args.json { 0 } else { 20 };
    let options = PathsOptions {
        top: Some(args.top.unwrap_or(default)).filter(|&top| top != 0),
        function: args.function.clone(),
    };
    print(&match &input {
        Input::Exact(exact) => exact_text(exact, &options, args)?,
        Input::Sampled(profile) => estimated_text(profile, &options, args)?,
    })?;
    Ok(if foreign.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn leave_out_foreign(input: &mut Input, args: &Args) -> Result<Vec<Foreign>> {
    let manifests = inputs::manifests(&args.binary)?;
    Ok(match input {
        Input::Exact(exact) => take_foreign(exact, &manifests),
        Input::Sampled(profile) => take_foreign_estimates(profile, &manifests),
    })
}

fn exact_text(exact: &ExactProfile, options: &PathsOptions, args: &Args) -> Result<String> {
    if args.edges {
        let edges = Edges::new(exact, options)?;
        return Ok(if args.json {
            edges.to_json()?
        } else {
            edges.to_text(&args.names.names())
        });
    }
    let paths = Paths::new(exact, options)?;
    if paths.totals.edge_functions > 0 {
        let edges = paths.totals.edge_functions;
        eprintln!("pleach: note: of {edges} functions only edges were counted: --edges shows them");
    }
    Ok(if args.json {
        paths.to_json()?
    } else {
        paths.to_text(&args.names.names())
    })
}

fn estimated_text(profile: &Profile, options: &PathsOptions, args: &Args) -> Result<String> {
    if args.edges {
        bail!("--edges shows exact counts; `pleach show --function NAME --binary FILE` shows estimated edges");
    }
    let paths = EstimatedPaths::new(profile, options)?;
    if paths.totals.paths == 0 {
        eprintln!("pleach: note: the profile has no paths: no sampled burst covers a path of an annotated function");
    }
    Ok(if args.json {
        paths.to_json()?
    } else {
        paths.to_text(&args.names.names())
    })
}
