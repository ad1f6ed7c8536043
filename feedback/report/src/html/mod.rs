//! The report of `pleach report --html` as data ([`HtmlReport`]) and as one self-contained page
//! ([`HtmlReport::to_html`]).
//!
//! 1. [`overview`]: the recording, the decisions that it supports, totals, the hottest paths of the program.
//! 2. [`rows`]: all functions by share.
//! 3. [`detail`]: a function's graph, paths and callers; [`loops`]: its k-iteration paths; [`assembly`]: its machine code.
//! 4. [`calls`]: who calls whom; [`pleach_analysis::stacks`]: call stacks of raw vectors; [`call_tree`]: the flame
//!    graph.
//! 5. [`files`]: coverage by source file, and the text of sources.
//! 6. [`mod@page`]: data and assets (`feedback/report/assets`) become a page.

pub mod assembly;
pub mod call_tree;
pub mod calls;
pub mod detail;
pub mod files;
pub mod loops;
pub mod overview;
mod page;
pub mod rows;

use super::diff::Diff;
use super::frequency::Unit;
use super::lines::SourceFiles;
use super::names::demangled_within;
use super::summary::BuildSummary;
use assembly::Assembly;
use call_tree::CallTree;
use detail::FunctionDetail;
use files::Files;
use overview::Overview;
use pleach_analysis::stacks::Stacks;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId};
use pleach_profile::{EstimatedPath, FunctionProfile, Profile};
use rows::FunctionRow;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Version of the page's data. It changes when a key is removed or changes its meaning.
pub const VERSION: u32 = 1;

/// What a page is made of beside the profile. A part that is missing is left out of the page, which says so.
pub struct PageInputs<'a> {
    /// The page's title: names of the profiles.
    pub title: &'a str,
    /// Profiles, and when each was written, in seconds since 1970.
    pub profiles: Vec<(String, Option<u64>)>,
    /// The graph of a function in an annotated binary. Where there is none, the profile's own is used.
    pub graph: &'a dyn Fn(FunctionId, CfgHash) -> Option<&'a Cfg>,
    /// The source file of a function, from debug information.
    pub file_of: &'a dyn Fn(&Cfg) -> Option<PathBuf>,
    /// Counts by source line.
    pub lines: Option<&'a SourceFiles>,
    /// The text of a source file.
    pub text_of: &'a dyn Fn(&Path) -> Option<String>,
    /// The machine code of a function.
    pub assembly_of: &'a dyn Fn(FunctionId, CfgHash) -> Option<Assembly>,
    /// Call stacks from raw vectors.
    pub stacks: Option<&'a Stacks>,
    /// What `flags use` did in a build.
    pub summary: Option<&'a BuildSummary>,
    /// The comparison with another profile.
    pub against: Option<&'a Diff>,
    /// Number of functions shown in detail, hottest first.
    pub detailed: usize,
}

/// The data of a page.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HtmlReport {
    /// [`VERSION`].
    pub version: u32,
    /// The page's title.
    pub title: String,
    /// Recording, verdict, totals.
    pub overview: Overview,
    /// All functions, by descending share. Other parts name functions by their positions here.
    pub functions: Vec<FunctionRow>,
    /// The hottest functions in detail; [`FunctionRow::detail`] leads here.
    pub details: Vec<FunctionDetail>,
    /// Calls by called function.
    pub calls: CallTree,
    /// Source files.
    pub files: Files,
    /// What `flags use` did in a build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<BuildSummary>,
    /// Changes since another profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Diff>,
}

impl HtmlReport {
    /// Computes the data of a page.
    pub fn new<'p>(profile: &'p Profile, inputs: &PageInputs<'p>) -> Self {
        let functions = Functions::new(profile, inputs);
        let files = Files::new(&functions, inputs);
        let rows = rows::rows(&functions, inputs, &files);
        let call_edges = calls::calls(&functions);
        let details: Vec<FunctionDetail> = (0..functions.all.len())
            .filter(|&at| rows[at].detail.is_some())
            .map(|at| FunctionDetail::new(&functions, &call_edges, at, inputs))
            .collect();
        let calls = match inputs.stacks {
            Some(stacks) => CallTree::from_stacks(&functions, stacks),
            None => CallTree::from_counts(&functions, &call_edges),
        };
        Self {
            version: VERSION,
            title: inputs.title.to_owned(),
            overview: Overview::new(profile, &functions, inputs),
            functions: rows,
            details,
            calls,
            files,
            summary: inputs.summary.cloned().map(demangled_remarks),
            against: inputs.against.cloned(),
        }
    }

    /// For scripts and tests.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

fn demangled_remarks(mut summary: BuildSummary) -> BuildSummary {
    for remark in summary.functions.iter_mut().flat_map(|f| &mut f.remarks) {
        remark.text = demangled_within(&remark.text).into_owned();
    }
    summary
}

/// A function with its graph.
pub struct Function<'p> {
    /// Its profile.
    pub profile: &'p FunctionProfile,
    /// Its graph, if it fits the profile's counts.
    pub graph: Option<&'p Cfg>,
    /// Executions of its blocks, each times the number of its IR instructions; of blocks where the graph is unknown.
    pub work: f64,
    /// Its paths, the hottest first: by executed IR instructions, and of equal ones by executions.
    pub paths: Vec<&'p EstimatedPath>,
}

/// IR instructions of the executions of a path; blocks where the graph is unknown.
fn path_work(graph: Option<&Cfg>, path: &EstimatedPath) -> f64 {
    let instructions = |b: &BlockIndex| graph.map_or(1, |g| g.blocks[b.index()].instructions);
    path.count * path.path.blocks.iter().map(|b| f64::from(instructions(b))).sum::<f64>()
}

/// All functions of a profile, hottest first.
pub struct Functions<'p> {
    /// By descending work, then by name.
    pub all: Vec<Function<'p>>,
    /// The sum of all work.
    pub work: f64,
    /// Executions of all paths.
    pub path_flow: f64,
    /// Executions of all blocks.
    pub executions: f64,
    /// Positions of the functions of a name's hash.
    positions: FxHashMap<FunctionGuid, Vec<usize>>,
}

impl<'p> Functions<'p> {
    fn new(profile: &'p Profile, inputs: &PageInputs<'p>) -> Self {
        let function = |f: &'p FunctionProfile| {
            let shape = (f.blocks.len(), f.edges.len());
            let known = (inputs.graph)(f.id, f.cfg_hash).or(f.graph.as_deref());
            // A graph of another shape is of no use, whatever its hash.
            let graph = known.filter(|g| (g.blocks.len(), g.edge_count()) == shape);
            let work = f.blocks.iter().enumerate().map(|(block, &count)| {
                let instructions = graph.map_or(1, |g| g.blocks[block].instructions);
                count as f64 * f64::from(instructions)
            });
            let mut paths: Vec<&EstimatedPath> = f.paths.iter().collect();
            // Stable: the profile's paths are by executions.
            paths.sort_by(|a, b| path_work(graph, b).total_cmp(&path_work(graph, a)));
            Function {
                profile: f,
                graph,
                work: work.sum(),
                paths,
            }
        };
        let mut all: Vec<Function<'p>> = profile.functions.iter().map(function).collect();
        all.sort_by(|a, b| {
            let by_key = || {
                (&a.profile.name, a.profile.id, a.profile.cfg_hash).cmp(&(
                    &b.profile.name,
                    b.profile.id,
                    b.profile.cfg_hash,
                ))
            };
            b.work.total_cmp(&a.work).then_with(by_key)
        });
        let mut positions: FxHashMap<FunctionGuid, Vec<usize>> = FxHashMap::default();
        for (at, function) in all.iter().enumerate() {
            positions.entry(function.profile.id.guid).or_default().push(at);
        }
        Self {
            work: all.iter().map(|f| f.work).sum(),
            path_flow: profile.path_flow(),
            executions: Unit::from_profile(profile).all,
            all,
            positions,
        }
    }

    /// The position of the function that a call of this name by a function leads to: one of the caller's own module if
    /// there is one, else the hottest.
    pub fn called(&self, guid: FunctionGuid, caller: &Function<'_>) -> Option<usize> {
        let named = self.positions.get(&guid)?;
        let module = caller.graph.map(|g| g.module);
        let own = named.iter().find(|&&at| module == Some(self.all[at].profile.id.module));
        own.or(named.first()).copied()
    }

    /// The position of a function.
    pub fn position(&self, id: FunctionId, hash: CfgHash) -> Option<usize> {
        let named = self.positions.get(&id.guid)?;
        named
            .iter()
            .copied()
            .find(|&at| (self.all[at].profile.id, self.all[at].profile.cfg_hash) == (id, hash))
    }
}

/// A share of a whole that may be empty.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
