//! Calls that stay calls, so that recursion does not keep a hot function from being inlined.
//!
//! LLVM inlines no function that calls itself. Among functions that call one another in a cycle, its inliner takes calls
//! in no order of their counts. If a function that mostly returns without recursion gets a callee that leads back to
//! it, it calls itself from then on, and its frequent calls stay. So the calls from such a function into the cycle are
//! kept instead.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

/// How many times as many calls of a function there are as calls by it that may lead back, for these to stay. The usual
/// walk over a tree calls itself once or more for each call; the limit leaves trees of up to three children to LLVM.
const MIN_RATIO: u64 = 4;
/// Instructions of a function up to which it may be inlined: LLVM's threshold of hot calls, 3000 units, at 5 each.
pub const MAX_INSTRUCTIONS: usize = 600;

/// A call from one function to another, of functions that are compiled together, by their positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FunctionCall {
    /// The function that calls.
    pub caller: usize,
    /// The function that is called.
    pub callee: usize,
    /// Executions, in the profile's unit.
    pub count: u64,
    /// Whether the target is known without the profile.
    pub is_direct: bool,
}

/// A function mentions another one, by their positions. If it passes the address on, it may come to call it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// The function that mentions.
    pub from: usize,
    /// The function that is mentioned.
    pub to: usize,
}

/// The calls that are not to be inlined, as positions in `calls`, in order.
///
/// `may_be_inlined`: by function, whether LLVM would inline a frequent call of it: it is hot, and not too large.
pub fn calls_that_stay(may_be_inlined: &[bool], calls: &[FunctionCall], references: &[Reference]) -> Vec<usize> {
    let mut graph = DiGraph::<(), ()>::new();
    let nodes: Vec<NodeIndex> = may_be_inlined.iter().map(|_| graph.add_node(())).collect();
    let called = calls.iter().map(|call| (call.caller, call.callee));
    let mentioned = references.iter().map(|reference| (reference.from, reference.to));
    for (from, to) in called.chain(mentioned) {
        graph.add_edge(nodes[from], nodes[to], ());
    }
    let mut cycle_of = vec![0; nodes.len()];
    for (cycle, members) in kosaraju_scc(&graph).iter().enumerate() {
        for member in members {
            cycle_of[member.index()] = cycle;
        }
    }
    let mut calls_of = vec![0_u64; nodes.len()];
    let mut calls_back = vec![0_u64; nodes.len()];
    let mut calls_itself = vec![false; nodes.len()];
    for call in calls {
        if call.caller == call.callee {
            calls_itself[call.caller] = true;
        } else if call.is_direct {
            calls_of[call.callee] = calls_of[call.callee].saturating_add(call.count);
            if cycle_of[call.caller] == cycle_of[call.callee] {
                calls_back[call.caller] = calls_back[call.caller].saturating_add(call.count);
            }
        }
    }
    let keeps_calls = |function: usize| {
        may_be_inlined[function]
            && !calls_itself[function]
            && calls_of[function] > 0
            && calls_of[function] >= MIN_RATIO.saturating_mul(calls_back[function])
    };
    let stays = |call: &FunctionCall| {
        call.is_direct
            && call.caller != call.callee
            && cycle_of[call.caller] == cycle_of[call.callee]
            && keeps_calls(call.caller)
    };
    let numbered = calls.iter().enumerate();
    numbered.filter(|(_, call)| stays(call)).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(all: &[(usize, usize, u64)]) -> Vec<FunctionCall> {
        let call = |&(caller, callee, count)| FunctionCall {
            caller,
            callee,
            count,
            is_direct: true,
        };
        all.iter().map(call).collect()
    }

    fn stay(may_be_inlined: &[bool], calls: &[FunctionCall]) -> Vec<usize> {
        calls_that_stay(may_be_inlined, calls, &[])
    }

    #[test]
    fn a_function_that_rarely_recurses_keeps_the_calls_that_lead_back() {
        // 1 tests, 2 searches with it, 3 is a leaf; 0 starts.
        let mut all = calls(&[(0, 2, 10), (2, 1, 100), (1, 2, 20), (1, 3, 90)]);
        assert_eq!(stay(&[true; 4], &all), [2]);
        // By way of a pointer it leads back as well.
        all[2] = calls(&[(1, 4, 20)])[0];
        let passed_on = [Reference { from: 4, to: 2 }];
        assert_eq!(stay(&[true; 5], &all), [0; 0]);
        assert_eq!(calls_that_stay(&[true; 5], &all, &passed_on), [2]);
        // Calls by pointer are not inlined.
        all[1].is_direct = false;
        assert_eq!(calls_that_stay(&[true; 5], &all, &passed_on), [0; 0]);
    }

    #[test]
    fn other_functions_are_left_to_the_inliner() {
        let all = calls(&[(0, 2, 10), (2, 1, 100), (1, 2, 20)]);
        assert_eq!(stay(&[true, false, true], &all), [0; 0]);
        let often = calls(&[(0, 2, 10), (2, 1, 100), (1, 2, 30)]);
        assert_eq!(stay(&[true; 3], &often), [0; 0]);
        let itself = [all, calls(&[(1, 1, 1)])].concat();
        assert_eq!(stay(&[true; 3], &itself), [0; 0]);
        let no_cycle = calls(&[(0, 1, 100), (1, 2, 1)]);
        assert_eq!(stay(&[true; 3], &no_cycle), [0; 0]);
        assert_eq!(stay(&[], &[]), [0; 0]);
    }

    #[test]
    fn long_chains_of_calls_need_little_stack() {
        let all: Vec<_> = (1..300_000).map(|at| (at - 1, at, 1)).collect();
        assert_eq!(stay(&vec![true; 300_000], &calls(&all)), [0; 0]);
    }
}
