//! Call stacks of raw vectors: the calls and returns of a burst rebuild a shadow stack. A burst begins in the middle of
//! a run; a return beyond its first function shows that function's caller.

use pleach_analysis::decode::{Event, FrameId, Position};
use pleach_analysis::program::Program;
use pleach_analysis::replay::{Observer, Replay, Run, Source};
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_collector::vector::VectorSet;
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
        let mut collector = Collector {
            program,
            chains: FxHashMap::default(),
            frames: Vec::new(),
            by_id: FxHashMap::default(),
            current: None,
            returned: false,
            found: Self::default(),
        };
        Replay::new(program).recording(vectors, &mut collector);
        collector.found
    }

    fn add(&mut self, chain: &[Key], work: f64) {
        let chain = &chain[chain.len().saturating_sub(MAX_DEPTH)..];
        let node = chain
            .iter()
            .fold(self, |node, key| node.called.entry(*key).or_default());
        node.own += work;
    }
}

/// An activation in the present burst.
struct Frame {
    /// The activation that called it.
    caller: Option<usize>,
    /// Functions of the code that runs, the emitted function first, then those inlined into it.
    chain: Vec<Key>,
    /// The chain of the caller at the call.
    called_from: Vec<Key>,
    /// Work by chain.
    work: Vec<(Vec<Key>, f64)>,
}

struct Collector<'p> {
    program: &'p Program,
    /// The chain of each inline instance, by module and instance.
    chains: FxHashMap<(u32, u32), Vec<Key>>,
    frames: Vec<Frame>,
    by_id: FxHashMap<FrameId, usize>,
    current: Option<usize>,
    /// The last event was a return.
    returned: bool,
    found: Stacks,
}

impl Collector<'_> {
    fn frame(&mut self, id: FrameId, caller: Option<usize>) -> usize {
        let called_from = caller.map_or_else(Vec::new, |caller| self.frames[caller].chain.clone());
        self.frames.push(Frame {
            caller,
            chain: Vec::new(),
            called_from,
            work: Vec::new(),
        });
        self.by_id.insert(id, self.frames.len() - 1);
        self.frames.len() - 1
    }

    /// The present activation, which a block belongs to.
    fn switch_to(&mut self, id: FrameId, chain: &[Key]) -> usize {
        let (before, returned) = (self.current, std::mem::take(&mut self.returned));
        let at = match self.by_id.get(&id) {
            Some(&known) => known,
            None => {
                let new = self.frame(id, None);
                // A return to where the burst has not been: to the caller of the outermost activation.
                if let Some(left) = before.filter(|&left| returned && self.frames[left].caller.is_none()) {
                    self.frames[left].caller = Some(new);
                    self.frames[left].called_from = chain.to_vec();
                }
                new
            }
        };
        self.current = Some(at);
        self.frames[at].chain = chain.to_vec();
        at
    }
}

impl Observer for Collector<'_> {
    fn begin(&mut self, _run: Run<'_>) {
        self.frames.clear();
        self.by_id.clear();
        (self.current, self.returned) = (None, false);
    }

    fn event(&mut self, run: Run<'_>, position: Position, event: Event) {
        match event {
            Event::Entered { frame } => {
                let new = self.frame(frame, self.current);
                (self.current, self.returned) = (Some(new), false);
            }
            Event::Left { .. } => self.returned = true,
            Event::Block {
                module,
                frame,
                instance,
                block,
                ..
            } => {
                let Some(map) = self.program.map(module) else { return };
                let chain = self
                    .chains
                    .entry((module.0, instance.0))
                    .or_insert_with(|| chain_of(map, instance));
                let chain = chain.clone();
                let at = self.switch_to(frame, &chain);
                let weight = match (run.source, position) {
                    // The stretch that the timer interrupted has no weight, a window's lead was counted before.
                    (_, Position::Interrupted | Position::Lead) => 0.0,
                    (Source::Burst(burst), Position::Branch(_)) => burst.count as f64,
                    (Source::Window(window), Position::Branch(_)) => window.weight as f64,
                };
                let blocks = &map.function_of(instance).cfg.blocks;
                let instructions = blocks.get(block.index()).map_or(0, |block| block.instructions);
                let work = weight * f64::from(instructions);
                let frame = &mut self.frames[at];
                match frame.work.last_mut() {
                    Some((last, sum)) if *last == chain => *sum += work,
                    _ => frame.work.push((chain, work)),
                }
            }
            Event::IndirectCall { .. } | Event::MemoryLength { .. } => {}
        }
    }

    fn end(&mut self, _run: Run<'_>) {
        for frame in &self.frames {
            let mut callers = Vec::new();
            let mut at = frame;
            while let Some(caller) = at.caller.filter(|_| callers.len() < MAX_DEPTH) {
                callers.push(&at.called_from);
                at = &self.frames[caller];
            }
            let callers: Vec<Key> = callers.into_iter().rev().flatten().copied().collect();
            for (chain, work) in frame.work.iter().filter(|(_, work)| *work > 0.0) {
                self.found.add(&[&callers[..], chain].concat(), *work);
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
