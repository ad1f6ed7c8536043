//! From one probe to the next, through blocks without probes.
//!
//! The optimiser leaves some blocks of an inline instance without a probe, in all of its code (*unprobed* blocks) or in
//! parts of it. A step leads from one observed block to the next. [`step`] finds its edges if only one path explains
//! it, and the blocks that it implies. Each step is searched for once.

mod step;

use crate::decode::FrameId;
use crate::program::Program;
use pleach_annotate::cfg::{ProbeTarget, Terminator};
use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::{AddressMap, FunctionIndex, InlineInstanceIndex};
use pleach_collector::vector::ModuleId;
use rustc_hash::FxHashMap;
pub(crate) use step::{Graph, Step};

/// Activations of an inline instance whose last blocks are remembered: as many recursive calls may return.
const MAX_ACTIVATIONS: usize = 32;

/// The last blocks of the latest activations of an inline instance, oldest activation first. A recursive call has its own
/// activations, and returns to the one that made it.
#[derive(Clone, Default)]
struct LastBlocks(Vec<(FrameId, BlockIndex)>);

impl LastBlocks {
    fn position(&self, frame: FrameId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&frame, |&(frame, _)| frame)
    }

    fn get(&self, frame: FrameId) -> Option<BlockIndex> {
        self.position(frame).ok().map(|position| self.0[position].1)
    }

    /// An activation passed a block: later ones, which it called, have ended.
    fn set(&mut self, frame: FrameId, block: BlockIndex) {
        let (Ok(position) | Err(position)) = self.position(frame);
        self.0.truncate(position);
        if self.0.len() == MAX_ACTIVATIONS {
            self.0.remove(0);
        }
        self.0.push((frame, block));
    }
}

/// Follows the activations of one module's inline instances from one probe to the next.
pub(crate) struct ProbeWalker<'m> {
    map: &'m AddressMap,
    /// By inline instance: which blocks have a probe in it.
    probed: Vec<Vec<bool>>,
    /// By inline instance: the last blocks of its activations.
    last: Vec<LastBlocks>,
    /// By inline instance: the steps found so far, by where they begin and end.
    steps: Vec<FxHashMap<(BlockIndex, BlockIndex), Step>>,
    /// By function: see `Cfg::edge_bases`; empty until needed.
    bases: Vec<Vec<u32>>,
}

/// The branches of the graph that a step depends on.
pub(crate) enum Choices {
    /// So many blocks with several successors are on the only path.
    Certain(usize),
    /// This branch chose between two paths without probes.
    Between(BlockIndex),
    /// Several paths, or blocks that are implied.
    Unknown,
}

/// A step that an activation took in one inline instance of a function.
pub(crate) struct Taken<'f> {
    /// The block with a probe that control came from.
    pub from: BlockIndex,
    /// The known edges from it to the current block, numbered from slot 0 of block 0 on.
    pub edges: &'f [u32],
    /// Implied blocks: they were passed, but their probes are elsewhere in the inline instance.
    pub implied: &'f [BlockIndex],
}

impl<'m> ProbeWalker<'m> {
    /// No activation is known yet.
    pub fn new(map: &'m AddressMap) -> Self {
        let mut probed: Vec<Vec<bool>> = vec![Vec::new(); map.inline_instances.len()];
        for probe in &map.probes {
            if let ProbeTarget::Block(block) = probe.target {
                let blocks = &mut probed[probe.instance.index()];
                if blocks.is_empty() {
                    blocks.resize(map.function_of(probe.instance).cfg.blocks.len(), false);
                }
                blocks[block.index()] = true;
            }
        }
        Self {
            map,
            last: vec![LastBlocks::default(); map.inline_instances.len()],
            probed,
            steps: vec![FxHashMap::default(); map.inline_instances.len()],
            bases: vec![Vec::new(); map.functions.len()],
        }
    }

    /// The function of an inline instance.
    pub fn function(&self, instance: InlineInstanceIndex) -> FunctionIndex {
        self.map.inline_instances[instance.index()].function
    }

    /// The graph that the search for steps goes through.
    pub fn graph(&mut self, instance: InlineInstanceIndex) -> Graph<'_> {
        graph(self.map, &self.probed, &mut self.bases, instance)
    }

    /// Whether a block ends in a branch with two distinct targets.
    pub fn is_conditional(&self, instance: InlineInstanceIndex, block: BlockIndex) -> bool {
        let block = &self.map.function_of(instance).cfg.blocks[block.index()];
        let two = matches!(block.successors[..], [first, second] if first != second);
        two && block.terminator == Terminator::Branch
    }

    /// Whether a block ends in a switch.
    pub fn is_switch(&self, instance: InlineInstanceIndex, block: BlockIndex) -> bool {
        let block = &self.map.function_of(instance).cfg.blocks[block.index()];
        block.terminator == Terminator::Switch
    }

    /// An activation reached a block. Returns the step, if its edges are certain.
    pub fn pass(&mut self, frame: FrameId, instance: InlineInstanceIndex, block: BlockIndex) -> Option<Taken<'_>> {
        let last = self.last(frame, instance, block);
        self.last[instance.index()].set(frame, block);
        let from = last?;
        let Self {
            map,
            probed,
            steps,
            bases,
            ..
        } = self;
        let step = steps[instance.index()]
            .entry((from, block))
            .or_insert_with(|| graph(map, probed, bases, instance).find_step(from, block));
        match step {
            Step::Path(edges) => Some(Taken {
                from,
                edges,
                implied: &[],
            }),
            Step::Implied(edges, implied) => Some(Taken { from, edges, implied }),
            Step::Choice(_) | Step::Unknown => None,
        }
    }

    /// The block that an activation passed last, if it may lead to this one.
    pub fn last(&self, frame: FrameId, instance: InlineInstanceIndex, block: BlockIndex) -> Option<BlockIndex> {
        // An entry block has no predecessors: whatever came before was another activation.
        let last = self.last[instance.index()].get(frame);
        last.filter(|_| block != BlockIndex::ENTRY)
    }

    /// The branches between one block and the next. The step must have been passed.
    pub fn choices(&mut self, instance: InlineInstanceIndex, from: BlockIndex, to: BlockIndex) -> Choices {
        let Self {
            map,
            probed,
            steps,
            bases,
            ..
        } = self;
        match steps[instance.index()].get(&(from, to)) {
            Some(Step::Path(edges)) => Choices::Certain(graph(map, probed, bases, instance).choosing(edges).count()),
            Some(Step::Choice(branch)) => Choices::Between(*branch),
            _ => Choices::Unknown,
        }
    }
}

/// The graph of an inline instance's function; its edges are numbered when they are first needed.
fn graph<'a>(
    map: &'a AddressMap,
    probed: &'a [Vec<bool>],
    bases: &'a mut [Vec<u32>],
    instance: InlineInstanceIndex,
) -> Graph<'a> {
    let cfg = &map.function_of(instance).cfg;
    let bases = &mut bases[map.inline_instances[instance.index()].function.0 as usize];
    if bases.is_empty() {
        *bases = cfg.edge_bases();
    }
    Graph {
        cfg,
        bases,
        probed: &probed[instance.index()],
    }
}

/// One value for each annotated module.
pub(crate) struct ByModule<T>(Vec<Option<T>>);

impl<T> ByModule<T> {
    /// One for each annotated module.
    pub fn new<'p>(program: &'p Program, of_map: impl Fn(&'p AddressMap) -> T) -> Self {
        let mut all = Vec::new();
        for (module, map) in program.annotated() {
            all.resize_with(module.0 as usize, || None);
            all.push(Some(of_map(map)));
        }
        Self(all)
    }

    /// A module's; `None` where it is not annotated.
    pub fn get_mut(&mut self, module: ModuleId) -> Option<&mut T> {
        self.0.get_mut(module.0 as usize)?.as_mut()
    }

    /// All of them.
    pub fn into_iter(self) -> impl Iterator<Item = (ModuleId, T)> {
        let all = (0..).map(ModuleId).zip(self.0);
        all.filter_map(|(module, one)| Some((module, one?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recursive_call_returns_to_the_activation_that_made_it() {
        let mut last = LastBlocks::default();
        last.set(FrameId(1), BlockIndex(2));
        last.set(FrameId(5), BlockIndex(3));
        last.set(FrameId(7), BlockIndex(0));
        assert_eq!(last.get(FrameId(5)), Some(BlockIndex(3)));
        last.set(FrameId(5), BlockIndex(4));
        assert_eq!(last.get(FrameId(7)), None, "it has ended");
        assert_eq!(last.get(FrameId(1)), Some(BlockIndex(2)));
        for frame in 0..100 {
            last.set(FrameId(10 + frame), BlockIndex(6));
        }
        assert_eq!(last.0.len(), MAX_ACTIVATIONS);
        assert_eq!(last.get(FrameId(109)), Some(BlockIndex(6)));
        assert_eq!(last.get(FrameId(1)), None, "too long ago");
    }
}
