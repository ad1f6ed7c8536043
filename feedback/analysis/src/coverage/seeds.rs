//! Seeds: the blocks that bursts passed.

use super::Key;
use crate::decode::{Decoder, Event};
use crate::program::Program;
use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_collector::vector::VectorSet;
use pleach_profile::Covered;
use std::collections::BTreeMap;

/// How much of each burst is used (thesis §5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// The first block of each burst, as sampling of program counters would give.
    SingleBlock,
    /// Everything up to a number of taken branches.
    Vectors(usize),
}

impl View {
    /// Everything.
    pub const ALL: Self = Self::Vectors(usize::MAX);
}

/// How sure it is that a block was executed. The order is that of what follows from it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Evidence {
    /// Nothing says so.
    #[default]
    None,
    /// Shadow execution passed it; the program may have gone elsewhere.
    Predicted,
    /// It was executed.
    Proved,
    /// It was executed by a process that ended undisturbed.
    Completed,
}

/// What bursts say about one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seed {
    /// Whether it was passed.
    pub evidence: Evidence,
    /// How often.
    pub passed: u64,
}

impl Seed {
    /// The same in a profile's words.
    pub fn covered(&self) -> Covered {
        match self.evidence {
            Evidence::None => Covered::No,
            Evidence::Predicted => Covered::Predicted,
            Evidence::Proved | Evidence::Completed => Covered::Seen,
        }
    }
}

/// The blocks that bursts passed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Seeds {
    /// By function, in block order.
    pub functions: BTreeMap<Key, Vec<Seed>>,
}

impl Seeds {
    /// What the bursts of a recording passed.
    pub fn of(program: &Program, vectors: &VectorSet, view: View) -> Self {
        let mut seeds = Self::default();
        let mut decoder = Decoder::new(program);
        let evidence = |process: u32, proved: bool| {
            let process = vectors.processes.get(process as usize);
            match proved {
                false => Evidence::Predicted,
                true if process.is_some_and(|process| process.undisturbed) => Evidence::Completed,
                true => Evidence::Proved,
            }
        };
        let most = match view {
            View::SingleBlock => usize::MAX,
            View::Vectors(branches) => branches,
        };
        for burst in &vectors.bursts {
            let evidence = evidence(burst.process, burst.proved);
            let mut is_over = false;
            decoder.everything(burst, most, &mut |event| {
                if let Event::Block {
                    module, node, block, ..
                } = event
                    && let Some(map) = program.map(module)
                    && !is_over
                {
                    seeds.pass(map, node, block, evidence, burst.count);
                    is_over = view == View::SingleBlock;
                }
            });
        }
        for window in vectors.compressed.iter().flat_map(|compressed| &compressed.windows) {
            let evidence = evidence(window.process, window.proved);
            decoder.window(window, &mut |_, event, weight| {
                if let Event::Block {
                    module, node, block, ..
                } = event
                    && let Some(map) = program.map(module)
                {
                    seeds.pass(map, node, block, evidence, weight);
                }
            });
        }
        seeds
    }

    /// A block of a copy was passed: so were, once at least, the blocks that hold the calls through which it was inlined.
    fn pass(&mut self, map: &AddressMap, node: InlineInstanceIndex, block: BlockIndex, evidence: Evidence, times: u64) {
        self.note(map, node, block, evidence).passed += times;
        let mut inner = node;
        while let Some((outer, call)) = map.inline_instances[inner.index()].parent {
            let cfg = &map.function_of(outer).cfg;
            if let Some(call) = call.and_then(|call| cfg.calls.get(call.index())) {
                self.note(map, outer, call.block, evidence);
            }
            inner = outer;
        }
    }

    fn note(
        &mut self,
        map: &AddressMap,
        node: InlineInstanceIndex,
        block: BlockIndex,
        evidence: Evidence,
    ) -> &mut Seed {
        let function = map.function_of(node);
        let blocks = self.functions.entry((function.cfg.id, function.hash));
        let blocks = blocks.or_insert_with(|| vec![Seed::default(); function.cfg.blocks.len()]);
        let seed = &mut blocks[block.index()];
        seed.evidence = seed.evidence.max(evidence);
        seed
    }
}
