//! One function: its graph with counts, its paths, its callers and calls, its machine code.

use super::assembly::Assembly;
use super::calls::CallEdge;
use super::loops::{Loop, loops};
use super::rows::state;
use super::{Function, Functions, PageInputs, path_work, share};
use crate::block_state::covered;
use crate::paths::ending;
use pleach_annotate::cfg::{Callee, Cfg, Terminator};
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::graph::{EdgeKind, PathGraph};
use pleach_ball_larus::{End, NumberingOptions, Start};
use pleach_profile::{Covered, EstimatedPath, FunctionProfile, ValueSite};
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of paths of a function that are listed.
pub const MAX_PATHS: usize = 100;
/// Number of callers, and of caller's paths, that are listed.
const MAX_CALLERS: usize = 20;

/// A function in detail.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FunctionDetail {
    /// Position in [`HtmlReport::functions`](super::HtmlReport::functions).
    pub function: usize,
    /// In block order.
    pub blocks: Vec<BlockDetail>,
    /// From, to, executions, and whether it is a back edge. Successor slots with the same target are one edge.
    pub edges: Vec<(u32, u32, u64, bool)>,
    /// The hottest paths, by executed IR instructions.
    pub paths: Vec<PathDetail>,
    /// Loops with k-iteration paths.
    pub loops: Vec<Loop>,
    /// Position of the caller and executions, most frequent first.
    pub callers: Vec<(usize, u64)>,
    /// Paths by what the caller executed before.
    pub called: Vec<CalledDetail>,
    /// Its machine code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assembly: Option<Assembly>,
}

/// A block.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BlockDetail {
    /// Executions: estimated, or exact.
    pub count: u64,
    /// Executions that breakpoints counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub at_least: u64,
    /// What is known about its execution: a position in [`States`](super::rows::States).
    pub state: usize,
    /// How that is known, such as `by-dominance`.
    pub covered: Covered,
    /// First source line, 0 where unknown.
    pub line: u32,
    /// IR instructions.
    pub instructions: u32,
    /// How it ends.
    pub end: &'static str,
    /// It begins with an exception-handling pad.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub landing_pad: bool,
    /// Mispredicted executions of its branch: estimate, lower bound of the 90 % interval, executions with a known
    /// direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mispredicted: Option<[f64; 3]>,
    /// Calls in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallDetail>,
    /// Lengths of a call of a routine for memory, with the share of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<(u64, f64)>,
    /// What its integer divisions divide by, with the share of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub divisors: Vec<(u64, f64)>,
}

/// A call.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CallDetail {
    /// Position of the called function; `None` for one that is not in the profile.
    pub to: Option<usize>,
    /// Whether the target is known only at run time.
    pub indirect: bool,
    /// Executions.
    pub count: u64,
}

/// A path.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathDetail {
    /// Blocks in order.
    pub blocks: Vec<BlockIndex>,
    /// How it begins.
    pub start: Start,
    /// How it ends: `exit`, `back`, `cut` or `call`.
    pub end: &'static str,
    /// The block that a back edge or a cut edge leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<BlockIndex>,
    /// Executions.
    pub count: f64,
    /// Share of the executions of the function's paths: estimate and 90 % interval.
    pub share: [f64; 3],
    /// Share of the function's executed IR instructions.
    pub work: f64,
}

/// A path from the function's entry, with what its caller executed before the call.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CalledDetail {
    /// Position of the caller.
    pub caller: Option<usize>,
    /// The caller's last blocks, up to the call's.
    pub before: Vec<BlockIndex>,
    /// Position in [`FunctionDetail::paths`].
    pub path: usize,
    /// Executions.
    pub count: f64,
}

/// Whether there is anything to draw.
pub(super) fn has_detail(function: &Function<'_>) -> bool {
    function.graph.is_some() && function.profile.blocks.iter().any(|&count| count > 0)
}

impl FunctionDetail {
    /// The detail of a function with a graph.
    pub(super) fn new(functions: &Functions<'_>, calls: &[CallEdge], at: usize, inputs: &PageInputs<'_>) -> Self {
        let function = &functions.all[at];
        let profile = function.profile;
        let paths = paths(function);
        Self {
            function: at,
            blocks: function
                .graph
                .map_or_else(Vec::new, |graph| blocks(functions, function, graph)),
            edges: function.graph.map_or_else(Vec::new, |graph| edges(profile, graph)),
            loops: loops(function),
            callers: callers(calls, at),
            called: called(functions, function, paths.len()),
            paths,
            assembly: (inputs.assembly_of)(profile.id, profile.cfg_hash),
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn blocks(functions: &Functions<'_>, function: &Function<'_>, graph: &Cfg) -> Vec<BlockDetail> {
    let profile = function.profile;
    let each = graph.blocks.iter().enumerate();
    let mut blocks: Vec<BlockDetail> = each
        .map(|(at, block)| BlockDetail {
            count: match covered(profile, at) {
                // Whatever inference assigned to it.
                Covered::NotExecuted => 0,
                _ => profile.blocks.get(at).copied().unwrap_or(0),
            },
            at_least: profile.counted.get(at).map_or(0, |counted| counted.at_least),
            state: state(covered(profile, at)),
            covered: covered(profile, at),
            line: block.line,
            instructions: block.instructions,
            end: end_name(block.terminator),
            landing_pad: block.is_eh_pad,
            mispredicted: None,
            calls: Vec::new(),
            lengths: Vec::new(),
            divisors: shares(profile, ValueSite::Divisor(BlockIndex(at as u32))),
        })
        .collect();
    for p in profile.predictions.iter().filter(|p| p.watched > 0.0) {
        blocks[p.block.index()].mispredicted = Some([p.mispredicted, p.low, p.watched]);
    }
    for (at, call) in graph.calls.iter().enumerate() {
        let block = &mut blocks[call.block.index()];
        match call.callee {
            Callee::Direct(guid) => block.calls.push(CallDetail {
                to: functions.called(guid, function),
                indirect: false,
                count: block.count,
            }),
            Callee::Indirect => {
                let targets = profile.call_targets.iter().filter(|site| site.call as usize == at);
                let targets: Vec<_> = targets.flat_map(|site| &site.targets).collect();
                if targets.is_empty() {
                    block.calls.push(CallDetail {
                        to: None,
                        indirect: true,
                        count: block.count,
                    });
                }
                block.calls.extend(targets.into_iter().map(|&(guid, count)| CallDetail {
                    to: functions.called(guid, function),
                    indirect: true,
                    count,
                }));
            }
            Callee::Memory | Callee::InlineAsm => {}
        }
        let lengths = shares(profile, ValueSite::Length(at as u32));
        if !lengths.is_empty() {
            block.lengths = lengths;
        }
    }
    blocks
}

/// The observed values of an operand, with the share of each.
fn shares(profile: &FunctionProfile, site: ValueSite) -> Vec<(u64, f64)> {
    let known = profile.values.iter().find(|operand| operand.site == site);
    let shares = known.map(|operand| {
        let total = operand.total() as f64;
        let values = operand.values.iter();
        values.map(move |&(value, count)| (value, share(count as f64, total)))
    });
    shares.into_iter().flatten().collect()
}

fn end_name(terminator: Terminator) -> &'static str {
    match terminator {
        Terminator::Return => "return",
        Terminator::Branch => "branch",
        Terminator::Switch => "switch",
        Terminator::IndirectBranch => "indirect branch",
        Terminator::Invoke => "invoke",
        Terminator::Unreachable => "unreachable",
        Terminator::Resume => "resume",
        Terminator::Other => "other",
    }
}

fn edges(profile: &FunctionProfile, graph: &Cfg) -> Vec<(u32, u32, u64, bool)> {
    let path_graph = PathGraph::new(graph, &NumberingOptions::default());
    let mut sums: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let mut counts = profile.edges.iter();
    for (from, block) in graph.blocks.iter().enumerate() {
        for (to, &count) in block.successors.iter().zip(&mut counts) {
            let sum = sums.entry((from as u32, to.0)).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    let is_back = |from: u32, to: u32| {
        let (from, to) = (BlockIndex(from), BlockIndex(to));
        from == to || path_graph.find(EdgeKind::End(from, End::Back(to))).is_some()
    };
    sums.into_iter()
        .map(|((from, to), count)| (from, to, count, is_back(from, to)))
        .collect()
}

fn paths(function: &Function<'_>) -> Vec<PathDetail> {
    let all = &function.paths;
    let flow: f64 = all.iter().map(|p| p.count).sum();
    let detail = |p: &&EstimatedPath| {
        let (end, to) = ending(p.path.end);
        PathDetail {
            blocks: p.path.blocks.clone(),
            start: p.path.start,
            end,
            to,
            count: p.count,
            share: [share(p.count, flow), share(p.low, flow), share(p.high, flow).min(1.0)],
            work: share(path_work(function.graph, p), function.work),
        }
    };
    all.iter().take(MAX_PATHS).map(detail).collect()
}

fn callers(calls: &[CallEdge], at: usize) -> Vec<(usize, u64)> {
    let mut sums: BTreeMap<usize, u64> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.callee == at) {
        let sum = sums.entry(call.caller).or_default();
        *sum = sum.saturating_add(call.count);
    }
    let mut callers: Vec<_> = sums.into_iter().collect();
    callers.sort_by_key(|&(caller, count)| (std::cmp::Reverse(count), caller));
    callers.truncate(MAX_CALLERS);
    callers
}

fn called(functions: &Functions<'_>, function: &Function<'_>, listed: usize) -> Vec<CalledDetail> {
    let position = |path: &pleach_ball_larus::Path| function.paths.iter().take(listed).position(|p| p.path == *path);
    let detail = |c: &pleach_profile::CallCrossingPath| {
        Some(CalledDetail {
            caller: functions.position(c.caller.id, c.caller.cfg_hash),
            before: c.caller.before.clone(),
            path: position(&c.path)?,
            count: c.count,
        })
    };
    let mut called: Vec<_> = function.profile.called.iter().filter_map(detail).collect();
    called.sort_by(|a, b| b.count.total_cmp(&a.count));
    called.truncate(MAX_CALLERS);
    called
}
