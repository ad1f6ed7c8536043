//! The flame graph: work by chain of callers.
//!
//! Without call stacks, a function's work is divided among its callers in proportion to their calls of it, as gprof
//! does: it assumes that a call costs the same wherever it is made. Calls that close a cycle are cut.

use super::Functions;
use super::calls::{CallEdge, by_functions};
use pleach_analysis::stacks::{Key, Stacks};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Nodes with a smaller share of all work are left out.
const MIN_SHARE: f64 = 2e-4;
/// Deeper calls are left out.
const MAX_DEPTH: usize = 200;

/// What a tree is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeSource {
    /// Counts of calls.
    Counts,
    /// Call stacks, rebuilt from the calls and returns of raw vectors.
    Stacks,
}

/// Work by chain of callers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CallTree {
    /// What it is made of.
    pub source: TreeSource,
    /// Number of calls between functions that were cut because they close a cycle.
    pub cut: usize,
    /// Functions without a known caller.
    pub roots: Vec<CallNode>,
}

/// A function, called by the functions above it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CallNode {
    /// Position of the function.
    pub function: usize,
    /// Its share of all work, with that of the functions that it calls.
    pub value: f64,
    /// The functions that it calls, by descending share.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<CallNode>,
}

/// A call: called function and executions.
type Called = (usize, f64);

impl CallTree {
    /// The tree of counted calls.
    pub(super) fn from_counts(functions: &Functions<'_>, calls: &[CallEdge]) -> Self {
        let acyclic = Acyclic::new(functions, calls);
        let mut roots = Vec::new();
        for (function, &share) in acyclic.uncalled.iter().enumerate() {
            if share > 0.0 {
                roots.extend(acyclic.node(function, share, 0));
            }
        }
        roots.sort_by(|a: &CallNode, b| b.value.total_cmp(&a.value));
        Self {
            source: TreeSource::Counts,
            cut: acyclic.cut,
            roots,
        }
    }
}

impl CallTree {
    /// The tree of call stacks. Functions that are not in the profile are left out.
    pub(super) fn from_stacks(functions: &Functions<'_>, stacks: &Stacks) -> Self {
        let whole = work(stacks);
        Self {
            source: TreeSource::Stacks,
            cut: 0,
            roots: children(functions, stacks, whole),
        }
    }
}

fn work(stacks: &Stacks) -> f64 {
    stacks.own + stacks.called.values().map(work).sum::<f64>()
}

fn children(functions: &Functions<'_>, stacks: &Stacks, whole: f64) -> Vec<CallNode> {
    let node = |(&(id, hash), inside): (&Key, &Stacks)| {
        let value = super::share(work(inside), whole);
        let function = functions.position(id, hash).filter(|_| value >= MIN_SHARE)?;
        Some(CallNode {
            function,
            value,
            children: children(functions, inside, whole),
        })
    };
    let mut nodes: Vec<CallNode> = stacks.called.iter().filter_map(node).collect();
    nodes.sort_by(|a, b| b.value.total_cmp(&a.value));
    nodes
}

/// The call graph without the calls that close cycles.
struct Acyclic {
    /// Calls by caller, most frequent first.
    out: Vec<Vec<Called>>,
    /// Executions of a function: counted calls of it, and calls by unknown callers.
    entered: Vec<f64>,
    /// The share of a function's executions without a known caller.
    uncalled: Vec<f64>,
    /// The share of all work of a function with all that it calls.
    inclusive: Vec<f64>,
    cut: usize,
}

impl Acyclic {
    fn new(functions: &Functions<'_>, calls: &[CallEdge]) -> Self {
        let number = functions.all.len();
        let sums = by_functions(calls);
        let mut out: Vec<Vec<Called>> = vec![Vec::new(); number];
        let mut called = vec![0.0; number];
        for (&(caller, callee), &count) in &sums {
            out[caller].push((callee, count as f64));
            called[callee] += count as f64;
        }
        out.iter_mut()
            .for_each(|all| all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))));
        let entries = |at: usize| functions.all[at].profile.blocks.first().copied().unwrap_or(0) as f64;
        // Callers come first: those that nobody is known to call, then what is left, hottest first.
        let mut roots: Vec<usize> = (0..number).collect();
        roots.sort_by_key(|&at| (called[at] > 0.0, Reverse(called[at] < entries(at)), at));
        let (postorder, back) = search(&out, &roots);
        let mut cut = 0;
        for (caller, all) in out.iter_mut().enumerate() {
            let before = all.len();
            all.retain(|&(callee, _)| !back.contains(&(caller, callee)));
            cut += before - all.len();
        }
        let mut incoming = vec![0.0; number];
        out.iter()
            .flatten()
            .for_each(|&(callee, count)| incoming[callee] += count);
        let mut entered = vec![0.0; number];
        let mut uncalled = vec![0.0; number];
        for at in 0..number {
            let unknown = (entries(at) - called[at]).max(0.0);
            entered[at] = incoming[at] + unknown;
            uncalled[at] = if entered[at] > 0.0 { unknown / entered[at] } else { 1.0 };
        }
        let own = functions.all.iter().map(|f| super::share(f.work, functions.work));
        let mut inclusive: Vec<f64> = own.collect();
        for &at in &postorder {
            let parts = out[at]
                .iter()
                .map(|&(callee, count)| inclusive[callee] * count / entered[callee]);
            inclusive[at] += parts.sum::<f64>();
        }
        Self {
            out,
            entered,
            uncalled,
            inclusive,
            cut,
        }
    }

    /// The node of this part of a function's executions.
    fn node(&self, function: usize, part: f64, depth: usize) -> Option<CallNode> {
        let value = self.inclusive[function] * part;
        if value < MIN_SHARE || depth > MAX_DEPTH {
            return None;
        }
        let child = |&(callee, count): &Called| self.node(callee, part * count / self.entered[callee], depth + 1);
        let mut children: Vec<CallNode> = self.out[function].iter().filter_map(child).collect();
        children.sort_by(|a, b| b.value.total_cmp(&a.value));
        Some(CallNode {
            function,
            value,
            children,
        })
    }
}

/// Depth-first search without recursion: functions after all that they call, and the calls that close a cycle.
fn search(out: &[Vec<Called>], roots: &[usize]) -> (Vec<usize>, BTreeSet<(usize, usize)>) {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; out.len()];
    let (mut postorder, mut back) = (Vec::new(), BTreeSet::new());
    for &root in roots {
        if marks[root] != Mark::New {
            continue;
        }
        marks[root] = Mark::Open;
        let mut stack = vec![(root, 0)];
        while let Some((at, next)) = stack.last_mut() {
            let at = *at;
            let Some(&(callee, _)) = out[at].get(*next) else {
                marks[at] = Mark::Done;
                postorder.push(at);
                stack.pop();
                continue;
            };
            *next += 1;
            match marks[callee] {
                Mark::New => {
                    marks[callee] = Mark::Open;
                    stack.push((callee, 0));
                }
                Mark::Open => {
                    back.insert((at, callee));
                }
                Mark::Done => {}
            }
        }
    }
    (postorder, back)
}
