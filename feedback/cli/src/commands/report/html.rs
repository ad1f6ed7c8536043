//! `pleach report --html`: reads what a page shows, and writes it.

use super::super::binaries::named_or_recorded;
use super::super::inputs::{or_default, read_flows, sampled};
use super::super::progress::Steps;
use super::super::source::Places;
use super::super::summary::read_records;
use super::Args;
use anyhow::{Context, Result, bail};
use pleach_analysis::program::Program;
use pleach_analysis::stacks::Stacks;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::find::Finder;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_collector::vector::VectorSet;
use pleach_profile::Profile;
use pleach_report::diff::Diff;
use pleach_report::flows::Flows;
use pleach_report::html::assembly::Disassembler;
use pleach_report::html::{HtmlReport, PageInputs};
use pleach_report::summary::BuildSummary;
use pleach_store::write_bytes;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

/// Functions shown in detail unless `--top` says otherwise.
const DETAILED: usize = 200;

/// Writes the page.
pub fn run(args: &Args, page: &Path) -> Result<ExitCode> {
    if page.is_dir() {
        bail!("{}: is a directory, not a file for the page", page.display());
    }
    let mut steps = Steps::new();
    steps.begin("reading profiles");
    let files = or_default(&args.profiles)?;
    let mut profile = sampled(&files)?;
    args.exclude.apply(&mut profile, &args.names.names())?;
    let against = args
        .against
        .as_ref()
        .map(|other| compare(other, &profile))
        .transpose()?;
    steps.begin("reading binaries");
    let places = places(args, &profile)?;
    steps.begin("reading sources");
    let lines = places.as_ref().and_then(|places| places.lines(&profile, |_| true).ok());
    steps.begin("reading optimisation records");
    let summary = match args.summary.as_slice() {
        [] => None,
        paths => Some(BuildSummary::new(&read_records(paths)?)),
    };
    let disassemblers: Vec<Disassembler<'_>> = places.iter().flat_map(Places::maps).map(Disassembler::new).collect();
    let graph = |id: FunctionId, hash: CfgHash| places.as_ref().and_then(|places| places.graph(id, hash));
    let title = files.iter().map(|path| name(path)).collect::<Vec<_>>().join(", ");
    steps.begin("replaying raw vectors");
    let stacks = stacks(&files[0], args, &profile)?;
    steps.begin("computing");
    let report = HtmlReport::new(
        &profile,
        &PageInputs {
            title: &title,
            profiles: files
                .iter()
                .map(|path| (path.display().to_string(), written(path)))
                .collect(),
            graph: &graph,
            file_of: &|cfg: &Cfg| places.as_ref().and_then(|places| places.file_of(cfg)),
            lines: lines.as_ref(),
            text_of: &|path: &Path| text_of(path, &args.source_dir),
            assembly_of: &|id, hash| disassemblers.iter().find_map(|d| d.function(id, hash)),
            stacks: stacks.as_ref(),
            summary: summary.as_ref(),
            against: against.as_ref(),
            detailed: args.top.map_or(DETAILED, |top| if top == 0 { usize::MAX } else { top }),
        },
    );
    steps.begin("writing");
    let html = report.to_html()?;
    write_bytes(page, html.as_bytes()).with_context(|| format!("cannot write {}", page.display()))?;
    drop(steps);
    eprintln!(
        "pleach: wrote {} ({:.1} MB): {} functions, {} of them in detail",
        page.display(),
        html.len() as f64 / 1e6,
        report.functions.len(),
        report.details.len()
    );
    Ok(ExitCode::SUCCESS)
}

/// Call stacks, where the profile has raw vectors and the binaries are those that were recorded.
fn stacks(file: &Path, args: &Args, profile: &Profile) -> Result<Option<Stacks>> {
    let Some(bytes) = &profile.vectors else { return Ok(None) };
    let vectors = VectorSet::from_bytes(bytes).with_context(|| format!("{}: raw vectors", file.display()))?;
    let program = Program::read(
        &vectors.modules,
        &Finder::new(&args.binary, args.root.symfs.as_deref())?,
    );
    if program.annotated().next().is_none() {
        return Ok(None);
    }
    Ok(Some(Stacks::from_vectors(&program, &vectors)))
}

/// The changes from another profile to this one.
fn compare(other: &PathBuf, profile: &Profile) -> Result<Diff> {
    Ok(Diff::new(&read_flows(other)?, &Flows::of_profile(profile), None)?)
}

/// The named binaries; without any, the recorded ones that are there.
fn places(args: &Args, profile: &Profile) -> Result<Option<Places>> {
    let found = named_or_recorded(&args.binary, &args.root, profile);
    if found.is_empty() {
        eprintln!(
            "pleach: note: none of the recorded programs was found: name one with --binary, for sources and assembly"
        );
        return Ok(None);
    }
    Places::read(&found).map(Some)
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// When a file was written, in seconds since 1970.
fn written(path: &Path) -> Option<u64> {
    let modified = path.metadata().and_then(|m| m.modified()).ok()?;
    modified.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// A source file at its compiled path, or with the same name in another folder.
fn text_of(path: &Path, folders: &[PathBuf]) -> Option<String> {
    let elsewhere = folders.iter().filter_map(|folder| Some(folder.join(path.file_name()?)));
    let mut candidates = std::iter::once(path.to_owned()).chain(elsewhere);
    let bytes = candidates.find_map(|candidate| candidate.is_file().then(|| std::fs::read(candidate).ok())?)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
