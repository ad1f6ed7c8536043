//! Burst → sequence of IR blocks (feedback/ALGORITHMS.md, Decode).
//!
//! Between two branches control fell through, so every probe in between was passed. A shadow call stack tells the
//! activations of a function apart, so that what a caller does after a call continues what it did before.

use crate::lanes::{self, Passed};
use crate::program::Program;
use crate::unwinding;
use pleach_annotate::cfg::{Callee, ProbeTarget};
use pleach_annotate::code::{Instruction, Transfer, instruction_at};
use pleach_annotate::id::{BlockIndex, CallIndex, FunctionId};
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_annotate::probe::Address;
use pleach_collector::vector::{Branch, Burst, CodeAddress, Compressed, ModuleId, ObservedValue, Window};
use pleach_profile::ValueSite;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Identifies activations of emitted functions within a decoder's lifetime.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameId(pub u64);

/// A decoded event, in execution order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A block was entered.
    Block {
        /// The annotated module.
        module: ModuleId,
        /// The activation of the emitted function.
        frame: FrameId,
        /// The inline instance of the function that the block belongs to.
        instance: InlineInstanceIndex,
        /// The block.
        block: BlockIndex,
        /// Where its code begins; of blocks of a vectorised loop, where that of one of them does. Blocks of one inline
        /// instance at one address are consecutive.
        address: Address,
    },
    /// A function was called, or jumped to in place of a call: this is its activation.
    Entered {
        /// The activation of the emitted function.
        frame: FrameId,
    },
    /// An activation returned to its caller.
    Left {
        /// The activation of the emitted function.
        frame: FrameId,
    },
    /// An indirect call was made to a function of an annotated module.
    IndirectCall {
        /// The annotated module.
        module: ModuleId,
        /// The inline instance of the function that calls.
        instance: InlineInstanceIndex,
        /// The call.
        call: CallIndex,
        /// The called function.
        target: FunctionId,
    },
    /// An exception was thrown.
    Throw {
        /// Where the call that throws would return to.
        site: CodeAddress,
        /// Whether all edges that it takes are known; they follow.
        is_complete: bool,
    },
    /// The throw before ended a call: control goes to the call's landing pad, which is seen, if at all, as the block of
    /// another activation.
    Unwound {
        /// As in the throw.
        site: CodeAddress,
        /// As in the throw.
        is_complete: bool,
        /// The annotated module.
        module: ModuleId,
        /// The inline instance of the function that calls.
        instance: InlineInstanceIndex,
        /// The block that ends in the call.
        from: BlockIndex,
        /// The landing pad.
        to: BlockIndex,
    },
    /// An operand had a value.
    Value {
        /// The annotated module.
        module: ModuleId,
        /// The inline instance of the function that has the operand.
        instance: InlineInstanceIndex,
        /// The operand.
        site: ValueSite,
        /// Its value.
        value: u64,
    },
}

/// Which branch an event follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// None: the event is in the fall-through range that the timer interrupted. The probability of interrupting a
    /// fall-through range grows with its time, so such events prove execution but have no weight.
    Interrupted,
    /// A window's lead. Its events were counted in the window before.
    Lead,
    /// The branch at this position of the source.
    Branch(usize),
}

/// How much of the vectors the address maps explained.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DecodeReport {
    /// Bursts read, with multiplicity.
    pub bursts: u64,
    /// Taken branches read, with multiplicity.
    pub branches: u64,
    /// Fall-through ranges inside annotated modules.
    pub fall_throughs: u64,
    /// Fall-through ranges that are impossible: they end before they begin, or span two functions.
    pub inconsistent: u64,
}

/// Maximum depth of the shadow stack; the oldest calls are discarded.
const MAX_STACK: usize = 1024;

/// Size of an entry of the procedure linkage table, through which calls lead to other modules.
const LINKAGE_ENTRY: u64 = 16;

/// Taken branches that are followed back from a division to the beginning of its block, at most.
const MAX_JUMPS_IN_BLOCK: usize = 4;

/// Maximum number of distinct fall-through ranges that are cached. A program's hot code has far fewer.
const MAX_FALL_THROUGHS: usize = 1 << 20;

/// The blocks of a fall-through range, in [`Decoder::passed`]; `None` if the fall-through range is impossible.
type FallThrough = Option<Range<u32>>;

struct Pending {
    /// Where the call returns to.
    return_to: CodeAddress,
    frame: FrameId,
}

/// Decodes bursts one after the other.
pub struct Decoder<'p> {
    program: &'p Program,
    instructions: FxHashMap<CodeAddress, Option<Instruction>>,
    /// Fall-through ranges seen before, by first and last instruction.
    fall_throughs: FxHashMap<(CodeAddress, CodeAddress), FallThrough>,
    passed: Vec<Passed>,
    /// Functions by start address, per module.
    starts: FxHashMap<CodeAddress, FunctionId>,
    stack: Vec<Pending>,
    /// By return address: whether the call before it throws.
    throws: FxHashMap<CodeAddress, bool>,
    frame: FrameId,
    next_frame: u64,
    /// The last branch went back to the function's own first instruction.
    looped: bool,
    /// How much of the vectors the address maps explained.
    pub report: DecodeReport,
}

impl<'p> Decoder<'p> {
    /// A decoder for a program's bursts.
    pub fn new(program: &'p Program) -> Self {
        Self {
            program,
            instructions: FxHashMap::default(),
            fall_throughs: FxHashMap::default(),
            passed: Vec::new(),
            starts: function_starts(program),
            stack: Vec::new(),
            throws: FxHashMap::default(),
            frame: FrameId(0),
            next_frame: 1,
            looped: false,
            report: DecodeReport::default(),
        }
    }

    /// Decodes one burst; `sink` gets each event with the position of the branch before it. The fall-through range that
    /// the timer interrupted is omitted, because its events have no weight ([`Position::Interrupted`]).
    pub fn burst(&mut self, burst: &Burst, sink: &mut impl FnMut(usize, Event)) {
        self.whole_burst(burst, usize::MAX, &mut |position, event| {
            if let Position::Branch(branch) = position {
                sink(branch, event);
            }
        });
    }

    /// Decodes all fall-through ranges of a burst, up to a maximum number of taken branches and the target of the last
    /// one.
    pub fn whole_burst(&mut self, burst: &Burst, max_branches: usize, sink: &mut impl FnMut(Position, Event)) {
        self.begin();
        self.report.bursts += burst.count;
        let taken = burst.branches.get(..max_branches).unwrap_or(&burst.branches);
        self.report.branches += taken.len() as u64 * burst.count;
        let first = burst.branches.first().map(|first| first.from);
        if let (Some(start), Some(end)) = (burst.start, first.or(burst.end)) {
            self.fall_through(start, end, first.is_some(), 0, &mut |event| {
                sink(Position::Interrupted, event);
            });
        }
        let is_cut = taken.len() < burst.branches.len();
        let end = if is_cut {
            taken.last().map(|last| last.to)
        } else {
            burst.end
        };
        self.branches(taken, end, is_cut, burst.count, &mut |branch, event| {
            sink(Position::Branch(branch), event);
        });
        for &observed in burst.values.iter().filter(|one| (one.branch as usize) < taken.len()) {
            let sink = &mut |event| sink(Position::Branch(observed.branch as usize), event);
            match observed.division {
                None => self.memory_length(taken, observed, sink),
                Some(at) => self.divisor(&taken[..=observed.branch as usize], observed.value, at, sink),
            }
        }
    }

    /// Decodes a window of a compressed burst. Its lead determines the current call and the block before, so that no
    /// transition is lost where windows were cut.
    pub fn window(&mut self, window: &Window, sink: &mut impl FnMut(Position, Event)) {
        self.begin();
        if let (Some(lead), Some(first)) = (window.lead, window.branches.first()) {
            self.branches(&[lead], Some(first.from), true, 0, &mut |_, event| {
                if matches!(event, Event::Block { .. }) {
                    sink(Position::Lead, event);
                }
            });
        }
        self.branches(
            &window.branches,
            window.end,
            !window.last,
            window.weight,
            &mut |branch, event| sink(Position::Branch(branch), event),
        );
    }

    /// Starts without history.
    fn begin(&mut self) {
        self.stack.clear();
        self.looped = false;
        self.fresh_frame();
    }

    /// Adds the bursts and branches behind all windows to the report; their numbers are known exactly.
    pub fn note_compressed(&mut self, compressed: &Compressed) {
        for epoch in &compressed.epochs {
            self.report.bursts += epoch.bursts;
            self.report.branches += epoch.branches;
        }
    }

    /// Decodes consecutive branches, and the fall-through range from the last one's target to `end`; `end_ran`: that
    /// instruction, too.
    fn branches(
        &mut self,
        branches: &[Branch],
        end: Option<CodeAddress>,
        end_ran: bool,
        count: u64,
        sink: &mut impl FnMut(usize, Event),
    ) {
        for (position, branch) in branches.iter().enumerate() {
            let sink = &mut |event| sink(position, event);
            self.transfer(branch.from, branch.to, sink);
            // A fall-through range ends with the next branch, the last one before the instruction that was not reached.
            let (end, inclusive) = match branches.get(position + 1) {
                Some(next) => (Some(next.from), true),
                None => (end, end_ran),
            };
            if let Some(end) = end {
                self.fall_through(branch.to, end, inclusive, count, sink);
            }
        }
    }

    fn fresh_frame(&mut self) {
        self.frame = FrameId(self.next_frame);
        self.next_frame += 1;
    }

    fn enter(&mut self, sink: &mut impl FnMut(Event)) {
        self.fresh_frame();
        sink(Event::Entered { frame: self.frame });
    }

    fn instruction(&mut self, at: CodeAddress) -> Option<Instruction> {
        let program = self.program;
        *self.instructions.entry(at).or_insert_with(|| {
            let (map, address) = program.locate(at)?;
            instruction_at(&map.binary, address)
        })
    }

    /// Follows a taken branch on the shadow stack.
    fn transfer(&mut self, from: CodeAddress, to: CodeAddress, sink: &mut impl FnMut(Event)) {
        let instruction = self.instruction(from);
        match instruction.map(|i| i.transfer) {
            Some(kind @ (Transfer::Call | Transfer::IndirectCall)) => {
                if kind == Transfer::IndirectCall {
                    self.report_target(from, to, sink);
                }
                let len = instruction.map_or(0, |i| u64::from(i.len));
                if self.stack.len() == MAX_STACK {
                    self.stack.remove(0);
                }
                let return_to = CodeAddress {
                    offset: from.offset + len,
                    ..from
                };
                self.stack.push(Pending {
                    return_to,
                    frame: self.frame,
                });
                if self.throws(return_to) {
                    self.unwind(return_to, sink);
                }
                self.enter(sink);
            }
            Some(Transfer::IndirectJump) if self.starts.contains_key(&to) => {
                self.report_target(from, to, sink);
                self.enter(sink);
            }
            // A tail call is a jump to a function's first instruction, except where a loop begins there.
            Some(Transfer::Jump | Transfer::Conditional) if self.starts.contains_key(&to) => {
                if self.is_own_loop(from, to) {
                    self.looped = true;
                } else {
                    self.enter(sink);
                }
            }
            Some(Transfer::Jump | Transfer::Conditional | Transfer::IndirectJump) => {}
            Some(Transfer::Return) => {
                sink(Event::Left { frame: self.frame });
                self.return_to(to);
            }
            // Everything that comes back from code that is not known.
            _ => {
                let is_known = self.stack.iter().any(|pending| pending.return_to == to);
                if !is_known && self.program.block_before_return(to).is_some() {
                    // To a call from before the burst: what ran since then has ended, by a jump to that code if not by
                    // a return.
                    sink(Event::Left { frame: self.frame });
                }
                self.return_to(to);
            }
        }
    }

    fn throws(&mut self, return_to: CodeAddress) -> bool {
        let program = self.program;
        *(self.throws.entry(return_to)).or_insert_with(|| unwinding::throws(program, return_to))
    }

    /// Reports a throw, and the edges by which it reaches its handler.
    fn unwind(&self, site: CodeAddress, sink: &mut impl FnMut(Event)) {
        let calls = self.stack.iter().rev().map(|pending| pending.return_to);
        let (edges, is_complete) = unwinding::unwind_edges(self.program, calls);
        sink(Event::Throw { site, is_complete });
        for edge in edges {
            sink(Event::Unwound {
                site,
                is_complete,
                module: edge.module,
                instance: edge.instance,
                from: edge.from,
                to: edge.to,
            });
        }
    }

    /// Whether a jump to a function's start comes from the function itself, at no call.
    fn is_own_loop(&self, from: CodeAddress, to: CodeAddress) -> bool {
        let (Some((map, from)), Some((_, to))) = (self.program.locate(from), self.program.locate(to)) else {
            return false;
        };
        let calls = |target| matches!(target, ProbeTarget::Call(_));
        same_function(map, from, to) && !map.probes_in(from, from).iter().any(|probe| calls(probe.target))
    }

    fn return_to(&mut self, to: CodeAddress) {
        match self.stack.iter().rposition(|p| p.return_to == to) {
            Some(depth) => {
                self.frame = self.stack[depth].frame;
                self.stack.truncate(depth);
            }
            // Into a caller from before the burst, or a function that unknown code calls back.
            None => self.fresh_frame(),
        }
    }

    fn report_target(&mut self, from: CodeAddress, to: CodeAddress, sink: &mut impl FnMut(Event)) {
        let (Some((map, address)), Some(&target)) = (self.program.locate(from), self.starts.get(&to)) else {
            return;
        };
        for probe in map.probes_in(address, address) {
            if let ProbeTarget::Call(call) = probe.target {
                let callee = map.function_of(probe.instance).cfg.calls[call.index()].callee;
                if callee == Callee::Indirect {
                    sink(Event::IndirectCall {
                        module: from.module,
                        instance: probe.instance,
                        call,
                        target,
                    });
                }
            }
        }
    }

    /// Finds the call that led to a routine for memory: directly, or through an entry of the linkage table.
    fn memory_length(&self, branches: &[Branch], operation: ObservedValue, sink: &mut impl FnMut(Event)) {
        let entered = operation.branch as usize;
        let jump = branches[entered].from;
        let is_linkage = |call: &&Branch| {
            call.to.module == jump.module && (0..LINKAGE_ENTRY).contains(&jump.offset.wrapping_sub(call.to.offset))
        };
        let before = entered.checked_sub(1).and_then(|before| branches.get(before));
        for from in [Some(jump), before.filter(is_linkage).map(|call| call.from)] {
            let Some((map, address)) = from.and_then(|from| self.program.locate(from)) else {
                continue;
            };
            for probe in map.probes_in(address, address) {
                if let ProbeTarget::Call(call) = probe.target {
                    sink(Event::Value {
                        module: jump.module,
                        instance: probe.instance,
                        site: ValueSite::Length(call.0),
                        value: operation.value,
                    });
                    return;
                }
            }
        }
    }

    /// Finds the block of a division: the last one before it, or, if a call returned into the middle of a block, that
    /// block. Within a block there are jumps where code generation chooses between a short and a long division.
    fn divisor(&mut self, branches: &[Branch], divisor: u64, at: CodeAddress, sink: &mut impl FnMut(Event)) {
        let Some((map, _)) = self.program.locate(at) else {
            return;
        };
        let mut end = at;
        for branch in branches.iter().rev().take(MAX_JUMPS_IN_BLOCK) {
            let Some(passed) = self.find_fall_through(map, branch.to, end, true) else {
                return;
            };
            let last = self.passed[as_usize(&passed)].last();
            let last = last.map(|&(_, instance, block)| (at.module, instance, block));
            if let Some((module, instance, block)) = last.or_else(|| self.program.block_before_return(branch.to)) {
                sink(Event::Value {
                    module,
                    instance,
                    site: ValueSite::Divisor(block),
                    value: divisor,
                });
                return;
            }
            match self.instruction(branch.from).map(|instruction| instruction.transfer) {
                Some(Transfer::Jump | Transfer::Conditional) => end = branch.from,
                _ => return,
            }
        }
    }

    /// Emits the blocks between two addresses.
    fn fall_through(
        &mut self,
        start: CodeAddress,
        end: CodeAddress,
        inclusive: bool,
        count: u64,
        sink: &mut impl FnMut(Event),
    ) {
        let looped = std::mem::take(&mut self.looped);
        let Some((map, first)) = self.program.locate(start) else {
            return;
        };
        self.report.fall_throughs += count;
        let Some(passed) = self.find_fall_through(map, start, end, inclusive) else {
            self.report.inconsistent += count;
            self.fresh_frame();
            return;
        };
        for &(address, instance, block) in &self.passed[as_usize(&passed)] {
            // An entry block that has no code lies where the loop begins. Nothing goes back to it.
            let is_entry = looped && address == first && block == BlockIndex::ENTRY;
            if is_entry && map.body(&map.inline_instances[instance.index()]).is_some() {
                continue;
            }
            sink(Event::Block {
                module: start.module,
                frame: self.frame,
                instance,
                block,
                address,
            });
        }
        if !inclusive {
            self.passed.truncate(passed.start as usize);
        }
    }

    fn find_fall_through(
        &mut self,
        map: &AddressMap,
        start: CodeAddress,
        end: CodeAddress,
        inclusive: bool,
    ) -> FallThrough {
        if inclusive && let Some(known) = self.fall_throughs.get(&(start, end)) {
            return known.clone();
        }
        if self.fall_throughs.len() == MAX_FALL_THROUGHS {
            self.fall_throughs.clear();
            self.passed.clear();
        }
        let fall_through = self.new_fall_through(map, start, end, inclusive);
        if inclusive {
            self.fall_throughs.insert((start, end), fall_through.clone());
        }
        fall_through
    }

    fn new_fall_through(
        &mut self,
        map: &AddressMap,
        start: CodeAddress,
        end: CodeAddress,
        inclusive: bool,
    ) -> FallThrough {
        let first = map.binary.address_of_offset(start.offset)?;
        let last = (end.module == start.module).then(|| map.binary.address_of_offset(end.offset))??;
        if last < first {
            return None;
        }
        let begin = self.passed.len() as u32;
        if !same_function(map, first, last) {
            // Functions in assembly have symbols within, as musl's `memcpy` has.
            let is_annotated = !map.probes_in(first, last).is_empty();
            return (!is_annotated).then_some(begin..begin);
        }
        // Exclusive of an end where nothing ran at all: there is no last instruction.
        if let Some(last) = if inclusive {
            Some(last.0)
        } else {
            last.0.checked_sub(1).filter(|_| last != first)
        } {
            let blocks = map.probes_in(first, Address(last)).iter();
            self.passed.extend(blocks.filter_map(|probe| match probe.target {
                ProbeTarget::Block(block) => Some((probe.address, probe.instance, block)),
                ProbeTarget::Call(_) => None,
            }));
            lanes::interleave(map, &mut self.passed[begin as usize..]);
        }
        Some(begin..self.passed.len() as u32)
    }
}

fn as_usize(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// Straight-line execution does not leave a function, except where none is known.
pub(crate) fn same_function(map: &AddressMap, first: Address, last: Address) -> bool {
    map.binary.symbol_at(first) == map.binary.symbol_at(last)
}

fn function_starts(program: &Program) -> FxHashMap<CodeAddress, FunctionId> {
    let mut starts = FxHashMap::default();
    for (module, map) in program.annotated() {
        for (symbol, function) in map.inline_instances.iter().filter_map(|instance| map.body(instance)) {
            if let Some(offset) = map.binary.offset_of_address(symbol.address) {
                starts.entry(CodeAddress { module, offset }).or_insert(function.cfg.id);
            }
        }
    }
    starts
}
