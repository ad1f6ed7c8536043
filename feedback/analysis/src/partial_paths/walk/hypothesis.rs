//! One hypothesis about the blocks that an activation passed, and its transitions.

use super::super::inline_instance::Graph;
use crate::partial_path::PartialPath;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::{End, Start};

/// A path that has not ended.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Open {
    pub start: Option<Start>,
    pub blocks: Vec<BlockIndex>,
}

impl Open {
    pub fn last(&self) -> BlockIndex {
        self.blocks[self.blocks.len() - 1]
    }

    pub fn end(self, end: Option<End>) -> PartialPath {
        PartialPath {
            start: self.start,
            blocks: self.blocks,
            end,
        }
    }
}

/// One hypothesis about the blocks that an activation passed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Hypothesis {
    /// Partial paths that ended since the hypotheses diverged.
    pub ended: Vec<PartialPath>,
    /// The current path.
    pub open: Option<Open>,
}

impl Hypothesis {
    /// A hypothesis without history, at this block.
    pub fn at(block: BlockIndex) -> Self {
        Self {
            ended: Vec::new(),
            open: Some(Open {
                start: None,
                blocks: vec![block],
            }),
        }
    }

    /// Control enters the next block.
    pub fn enter(&mut self, block: BlockIndex, graph: &Graph) {
        let Some(open) = &mut self.open else {
            self.open = Some(Open {
                start: Some(Start::Entry),
                blocks: vec![block],
            });
            self.end_at_exit(graph);
            return;
        };
        let last = open.last();
        match graph.end_at(last, block) {
            None => {
                open.blocks.push(block);
                self.end_at_exit(graph);
            }
            Some(end) if graph.is_counted_self_loop(last, block) => self.ended.push(PartialPath {
                start: Some(Start::Inside),
                blocks: vec![block],
                end: Some(end),
            }),
            Some(end) => {
                let next = Open {
                    start: Some(Start::Inside),
                    blocks: vec![block],
                };
                let before = std::mem::replace(open, next);
                self.ended.push(before.end(Some(end)));
                self.end_at_exit(graph);
            }
        }
    }

    /// Ends the path if its last block has no successors.
    pub fn end_at_exit(&mut self, graph: &Graph) {
        let ends = self
            .open
            .as_ref()
            .is_some_and(|open| graph.successors(open.last()).is_empty());
        if ends && let Some(open) = self.open.take() {
            self.ended.push(open.end(Some(End::Exit)));
        }
    }
}
