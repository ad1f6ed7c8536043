//! Counts of blocks → counts of places.
//!
//! The code of a function is walked in address order. A block's probe says that the block begins; the instructions
//! after it, up to the end of the machine code's own basic block, run as often as the block does. So does, around
//! inlined code, the block with the call. The instructions that debug information places in the same function are the
//! block's.
//!
//! Discriminators make a place belong to one block, but the compiler moves single instructions into others, and has one
//! location for several blocks where it merged them. A place has the count of the block with most of its instructions;
//! in a tie, the least count, because instructions are moved to where they run more often. Inferred counts are of the
//! block, whatever number of copies of it the optimiser made, so copies are not added up.

use super::{BodySample, FunctionSamples, SampleProfile};
use pleach_analysis::instances::InstanceProfile;
use pleach_annotate::cfg::{Callee, ProbeTarget};
use pleach_annotate::code::{Transfer, instruction_at};
use pleach_annotate::id::{BlockIndex, CallIndex, CfgHash, FunctionGuid, FunctionId};
use pleach_annotate::machine::MachineFunction;
use pleach_annotate::map::{AddressMap, FunctionIndex, InlineInstanceIndex};
use pleach_annotate::probe::{Address, Symbol};
use pleach_annotate::sources::{Locations, SourceFrame, SourcePlace};
use pleach_collector::vector::ModuleId;
use pleach_profile::{FunctionProfile, Profile};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The counts that an export has.
pub trait Counts {
    /// Executions of each block of an inline instance; `None` without samples of it.
    fn blocks(&self, instance: InlineInstanceIndex) -> Option<&[u64]>;
    /// Observed targets of an indirect call.
    fn targets(&self, instance: InlineInstanceIndex, call: CallIndex) -> Vec<(FunctionGuid, u64)>;
    /// Whether the counts are of an inline instance alone, not of its function.
    fn are_of_instances(&self) -> bool;
}

/// Counts of each inline instance of a module.
pub struct InlinedCounts<'c> {
    /// Of all modules.
    pub profiles: &'c BTreeMap<(ModuleId, InlineInstanceIndex), InstanceProfile>,
    /// The module.
    pub module: ModuleId,
}

impl Counts for InlinedCounts<'_> {
    fn blocks(&self, instance: InlineInstanceIndex) -> Option<&[u64]> {
        let profile = self.profiles.get(&(self.module, instance))?;
        (!profile.blocks.is_empty()).then_some(&profile.blocks)
    }

    fn targets(&self, instance: InlineInstanceIndex, call: CallIndex) -> Vec<(FunctionGuid, u64)> {
        let profile = self.profiles.get(&(self.module, instance));
        let targets = profile.and_then(|profile| profile.targets.get(&call));
        let targets = targets.into_iter().flatten();
        targets.map(|(target, count)| (target.guid, *count)).collect()
    }

    fn are_of_instances(&self) -> bool {
        true
    }
}

/// Counts of each function, which a profile has without raw vectors.
pub struct FlatCounts<'c> {
    map: &'c AddressMap,
    functions: FxHashMap<(FunctionId, CfgHash), &'c FunctionProfile>,
}

impl<'c> FlatCounts<'c> {
    /// The counts of a profile.
    pub fn new(profile: &'c Profile, map: &'c AddressMap) -> Self {
        let sampled = profile.functions.iter().filter(|function| function.samples > 0);
        Self {
            map,
            functions: sampled
                .map(|function| ((function.id, function.cfg_hash), function))
                .collect(),
        }
    }

    fn function(&self, instance: InlineInstanceIndex) -> Option<&FunctionProfile> {
        let function = self.map.function_of(instance);
        self.functions.get(&(function.cfg.id, function.hash)).copied()
    }
}

impl Counts for FlatCounts<'_> {
    fn blocks(&self, instance: InlineInstanceIndex) -> Option<&[u64]> {
        self.function(instance).map(|function| function.blocks.as_slice())
    }

    fn targets(&self, instance: InlineInstanceIndex, call: CallIndex) -> Vec<(FunctionGuid, u64)> {
        let targets = self.function(instance).map(|function| &function.call_targets);
        let of_call = targets.into_iter().flatten().find(|of_call| of_call.call == call.0);
        of_call.map(|of_call| of_call.targets.clone()).unwrap_or_default()
    }

    fn are_of_instances(&self) -> bool {
        false
    }
}

/// Adds a binary's places with their counts. `names`: linkage names of called functions.
pub fn collect(
    profile: &mut SampleProfile,
    map: &AddressMap,
    locations: &[Locations],
    counts: &dyn Counts,
    names: &FxHashMap<FunctionGuid, Rc<str>>,
) {
    let instances = (0..map.inline_instances.len() as u32).map(InlineInstanceIndex);
    let sampled = instances.filter(|instance| counts.blocks(*instance).is_some());
    let mut collector = Collector {
        sampled: sampled.map(|instance| emitted(map, instance).0).collect(),
        map,
        locations,
        counts,
        names,
        found: BTreeMap::new(),
    };
    let instances = map.inline_instances.iter().zip((0..).map(InlineInstanceIndex));
    let bodies = instances.filter_map(|(instance, number)| Some((map.body(instance)?.0.address, number)));
    let bodies: FxHashMap<Address, InlineInstanceIndex> = bodies.collect();
    let mut last = None;
    for symbol in &map.binary.symbols {
        // Aliases are symbols of the same code.
        let range = (symbol.address, symbol.size);
        if last.replace(range) != Some(range) {
            collector.function(symbol, bodies.get(&symbol.address).copied());
        }
    }
    collector.add_to(profile);
}

/// The functions around an instruction, the emitted one first; each but the last with the place of the call.
type Chain = Vec<SourceFrame>;

/// The places of an inline instance. One function may be inlined twice at one place; the copies differ in `Chain` only
/// if they are at different places.
type Found = BTreeMap<SourcePlace, Evidence>;

/// What tells the count of a place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Evidence {
    /// Instructions of the place by the block that runs there.
    instructions: BTreeMap<BlockIndex, u32>,
    /// Blocks with a call at the place, whose probe is the call itself.
    calls: BTreeSet<BlockIndex>,
    callees: BTreeMap<Rc<str>, u64>,
}

impl Evidence {
    /// Adds what another copy of the same code shows.
    fn join(&mut self, other: Self) {
        for (block, number) in other.instructions {
            *self.instructions.entry(block).or_default() += number;
        }
        self.calls.extend(other.calls);
        for (callee, count) in other.callees {
            self.called(callee, count);
        }
    }

    /// Several copies of a call are one.
    fn called(&mut self, callee: Rc<str>, count: u64) {
        let known = self.callees.entry(callee).or_default();
        *known = (*known).max(count);
    }

    /// The place's counts, from those of blocks.
    fn sample(self, blocks: &[u64]) -> BodySample {
        let count = |block: &BlockIndex| blocks.get(block.index()).copied().unwrap_or(0);
        let of_calls = self.calls.iter().map(count).max();
        let most = self.instructions.values().max();
        let of_most = self.instructions.iter().filter(|(_, number)| Some(*number) == most);
        let of_most = of_most.map(|(block, _)| count(block)).min();
        BodySample {
            count: of_calls.or(of_most).unwrap_or(0),
            callees: self.callees,
        }
    }
}

struct Collector<'c> {
    map: &'c AddressMap,
    locations: &'c [Locations],
    counts: &'c dyn Counts,
    names: &'c FxHashMap<FunctionGuid, Rc<str>>,
    /// Emitted functions with samples. What was never sampled in their code has the count 0, not an unknown one.
    sampled: FxHashSet<InlineInstanceIndex>,
    found: BTreeMap<(InlineInstanceIndex, Chain), Found>,
}

/// Inline instances with the block that runs, the latest last.
type Running = Vec<(InlineInstanceIndex, BlockIndex)>;

impl Collector<'_> {
    /// Walks a function's code. `body`: its own inline instance, whose entry block runs first.
    fn function(&mut self, symbol: &Symbol, body: Option<InlineInstanceIndex>) {
        let range = symbol.address..Address(symbol.address.0.saturating_add(symbol.size));
        let Some(last) = range.end.0.checked_sub(1).map(Address) else {
            return;
        };
        if self.map.probes_in(range.start, last).is_empty() {
            return;
        }
        let Some(code) = MachineFunction::new(&self.map.binary, &range, &BTreeSet::new()) else {
            return;
        };
        let targets = jump_targets(&code);
        let mut running: Running = body.map(|body| (body, BlockIndex::ENTRY)).into_iter().collect();
        for (position, segment) in code.segments.iter().enumerate() {
            for &address in &segment.instructions {
                self.instruction(address, &mut running);
            }
            let is_call = |last: &Address| {
                let decoded = instruction_at(&self.map.binary, *last);
                decoded.is_some_and(|one| matches!(one.transfer, Transfer::Call | Transfer::IndirectCall))
            };
            // A call ends a segment, but not the block.
            if !segment.instructions.last().is_some_and(is_call) || targets.contains(&(position + 1)) {
                running.clear();
            }
        }
    }

    fn instruction(&mut self, address: Address, running: &mut Running) {
        let probes = self.map.probes_in(address, address);
        for probe in probes {
            if let ProbeTarget::Block(block) = probe.target {
                self.begin(probe.instance, block, running);
            }
        }
        let Some(stack) = self.locations.iter().find_map(|locations| locations.stack_at(address)) else {
            return;
        };
        let Some((innermost, around)) = stack.split_last() else {
            return;
        };
        let chain = || [around, &[without_place(innermost)]].concat();
        let of_stack = running.iter().rev().find(|(instance, _)| self.is_of(*instance, &stack));
        if let (Some(&(instance, block)), Some(place)) = (of_stack, innermost.place)
            && self.is_sampled(instance)
        {
            let found = self.found.entry((instance, chain())).or_default();
            *found.entry(place).or_default().instructions.entry(block).or_default() += 1;
        }
        for probe in probes {
            if let ProbeTarget::Call(call) = probe.target
                && let Some(place) = innermost.place.filter(|_| self.is_of(probe.instance, &stack))
            {
                self.call(probe.instance, call, chain(), place);
            }
        }
    }

    /// A block begins. Of the functions around it, the blocks with the calls run.
    fn begin(&self, instance: InlineInstanceIndex, block: BlockIndex, running: &mut Running) {
        let mut begun = Some((instance, block));
        while let Some((instance, block)) = begun {
            running.retain(|(other, _)| *other != instance);
            running.push((instance, block));
            let around = self.map.inline_instances[instance.index()].parent;
            begun = around.and_then(|(parent, call)| {
                let of_call = self.map.function_of(parent).cfg.calls.get(call?.index())?;
                Some((parent, of_call.block))
            });
        }
    }

    fn call(&mut self, instance: InlineInstanceIndex, call: CallIndex, chain: Chain, place: SourcePlace) {
        let of_graph = self.map.function_of(instance).cfg.calls[call.index()];
        if !self.is_sampled(instance) {
            return;
        }
        let blocks = self.counts.blocks(instance).unwrap_or_default();
        let count = blocks.get(of_graph.block.index()).copied().unwrap_or(0);
        let targets = match of_graph.callee {
            Callee::Direct(callee) => vec![(callee, count)],
            Callee::Indirect => self.counts.targets(instance, call),
            Callee::InlineAsm | Callee::Memory => Vec::new(),
        };
        let found = self.found.entry((instance, chain)).or_default();
        let evidence = found.entry(place).or_default();
        evidence.calls.insert(of_graph.block);
        for (target, count) in targets {
            if let Some(name) = self.names.get(&target) {
                evidence.called(name.clone(), count);
            }
        }
    }

    fn is_sampled(&self, instance: InlineInstanceIndex) -> bool {
        self.sampled.contains(&emitted(self.map, instance).0)
    }

    /// Whether an instruction with this inline stack belongs to an inline instance: same function, same depth.
    fn is_of(&self, instance: InlineInstanceIndex, stack: &[SourceFrame]) -> bool {
        let name = stack.last().map(|frame| &*frame.function);
        let (_, depth) = emitted(self.map, instance);
        depth == stack.len() && name == Some(self.map.function_of(instance).cfg.name.as_str())
    }

    /// Adds instances up: an emitted function may have several, such as clones, and it may be inlined at many places.
    fn add_to(self, profile: &mut SampleProfile) {
        let mut flat: BTreeMap<FunctionIndex, (InlineInstanceIndex, Rc<str>, Found)> = BTreeMap::new();
        for ((instance, chain), found) in self.found {
            let Some(last) = chain.last() else { continue };
            if self.counts.are_of_instances() {
                if let Some(function) = nested(profile, &chain) {
                    add(function, found, self.counts.blocks(instance));
                }
                continue;
            }
            // All instances have their function's counts: they are the same ones, not further ones.
            let function = self.map.inline_instances[instance.index()].function;
            let new = || (instance, last.function.clone(), Found::new());
            let (.., known) = flat.entry(function).or_insert_with(new);
            for (place, evidence) in found {
                known.entry(place).or_default().join(evidence);
            }
        }
        for (instance, name, found) in flat.into_values() {
            let function = profile.functions.entry(name).or_default();
            add(function, found, self.counts.blocks(instance));
        }
    }
}

/// The emitted function that an inline instance is in, and the number of functions from there to the instance, both
/// included.
fn emitted(map: &AddressMap, instance: InlineInstanceIndex) -> (InlineInstanceIndex, usize) {
    let (mut at, mut depth) = (instance, 1);
    while let Some((parent, _)) = map.inline_instances[at.index()].parent {
        (at, depth) = (parent, depth + 1);
    }
    (at, depth)
}

/// Adds a function's counts to those of others of its name.
fn add(function: &mut FunctionSamples, found: Found, blocks: Option<&[u64]>) {
    let blocks = blocks.unwrap_or_default();
    function.head = function.head.saturating_add(blocks.first().copied().unwrap_or(0));
    for (place, evidence) in found {
        function.body.entry(place).or_default().add(&evidence.sample(blocks));
    }
}

/// Segments that direct jumps lead to.
fn jump_targets(code: &MachineFunction) -> FxHashSet<usize> {
    let segments = code.segments.iter().enumerate();
    let next = segments.flat_map(|(position, segment)| segment.next.iter().map(move |&next| (position, next)));
    next.filter(|(position, next)| position + 1 != *next)
        .map(|(_, next)| next)
        .collect()
}

fn without_place(frame: &SourceFrame) -> SourceFrame {
    SourceFrame {
        function: frame.function.clone(),
        place: None,
    }
}

/// An inlined function in the profile of the one that was emitted. `None` if the place of a call is unknown.
fn nested<'p>(profile: &'p mut SampleProfile, chain: &[SourceFrame]) -> Option<&'p mut FunctionSamples> {
    let (emitted, inlined) = chain.split_first()?;
    let places = chain.iter().map(|frame| frame.place).take(inlined.len());
    let places = places.collect::<Option<Vec<_>>>()?;
    let mut function = profile.functions.entry(emitted.function.clone()).or_default();
    for (frame, place) in inlined.iter().zip(places) {
        let of_call = function.inlined.entry(place).or_default();
        function = of_call.entry(frame.function.clone()).or_default();
    }
    Some(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, line: Option<u32>) -> SourceFrame {
        SourceFrame {
            function: function.into(),
            place: line.map(place),
        }
    }

    fn place(line_offset: u32) -> SourcePlace {
        SourcePlace {
            line_offset,
            discriminator: 0,
        }
    }

    /// Instructions of a place in blocks.
    fn evidence(blocks: &[(u32, u32)]) -> Evidence {
        let instructions = blocks.iter().map(|&(block, number)| (BlockIndex(block), number));
        Evidence {
            instructions: instructions.collect(),
            ..Evidence::default()
        }
    }

    #[test]
    fn instances_are_added_to_the_place_of_their_call() {
        let mut profile = SampleProfile::default();
        let mut add_at = |chain: &[SourceFrame], line, blocks: &[u64]| {
            if let Some(function) = nested(&mut profile, chain) {
                add(function, [(place(line), evidence(&[(0, 1)]))].into(), Some(blocks));
            }
        };
        let chain = [frame("main", Some(4)), frame("f", Some(2)), frame("g", None)];
        // Two clones of one function.
        add_at(&chain, 1, &[5]);
        add_at(&chain, 1, &[2]);
        add_at(&chain[..1], 9, &[1]);
        // The place of a call is not known.
        add_at(&[frame("main", None), frame("g", None)], 1, &[7]);
        insta::assert_snapshot!(profile.to_text(), @"
        main:8:1
         9: 1
         4: f:7
          2: g:7
           1: 7
        ");
    }

    #[test]
    fn a_place_belongs_to_the_block_with_most_of_its_instructions() {
        let blocks = [100, 3, 40];
        let count = |evidence: Evidence| evidence.sample(&blocks).count;
        assert_eq!(count(evidence(&[(0, 1), (1, 2)])), 3);
        assert_eq!(count(evidence(&[(0, 2), (1, 2)])), 3);
        // Another copy of the code.
        let mut copies = evidence(&[(0, 2), (1, 3)]);
        copies.join(evidence(&[(0, 2)]));
        assert_eq!(count(copies.clone()), 100);
        // A call's probe is certain.
        copies.calls.insert(BlockIndex(2));
        copies.called("f".into(), 30);
        copies.called("f".into(), 20);
        let sample = copies.sample(&blocks);
        assert_eq!((sample.count, sample.callees["f"]), (40, 30));
    }
}
