//! The control flow of a function's machine code, as far as it is certain.
//!
//! A *code segment* is a sequence of instructions that run one after the other: it is entered at its first instruction
//! only, and left after its last. Calls end segments, because they may not return. What runs before and after a call is
//! therefore not related here, nor is anything in functions with indirect jumps, whose targets are unknown.

use crate::binary::Binary;
use crate::probe::Address;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};
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

/// System calls that change signal masks or actions, or confine the program.
const SIGNAL_CALLS: [u64; 5] = [13, 14, 128, 157, 317];

struct Decoded {
    address: u64,
    next: u64,
    transfer: Transfer,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transfer {
    Next,
    Return,
    /// Never gets to another instruction.
    Stop,
    /// The same, and the next instruction may be reached by a return.
    Call,
    Jump(u64),
    Conditional(u64),
    IndirectJump,
}

fn transfer(instruction: &Instruction) -> Transfer {
    let target = instruction.near_branch_target();
    match instruction.flow_control() {
        FlowControl::Next if instruction.mnemonic() == Mnemonic::Syscall => Transfer::Call,
        FlowControl::Next => Transfer::Next,
        FlowControl::Call | FlowControl::IndirectCall => Transfer::Call,
        FlowControl::UnconditionalBranch => Transfer::Jump(target),
        FlowControl::ConditionalBranch => Transfer::Conditional(target),
        FlowControl::IndirectBranch => Transfer::IndirectJump,
        // Traps of the program, such as `int3`, continue; transactions may jump anywhere.
        FlowControl::Interrupt | FlowControl::XbeginXabortXend => Transfer::Call,
        FlowControl::Return => Transfer::Return,
        FlowControl::Exception => Transfer::Stop,
    }
}

fn decode(binary: &Binary, range: &Range<Address>) -> Option<(Vec<Decoded>, bool)> {
    let size = usize::try_from(range.end.0.checked_sub(range.start.0)?).ok()?;
    let code = binary.code_at(range.start)?.get(..size)?;
    let mut decoder = Decoder::with_ip(64, code, range.start.0, DecoderOptions::NONE);
    let (mut decoded, mut number, mut makes_system_calls) = (Vec::new(), None, false);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            return None;
        }
        match instruction.mnemonic() {
            Mnemonic::Mov if matches!(instruction.op0_register(), Register::EAX | Register::RAX) => {
                let is_constant = matches!(instruction.code(), Code::Mov_r32_imm32 | Code::Mov_rm64_imm32);
                number = is_constant.then(|| instruction.immediate(1));
            }
            Mnemonic::Syscall | Mnemonic::Sysenter => {
                makes_system_calls |= number.is_none_or(|number: u64| SIGNAL_CALLS.contains(&number));
                number = None;
            }
            _ => {}
        }
        let transfer = transfer(&instruction);
        if transfer != Transfer::Next {
            number = number.filter(|_| transfer != Transfer::Call);
        }
        decoded.push(Decoded {
            address: instruction.ip(),
            next: instruction.next_ip(),
            transfer,
        });
    }
    Some((decoded, makes_system_calls))
}

/// Targets of direct jumps out of a function. They may be in the middle of another one: a split-off cold part jumps
/// back. `None` if its code cannot be decoded.
pub fn jumps_out(binary: &Binary, range: &Range<Address>) -> Option<Vec<Address>> {
    let (decoded, _) = decode(binary, range)?;
    let targets = decoded.iter().filter_map(|one| match one.transfer {
        Transfer::Jump(target) | Transfer::Conditional(target) => Some(Address(target)),
        _ => None,
    });
    Some(targets.filter(|target| !range.contains(target)).collect())
}

impl MachineFunction {
    /// The segments of the code in a range. `entries`: addresses at which code outside of it may enter, apart from the
    /// first. `None` if the code cannot be decoded.
    pub fn new(binary: &Binary, range: &Range<Address>, entries: &FxHashSet<Address>) -> Option<Self> {
        let (decoded, makes_system_calls) = decode(binary, range)?;
        let starts: FxHashSet<u64> = decoded.iter().map(|one| one.address).collect();
        let inside = |target: u64| range.contains(&Address(target));
        let mut leaders: BTreeSet<u64> = decoded.first().map(|first| first.address).into_iter().collect();
        leaders.extend(entries.iter().map(|entry| entry.0).filter(|&entry| inside(entry)));
        for one in &decoded {
            if let Transfer::Jump(target) | Transfer::Conditional(target) = one.transfer
                && inside(target)
            {
                leaders.insert(target);
            }
            if one.transfer != Transfer::Next {
                leaders.insert(one.next);
            }
        }
        // A jump into the middle of an instruction: what is decoded here is not what runs.
        if leaders.iter().any(|leader| inside(*leader) && !starts.contains(leader)) {
            return None;
        }
        let any_indirect = decoded.iter().any(|one| one.transfer == Transfer::IndirectJump);
        let mut segments: Vec<CodeSegment> = Vec::new();
        let mut ends: Vec<Transfer> = Vec::new();
        for one in &decoded {
            if leaders.contains(&one.address) {
                segments.push(CodeSegment {
                    instructions: Vec::new(),
                    end: Address(one.next),
                    successors: None,
                    is_entry: any_indirect || entries.contains(&Address(one.address)),
                    next: Vec::new(),
                    jumps_indirectly: false,
                    leaves: false,
                });
                ends.push(Transfer::Next);
            }
            let (Some(segment), Some(end)) = (segments.last_mut(), ends.last_mut()) else {
                continue;
            };
            segment.instructions.push(Address(one.address));
            (segment.end, *end) = (Address(one.next), one.transfer);
        }
        let at = |target: u64| segments.binary_search_by_key(&Address(target), CodeSegment::start).ok();
        let successors: Vec<Option<Vec<usize>>> = segments
            .iter()
            .zip(&ends)
            .map(|(segment, end)| match *end {
                Transfer::Next => Some(vec![at(segment.end.0)?]),
                Transfer::Jump(target) => Some(vec![at(target)?]),
                Transfer::Conditional(target) => Some(vec![at(target)?, at(segment.end.0)?]),
                Transfer::Return | Transfer::Stop | Transfer::Call | Transfer::IndirectJump => None,
            })
            .collect();
        let next: Vec<Vec<usize>> = segments
            .iter()
            .zip(&ends)
            .map(|(segment, end)| match *end {
                Transfer::Next | Transfer::Call => at(segment.end.0).into_iter().collect(),
                Transfer::Jump(target) => at(target).into_iter().collect(),
                Transfer::Conditional(target) => at(target).into_iter().chain(at(segment.end.0)).collect(),
                Transfer::Return | Transfer::Stop | Transfer::IndirectJump => Vec::new(),
            })
            .collect();
        let mut known = vec![false; segments.len()];
        for ((segment, successors), (next, end)) in segments.iter_mut().zip(successors).zip(next.into_iter().zip(&ends))
        {
            segment.successors = successors;
            segment.next = next;
            segment.jumps_indirectly = *end == Transfer::IndirectJump;
            segment.leaves = match *end {
                Transfer::Return => true,
                Transfer::Jump(target) | Transfer::Conditional(target) => !inside(target),
                _ => false,
            };
        }
        for to in segments.iter().flat_map(|segment| segment.successors.iter().flatten()) {
            known[*to] = true;
        }
        for position in 0..segments.len() {
            // After a call, or a conditional jump out of the function.
            let falls_in = position > 0
                && matches!(ends[position - 1], Transfer::Call | Transfer::Conditional(_))
                && segments[position - 1].successors.is_none();
            let is_unknown = position == 0 || !known[position] || falls_in;
            segments[position].is_entry |= is_unknown;
        }
        Some(Self {
            segments,
            makes_system_calls,
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
