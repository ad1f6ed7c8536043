//! The sequences from one observed block of an inline instance to the next, each searched for once.

use super::super::inline_instance::{Graph, InstanceBlocks};
use pleach_annotate::id::BlockIndex;
use rustc_hash::FxHashMap;

/// All sequences between two places; `None` if there are too many.
type Found = Option<Box<[Vec<BlockIndex>]>>;

/// The known sequences of an inline instance.
pub struct BlockSequences {
    /// The unprobed blocks.
    pub instance: InstanceBlocks,
    /// By the block that control comes from (`None`: the caller) and the number of the group that it reaches.
    known: FxHashMap<(Option<BlockIndex>, u32), Found>,
    groups: FxHashMap<Box<[BlockIndex]>, u32>,
    /// The same for groups of one block, which are the most frequent: saves one look-up.
    known_single: FxHashMap<(Option<BlockIndex>, BlockIndex), Found>,
}

impl BlockSequences {
    /// No sequences are known yet.
    pub fn new(instance: InstanceBlocks) -> Self {
        Self {
            instance,
            known: FxHashMap::default(),
            groups: FxHashMap::default(),
            known_single: FxHashMap::default(),
        }
    }

    /// The sequences from a block, or from the function's entry, to the last block of `group`; `None` if there are too
    /// many.
    pub fn find(
        &mut self,
        graph: &Graph,
        from: Option<BlockIndex>,
        group: &[BlockIndex],
    ) -> Option<&[Vec<BlockIndex>]> {
        if let &[block] = group {
            let instance = &self.instance;
            return self
                .known_single
                .entry((from, block))
                .or_insert_with(|| instance.sequences_to(graph, from, group).map(Vec::into))
                .as_deref();
        }
        let number = match self.groups.get(group) {
            Some(&number) => number,
            None => {
                let number = self.groups.len() as u32;
                self.groups.insert(group.into(), number);
                number
            }
        };
        let instance = &self.instance;
        self.known
            .entry((from, number))
            .or_insert_with(|| instance.sequences_to(graph, from, group).map(Vec::into))
            .as_deref()
    }

    /// Marks the blocks of a sequence as unprobed: some of them have code, but control passed them unobserved.
    pub fn mark_unprobed(&mut self, sequence: &[BlockIndex]) {
        for &block in sequence {
            if self.instance.mark_unprobed(block) {
                self.known.clear();
                self.known_single.clear();
            }
        }
    }
}
