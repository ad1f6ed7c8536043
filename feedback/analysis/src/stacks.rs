//! Call stacks of raw vectors: the calls and returns of a burst rebuild a shadow stack. A burst begins in the middle of
//! a run; a return beyond its first function shows that function's caller.

use crate::decode::{Event, FrameId, Position};
use crate::program::{Program, Site};
use crate::replay::{Observer, Replay, ReplayUnit, Run};
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_collector::vector::{ModuleId, VectorSet};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A function with its graph.
pub type Key = (FunctionId, CfgHash);

/// Longer chains of callers lose their beginning.
const MAX_DEPTH: usize = 200;

/// Executed IR instructions by chain of callers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Stacks {
    /// Of this function itself, called by those above it.
    pub own: f64,
    /// The functions that it calls.
    pub called: BTreeMap<Key, Stacks>,
}

impl Stacks {
    /// The stacks of a recording.
    pub fn from_vectors(program: &Program, vectors: &VectorSet) -> Self {
        let mut found = Self::default();
        visit_stacks(program, vectors, &mut |_, stack| found.add(stack.functions, stack.work));
        found
    }

    fn add(&mut self, chain: &[Key], work: f64) {
        let node = chain
            .iter()
            .fold(self, |node, key| node.called.entry(*key).or_default());
        node.own += work;
    }
}

/// A call stack of a burst or window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stack<'s> {
    /// The functions, the outermost known caller first. Inlined functions are among them.
    pub functions: &'s [Key],
    /// The source line on which the executed block of the last function begins; 0 if unknown.
    pub line: u32,
    /// Executed IR instructions.
    pub work: f64,
}

/// Calls `visit` with the call stacks of each burst and window. A stack comes once for each activation and line.
pub fn visit_stacks(program: &Program, vectors: &VectorSet, visit: &mut dyn FnMut(Run<'_>, Stack<'_>)) {
    let mut collector = Collector {
        program,
        chains: FxHashMap::default(),
        frames: Vec::new(),
        by_id: FxHashMap::default(),
        current: None,
        returned: None,
        visit,
    };
    Replay::new(program).recording(vectors, &mut collector);
}

/// An inline instance of a module. It determines a chain of functions.
type Place = (ModuleId, InlineInstanceIndex);

/// An activation in the present burst.
struct Frame {
    /// The activation that called it.
    caller: Option<usize>,
    /// The code that runs; `None` before the first block.
    at: Option<Place>,
    /// The code of the caller at the call.
    called_from: Option<Place>,
    /// Work by place and line.
    work: BTreeMap<(Place, u32), f64>,
}

struct Collector<'p> {
    program: &'p Program,
    /// The functions of each inline instance: the emitted function first, then those inlined into it.
    chains: FxHashMap<Place, Vec<Key>>,
    frames: Vec<Frame>,
    by_id: FxHashMap<FrameId, usize>,
    current: Option<usize>,
    /// The last event was a return: to this call of the caller, if that is known.
    returned: Option<Option<Place>>,
    visit: &'p mut dyn FnMut(Run<'_>, Stack<'_>),
}

impl Collector<'_> {
    /// A new activation, called from the code at the call if that is known, else from where the caller was last.
    fn frame(&mut self, id: FrameId, caller: Option<usize>, call: Option<Place>) -> usize {
        let called_from = caller.and_then(|caller| call.or(self.frames[caller].at));
        self.frames.push(Frame {
            caller,
            at: None,
            called_from,
            work: BTreeMap::new(),
        });
        self.by_id.insert(id, self.frames.len() - 1);
        self.frames.len() - 1
    }

    /// The place of a block, whose functions are noted.
    fn place(&mut self, (module, instance, _): Site) -> Place {
        let place = (module, instance);
        if let Some(map) = self.program.map(module) {
            self.chains.entry(place).or_insert_with(|| chain_of(map, instance));
        }
        place
    }

    /// The present activation, which a block belongs to.
    fn switch_to(&mut self, id: FrameId, place: Place) -> usize {
        let (before, returned) = (self.current, std::mem::take(&mut self.returned));
        let at = match self.by_id.get(&id) {
            Some(&known) => known,
            None => {
                let new = self.frame(id, None, None);
                // A return to where the burst has not been: to the caller of the outermost activation.
                if let (Some(left), Some(call)) = (before, returned)
                    && self.frames[left].caller.is_none()
                {
                    self.frames[left].caller = Some(new);
                    self.frames[left].called_from = call.or(Some(place));
                }
                new
            }
        };
        self.current = Some(at);
        self.frames[at].at = Some(place);
        at
    }
}

impl Observer for Collector<'_> {
    fn begin(&mut self, _run: Run<'_>) {
        self.frames.clear();
        self.by_id.clear();
        (self.current, self.returned) = (None, None);
    }

    fn event(&mut self, run: Run<'_>, position: Position, event: Event) {
        match event {
            Event::Entered { frame } => {
                let call = run
                    .branch(position)
                    .and_then(|branch| self.program.block_of_call(branch.from));
                let call = call.map(|call| self.place(call));
                let new = self.frame(frame, self.current, call);
                (self.current, self.returned) = (Some(new), None);
            }
            Event::Left { .. } => {
                let call = run
                    .branch(position)
                    .and_then(|branch| self.program.block_before_return(branch.to));
                self.returned = Some(call.map(|call| self.place(call)));
            }
            Event::Block {
                module,
                frame,
                instance,
                block,
                ..
            } => {
                let Some(map) = self.program.map(module) else { return };
                let place = self.place((module, instance, block));
                let at = self.switch_to(frame, place);
                let weight = match (run.source, position) {
                    // The fall-through range that the timer interrupted has no weight, a window's lead was counted
                    // before.
                    (_, Position::Interrupted | Position::Lead) => 0.0,
                    (ReplayUnit::Burst(burst), Position::Branch(_)) => burst.count as f64,
                    (ReplayUnit::Window(window), Position::Branch(_)) => window.weight as f64,
                };
                if let Some(block) = map.function_of(instance).cfg.blocks.get(block.index()) {
                    let work = self.frames[at].work.entry((place, block.line)).or_default();
                    *work += weight * f64::from(block.instructions);
                }
            }
            Event::IndirectCall { .. } | Event::Throw { .. } | Event::Unwound { .. } | Event::Value { .. } => {}
        }
    }

    fn end(&mut self, run: Run<'_>) {
        let chain = |place: &Place| self.chains.get(place).map_or(&[][..], Vec::as_slice);
        let mut functions = Vec::new();
        for frame in &self.frames {
            let mut callers = Vec::new();
            let mut at = frame;
            while let Some(caller) = at.caller.filter(|_| callers.len() < MAX_DEPTH) {
                callers.extend(&at.called_from);
                at = &self.frames[caller];
            }
            for (&(place, line), &work) in frame.work.iter().filter(|(_, work)| **work > 0.0) {
                functions.clear();
                functions.extend(callers.iter().rev().flat_map(chain));
                functions.extend(chain(&place));
                let stack = Stack {
                    functions: &functions[functions.len().saturating_sub(MAX_DEPTH)..],
                    line,
                    work,
                };
                (self.visit)(run, stack);
            }
        }
    }
}

/// The functions of inlined code, the emitted one first.
fn chain_of(map: &AddressMap, instance: InlineInstanceIndex) -> Vec<Key> {
    let mut chain = Vec::new();
    let mut at = Some(instance);
    while let Some(instance) = at {
        let function = map.function_of(instance);
        chain.push((function.cfg.id, function.hash));
        at = map.inline_instances[instance.index()].parent.map(|(parent, _)| parent);
    }
    chain.reverse();
    chain
}
