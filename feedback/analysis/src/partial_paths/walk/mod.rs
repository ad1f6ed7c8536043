//! One activation of one copy of a function: from the blocks that were seen to the partial paths that it took.
//!
//! An automaton. Its state is a set of *hypotheses* of how control got to where it is. Each has the path that goes on
//! (*open*) and the paths that ended since the hypotheses parted. Only blocks with probes are seen. Where several ways
//! lead from one such block to the next, each becomes a hypothesis.
//!
//! | state | input | next state | emits |
//! |---|---|---|---|
//! | outside (no path is open) | blocks are reached | inside: from the entry, or from an unknown beginning | – |
//! | inside | blocks are reached by one way | inside, paths are cut at back edges | paths that ended |
//! | inside | … by several ways | inside, a hypothesis for each | – |
//! | inside | … by no way | marks blocks between as unprobed, tries again; else left, then outside | – |
//! | several hypotheses | what goes on does not depend on what ended | what goes on | alternatives, or paths |
//! | any | more than [`MAX_HYPOTHESES`] hypotheses | lost: the last block only | `lost` |
//! | any | the activation is left | outside | paths, each with its end if that is known |
//!
//! [`hypothesis`] has the transitions of one hypothesis, [`segments`] the ways from one seen block to the next.

mod hypothesis;
mod segments;
#[cfg(test)]
mod tests;

use super::inline_instance::{Graph, MAX_HYPOTHESES};
use crate::partial_path::{Alternatives, PartialPath};
use hypothesis::Hypothesis;
use pleach_annotate::id::BlockIndex;
pub(super) use segments::Segments;
use std::collections::BTreeSet;

/// Where an activation is. There is always at least one hypothesis.
#[derive(Clone, Debug)]
pub(super) struct Activation {
    hypotheses: Vec<Hypothesis>,
    /// It was entered while it was watched, so that nothing of it is missing before its first block.
    is_fresh: bool,
    /// The path that ended in the block where control is, which nothing follows.
    exiting: Vec<BlockIndex>,
}

/// What a walk emits.
pub(super) trait Sink {
    /// Partial paths that were passed. Takes all of them out of the list.
    fn passed(&mut self, paths: &mut Vec<PartialPath>);
    /// One of these lists of partial paths was passed. There are two lists or more.
    fn alternatives(&mut self, alternatives: Alternatives);
    /// Control got to a block in no way that the graph has.
    fn inconsistent(&mut self);
    /// Control went in one of too many ways: what was passed is not told.
    fn lost(&mut self);
}

impl Activation {
    pub fn new(is_fresh: bool) -> Self {
        Self {
            hypotheses: vec![Hypothesis::default()],
            is_fresh,
            exiting: Vec::new(),
        }
    }

    /// The last blocks of the path that control is on, if there is no doubt about it.
    pub fn latest(&self, most: usize) -> Option<&[BlockIndex]> {
        let [hypothesis] = &self.hypotheses[..] else {
            return None;
        };
        let blocks = hypothesis.open.as_ref().map_or(&self.exiting, |open| &open.blocks);
        (!blocks.is_empty()).then(|| &blocks[blocks.len().saturating_sub(most)..])
    }

    fn is_open(&self) -> bool {
        self.hypotheses.iter().any(|hypothesis| hypothesis.open.is_some())
    }

    /// Control got to the code of these blocks.
    pub fn pass(&mut self, group: &[BlockIndex], graph: &Graph, segments: &mut Segments, sink: &mut impl Sink) {
        if self.is_open() {
            if self.go_on(group, graph, segments, sink) {
                return;
            }
            let last = group[group.len() - 1];
            if !group.contains(&BlockIndex::ENTRY) {
                let lasts: Vec<_> = self
                    .hypotheses
                    .iter()
                    .filter_map(|w| Some(w.open.as_ref()?.last()))
                    .collect();
                if let Some(hypothesis) = segments.instance.shortest_segment(graph, &lasts, last) {
                    segments.mark_unprobed(&hypothesis);
                    if self.go_on(group, graph, segments, sink) {
                        return;
                    }
                }
            }
            self.leave(true, graph, segments, sink);
        }
        self.begin(group, graph, segments, sink);
    }

    fn go_on(&mut self, group: &[BlockIndex], graph: &Graph, segments: &mut Segments, sink: &mut impl Sink) -> bool {
        // The usual case, without copying the hypothesis.
        if let [hypothesis] = &mut self.hypotheses[..]
            && let Some(open) = &hypothesis.open
            && let Some([segment]) = segments.find(graph, Some(open.last()), group)
        {
            for &block in segment {
                hypothesis.enter(block, graph);
            }
            if !hypothesis.ended.is_empty() {
                if let (None, Some(last)) = (&hypothesis.open, hypothesis.ended.last()) {
                    self.exiting.clone_from(&last.blocks);
                }
                sink.passed(&mut hypothesis.ended);
            }
            return true;
        }
        let mut on = Vec::new();
        for hypothesis in &self.hypotheses {
            let Some(open) = &hypothesis.open else { continue };
            let Some(onward) = segments.find(graph, Some(open.last()), group) else {
                self.lose(Some(group[group.len() - 1]), sink);
                return true;
            };
            for segment in onward {
                let mut hypothesis = hypothesis.clone();
                segment.iter().for_each(|&block| hypothesis.enter(block, graph));
                on.push(hypothesis);
            }
        }
        if on.is_empty() {
            return false;
        }
        self.settle(on, sink);
        true
    }

    /// The first that is seen of an activation.
    fn begin(&mut self, group: &[BlockIndex], graph: &Graph, segments: &mut Segments, sink: &mut impl Sink) {
        // Whatever comes after this activation was watched from its beginning.
        let is_fresh = std::mem::replace(&mut self.is_fresh, true);
        let from_entry =
            group.contains(&BlockIndex::ENTRY) || (is_fresh && segments.instance.is_unprobed(BlockIndex::ENTRY));
        if from_entry {
            let Some(segments) = segments.find(graph, None, group) else {
                self.lose(Some(group[group.len() - 1]), sink);
                return;
            };
            let into = segments.iter().map(|segment| {
                let mut hypothesis = Hypothesis::default();
                segment.iter().for_each(|&block| hypothesis.enter(block, graph));
                hypothesis
            });
            let into: Vec<_> = into.collect();
            if !into.is_empty() {
                self.settle(into, sink);
                return;
            }
            sink.inconsistent();
        }
        let mut hypothesis = Hypothesis::at(group[group.len() - 1]);
        hypothesis.end_at_exit(graph);
        self.settle(vec![hypothesis], sink);
    }

    /// Nothing more is seen of the activation. `has_left`: control left the function, not just our sight.
    pub fn leave(&mut self, has_left: bool, graph: &Graph, segments: &mut Segments, sink: &mut impl Sink) {
        let mut left = Vec::new();
        for hypothesis in std::mem::replace(&mut self.hypotheses, vec![Hypothesis::default()]) {
            let Some(open) = &hypothesis.open else {
                left.push(hypothesis);
                continue;
            };
            let out = if has_left {
                segments.instance.segments_out(graph, open.last()).unwrap_or_default()
            } else {
                Vec::new()
            };
            if out.is_empty() {
                let mut hypothesis = hypothesis;
                let open = hypothesis.open.take();
                hypothesis.ended.extend(open.map(|open| open.end(None)));
                left.push(hypothesis);
                continue;
            }
            for (blocks, end) in out {
                let mut hypothesis = hypothesis.clone();
                let open = hypothesis.open.take();
                hypothesis.ended.extend(open.map(|mut open| {
                    open.blocks.extend(blocks);
                    open.end(Some(end))
                }));
                left.push(hypothesis);
            }
        }
        self.settle(left, sink);
        self.hypotheses.truncate(1);
        self.hypotheses[0] = Hypothesis::default();
    }

    /// Goes on with these hypotheses. Where what goes on does not depend on what ended, as when they have met, the pieces that
    /// ended are told.
    fn settle(&mut self, mut hypotheses: Vec<Hypothesis>, sink: &mut impl Sink) {
        hypotheses.sort();
        hypotheses.dedup();
        // All of them differ, so that there is one for each pair of what ended and what goes on if there are as many.
        let ended: Vec<_> = hypotheses
            .chunk_by(|a, b| a.ended == b.ended)
            .map(|same| &same[0].ended)
            .collect();
        let open: BTreeSet<_> = hypotheses.iter().map(|hypothesis| &hypothesis.open).collect();
        if ended.len() * open.len() == hypotheses.len() && ended.iter().any(|pieces| !pieces.is_empty()) {
            let open = open.into_iter().cloned().map(|open| Hypothesis {
                ended: Vec::new(),
                open,
            });
            let open: Vec<Hypothesis> = open.collect();
            self.exiting.clear();
            if let ([Hypothesis { open: None, .. }], [pieces]) = (&open[..], &ended[..]) {
                self.exiting
                    .extend(pieces.last().into_iter().flat_map(|last| &last.blocks));
            }
            match ended[..] {
                [paths] => sink.passed(&mut paths.clone()),
                _ => sink.alternatives(ended.into_iter().cloned().collect()),
            }
            hypotheses = open;
        }
        if hypotheses.len() > MAX_HYPOTHESES {
            let mut lasts = hypotheses
                .iter()
                .map(|hypothesis| Some(hypothesis.open.as_ref()?.last()));
            let last = lasts.next().flatten();
            let last = last.filter(|_| lasts.all(|other| other == last));
            self.lose(last, sink);
        } else {
            self.hypotheses = hypotheses;
        }
    }

    /// Forgets how control got to a block, or where it is now.
    fn lose(&mut self, at: Option<BlockIndex>, sink: &mut impl Sink) {
        sink.lost();
        self.hypotheses = vec![at.map(Hypothesis::at).unwrap_or_default()];
        // What is seen next is not its beginning.
        self.is_fresh = false;
    }
}
