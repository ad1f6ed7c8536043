//! The blocks of a burst that led to the present one.
//!
//! The history is a path without loops and without what returned: the blocks of each activation from its entry on, as
//! far as the burst shows it, with those of its callers before them. Where a block is executed again, its last
//! iteration takes the place of the earlier ones.

use crate::decode::FrameId;
use crate::program::Site;
use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_collector::vector::ModuleId;

/// Blocks that are remembered; deeper recursion loses its outermost callers.
const MAX_BLOCKS: usize = 512;

/// The activation of blocks that are known by a call only.
const UNKNOWN: FrameId = FrameId(u64::MAX);

/// A block of the history.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Passed {
    pub module: ModuleId,
    pub instance: InlineInstanceIndex,
    pub block: BlockIndex,
}

/// The history of a burst.
#[derive(Debug, Default)]
pub(super) struct EventHistory {
    blocks: Vec<(FrameId, Passed)>,
    /// The activation that was entered last, without a block so far.
    entered: Option<FrameId>,
    /// The last event was a return.
    returned: bool,
    /// The block to whose call the outermost activation returned.
    returned_to: Option<Site>,
}

impl EventHistory {
    pub fn clear(&mut self) {
        self.blocks.clear();
        (self.entered, self.returned) = (None, false);
        self.returned_to = None;
    }

    /// The last blocks, oldest first.
    pub fn last(&self, count: usize) -> impl Iterator<Item = Passed> {
        let from = self.blocks.len().saturating_sub(count);
        self.blocks[from..].iter().map(|(_, passed)| *passed)
    }

    pub fn enter(&mut self, frame: FrameId) {
        (self.entered, self.returned) = (Some(frame), false);
    }

    /// An activation returned, to a call of the block `to` if that is known.
    pub fn leave(&mut self, frame: FrameId, to: Option<Site>) {
        if let Some(first) = self.blocks.iter().position(|(of, _)| *of == frame) {
            self.blocks.truncate(first);
        }
        (self.entered, self.returned) = (None, true);
        self.returned_to = to.filter(|_| self.blocks.is_empty());
    }

    /// A block was entered.
    pub fn block(&mut self, map: &AddressMap, frame: FrameId, (module, instance, block): Site) {
        let caller = self.returned_to.take();
        let (entered, returned) = (self.entered.take(), std::mem::take(&mut self.returned));
        if let Some(last) = self.blocks.iter().rposition(|(of, _)| *of == frame) {
            // Activations that it called have ended.
            self.blocks.truncate(last + 1);
            self.end_inlined(map, frame, instance);
            let same =
                |(of, passed): &(FrameId, Passed)| (*of, passed.instance, passed.block) == (frame, instance, block);
            if let Some(again) = self.blocks.iter().rposition(same) {
                let first = self.blocks.iter().position(|(of, _)| *of == frame).unwrap_or(again);
                if self.blocks[first].1.block == BlockIndex::ENTRY {
                    self.blocks.truncate(again + 1);
                    return;
                }
                // The activation began before the burst: what was passed since then is the path here.
                self.blocks.drain(first..=again);
            }
        } else if entered != Some(frame) && returned {
            // The caller of the burst's first function: its history is unknown.
            self.blocks.clear();
            if let Some(caller) = caller.filter(|caller| *caller != (module, instance, block)) {
                self.push(frame, caller);
            }
        }
        // Else it was called, or code that is not annotated has called it back.
        self.push(frame, (module, instance, block));
    }

    fn push(&mut self, frame: FrameId, (module, instance, block): Site) {
        if self.blocks.len() == MAX_BLOCKS {
            self.blocks.remove(0);
        }
        let passed = Passed {
            module,
            instance,
            block,
        };
        self.blocks.push((frame, passed));
    }

    /// Code of this block calls: what was inlined before the call has ended.
    pub fn call_from(&mut self, (module, instance, block): Site) {
        let mut passed = self.blocks.iter().rev();
        let Some((frame, _)) = passed.find(|(_, passed)| passed.module == module).copied() else {
            // An activation that began before the burst: its number is not known yet.
            if self.blocks.is_empty() {
                self.push(UNKNOWN, (module, instance, block));
            }
            return;
        };
        let same = |(of, passed): &(FrameId, Passed)| (*of, passed.instance, passed.block) == (frame, instance, block);
        if let Some(calling) = self.blocks.iter().rposition(same) {
            self.blocks.truncate(calling + 1);
            (self.entered, self.returned, self.returned_to) = (None, false, None);
        }
    }

    /// Drops blocks of inlined functions that have ended, since this instance goes on: it was not inlined into them.
    fn end_inlined(&mut self, map: &AddressMap, frame: FrameId, instance: InlineInstanceIndex) {
        while let Some((of, last)) = self.blocks.last()
            && *of == frame
            && last.instance != instance
            && !is_within(map, instance, last.instance)
        {
            self.blocks.pop();
        }
    }
}

/// Whether an instance was inlined into another one, directly or not.
fn is_within(map: &AddressMap, inner: InlineInstanceIndex, outer: InlineInstanceIndex) -> bool {
    let parent = |instance: InlineInstanceIndex| {
        let instance = map.inline_instances.get(instance.index())?;
        instance.parent.map(|(parent, _)| parent)
    };
    let mut at = parent(inner);
    while let Some(instance) = at {
        if instance == outer {
            return true;
        }
        at = parent(instance);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::map::{FunctionIndex, InlineInstance};

    /// Instances 1 and 2 are inlined into 0, and 3 into 1; 4 is another function.
    fn map() -> AddressMap {
        let instance = |parent: Option<u32>| InlineInstance {
            function: FunctionIndex(0),
            parent: parent.map(|parent| (InlineInstanceIndex(parent), None)),
            symbol: 0,
        };
        AddressMap {
            inline_instances: [None, Some(0), Some(0), Some(1), None].map(instance).into(),
            ..pleach_annotate::testing::map()
        }
    }

    fn site(instance: u32, block: u32) -> Site {
        (ModuleId(0), InlineInstanceIndex(instance), BlockIndex(block))
    }

    fn shown(history: &EventHistory) -> String {
        let blocks: Vec<_> = history
            .last(99)
            .map(|passed| format!("{}:{}", passed.instance.0, passed.block.0))
            .collect();
        blocks.join(" ")
    }

    #[test]
    fn loops_and_what_returned_are_left_out() {
        let (map, mut history) = (map(), EventHistory::default());
        let (outer, inner) = (FrameId(1), FrameId(2));
        let pass =
            |history: &mut EventHistory, frame, instance, block| history.block(&map, frame, site(instance, block));
        for block in [0, 1, 2, 1, 3] {
            pass(&mut history, outer, 0, block);
        }
        assert_eq!(shown(&history), "0:0 0:1 0:3", "the last iteration took another path");
        // Inlined functions: while they run, and after.
        for (instance, block) in [(1, 0), (3, 0)] {
            pass(&mut history, outer, instance, block);
        }
        assert_eq!(shown(&history), "0:0 0:1 0:3 1:0 3:0");
        pass(&mut history, outer, 2, 0);
        assert_eq!(
            shown(&history),
            "0:0 0:1 0:3 2:0",
            "a second one, without a block between"
        );
        // A call and its return.
        history.enter(inner);
        pass(&mut history, inner, 4, 0);
        assert_eq!(shown(&history), "0:0 0:1 0:3 2:0 4:0");
        history.leave(inner, None);
        pass(&mut history, outer, 0, 4);
        assert_eq!(shown(&history), "0:0 0:1 0:3 0:4");
        // Code that is not annotated calls back.
        pass(&mut history, FrameId(3), 4, 0);
        assert_eq!(shown(&history), "0:0 0:1 0:3 0:4 4:0");
        history.leave(FrameId(3), None);
        pass(&mut history, outer, 0, 5);
        assert_eq!(shown(&history), "0:0 0:1 0:3 0:4 0:5");
    }

    #[test]
    fn without_an_entry_the_last_iteration_is_the_path() {
        let (map, mut history) = (map(), EventHistory::default());
        for block in [3, 1, 2, 3, 1, 4, 3] {
            history.block(&map, FrameId(1), site(0, block));
        }
        assert_eq!(shown(&history), "0:1 0:4 0:3");
    }

    #[test]
    fn a_block_that_calls_ends_no_path() {
        let (map, mut history) = (map(), EventHistory::default());
        for block in [1, 3] {
            history.block(&map, FrameId(1), site(0, block));
        }
        history.call_from(site(0, 3));
        assert_eq!(shown(&history), "0:1 0:3");
        history.call_from(site(0, 1));
        assert_eq!(shown(&history), "0:1");
    }

    #[test]
    fn a_caller_from_before_the_burst_is_known_by_its_call() {
        let (map, mut history) = (map(), EventHistory::default());
        history.block(&map, FrameId(1), site(4, 2));
        history.leave(FrameId(1), Some(site(0, 7)));
        assert_eq!(shown(&history), "");
        let mut called_again = EventHistory::default();
        called_again.leave(FrameId(1), Some(site(0, 7)));
        called_again.call_from(site(0, 7));
        assert_eq!(shown(&called_again), "0:7", "without a block between");
        history.block(&map, FrameId(2), site(0, 8));
        assert_eq!(shown(&history), "0:7 0:8");
        history.clear();
        assert_eq!(shown(&history), "");
    }
}
