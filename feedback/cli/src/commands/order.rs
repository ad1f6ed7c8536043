//! `pleach order`: the order in which a linker should place functions.

use super::inputs::{manifests, sampled};
use super::output::print;
use super::source::places;
use anyhow::Result;
use pleach_decide::placement::function_order;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print functions in the order in which they are best placed, one linkage name a line.
///
/// Callers and what they call come together, and what runs most densely first; what never ran is left out. With
/// $(pleach flags use …) lld does this by itself. The list is for other builds and for linking with -flto:
///
///   pleach order app.pleach --binary ./app-annotated -o order.txt
///   clang -ffunction-sections … -fuse-ld=lld -Wl,--symbol-ordering-file=order.txt,--no-warn-symbol-ordering
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The profile; several are added up.
    #[arg(required = true, value_name = "FILE")]
    profiles: Vec<PathBuf>,
    /// The annotated program, or one of its libraries: its graphs say which functions call which.
    #[arg(long, value_name = "FILE", required = true)]
    binary: Vec<PathBuf>,
    /// Write to a file instead.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let profile = sampled(&args.profiles)?;
    let entries = manifests(&args.binary)?;
    let graphs: HashMap<_, _> = entries.iter().map(|e| ((e.cfg.id, e.cfg.hash()), &e.cfg)).collect();
    let names = function_order(&profile, &|id, hash| graphs.get(&(id, hash)).copied());
    let text: String = names.iter().flat_map(|name| [name, "\n"]).collect();
    match &args.output {
        Some(path) => places::write(path, &text)?,
        None => print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}
