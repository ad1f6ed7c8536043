//! `pleach diff`: significant differences between two profiles.

use super::binaries::{Root, named_or_recorded_quietly, profile_names, source_names};
use super::inputs::{Input, flows, read};
use super::output::{NamesArgs, print_json, print_report};
use anyhow::{Result, bail};
use pleach_report::diff::Diff;
use pleach_report::source_paths::{Graphs, SourceNames};
use std::path::PathBuf;
use std::process::ExitCode;

/// Print paths and functions whose share of the executions changed by a statistically significant amount.
///
/// Shares are compared, so recordings may differ in length. A change is listed if the two 90 % intervals are disjoint;
/// in two recordings of the same program and input, this happens for about 2 of 100 paths. Each file is a sampled
/// profile (.pleach) or exact counts (.plcnt).
///
///   pleach diff before.pleach after.pleach            what does the new version, or the new input, execute more of?
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// A sampled profile or exact counts.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The sampled profile or exact counts to compare it with.
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Number of functions and of paths to list, largest change first; 0 lists all (default: 20; with --json: all).
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print numbers of blocks, not source lines.
    #[arg(long)]
    blocks: bool,
    /// The program, or one of its libraries, for names of files and functions; may be repeated (default: the recorded
    /// programs).
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    #[command(flatten)]
    root: Root,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    names: NamesArgs,
}

/// Compares and prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let read = |path: &PathBuf| read(std::slice::from_ref(path));
    let inputs = [read(&args.before)?, read(&args.after)?];
    let (before, after) = (flows(&args.before, &inputs[0])?, flows(&args.after, &inputs[1])?);
    for (path, flows) in [(&args.before, &before), (&args.after, &after)] {
        if flows.path_flow() == 0.0 {
            bail!(
                "{}: has no paths to compare; `pleach overlap` compares blocks too",
                path.display()
            );
        }
    }
    let default = if args.json { 0 } else { 20 };
    let top = Some(args.top.unwrap_or(default)).filter(|&top| top != 0);
    let diff = Diff::new(&before, &after, top)?;
    let names = args.names.names();
    match (args.json, args.blocks) {
        (true, _) => print_json("diff", "diff", &diff.to_json()?)?,
        (false, true) => print_report(&diff.to_text(&names))?,
        (false, false) => {
            let (sources, graphs) = sources(&inputs, args);
            print_report(&diff.to_source_text(&names, &sources, &graphs))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What shows paths as source lines.
fn sources<'a>(inputs: &'a [Input], args: &Args) -> (SourceNames, Graphs<'a>) {
    let (mut sources, mut graphs) = (SourceNames::default(), Graphs::default());
    for input in inputs {
        match input {
            Input::Sampled(profile) => {
                let binaries = named_or_recorded_quietly(&args.binary, &args.root, profile);
                sources.extend(profile_names(&binaries, profile));
                graphs.add_profile(profile);
            }
            Input::Exact(exact) => {
                let functions = exact.functions.iter();
                let functions = functions.map(|f| (f.cfg.id, f.cfg.hash(), f.cfg.name.as_str(), Some(&f.cfg)));
                sources.extend(source_names(&args.binary, functions));
                graphs.add_exact(exact);
            }
        }
    }
    (sources, graphs)
}
