//! One activation of one inline instance: from the observed blocks to the partial paths that it took.
//!
//! An automaton whose state is a set of *hypotheses* about the blocks that control passed. Each holds the unfinished
//! path (*open*) and the paths that ended since the hypotheses diverged. Only blocks with probes are observed. Where
//! several sequences lead from one such block to the next, each becomes a hypothesis.
//!
//! | state | input | next state | emits |
//! |---|---|---|---|
//! | outside (no path is open) | blocks are reached | inside: from the entry, or from an unknown beginning | – |
//! | inside | blocks are reached by one sequence | inside, paths are cut at back edges | paths that ended |
//! | inside | … by several sequences | inside, a hypothesis for each | – |
//! | inside | … by no sequence | marks blocks between as unprobed, tries again; else left, then outside | – |
//! | several hypotheses | open and ended paths are independent | the open paths | alternatives, or paths |
//! | any | more than [`MAX_HYPOTHESES`] hypotheses | lost: the last block only | `lost` |
//! | any | the activation ends | outside | paths, each with its end if that is known |
//!
//! [`hypothesis`] has the transitions of one hypothesis, [`sequences`] the sequences from one observed block to the
//! next.

mod hypothesis;
mod sequences;
#[cfg(test)]
mod tests;

use super::inline_instance::{Graph, MAX_HYPOTHESES};
use crate::partial_path::{Alternatives, PartialPath};
use hypothesis::Hypothesis;
use pleach_annotate::id::BlockIndex;
pub(super) use sequences::BlockSequences;
use std::collections::BTreeSet;

/// The state of an activation. There is always at least one hypothesis.
#[derive(Clone, Debug)]
pub(super) struct Activation {
    hypotheses: Vec<Hypothesis>,
    /// Whether the activation was entered within the burst, so that no block before the first observed one is missing.
    is_fresh: bool,
    /// The blocks of the path that ended in the current block, if no path is open.
    exiting: Vec<BlockIndex>,
}

/// Receives what a walk emits.
pub(super) trait Sink {
    /// Partial paths that the activation passed. Drains the list.
    fn passed(&mut self, paths: &mut Vec<PartialPath>);
    /// The activation passed one of these lists of partial paths. There are at least two lists.
    fn alternatives(&mut self, alternatives: Alternatives);
    /// Control reached a block that the graph cannot reach from the block before.
    fn inconsistent(&mut self);
    /// There are more than [`MAX_HYPOTHESES`] hypotheses: the blocks passed are unknown.
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

    /// The last blocks of the current path, `most` at the most; `None` if several hypotheses remain.
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

    /// Control reached the code of these blocks. A block that is there again was executed again: an unrolled loop without
    /// branches has the probes of several iterations at one address.
    pub fn pass(&mut self, group: &[BlockIndex], graph: &Graph, sequences: &mut BlockSequences, sink: &mut impl Sink) {
        let mut rest = group;
        while !rest.is_empty() {
            let again = (1..rest.len()).find(|&at| rest[..at].contains(&rest[at]));
            let (once, others) = rest.split_at(again.unwrap_or(rest.len()));
            self.pass_once(once, graph, sequences, sink);
            rest = others;
        }
    }

    /// Control reached the code of these blocks, which are different.
    fn pass_once(&mut self, group: &[BlockIndex], graph: &Graph, sequences: &mut BlockSequences, sink: &mut impl Sink) {
        if self.is_open() {
            if self.go_on(group, graph, sequences, sink) {
                return;
            }
            let last = group[group.len() - 1];
            if !group.contains(&BlockIndex::ENTRY) {
                let lasts: Vec<_> = self
                    .hypotheses
                    .iter()
                    .filter_map(|w| Some(w.open.as_ref()?.last()))
                    .collect();
                if let Some(hypothesis) = sequences.instance.shortest_sequence(graph, &lasts, last) {
                    sequences.mark_unprobed(&hypothesis);
                    if self.go_on(group, graph, sequences, sink) {
                        return;
                    }
                }
            }
            self.leave(true, graph, sequences, sink);
        }
        self.begin(group, graph, sequences, sink);
    }

    fn go_on(
        &mut self,
        group: &[BlockIndex],
        graph: &Graph,
        sequences: &mut BlockSequences,
        sink: &mut impl Sink,
    ) -> bool {
        // The usual case, which needs no copy of the hypothesis.
        if let [hypothesis] = &mut self.hypotheses[..]
            && let Some(open) = &hypothesis.open
            && let Some([sequence]) = sequences.find(graph, Some(open.last()), group)
        {
            for &block in sequence {
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
            let Some(onward) = sequences.find(graph, Some(open.last()), group) else {
                self.lose(Some(group[group.len() - 1]), sink);
                return true;
            };
            for sequence in onward {
                let mut hypothesis = hypothesis.clone();
                sequence.iter().for_each(|&block| hypothesis.enter(block, graph));
                on.push(hypothesis);
            }
        }
        if on.is_empty() {
            return false;
        }
        self.settle(on, sink);
        true
    }

    /// Handles the first observed blocks of an activation.
    fn begin(&mut self, group: &[BlockIndex], graph: &Graph, sequences: &mut BlockSequences, sink: &mut impl Sink) {
        // The next activation is observed from its beginning.
        let is_fresh = std::mem::replace(&mut self.is_fresh, true);
        let from_entry =
            group.contains(&BlockIndex::ENTRY) || (is_fresh && sequences.instance.is_unprobed(BlockIndex::ENTRY));
        if from_entry {
            let Some(sequences) = sequences.find(graph, None, group) else {
                self.lose(Some(group[group.len() - 1]), sink);
                return;
            };
            let into = sequences.iter().map(|sequence| {
                let mut hypothesis = Hypothesis::default();
                sequence.iter().for_each(|&block| hypothesis.enter(block, graph));
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

    /// Ends the activation. `has_left`: control left the function; otherwise the burst ended.
    pub fn leave(&mut self, has_left: bool, graph: &Graph, sequences: &mut BlockSequences, sink: &mut impl Sink) {
        let mut left = Vec::new();
        for hypothesis in std::mem::replace(&mut self.hypotheses, vec![Hypothesis::default()]) {
            let Some(open) = &hypothesis.open else {
                left.push(hypothesis);
                continue;
            };
            let out = if has_left {
                sequences.instance.sequences_out(graph, open.last()).unwrap_or_default()
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

    /// Continues with these hypotheses. If the open paths do not depend on the ended ones, as after a join, emits the
    /// ended partial paths.
    fn settle(&mut self, mut hypotheses: Vec<Hypothesis>, sink: &mut impl Sink) {
        hypotheses.sort();
        hypotheses.dedup();
        // The hypotheses are distinct. If their number is the product of the distinct ended and open parts, every pair
        // occurs.
        let ended: Vec<_> = hypotheses
            .chunk_by(|a, b| a.ended == b.ended)
            .map(|same| &same[0].ended)
            .collect();
        let open: BTreeSet<_> = hypotheses.iter().map(|hypothesis| &hypothesis.open).collect();
        if ended.len() * open.len() == hypotheses.len() && ended.iter().any(|partial_paths| !partial_paths.is_empty()) {
            let open = open.into_iter().cloned().map(|open| Hypothesis {
                ended: Vec::new(),
                open,
            });
            let open: Vec<Hypothesis> = open.collect();
            self.exiting.clear();
            if let ([Hypothesis { open: None, .. }], [partial_paths]) = (&open[..], &ended[..]) {
                self.exiting
                    .extend(partial_paths.last().into_iter().flat_map(|last| &last.blocks));
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

    /// Discards all hypotheses. `at`: the current block, if it is known.
    fn lose(&mut self, at: Option<BlockIndex>, sink: &mut impl Sink) {
        sink.lost();
        self.hypotheses = vec![at.map(Hypothesis::at).unwrap_or_default()];
        // The next observed block is not the activation's first.
        self.is_fresh = false;
    }
}
