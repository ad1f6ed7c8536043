//! The inline instances of a module, prepared for walking when they first occur.

use super::inline_instance::{Graph, InstanceBlocks};
use super::store::{FunctionObservations, Store};
use super::walk::BlockSequences;
use pleach_annotate::cfg::ProbeTarget;
use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_ball_larus as ball_larus;

/// The inline instances of one module.
pub(super) struct ModuleInstances<'p> {
    pub map: &'p AddressMap,
    /// By function of the map, once needed: the index of its observations in the store, and its graph.
    pub functions: Vec<Option<(u32, Graph)>>,
    /// By inline instance, once needed.
    sequences: Vec<Option<Box<BlockSequences>>>,
    /// By inline instance: the blocks that have code in it.
    shown: Vec<Vec<BlockIndex>>,
}

impl<'p> ModuleInstances<'p> {
    pub fn new(map: &'p AddressMap) -> Self {
        let mut shown: Vec<Vec<BlockIndex>> = vec![Vec::new(); map.inline_instances.len()];
        for probe in &map.probes {
            if let ProbeTarget::Block(block) = probe.target {
                shown[probe.instance.index()].push(block);
            }
        }
        Self {
            map,
            functions: map.functions.iter().map(|_| None).collect(),
            sequences: map.inline_instances.iter().map(|_| None).collect(),
            shown,
        }
    }

    /// By function of the map and block: whether some inline instance always shows it.
    pub fn shown_by_function(&self) -> Vec<Vec<bool>> {
        let mut shown: Vec<Vec<bool>> = vec![Vec::new(); self.map.functions.len()];
        for (instance, sequences) in self.map.inline_instances.iter().zip(&self.sequences) {
            let Some(sequences) = sequences else { continue };
            let function = instance.function.0 as usize;
            let shown = &mut shown[function];
            shown.resize(self.map.functions[function].cfg.blocks.len(), false);
            for (index, shown) in shown.iter_mut().enumerate() {
                *shown |= !sequences.instance.is_unprobed(BlockIndex(index as u32));
            }
        }
        shown
    }

    /// The index of an inline instance's observations in the store, its function's graph, and its sequences.
    pub fn prepare(&mut self, instance: InlineInstanceIndex, store: &mut Store) -> (u32, &Graph, &mut BlockSequences) {
        let Self {
            map,
            functions,
            sequences,
            shown,
        } = self;
        let position = map.inline_instances[instance.index()].function.0 as usize;
        let cfg = &map.functions[position].cfg;
        let (place, graph) = functions[position].get_or_insert_with(|| {
            store.functions.push(FunctionObservations::default());
            (
                store.functions.len() as u32 - 1,
                Graph::new(cfg, &ball_larus::NumberingOptions::default()),
            )
        });
        let sequences = sequences[instance.index()].get_or_insert_with(|| {
            let shown = shown[instance.index()].iter().copied();
            Box::new(BlockSequences::new(InstanceBlocks::new(cfg.blocks.len(), shown)))
        });
        (*place, graph, sequences)
    }
}
