//! The control flow of a function's machine code, as far as it is certain.
//!
//! A *code segment* is a sequence of instructions that run one after the other: it is entered at its first instruction
//! only, and left after its last. Calls end segments, because they may not return. What runs before and after a call is
//! therefore not related here, nor is anything in functions with indirect jumps, whose targets are unknown.

use crate::binary::Binary;
use crate::code::{Instruction, Transfer, decode};
use crate::probe::Address;
use petgraph::algo::dominators::{Dominators, simple_fast};
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::ops::Range;

/// Instructions that run one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeSegment {
    /// Addresses of its instructions, ascending; not empty.
    pub instructions: Vec<Address>,
    /// Address after the last one.
    pub end: Address,
    /// Positions of the segments that may follow; `None` if others may follow, or none: after a call, a return, an
    /// indirect jump or a jump out of the function.
    pub successors: Option<Vec<usize>>,
    /// Whether it may be entered from elsewhere than the segments that have it as a successor.
    pub is_entry: bool,
    /// Positions of all segments that may be next in the function, treating calls as ordinary instructions; targets of
    /// an indirect jump are missing.
    pub next: Vec<usize>,
    /// It ends in an indirect jump.
    pub jumps_indirectly: bool,
    /// It may return, or jump out of the function.
    pub leaves: bool,
}

impl CodeSegment {
    /// Address of the first instruction.
    pub fn start(&self) -> Address {
        self.instructions.first().copied().unwrap_or(self.end)
    }
}

/// The segments of a function, in address order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MachineFunction {
    /// In address order.
    pub segments: Vec<CodeSegment>,
    /// A system call whose number is not known to leave signals alone.
    pub makes_system_calls: bool,
}

/// Targets of direct jumps out of a function. They may be in the middle of another one: a split-off cold part jumps
/// back. `None` if its code cannot be decoded.
pub fn jumps_out(binary: &Binary, range: &Range<Address>) -> Option<Vec<Address>> {
    let code = decode(binary, range)?;
    let targets = code.instructions.iter().filter_map(jump_target);
    Some(targets.filter(|target| !range.contains(target)).collect())
}

/// Where a direct jump leads.
fn jump_target(instruction: &Instruction) -> Option<Address> {
    let jumps = matches!(instruction.transfer, Transfer::Jump | Transfer::Conditional);
    instruction.target.filter(|_| jumps)
}

/// Whether the next instruction may be reached: directly, or by a return.
fn may_continue(instruction: &Instruction) -> bool {
    match instruction.transfer {
        Transfer::Next | Transfer::Call | Transfer::IndirectCall | Transfer::Conditional | Transfer::Other => true,
        Transfer::Return | Transfer::Jump | Transfer::IndirectJump | Transfer::Stop => false,
    }
}

impl MachineFunction {
    /// The segments of the code in a range. `entries`: addresses at which code outside of it may enter, apart from the
    /// first. `None` if the code cannot be decoded.
    pub fn new(binary: &Binary, range: &Range<Address>, entries: &BTreeSet<Address>) -> Option<Self> {
        let code = decode(binary, range)?;
        let decoded = &code.instructions;
        let starts: FxHashSet<Address> = decoded.iter().map(|one| one.address).collect();
        let mut leaders: BTreeSet<Address> = decoded.first().map(|first| first.address).into_iter().collect();
        leaders.extend(entries.range(range.start..).take_while(|entry| range.contains(entry)));
        for one in decoded {
            leaders.extend(jump_target(one).filter(|target| range.contains(target)));
            if one.transfer != Transfer::Next {
                leaders.insert(one.next());
            }
        }
        // A jump into the middle of an instruction: what is decoded here is not what runs.
        if leaders
            .iter()
            .any(|leader| range.contains(leader) && !starts.contains(leader))
        {
            return None;
        }
        let any_indirect = decoded.iter().any(|one| one.transfer == Transfer::IndirectJump);
        let mut segments: Vec<CodeSegment> = Vec::new();
        let mut ends: Vec<&Instruction> = Vec::new();
        for one in decoded {
            if leaders.contains(&one.address) {
                segments.push(CodeSegment {
                    instructions: Vec::new(),
                    end: one.next(),
                    successors: None,
                    is_entry: any_indirect || entries.contains(&one.address),
                    next: Vec::new(),
                    jumps_indirectly: false,
                    leaves: false,
                });
                ends.push(one);
            }
            let (Some(segment), Some(end)) = (segments.last_mut(), ends.last_mut()) else {
                continue;
            };
            segment.instructions.push(one.address);
            (segment.end, *end) = (one.next(), one);
        }
        let at = |target: Address| segments.binary_search_by_key(&target, CodeSegment::start).ok();
        let successors: Vec<Option<Vec<usize>>> = ends
            .iter()
            .map(|end| match end.transfer {
                Transfer::Next => Some(vec![at(end.next())?]),
                Transfer::Jump => Some(vec![at(end.target?)?]),
                Transfer::Conditional => Some(vec![at(end.target?)?, at(end.next())?]),
                _ => None,
            })
            .collect();
        let next: Vec<Vec<usize>> = ends
            .iter()
            .map(|end| {
                let next = at(end.next()).filter(|_| may_continue(end));
                jump_target(end).and_then(at).into_iter().chain(next).collect()
            })
            .collect();
        let mut known = vec![false; segments.len()];
        for ((segment, successors), (next, end)) in segments.iter_mut().zip(successors).zip(next.into_iter().zip(&ends))
        {
            segment.successors = successors;
            segment.next = next;
            segment.jumps_indirectly = end.transfer == Transfer::IndirectJump;
            let jumps_out = jump_target(end).is_some_and(|target| !range.contains(&target));
            segment.leaves = end.transfer == Transfer::Return || jumps_out;
        }
        for to in segments.iter().flat_map(|segment| segment.successors.iter().flatten()) {
            known[*to] = true;
        }
        for position in 0..segments.len() {
            // After a call, or a conditional jump out of the function.
            let falls_in =
                position > 0 && may_continue(ends[position - 1]) && segments[position - 1].successors.is_none();
            let is_unknown = position == 0 || !known[position] || falls_in;
            segments[position].is_entry |= is_unknown;
        }
        Some(Self {
            segments,
            makes_system_calls: code.makes_system_calls,
        })
    }

    /// The dominators of the segments; the root, node 0, stands for everything outside. CodeSegment n is node n + 1.
    fn dominators(&self) -> Dominators<NodeIndex> {
        let mut graph = DiGraph::<(), ()>::with_capacity(self.segments.len() + 1, 2 * self.segments.len());
        for _ in 0..=self.segments.len() {
            graph.add_node(());
        }
        for (position, segment) in self.segments.iter().enumerate() {
            if segment.is_entry {
                graph.update_edge(NodeIndex::new(0), NodeIndex::new(position + 1), ());
            }
            for to in segment.successors.iter().flatten() {
                graph.update_edge(NodeIndex::new(position + 1), NodeIndex::new(to + 1), ());
            }
        }
        simple_fast(&graph, NodeIndex::new(0))
    }

    /// For each segment, the nearest segment that runs before it whenever it runs.
    pub fn immediate_dominators(&self) -> Vec<Option<usize>> {
        let tree = self.dominators();
        let nearest = |position: usize| {
            tree.immediate_dominator(NodeIndex::new(position + 1))?
                .index()
                .checked_sub(1)
        };
        (0..self.segments.len()).map(nearest).collect()
    }
}
