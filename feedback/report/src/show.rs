//! The report of `pleach show` as data: [`Show::to_json`] for scripts, [`Show::to_text`] for people.

use super::names::meant;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId};
use pleach_decide::switches;
use pleach_profile::summary::ProfileSummary;
use pleach_profile::{BranchPrediction, CallTargets, FunctionProfile, Profile, Provenance, ValueCounts, ValueSite};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Version of the JSON form. It changes when a key is removed or changes its meaning.
pub const JSON_VERSION: u32 = 1;

/// Options of the output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShowOptions {
    /// Number of functions to list, hottest first; 0: all that were executed.
    pub top: usize,
    /// A function to show in detail: its linkage name or its identifier.
    pub function: Option<String>,
    /// Show every listed function in detail.
    pub details: bool,
}

impl Default for ShowOptions {
    fn default() -> Self {
        Self {
            top: 20,
            function: None,
            details: false,
        }
    }
}

/// Finds the graph that counts refer to. A profile contains no graphs; without them, edges have no blocks.
pub type Graphs<'g> = dyn Fn(FunctionId, CfgHash) -> Option<&'g Cfg> + 'g;

/// The profile does not have a function.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the profile has no function {name}{}", hint(similar))]
pub struct UnknownFunction {
    /// The requested name.
    pub name: String,
    /// Names that contain it, the hottest first.
    pub similar: Vec<String>,
}

fn hint(similar: &[String]) -> String {
    match similar {
        [] => ": `pleach show` without --function lists the hottest ones".into(),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

/// The report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Show {
    /// [`JSON_VERSION`].
    pub version: u32,
    /// `early` or `late`.
    pub anchor: &'static str,
    /// Executions per sample.
    pub scale: f64,
    /// Whether counts are executions. Otherwise, only their ratios have a meaning.
    pub is_exact: bool,
    /// Whether raw vectors were kept.
    pub has_vectors: bool,
    /// Where the profile comes from.
    pub provenance: Provenance,
    /// Sums over all functions.
    pub totals: Totals,
    /// The summary that the compiler gets.
    pub summary: SummaryView,
    /// The hottest functions.
    pub functions: Vec<FunctionLine>,
    /// Functions shown in detail: several where local functions share a name.
    pub details: Vec<FunctionDetail>,
}

/// Sums over all functions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Totals {
    /// Functions of the profile.
    pub functions: u64,
    /// Functions that were sampled.
    pub sampled_functions: u64,
    /// Sampled block entries.
    pub samples: u64,
    /// Blocks.
    pub blocks: u64,
    /// Blocks with a count.
    pub executed_blocks: u64,
    /// Successor slots.
    pub edges: u64,
    /// Successor slots with a count.
    pub executed_edges: u64,
    /// Indirect calls with known targets.
    pub indirect_calls: u64,
    /// Calls of routines for memory with known lengths.
    pub memory_operations: u64,
    /// Blocks with integer divisions whose divisors are known.
    pub divisions: u64,
}

/// [`ProfileSummary`] for scripts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs, reason = "see `ProfileSummary`")]
pub struct SummaryView {
    pub total_count: u64,
    pub max_count: u64,
    pub max_internal_count: u64,
    pub max_function_count: u64,
    pub num_counts: u64,
    pub num_functions: u64,
    pub cutoffs: Vec<CutoffView>,
}

/// [`Cutoff`](pleach_profile::summary::Cutoff) for scripts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs, reason = "see `Cutoff`")]
pub struct CutoffView {
    pub ppm: u32,
    pub min_count: u64,
    pub num_counts: u64,
}

/// A function in the list.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FunctionLine {
    /// Linkage name.
    pub name: String,
    /// Identifier.
    pub id: String,
    /// Graph that the counts refer to.
    pub cfg_hash: String,
    /// Sampled block entries.
    pub samples: u64,
    /// Executions of the entry block.
    pub entry_count: u64,
    /// Their share of the entries of all functions.
    pub entry_share: f64,
    /// Executions of the hottest block.
    pub max_count: u64,
    /// Executions of all blocks.
    pub total_count: u64,
    /// Share of the executions of all blocks of all functions.
    pub share: f64,
}

/// A function in detail.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FunctionDetail {
    /// The function as it is listed.
    #[serde(flatten)]
    pub line: FunctionLine,
    /// Blocks in order.
    pub blocks: Vec<BlockDetail>,
    /// Successor slots in order.
    pub edges: Vec<EdgeDetail>,
    /// Indirect calls.
    pub calls: Vec<CallDetail>,
    /// Calls of routines for memory.
    pub memory_operations: Vec<MemoryDetail>,
    /// Blocks with integer divisions.
    pub divisions: Vec<DivisionDetail>,
    /// Branches and switches that are mispredicted, most often first.
    pub mispredictions: Vec<MispredictionDetail>,
}

/// A block.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BlockDetail {
    /// Position.
    pub block: u32,
    /// Executions.
    pub count: u64,
    /// First source line, if the graph is known and has it.
    pub line: Option<u32>,
}

/// A successor slot.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EdgeDetail {
    /// Position in the list of all slots.
    pub slot: u32,
    /// Its origin, if the graph is known.
    pub from: Option<u32>,
    /// Its target, if the graph is known.
    pub to: Option<u32>,
    /// Executions.
    pub count: u64,
    /// Share of its block's outgoing executions; `None` if there are none.
    pub probability: Option<f64>,
}

/// A branch, or a switch, that is mispredicted.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MispredictionDetail {
    /// The block that ends in it.
    pub block: u32,
    /// First source line of that block, if the graph is known and has it.
    pub line: Option<u32>,
    /// Mispredicted executions.
    pub count: f64,
    /// Share of its executions that is mispredicted.
    pub rate: f64,
    /// Lower end of the 90 % interval of that share.
    pub low: f64,
}

/// An indirect call.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CallDetail {
    /// Position of the call.
    pub call: u32,
    /// The block that contains it, if the graph is known.
    pub block: Option<u32>,
    /// Targets, most frequent first.
    pub targets: Vec<TargetDetail>,
}

/// A target of an indirect call.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TargetDetail {
    /// LLVM's identifier.
    pub guid: String,
    /// Linkage name, if the profile has the function.
    pub name: Option<String>,
    /// Calls.
    pub count: u64,
    /// Share of this call's known targets.
    pub probability: f64,
}

/// A call of `memcpy`, `memmove`, `memset`, `memcmp` or `bcmp`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MemoryDetail {
    /// Position of the call.
    pub call: u32,
    /// The block that contains it, if the graph is known.
    pub block: Option<u32>,
    /// Bursts that showed it.
    pub bursts: u64,
    /// Lengths, most frequent first.
    pub lengths: Vec<LengthDetail>,
}

/// A length of a memory operation.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LengthDetail {
    /// In bytes.
    pub length: u64,
    /// Calls.
    pub count: u64,
    /// Share of this call's executions.
    pub probability: f64,
}

/// The integer divisions of a block.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DivisionDetail {
    /// The block.
    pub block: u32,
    /// Bursts that showed them.
    pub bursts: u64,
    /// What they divide by, most frequent first.
    pub divisors: Vec<DivisorDetail>,
}

/// What is divided by.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DivisorDetail {
    /// Its bits; those of a negative number are a large number.
    pub divisor: u64,
    /// Divisions.
    pub count: u64,
    /// Share of the block's divisions.
    pub probability: f64,
}

impl Show {
    /// Computes the report. `graphs` may find none.
    ///
    /// # Errors
    /// Fails if the profile does not have the requested function.
    pub fn new(profile: &Profile, options: &ShowOptions, graphs: &Graphs<'_>) -> Result<Self, UnknownFunction> {
        let summary = ProfileSummary::from_functions(&profile.functions);
        let lines = ranked(profile, summary.total_count);
        let details = match &options.function {
            Some(name) => named(profile, &lines, name, graphs)?,
            None if options.details => {
                let names = names(profile);
                listed(&lines, options.top)
                    .map(|line| detail(profile, line, graphs, &names))
                    .collect()
            }
            None => Vec::new(),
        };
        Ok(Self {
            version: JSON_VERSION,
            anchor: profile.anchor.name(),
            scale: profile.scale,
            is_exact: profile.provenance.is_exact(),
            has_vectors: profile.vectors.is_some(),
            provenance: profile.provenance.clone(),
            totals: totals(profile),
            summary: view(&summary),
            functions: listed(&lines, options.top).map(|(_, line)| line.clone()).collect(),
            details,
        })
    }

    /// For scripts.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// The hottest executed functions.
fn listed(lines: &[(usize, FunctionLine)], top: usize) -> impl Iterator<Item = &(usize, FunctionLine)> {
    let top = if top == 0 { usize::MAX } else { top };
    lines.iter().take(top).filter(|(_, line)| line.max_count > 0)
}

fn totals(profile: &Profile) -> Totals {
    let positive = |counts: &[u64]| counts.iter().filter(|&&c| c > 0).count() as u64;
    let mut totals = Totals {
        functions: profile.functions.len() as u64,
        ..Totals::default()
    };
    for function in &profile.functions {
        totals.sampled_functions += u64::from(function.samples > 0);
        totals.samples = totals.samples.saturating_add(function.samples);
        totals.blocks += function.blocks.len() as u64;
        totals.executed_blocks += positive(&function.blocks);
        totals.edges += function.edges.len() as u64;
        totals.executed_edges += positive(&function.edges);
        totals.indirect_calls += function.call_targets.len() as u64;
        for operand in &function.values {
            match operand.site {
                ValueSite::Length(_) => totals.memory_operations += 1,
                ValueSite::LengthPrediction(_) | ValueSite::SwitchPrediction(_) => {}
                ValueSite::Divisor(_) => totals.divisions += 1,
            }
        }
    }
    totals
}

fn view(summary: &ProfileSummary) -> SummaryView {
    let cutoff = |c: &pleach_profile::summary::Cutoff| CutoffView {
        ppm: c.ppm,
        min_count: c.min_count,
        num_counts: c.num_counts,
    };
    SummaryView {
        total_count: summary.total_count,
        max_count: summary.max_count,
        max_internal_count: summary.max_internal_count,
        max_function_count: summary.max_function_count,
        num_counts: summary.num_counts,
        num_functions: summary.num_functions,
        cutoffs: summary.cutoffs.iter().map(cutoff).collect(),
    }
}

/// All functions with their positions in the profile, by descending executions of their blocks.
fn ranked(profile: &Profile, total: u64) -> Vec<(usize, FunctionLine)> {
    let entries = |f: &FunctionProfile| f.blocks.first().copied().unwrap_or(0);
    let all_entries = profile.functions.iter().map(entries).fold(0, u64::saturating_add);
    let line = |f: &FunctionProfile| {
        let total_count = f.blocks.iter().fold(0u64, |sum, &c| sum.saturating_add(c));
        FunctionLine {
            name: f.name.clone(),
            id: f.id.to_string(),
            cfg_hash: f.cfg_hash.to_string(),
            samples: f.samples,
            entry_count: entries(f),
            entry_share: entries(f) as f64 / all_entries.max(1) as f64,
            max_count: f.blocks.iter().copied().max().unwrap_or(0),
            total_count,
            share: if total == 0 {
                0.0
            } else {
                total_count as f64 / total as f64
            },
        }
    };
    let mut lines: Vec<_> = profile.functions.iter().map(line).enumerate().collect();
    lines.sort_by(|(_, a), (_, b)| b.total_count.cmp(&a.total_count).then_with(|| a.name.cmp(&b.name)));
    lines
}

fn names(profile: &Profile) -> FxHashMap<FunctionGuid, &str> {
    profile.functions.iter().map(|f| (f.id.guid, f.name.as_str())).collect()
}

/// The functions that a name means ([`meant`]).
fn named(
    profile: &Profile,
    lines: &[(usize, FunctionLine)],
    name: &str,
    graphs: &Graphs<'_>,
) -> Result<Vec<FunctionDetail>, UnknownFunction> {
    let names = names(profile);
    let found = meant(lines.iter(), |(_, line)| (&line.name, line.id.clone()), name);
    let found = found.map_err(|similar| UnknownFunction {
        name: name.into(),
        similar,
    })?;
    Ok(found
        .into_iter()
        .map(|line| detail(profile, line, graphs, &names))
        .collect())
}

fn detail(
    profile: &Profile,
    (position, line): &(usize, FunctionLine),
    graphs: &Graphs<'_>,
    names: &FxHashMap<FunctionGuid, &str>,
) -> FunctionDetail {
    let function = &profile.functions[*position];
    let (line, graph) = (line.clone(), graphs(function.id, function.cfg_hash));
    let graph = graph.or(function.graph.as_deref());
    // A graph of another shape is of no use, whatever its hash.
    let graph = graph.filter(|g| (g.blocks.len(), g.edge_count()) == (function.blocks.len(), function.edges.len()));
    let source_line = |at: usize| graph.map(|g| g.blocks[at].line).filter(|&l| l > 0);
    let blocks = function.blocks.iter().enumerate();
    FunctionDetail {
        line,
        blocks: blocks
            .map(|(at, &count)| BlockDetail {
                block: at as u32,
                count,
                line: source_line(at),
            })
            .collect(),
        edges: edges(function, graph),
        calls: function
            .call_targets
            .iter()
            .map(|site| call(site, graph, names))
            .collect(),
        memory_operations: function
            .values
            .iter()
            .filter_map(|operand| memory_operation(operand, graph))
            .collect(),
        divisions: function.values.iter().filter_map(division).collect(),
        mispredictions: mispredictions(function, source_line),
    }
}

fn mispredictions(function: &FunctionProfile, line: impl Fn(usize) -> Option<u32>) -> Vec<MispredictionDetail> {
    let branch = |p: &BranchPrediction| MispredictionDetail {
        block: p.block.0,
        line: line(p.block.index()),
        count: p.mispredicted,
        rate: p.mispredicted / p.watched,
        low: p.low / p.watched,
    };
    let switch = |operand: &ValueCounts| {
        let ValueSite::SwitchPrediction(block) = operand.site else {
            return None;
        };
        let (mispredicted, total) = (operand.count_of(0) as f64, operand.total() as f64);
        Some(MispredictionDetail {
            block: block.0,
            line: line(block.index()),
            count: mispredicted,
            rate: mispredicted / total,
            low: switches::mispredicted(Some(operand)).0,
        })
    };
    let branches = function.predictions.iter().map(branch);
    let switches = function.values.iter().filter_map(switch);
    let mut all: Vec<_> = branches.chain(switches).filter(|p| p.count > 0.0).collect();
    all.sort_by(|a, b| b.count.total_cmp(&a.count));
    all
}

fn edges(function: &FunctionProfile, graph: Option<&Cfg>) -> Vec<EdgeDetail> {
    let numbered = |slot: usize| EdgeDetail {
        slot: slot as u32,
        from: None,
        to: None,
        count: function.edges[slot],
        probability: None,
    };
    let mut edges: Vec<EdgeDetail> = (0..function.edges.len()).map(numbered).collect();
    let Some(graph) = graph else { return edges };
    let mut rest = edges.as_mut_slice();
    for (from, block) in graph.blocks.iter().enumerate() {
        let (own, others) = rest.split_at_mut(block.successors.len());
        let total: f64 = own.iter().map(|e| e.count as f64).sum();
        for (edge, successor) in own.iter_mut().zip(&block.successors) {
            (edge.from, edge.to) = (Some(from as u32), Some(successor.0));
            edge.probability = (total > 0.0).then(|| edge.count as f64 / total);
        }
        rest = others;
    }
    edges
}

/// The block that contains a call.
fn block_of(call: u32, graph: Option<&Cfg>) -> Option<u32> {
    graph.and_then(|g| g.calls.get(call as usize)).map(|c| c.block.0)
}

fn memory_operation(operand: &ValueCounts, graph: Option<&Cfg>) -> Option<MemoryDetail> {
    let ValueSite::Length(call) = operand.site else {
        return None;
    };
    let total = operand.total().max(1) as f64;
    let length = |&(length, count): &(u64, u64)| LengthDetail {
        length,
        count,
        probability: count as f64 / total,
    };
    Some(MemoryDetail {
        call,
        block: block_of(call, graph),
        bursts: operand.bursts,
        lengths: operand.values.iter().map(length).collect(),
    })
}

fn division(operand: &ValueCounts) -> Option<DivisionDetail> {
    let ValueSite::Divisor(block) = operand.site else {
        return None;
    };
    let total = operand.total().max(1) as f64;
    let divisor = |&(divisor, count): &(u64, u64)| DivisorDetail {
        divisor,
        count,
        probability: count as f64 / total,
    };
    Some(DivisionDetail {
        block: block.0,
        bursts: operand.bursts,
        divisors: operand.values.iter().map(divisor).collect(),
    })
}

fn call(site: &CallTargets, graph: Option<&Cfg>, names: &FxHashMap<FunctionGuid, &str>) -> CallDetail {
    let total: f64 = site.targets.iter().map(|t| t.1 as f64).sum();
    let target = |&(guid, count): &(FunctionGuid, u64)| TargetDetail {
        guid: guid.to_string(),
        name: names.get(&guid).map(|&n| n.to_owned()),
        count,
        probability: if total > 0.0 { count as f64 / total } else { 0.0 },
    };
    CallDetail {
        call: site.call,
        block: block_of(site.call, graph),
        targets: site.targets.iter().map(target).collect(),
    }
}

/// Commands in the order of their first run, with their numbers of runs.
pub(super) fn commands(provenance: &Provenance) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = Vec::new();
    for command in &provenance.commands {
        match all.iter_mut().find(|(known, _)| known == command) {
            Some((_, runs)) => *runs += 1,
            None => all.push((command.clone(), 1)),
        }
    }
    all
}
