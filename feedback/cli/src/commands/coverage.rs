//! `pleach coverage`: which blocks a recorded program executed, and which it did not.

mod diff;

use super::inputs::{ExcludeArgs, or_default, sampled};
use super::output::{NamesArgs, write_report};
use super::source::{Listing, Places};
use anyhow::{Result, bail};
use pleach_profile::Profile;
use pleach_report::coverage::CoverageReport;
use pleach_report::envelope::enveloped;
use pleach_report::lcov::LcovOptions;
use pleach_report::listing::Style;
use pleach_report::names::meant;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print which blocks of which functions a recorded program executed, and which it did not.
///
/// A block is in one of three states:
///
///   executed       proved: a recorded branch or a breakpoint hit passed the block (seen), or every path through a
///                  block that was executed passes it (implied by dominance)
///   not executed   proved: breakpoints that the block would hit were armed from the start to the end of every process,
///                  and were not hit. Imported exact counts prove it, too
///   unknown        neither; the block may have run between samples
///
/// Unknown blocks may be predicted: shadow execution passed them, but other threads, signals or the program's end may
/// have led the program elsewhere. Several profiles add up: a block is executed if it was in any of them, and not
/// executed if it was not in all of them. Longer recordings prove more.
///
///   pleach coverage app.pleach                          totals and functions
///   pleach coverage app.pleach --binary ./app           by IR instructions, too
///   pleach coverage app.pleach --binary ./app --text    counts beside the source (built with -g)
///   pleach coverage app.pleach --binary ./app --lcov    by source line, for genhtml and editors (built with -g)
///   pleach coverage diff tests.pleach prod.pleach       what does production execute that the tests do not?
///
/// A source line has the state of the blocks that begin on it. It was not executed if none of these was, and if its
/// machine code has no part in other blocks that may have been.
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    subcommand_negates_reqs = true
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Sampled profiles (.pleach), or exact counts (.plcnt); several are merged (default: default.pleach).
    #[arg(value_name = "FILE")]
    profiles: Vec<PathBuf>,
    /// Restrict the output to this function: its name, linkage name or identifier; may be repeated.
    #[arg(short, long, value_name = "NAME")]
    function: Vec<String>,
    /// Number of functions to list, by descending number of executed blocks; 0 lists all (default: 20).
    #[arg(long, value_name = "N", conflicts_with_all = ["json", "lcov", "text"])]
    top: Option<usize>,
    /// The annotated program, or one of its libraries, for the instructions and source lines of blocks; may be
    /// repeated.
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long, conflicts_with_all = ["lcov", "text"])]
    json: bool,
    /// Print an LCOV trace file. Lines whose state is unknown have a count of 0.
    #[arg(long, requires = "binary", conflicts_with = "text")]
    lcov: bool,
    /// Print the source with a count before each line, as llvm-cov show does.
    #[arg(long, requires = "binary")]
    text: bool,
    /// With --lcov: leave out lines whose state is unknown, so that a count of 0 is proved.
    #[arg(long, requires = "lcov", conflicts_with_all = ["json", "text"])]
    known: bool,
    /// With --lcov: count lines that are only predicted as executed. Otherwise, they are unknown.
    #[arg(long, requires = "lcov", conflicts_with_all = ["json", "text"])]
    predicted: bool,
    /// With --text: also look for sources in this directory, by file name; may be repeated.
    #[arg(long, value_name = "DIR", requires = "text", conflicts_with_all = ["json", "lcov"])]
    source_dir: Vec<PathBuf>,
    /// With --text: show headers of the system and the compiler, too.
    #[arg(long, requires = "text", conflicts_with_all = ["json", "lcov"])]
    system: bool,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    exclude: ExcludeArgs,
    #[command(flatten)]
    names: NamesArgs,
}

#[derive(clap::Subcommand)]
enum Command {
    Diff(diff::Args),
}

/// Prints.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(Command::Diff(args)) = &args.command {
        return diff::run(args);
    }
    let mut profile = sampled(&or_default(&args.profiles)?)?;
    args.exclude.apply(&mut profile, &args.names.names())?;
    let functions = names(&profile, &args.function)?;
    let places = Places::read(&args.binary)?;
    check_binaries(args, &profile, &places)?;
    let text = if args.lcov {
        lcov(args, &profile, &places, &functions)?
    } else if args.text {
        let listing = Listing {
            style: Style::Counts,
            functions: &functions,
            source_dirs: &args.source_dir,
            all: true,
            system: args.system,
        };
        listing.to_text(&profile, &places)?
    } else {
        profile
            .functions
            .retain(|f| functions.is_empty() || functions.contains(&f.name));
        let report = CoverageReport::new(&profile, &|id, hash| places.graph(id, hash));
        match args.json {
            true => enveloped("coverage", "coverage", &report.to_json()?),
            false => report.to_text(
                Some(args.top.unwrap_or(20)).filter(|&top| top != 0),
                &args.names.names(),
            ),
        }
    };
    write_report(args.output.as_deref(), &text, args.json || args.lcov)?;
    Ok(ExitCode::SUCCESS)
}

/// Fails if the named files have none of the profile's functions; says so if they have few.
fn check_binaries(args: &Args, profile: &Profile, places: &Places) -> Result<()> {
    const FEW: usize = 10;
    let all = profile.functions.len();
    let found = profile
        .functions
        .iter()
        .filter(|f| places.graph(f.id, f.cfg_hash).is_some());
    let found = found.count();
    if args.binary.is_empty() || found >= all.div_ceil(FEW) {
        return Ok(());
    }
    let named: Vec<_> = args.binary.iter().map(|path| path.display().to_string()).collect();
    let named = named.join(", ");
    if found == 0 {
        bail!("{named}: no function of the profile: name the recorded program or library, of the same build");
    }
    eprintln!(
        "pleach: note: {named}: {found} of the profile's {all} functions: name the recorded program and its libraries, of \
         the same build"
    );
    Ok(())
}

/// The linkage names of the functions that are meant.
fn names(profile: &Profile, given: &[String]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for given in given {
        match meant(profile.functions.iter(), |f| (&f.name, f.id.to_string()), given) {
            Ok(found) => names.extend(found.iter().map(|f| f.name.clone())),
            Err(similar) => {
                let nearest = similar.first().map(|name| format!(", but {name}")).unwrap_or_default();
                bail!(
                    "the profile has no function {given}{nearest}: `pleach coverage --top 0` lists those with a known \
                     state"
                )
            }
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn lcov(args: &Args, profile: &Profile, places: &Places, functions: &[String]) -> Result<String> {
    let options = LcovOptions {
        predicted: args.predicted,
        known: args.known,
    };
    let wanted = |name: &str| functions.is_empty() || functions.iter().any(|function| function == name);
    let text = places.lines(profile, wanted)?.to_lcov(options);
    if !profile.provenance.is_exact() {
        eprintln!(
            "pleach: note: a sampled profile has no execution counts: an executed line gets its breakpoint count, or 1"
        );
    }
    if text.is_empty() {
        eprintln!("pleach: note: no line's state is known: without --known, unknown lines have a count of 0");
    }
    Ok(text)
}
