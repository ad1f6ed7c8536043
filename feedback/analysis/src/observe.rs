//! Sequences of blocks → what was observed of each copy of a function.
//!
//! Counts are kept by copy (inline stack), because each copy has its own lost probes: a block that left no probe in one
//! copy is unknown there, whatever was seen of it elsewhere. A block that left one in a part of a copy's code only is
//! counted where control can have got on in no other way, too ([`step`]).

mod step;

use crate::decode::{DecodeReport, Decoder, Event, FrameId};
use crate::program::Program;
use crate::time_bias::Weights;
use pleach_annotate::cfg::{ProbeTarget, Terminator};
use pleach_annotate::id::{BlockIndex, FunctionId};
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_collector::vector::{ModuleId, VectorSet};
use rustc_hash::FxHashMap;
use step::{Graph, Step};

/// What was observed of one copy of a function.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeObservations {
    /// Entries of each block, weighted: sampled ones, and those that what was sampled next implies. `None` where the block
    /// left no probe in this copy.
    pub blocks: Vec<Option<f64>>,
    /// Observed transitions by successor slot (all slots of one target are given in the first). `None` where the two
    /// ends alone do not tell that the edge was taken.
    pub edges: Vec<Option<f64>>,
}

/// Everything that a recording says about one annotated module.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ModuleObservations {
    /// Copies with at least one sampled block.
    pub nodes: FxHashMap<InlineInstanceIndex, NodeObservations>,
    /// Targets of indirect calls, by caller's copy, call and target, weighted.
    pub targets: FxHashMap<(InlineInstanceIndex, u32, FunctionId), f64>,
}

/// Everything that a recording says about IR.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Observations {
    /// By module, annotated ones only.
    pub modules: FxHashMap<ModuleId, ModuleObservations>,
    /// What the address maps explained.
    pub report: DecodeReport,
}

/// Decodes all bursts of a recording, and counts what follows each branch with that branch's weight.
pub fn observe(program: &Program, vectors: &VectorSet, weights: &Weights) -> Observations {
    let mut counters: FxHashMap<ModuleId, Counter<'_>> = program
        .annotated()
        .map(|(module, map)| (module, Counter::new(map)))
        .collect();
    let mut decoder = Decoder::new(program);
    let mut count = |event, count: f64| match event {
        Event::Block {
            module,
            frame,
            node,
            block,
            ..
        } => {
            if let Some(counter) = counters.get_mut(&module) {
                counter.block(frame, node, block, count);
            }
        }
        Event::Entered { .. } | Event::Left { .. } => {}
        Event::IndirectCall {
            module,
            node,
            call,
            target,
        } => {
            if let Some(counter) = counters.get_mut(&module) {
                *counter.out.targets.entry((node, call.0, target)).or_default() += count;
            }
        }
    };
    for (number, burst) in vectors.bursts.iter().enumerate() {
        decoder.burst(burst, &mut |position, event| {
            count(event, burst.count as f64 * weights.get(number, position));
        });
    }
    if let Some(compressed) = &vectors.compressed {
        decoder.note_compressed(compressed);
        for window in &compressed.windows {
            decoder.window(window, &mut |_, event, weight| count(event, weight as f64));
        }
    }
    Observations {
        modules: counters
            .into_iter()
            .map(|(module, counter)| (module, counter.out))
            .collect(),
        report: decoder.report,
    }
}

/// Follows activations through the copies of one module's functions, from block to block.
pub(crate) struct Follower<'m> {
    map: &'m AddressMap,
    /// By copy: which blocks have a probe in it.
    probed: Vec<Vec<bool>>,
    /// By copy: the last block, and the activation it belongs to.
    last: Vec<Option<(FrameId, BlockIndex)>>,
    steps: FxHashMap<(InlineInstanceIndex, BlockIndex, BlockIndex), Step>,
    /// By function: see [`Cfg::edge_bases`]; empty until needed.
    bases: Vec<Vec<u32>>,
}

/// A step that an activation took in one copy of a function.
pub(crate) struct Taken<'f> {
    /// The block with a probe that control came from.
    pub from: BlockIndex,
    /// Edges from it to where control is, from slot 0 of block 0 on: those that are known.
    pub edges: &'f [u32],
    /// Blocks on the way that have a probe elsewhere in the copy, but left none here.
    pub hidden: &'f [BlockIndex],
}

impl<'m> Follower<'m> {
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
            last: vec![None; map.inline_instances.len()],
            probed,
            steps: FxHashMap::default(),
            bases: vec![Vec::new(); map.functions.len()],
        }
    }

    fn graph(&mut self, node: InlineInstanceIndex) -> Graph<'_> {
        let cfg = &self.map.function_of(node).cfg;
        let bases = &mut self.bases[self.map.inline_instances[node.index()].function.0 as usize];
        if bases.is_empty() {
            *bases = cfg.edge_bases();
        }
        Graph {
            cfg,
            bases,
            probed: &self.probed[node.index()],
        }
    }

    /// Whether a block ends in a branch with two ways.
    pub fn is_conditional(&self, node: InlineInstanceIndex, block: BlockIndex) -> bool {
        let block = &self.map.function_of(node).cfg.blocks[block.index()];
        let two = matches!(block.successors[..], [first, second] if first != second);
        two && block.terminator == Terminator::Branch
    }

    /// An activation got to a block: by which edges, if there is no doubt about them.
    pub fn pass(&mut self, frame: FrameId, node: InlineInstanceIndex, block: BlockIndex) -> Option<Taken<'_>> {
        let last = self.last[node.index()].replace((frame, block));
        // An entry block has no predecessors: whatever came before was another activation.
        let (_, from) = last.filter(|&(f, _)| f == frame && block != BlockIndex::ENTRY)?;
        let key = (node, from, block);
        if !self.steps.contains_key(&key) {
            let step = self.graph(node).find_step(from, block);
            self.steps.insert(key, step);
        }
        match &self.steps[&key] {
            Step::Path(edges) => Some(Taken {
                from,
                edges,
                hidden: &[],
            }),
            Step::Hidden(edges, hidden) => Some(Taken { from, edges, hidden }),
            Step::Unknown => None,
        }
    }
}

struct Counter<'m> {
    follower: Follower<'m>,
    out: ModuleObservations,
}

impl<'m> Counter<'m> {
    fn new(map: &'m AddressMap) -> Self {
        Self {
            follower: Follower::new(map),
            out: ModuleObservations::default(),
        }
    }

    fn block(&mut self, frame: FrameId, node: InlineInstanceIndex, block: BlockIndex, weight: f64) {
        let follower = &mut self.follower;
        let seen = (self.out.nodes)
            .entry(node)
            .or_insert_with(|| follower.graph(node).unobserved());
        if let Some(entries) = &mut seen.blocks[block.index()] {
            *entries += weight;
        }
        let Some(taken) = follower.pass(frame, node, block) else {
            return;
        };
        for &edge in taken.edges {
            *seen.edges[edge as usize].get_or_insert(0.0) += weight;
        }
        for &hidden in taken.hidden {
            *seen.blocks[hidden.index()].get_or_insert(0.0) += weight;
        }
    }
}

impl Graph<'_> {
    /// The state before anything is observed: zero where something could be, unknown elsewhere.
    fn unobserved(self) -> NodeObservations {
        let mut edges = Vec::with_capacity(self.cfg.edge_count());
        for (index, block) in self.cfg.blocks.iter().enumerate() {
            let block_index = BlockIndex(index as u32);
            for (slot, &successor) in block.successors.iter().enumerate() {
                let tells = self.probed[index]
                    && self.probed[successor.index()]
                    && !block.successors[..slot].contains(&successor)
                    && matches!(self.find_step(block_index, successor), Step::Path(p) if p.len() == 1);
                edges.push(tells.then_some(0.0));
            }
        }
        NodeObservations {
            blocks: self.probed.iter().map(|&p| p.then_some(0.0)).collect(),
            edges,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::binary::Binary;
    use pleach_annotate::cfg::Cfg;
    use pleach_annotate::manifest::Anchor;
    use pleach_annotate::map::{Function, FunctionIndex, InlineInstance, Losses, Probe};
    use pleach_annotate::probe::Address;
    use pleach_annotate::testing::cfg;
    use std::path::PathBuf;

    /// One copy of a function, whose blocks have a probe each.
    fn map(cfg: Cfg) -> AddressMap {
        let probe = |block: u32| Probe {
            address: Address(u64::from(block)),
            instance: InlineInstanceIndex(0),
            target: ProbeTarget::Block(BlockIndex(block)),
        };
        AddressMap {
            binary: Binary {
                path: PathBuf::new(),
                build_id: None,
                symbols: Vec::new(),
                code: Vec::new(),
                manifest: Vec::new(),
                probes: Vec::new(),
                is_program: true,
                debug_file: None,
            },
            anchor: Anchor::Early,
            probes: (0..cfg.blocks.len() as u32).map(probe).collect(),
            functions: vec![Function { hash: cfg.hash(), cfg }],
            inline_instances: vec![InlineInstance {
                function: FunctionIndex(0),
                parent: None,
                symbol: 0,
            }],
            losses: Losses::default(),
        }
    }

    #[test]
    fn an_unrolled_loop_conserves_flow() {
        // 1 tests, 2 is the body; control leaves from the body's second copy, where the test left no probe.
        let map = map(cfg(&[&[1], &[2, 3], &[1], &[]]));
        let mut counter = Counter::new(&map);
        for activation in 0..10 {
            for block in [0, 1, 2, 2, 3] {
                counter.block(FrameId(activation), InlineInstanceIndex(0), BlockIndex(block), 1.0);
            }
        }
        let seen = &counter.out.nodes[&InlineInstanceIndex(0)];
        assert_eq!(seen.blocks, [10.0, 30.0, 20.0, 10.0].map(Some));
        // 0 → 1, 1 → 2, 1 → 3, 2 → 1.
        assert_eq!(seen.edges, [10.0, 20.0, 10.0, 20.0].map(Some));
    }
}
