//! The ways from one seen block of a copy to the next, each found once.

use super::super::copy::{Copy, Graph};
use pleach_annotate::id::BlockIndex;
use rustc_hash::FxHashMap;

/// All ways between two places, each without the block that it begins at; `None`: too many.
type Ways = Option<Box<[Vec<BlockIndex>]>>;

/// What a copy needs for walking: its graph, what it shows, and the steps found so far.
pub struct Steps {
    /// What the copy shows.
    pub copy: Copy,
    /// By the block that control comes from (`None`: the caller) and the group it gets to.
    known: FxHashMap<(Option<BlockIndex>, u32), Ways>,
    groups: FxHashMap<Box<[BlockIndex]>, u32>,
    /// The same where the group is one block, as most are: one look-up less.
    known_single: FxHashMap<(Option<BlockIndex>, BlockIndex), Ways>,
}

impl Steps {
    /// No ways are known yet.
    pub fn new(copy: Copy) -> Self {
        Self {
            copy,
            known: FxHashMap::default(),
            groups: FxHashMap::default(),
            known_single: FxHashMap::default(),
        }
    }

    /// The ways from a block, or into the function, to the last of `group`; `None`: too many.
    pub fn ways(
        &mut self,
        graph: &Graph,
        from: Option<BlockIndex>,
        group: &[BlockIndex],
    ) -> Option<&[Vec<BlockIndex>]> {
        if let &[block] = group {
            let copy = &self.copy;
            return self
                .known_single
                .entry((from, block))
                .or_insert_with(|| copy.ways(graph, from, group).map(Vec::into))
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
        let copy = &self.copy;
        self.known
            .entry((from, number))
            .or_insert_with(|| copy.ways(graph, from, group).map(Vec::into))
            .as_deref()
    }

    /// Some block of this way has code, but was not seen.
    pub fn lose(&mut self, way: &[BlockIndex]) {
        for &block in way {
            if self.copy.lose(block) {
                self.known.clear();
                self.known_single.clear();
            }
        }
    }
}
