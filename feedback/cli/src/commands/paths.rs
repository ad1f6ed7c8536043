//! `pleach paths`: print exactly counted paths.

use anyhow::{Context, Result, bail};
use pleach_annotate::binary::Binary;
use pleach_annotate::manifest::{self, Entry};
use pleach_feedback::counts::error::CountError;
use pleach_feedback::counts::exact::Exact;
use pleach_feedback::counts::file::CountFile;
use pleach_feedback::counts::merge::merge;
use pleach_feedback::report::paths::{Edges, Paths, PathsOptions, take_foreign};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print the paths that a program executed, as it counted them.
///
/// Build the program with $(pleach flags instrument) and run it: it writes a .plcnt file, or several. Counts of several
/// files are added up.
#[derive(clap::Args)]
pub struct Args {
    /// Files of exact counts (.plcnt).
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// List this many paths or edges, most executed first; 0 for all (default: 20; with --json: all).
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Show one function only.
    #[arg(short, long, value_name = "NAME")]
    function: Option<String>,
    /// Print how often each edge was taken, whether paths or edges were counted. With --json by function, all edges.
    #[arg(long)]
    edges: bool,
    /// The program, or one of its libraries: counts of functions that it has not, or has with other control flow, are
    /// left out, and the exit status is 1.
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    let counts: Result<Vec<_>> = args.files.iter().map(|path| open(path)).collect();
    let counts = merge(counts?);
    let mut exact = Exact::of(&counts);
    for problem in &counts.problems {
        eprintln!("pleach: warning: {problem}");
    }
    for problem in &exact.problems {
        eprintln!("pleach: warning: {problem}");
    }
    let mut foreign = Vec::new();
    if !args.binary.is_empty() {
        let manifests: Result<Vec<_>> = args.binary.iter().map(|path| manifest_of(path)).collect();
        foreign = take_foreign(&mut exact, &manifests?.concat());
    }
    // Before what is looked for in the rest, and not found: it may have been among these.
    for function in &foreign {
        eprintln!("pleach: error: {function}");
    }
    print(&text(&exact, args)?)?;
    Ok(if foreign.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn text(exact: &Exact, args: &Args) -> Result<String> {
    let default = if args.json { 0 } else { 20 };
    let options = PathsOptions {
        top: Some(args.top.unwrap_or(default)).filter(|&top| top != 0),
        function: args.function.clone(),
    };
    if args.edges {
        let edges = Edges::new(exact, &options)?;
        return Ok(if args.json { edges.to_json()? } else { edges.to_text() });
    }
    let paths = Paths::new(exact, &options)?;
    if paths.totals.edge_functions > 0 {
        let edges = paths.totals.edge_functions;
        eprintln!("pleach: note: of {edges} functions only edges were counted: --edges shows them");
    }
    Ok(if args.json { paths.to_json()? } else { paths.to_text() })
}

fn open(path: &Path) -> Result<pleach_feedback::counts::Counts> {
    match CountFile::open(path) {
        Err(CountError::Profile { path }) => bail!(
            "{}: estimated paths come with a later release; this is a sampled profile: `pleach show` prints it",
            path.display()
        ),
        opened => Ok(opened?),
    }
}

/// The graphs that a program says it has.
fn manifest_of(path: &Path) -> Result<Vec<Entry>> {
    let binary = Binary::open(path)?;
    if !binary.is_annotated() {
        bail!(
            "{}: has no manifest, so that counts cannot be compared with it: name what $(pleach flags instrument) built, \
             before it was stripped",
            path.display()
        );
    }
    let (entries, errors) = manifest::decode(&binary.manifest);
    for error in errors {
        eprintln!("pleach: warning: {}: {error}", path.display());
    }
    Ok(entries)
}

/// To standard output. That nobody reads to the end is no error.
fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot print"),
        _ => Ok(()),
    }
}
