//! `pleach paths`: print exactly counted or estimated paths.

use super::binaries::{Root, named_or_recorded_quietly, profile_names, source_names};
use super::inputs::{self, ExcludeArgs, Input};
use super::output::{NamesArgs, print, print_report};
use anyhow::{Result, bail};
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_profile::Profile;
use pleach_report::envelope::enveloped;
use pleach_report::estimated::EstimatedPaths;
use pleach_report::events::{EventOptions, Events};
use pleach_report::foreign::{Foreign, take_foreign, take_foreign_estimates};
use pleach_report::paths::{Edges, Paths, PathsOptions};
use pleach_report::sequences::{CallCrossingPaths, Windows};
use pleach_report::source_paths::SourceNames;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print the paths that a program executed, most executed first.
///
/// For a sampled profile (.pleach), each path is printed with the estimate of its share of the executions of all paths,
/// and the interval that contains the true share with 90 % probability. Paths are acyclic (Ball and Larus): they
/// begin at a function's entry or at a loop's next iteration, and end at the function's exit or at a back edge.
///
/// For exact counts (.plcnt), build the program with $(pleach flags instrument) and run it.
///
/// Several files of one kind are merged. Where the program was built with -g, a path is shown as the source lines on
/// which its blocks begin, and the calls in them; the source file is named if the program is found. With --blocks (-v), it is
/// shown as numbers of blocks, in the function's order at the anchor.
///
///   pleach paths app.pleach                          the 20 hottest paths
///   pleach paths app.pleach --iterations=3           three consecutive iterations of loops
///   pleach paths app.pleach --across-calls           paths of functions after the paths of their callers
///   pleach paths app.pleach --function parse --top 0 all of one function
///   pleach paths --event app.pleach                  which paths lead to recorded events (record --event)
///   pleach paths app.pleach --json | jq length        for scripts
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Sampled profiles (.pleach), or files of exact counts (.plcnt) (default: default.pleach).
    #[arg(value_name = "FILE")]
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
    /// Print sequences of K consecutive paths of an activation (k-iteration paths), K = 2 (default), 3 or 4. For exact
    /// counts, build with $(pleach flags instrument --iterations K); plain `pleach paths` prints them.
    #[arg(long, alias = "windows", value_name = "K", num_args = 0..=1, require_equals = true, default_missing_value = "2", conflicts_with_all = ["edges", "across_calls"],
          value_parser = clap::value_parser!(u8).range(2..=4))]
    iterations: Option<u8>,
    /// Print paths across calls: a function's path with the blocks that its caller executed before.
    #[arg(long, alias = "called", conflicts_with = "edges")]
    across_calls: bool,
    /// Print where recorded events occurred, and the paths that led there: all events, or this one. Events are recorded
    /// with `pleach record --event`. Lists 20 places, or as many as --top says (0: all).
    #[arg(long, value_name = "EVENT", num_args = 0..=1, require_equals = true,
          conflicts_with_all = ["edges", "across_calls", "iterations", "exclude_function"])]
    event: Option<Option<String>>,
    /// Print numbers of blocks, not source lines.
    #[arg(short = 'v', long)]
    blocks: bool,
    /// The program, or one of its libraries; may be repeated. Counts of functions that are missing from it, or have
    /// another control-flow graph there, are left out; the exit status is then 1.
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    #[command(flatten)]
    root: Root,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    exclude: ExcludeArgs,
    #[command(flatten)]
    names: NamesArgs,
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut input = inputs::read(&inputs::or_default(&args.files)?)?;
    match &mut input {
        Input::Sampled(profile) => args.exclude.apply(profile, &args.names.names())?,
        Input::Exact(_) if args.exclude.is_empty() => {}
        Input::Exact(_) => bail!("--exclude-function is for profiles: `pleach import` makes one of exact counts"),
    }
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
    let text = match &input {
        Input::Exact(exact) => exact_text(exact, &options, args)?,
        Input::Sampled(profile) => estimated_text(profile, &options, args)?,
    };
    match args.json {
        true => print(&text)?,
        false => print_report(&text)?,
    }
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
    if args.event.is_some() {
        bail!("these are exact counts: events are recorded with `pleach record --event`");
    }
    if args.iterations.is_some() || args.across_calls {
        bail!(
            "these are exact counts: $(pleach flags instrument --iterations K) counts sequences of paths, which `pleach \
             paths` without --iterations prints; paths across calls are not counted"
        );
    }
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
        eprintln!("pleach: note: {edges} functions have edge counts only: use --edges");
    }
    let functions = exact.functions.iter();
    let functions = functions.map(|f| (f.cfg.id, f.cfg.hash(), f.cfg.name.as_str(), Some(&f.cfg)));
    Ok(match (args.json, args.blocks) {
        (true, _) => paths.to_json()?,
        (false, true) => paths.to_text(&args.names.names()),
        (false, false) => paths.to_source_text(&args.names.names(), &source_names(&args.binary, functions)),
    })
}

fn estimated_text(profile: &Profile, options: &PathsOptions, args: &Args) -> Result<String> {
    if args.edges {
        bail!("--edges shows exact counts; `pleach show --function NAME --binary FILE` shows estimated edges");
    }
    let (function, names) = (options.function.as_deref(), args.names.names());
    if let Some(event) = &args.event {
        let options = EventOptions {
            event: event.clone(),
            function: options.function.clone(),
            top: options.top,
        };
        let events = Events::new(profile, &options)?;
        return Ok(match args.json {
            true => enveloped("paths", "events", &events.to_json()?),
            false => events.to_text(&names, sources(profile, args).as_ref()),
        });
    }
    if let Some(length) = args.iterations {
        let windows = Windows::new(profile, length.into(), function, options.top)?;
        return Ok(match args.json {
            true => windows.to_json()?,
            false => windows.to_text(&names, sources(profile, args).as_ref()),
        });
    }
    if args.across_calls {
        let called = CallCrossingPaths::new(profile, function, options.top)?;
        return Ok(match args.json {
            true => called.to_json()?,
            false => called.to_text(&names, sources(profile, args).as_ref()),
        });
    }
    let paths = EstimatedPaths::new(profile, options)?;
    if paths.totals.paths == 0 {
        eprintln!("pleach: note: the profile has no paths: no sampled burst covers a path of an annotated function");
    }
    Ok(match (args.json, sources(profile, args)) {
        (true, _) => paths.to_json()?,
        (false, None) => paths.to_text(&names),
        (false, Some(sources)) => paths.to_source_text(&names, &sources),
    })
}

/// What shows paths as source lines, unless block numbers are wanted.
fn sources(profile: &Profile, args: &Args) -> Option<SourceNames> {
    if args.blocks || args.json {
        return None;
    }
    let binaries = named_or_recorded_quietly(&args.binary, &args.root, profile);
    Some(profile_names(&binaries, profile))
}
