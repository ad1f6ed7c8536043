//! One activation of one copy of a function: from the blocks that were seen to the pieces of paths that it took.
//!
//! Only blocks that have code can be seen. Where several ways lead from one such block to the next through blocks without
//! code, all of them are followed side by side until they meet again; what they took meanwhile are alternatives.

use super::copy::{Copy, Graph, MAX_WAYS};
use super::{Alternatives, Piece};
use crate::ball_larus::{End, Start};
use pleach_annotate::id::BlockIndex;
use rustc_hash::FxHashMap;

/// The path that goes on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Open {
    start: Option<Start>,
    blocks: Vec<BlockIndex>,
}

impl Open {
    fn last(&self) -> BlockIndex {
        self.blocks[self.blocks.len() - 1]
    }

    fn end(self, end: Option<End>) -> Piece {
        Piece {
            start: self.start,
            blocks: self.blocks,
            end,
        }
    }
}

/// One of the ways that an activation may have gone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Way {
    /// Pieces that ended since the ways parted.
    ended: Vec<Piece>,
    open: Option<Open>,
}

/// Where an activation is. There is always at least one way.
#[derive(Clone, Debug)]
pub(super) struct Activation {
    ways: Vec<Way>,
    /// It was entered while it was watched, so that nothing of it is missing before its first block.
    is_fresh: bool,
}

/// What a copy needs for walking: its graph, what it shows, and the steps found so far.
pub(super) struct Steps {
    pub copy: Copy,
    /// By the block that control comes from (`None`: the caller) and the group it gets to.
    known: FxHashMap<(Option<BlockIndex>, u32), Box<[Vec<BlockIndex>]>>,
    groups: FxHashMap<Box<[BlockIndex]>, u32>,
}

impl Steps {
    pub fn new(copy: Copy) -> Self {
        Self {
            copy,
            known: FxHashMap::default(),
            groups: FxHashMap::default(),
        }
    }

    fn ways(&mut self, graph: &Graph, from: Option<BlockIndex>, group: &[BlockIndex]) -> &[Vec<BlockIndex>] {
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
            .or_insert_with(|| copy.ways(graph, from, group).into())
    }

    /// Some block of this way has code, but was not seen.
    fn lose(&mut self, way: &[BlockIndex]) {
        for &block in way {
            if self.copy.lose(block) {
                self.known.clear();
            }
        }
    }
}

/// What a walk tells.
pub(super) trait Sink {
    /// Pieces that were passed: one of these lists of them.
    fn pieces(&mut self, alternatives: Alternatives);
    /// Control got to a block in no way that the graph has.
    fn inconsistent(&mut self);
}

impl Activation {
    pub fn new(is_fresh: bool) -> Self {
        Self {
            ways: vec![Way::default()],
            is_fresh,
        }
    }

    fn is_open(&self) -> bool {
        self.ways.iter().any(|way| way.open.is_some())
    }

    /// Control got to the code of these blocks.
    pub fn pass(&mut self, group: &[BlockIndex], graph: &Graph, steps: &mut Steps, sink: &mut impl Sink) {
        if self.is_open() {
            if self.go_on(group, graph, steps, sink) {
                return;
            }
            let last = group[group.len() - 1];
            if !group.contains(&BlockIndex::ENTRY) {
                let lasts: Vec<_> = self.ways.iter().filter_map(|w| Some(w.open.as_ref()?.last())).collect();
                if let Some(way) = steps.copy.shortest(graph, &lasts, last) {
                    steps.lose(&way);
                    if self.go_on(group, graph, steps, sink) {
                        return;
                    }
                }
            }
            self.leave(true, graph, steps, sink);
        }
        self.begin(group, graph, steps, sink);
    }

    fn go_on(&mut self, group: &[BlockIndex], graph: &Graph, steps: &mut Steps, sink: &mut impl Sink) -> bool {
        // The usual case, without copying the way.
        if let [way] = &mut self.ways[..]
            && let Some(open) = &way.open
            && let [step] = steps.ways(graph, Some(open.last()), group)
        {
            for &block in step {
                enter(way, block, graph);
            }
            if !way.ended.is_empty() {
                sink.pieces(vec![std::mem::take(&mut way.ended)]);
            }
            return true;
        }
        let mut on = Vec::new();
        for way in &self.ways {
            let Some(open) = &way.open else { continue };
            for step in steps.ways(graph, Some(open.last()), group) {
                let mut way = way.clone();
                step.iter().for_each(|&block| enter(&mut way, block, graph));
                on.push(way);
            }
        }
        if on.is_empty() {
            return false;
        }
        self.settle(on, sink);
        true
    }

    /// The first that is seen of an activation.
    fn begin(&mut self, group: &[BlockIndex], graph: &Graph, steps: &mut Steps, sink: &mut impl Sink) {
        // Whatever comes after this activation was watched from its beginning.
        let is_fresh = std::mem::replace(&mut self.is_fresh, true);
        let from_entry = group.contains(&BlockIndex::ENTRY) || (is_fresh && steps.copy.is_silent(BlockIndex::ENTRY));
        if from_entry {
            let into = steps.ways(graph, None, group).iter().map(|step| {
                let mut way = Way::default();
                step.iter().for_each(|&block| enter(&mut way, block, graph));
                way
            });
            let into: Vec<_> = into.collect();
            if !into.is_empty() {
                self.settle(into, sink);
                return;
            }
            sink.inconsistent();
        }
        let block = group[group.len() - 1];
        let mut way = Way {
            ended: Vec::new(),
            open: Some(Open {
                start: None,
                blocks: vec![block],
            }),
        };
        end_at_exit(&mut way, graph);
        self.settle(vec![way], sink);
    }

    /// Nothing more is seen of the activation. `has_left`: control left the function, not just our sight.
    pub fn leave(&mut self, has_left: bool, graph: &Graph, steps: &mut Steps, sink: &mut impl Sink) {
        let mut left = Vec::new();
        for way in std::mem::replace(&mut self.ways, vec![Way::default()]) {
            let Some(open) = &way.open else {
                left.push(way);
                continue;
            };
            let out = if has_left {
                steps.copy.ways_out(graph, open.last())
            } else {
                Vec::new()
            };
            if out.is_empty() {
                let mut way = way;
                let open = way.open.take();
                way.ended.extend(open.map(|open| open.end(None)));
                left.push(way);
                continue;
            }
            for (blocks, end) in out {
                let mut way = way.clone();
                let open = way.open.take();
                way.ended.extend(open.map(|mut open| {
                    open.blocks.extend(blocks);
                    open.end(Some(end))
                }));
                left.push(way);
            }
        }
        self.settle(left, sink);
        self.ways.truncate(1);
        self.ways[0] = Way::default();
    }

    /// Goes on with these ways. Where they have met, the pieces that they took are told.
    fn settle(&mut self, mut ways: Vec<Way>, sink: &mut impl Sink) {
        if ways.len() > 1 {
            ways.sort();
            ways.dedup();
            if ways.len() > MAX_WAYS {
                // Ways that are at the same place: one of them stands for all.
                ways.dedup_by(|b, a| a.ended.len() == b.ended.len() && same_ends(a, b));
                ways.truncate(MAX_WAYS);
            }
        }
        let (first, others) = ways.split_at_mut(1);
        if others.iter().all(|way| way.open == first[0].open) {
            let ended: Vec<_> = ways.iter_mut().map(|way| std::mem::take(&mut way.ended)).collect();
            if ended.iter().any(|pieces| !pieces.is_empty()) {
                sink.pieces(ended);
            }
            ways.truncate(1);
        }
        self.ways = ways;
    }
}

fn same_ends(a: &Way, b: &Way) -> bool {
    match (&a.open, &b.open) {
        (Some(a), Some(b)) => a.start == b.start && a.last() == b.last() && a.blocks[0] == b.blocks[0],
        (None, None) => true,
        _ => false,
    }
}

/// Control gets to the next block of a way.
fn enter(way: &mut Way, block: BlockIndex, graph: &Graph) {
    let Some(open) = &mut way.open else {
        way.open = Some(Open {
            start: Some(Start::Entry),
            blocks: vec![block],
        });
        end_at_exit(way, graph);
        return;
    };
    let last = open.last();
    match graph.end_at(last, block) {
        None => {
            open.blocks.push(block);
            end_at_exit(way, graph);
        }
        Some(end) if graph.is_counted_apart(last, block) => way.ended.push(Piece {
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
            way.ended.push(before.end(Some(end)));
            end_at_exit(way, graph);
        }
    }
}

fn end_at_exit(way: &mut Way, graph: &Graph) {
    let ends = way
        .open
        .as_ref()
        .is_some_and(|open| graph.successors(open.last()).is_empty());
    if ends && let Some(open) = way.open.take() {
        way.ended.push(open.end(Some(End::Exit)));
    }
}
