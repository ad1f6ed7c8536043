//! `pleach order`: the order in which a linker should place functions.

use super::inputs::{manifests, sampled};
use super::output::write_or_print;
use anyhow::Result;
use pleach_decide::placement::function_order;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print a placement order of functions for the linker, one linkage name per line.
///
/// Callers are placed next to their callees, and functions with the highest execution density come first. Functions
/// without executions are left out. Builds with $(pleach flags use …) and lld need no list. Use a list for other
/// builds, and for -flto:
///
///   pleach order app.pleach --binary ./app-annotated -o order.txt
///   clang -ffunction-sections … -fuse-ld=lld -Wl,--symbol-ordering-file=order.txt,--no-warn-symbol-ordering
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Sampled profiles (.pleach); several are merged.
    #[arg(required = true, value_name = "FILE")]
    profiles: Vec<PathBuf>,
    /// The annotated program, or one of its libraries, for the call graph; may be repeated.
    #[arg(long, value_name = "FILE", required = true)]
    binary: Vec<PathBuf>,
    /// Write to this file instead of standard output.
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
    write_or_print(args.output.as_deref(), &text)?;
    Ok(ExitCode::SUCCESS)
}
