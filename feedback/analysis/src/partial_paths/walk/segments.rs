//! The ways from one seen block of a copy to the next, each found once.

use super::super::inline_instance::{Graph, InstanceBlocks};
use pleach_annotate::id::BlockIndex;
use rustc_hash::FxHashMap;

/// All ways between two places, each without the block that it begins at; `None`: too many.
type Found = Option<Box<[Vec<BlockIndex>]>>;

/// What a copy needs for walking: its graph, what it shows, and the steps found so far.
pub struct Segments {
    /// What the copy shows.
    pub instance: InstanceBlocks,
    /// By the block that control comes from (`None`: the caller) and the group it gets to.
    known: FxHashMap<(Option<BlockIndex>, u32), Found>,
    groups: FxHashMap<Box<[BlockIndex]>, u32>,
    /// The same where the group is one block, as most are: one look-up less.
    known_single: FxHashMap<(Option<BlockIndex>, BlockIndex), Found>,
}

impl Segments {
    /// No ways are known yet.
    pub fn new(instance: InstanceBlocks) -> Self {
        Self {
            instance,
            known: FxHashMap::default(),
            groups: FxHashMap::default(),
            known_single: FxHashMap::default(),
        }
    }

    /// The ways from a block, or into the function, to the last of `group`; `None`: too many.
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
                .or_insert_with(|| instance.segments_to(graph, from, group).map(Vec::into))
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
            .or_insert_with(|| instance.segments_to(graph, from, group).map(Vec::into))
            .as_deref()
    }

    /// Some block of this way has code, but was not seen.
    pub fn mark_unprobed(&mut self, segment: &[BlockIndex]) {
        for &block in segment {
            if self.instance.mark_unprobed(block) {
                self.known.clear();
                self.known_single.clear();
            }
        }
    }
}
