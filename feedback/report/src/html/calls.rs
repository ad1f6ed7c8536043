//! Calls between functions, from counts: a direct call is executed as often as its block; an indirect call has counted
//! targets.

use super::Functions;
use pleach_annotate::cfg::Callee;
use std::collections::BTreeMap;

/// Executions of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallEdge {
    /// Position of the calling function.
    pub caller: usize,
    /// The block that contains the call.
    pub block: u32,
    /// Position of the called function.
    pub callee: usize,
    /// Executions.
    pub count: u64,
    /// Whether the target is known only at run time.
    pub indirect: bool,
}

/// All executed calls of functions with a known graph, by caller.
pub(super) fn calls(functions: &Functions<'_>) -> Vec<CallEdge> {
    let mut found = Vec::new();
    for (caller, function) in functions.all.iter().enumerate() {
        let Some(graph) = function.graph else { continue };
        for (at, call) in graph.calls.iter().enumerate() {
            let mut add = |guid, count: u64, indirect| {
                if let Some(callee) = functions.called(guid, function).filter(|_| count > 0) {
                    found.push(CallEdge {
                        caller,
                        block: call.block.0,
                        callee,
                        count,
                        indirect,
                    });
                }
            };
            match call.callee {
                Callee::Direct(guid) => add(guid, function.profile.blocks[call.block.index()], false),
                Callee::Indirect => {
                    let sites = function
                        .profile
                        .call_targets
                        .iter()
                        .filter(|site| site.call as usize == at);
                    for &(guid, count) in sites.flat_map(|site| &site.targets) {
                        add(guid, count, true);
                    }
                }
                Callee::InlineAsm | Callee::Memory => {}
            }
        }
    }
    found
}

/// Executions by caller and called function.
pub(super) fn by_functions(calls: &[CallEdge]) -> BTreeMap<(usize, usize), u64> {
    let mut sums = BTreeMap::new();
    for call in calls {
        let sum: &mut u64 = sums.entry((call.caller, call.callee)).or_default();
        *sum = sum.saturating_add(call.count);
    }
    sums
}
