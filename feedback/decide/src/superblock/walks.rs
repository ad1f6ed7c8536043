//! The hot walks through the current graph, with their counts.
//!
//! A walk is an acyclic path from the function's entry or a loop's header to an exit or a back edge (Ball and Larus,
//! *Efficient Path Profiling*, MICRO 1996). If a header may be copied for its back edges, earlier paths belong to the
//! walk as history. Walks are grown in descending order of count. At a branch, the markers on the walk select recorded
//! paths of the function from which the branch was inlined; these predict the next step. Without such markers, the
//! branch's weights do.

use super::history::{Next, PathHistory, caller_block, is_caller_block};
use super::subject::{Marker, Subject};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::rc::Rc;

/// Minimum count of a walk, as a share of the function's executions.
const MIN_SHARE: f64 = 1e-4;
/// Maximum of steps, which bounds the time for a large function.
const MAX_STEPS: usize = 100_000;
/// Maximum of paths before the last one of a walk: each multiplies the number of walks.
const MAX_EARLIER_PATHS: usize = 2;
/// Maximum of a caller's blocks in a trail, as in profiles.
const MAX_CALLER_BLOCKS: usize = 4;
/// Maximum of blocks in the trail of one activation.
const MAX_TRAIL: usize = 64;

/// A walk through the current graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Walk {
    /// Its blocks, earlier paths first. If it ends by a back edge, the last block is the header that the edge leads to.
    pub blocks: Vec<BlockIndex>,
    /// Range of `blocks` that this walk accounts for. Earlier blocks are history only; later ones belong to other
    /// walks.
    pub counted: Range<usize>,
    /// Whether it ends by a back edge.
    pub ends_back: bool,
    /// Executions.
    pub count: f64,
    /// Lower bounds of the executions: up to the end of the counted path, and up to the end of the walk.
    pub low: (f64, f64),
}

/// The recorded blocks of one inline instance on a walk. Walks that grow from the same one share what they have in
/// common.
#[derive(Clone, Default)]
struct Trail(Rc<Vec<BlockIndex>>);

#[derive(Clone)]
struct Growing {
    blocks: Vec<BlockIndex>,
    /// Position of its last path in `blocks`.
    last: usize,
    /// Position of the path before that.
    previous: usize,
    /// Number of paths before the last.
    before: usize,
    /// It begins at the function's entry, so it has no earlier path.
    is_complete: bool,
    /// By inline instance, most recent last.
    trails: Vec<(usize, Trail)>,
    count: f64,
    /// Lower bound of the steps' probability divided by the estimate: for the previous path, and for the last one.
    sure: (f64, f64),
}

impl PartialEq for Growing {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Growing {}
impl PartialOrd for Growing {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Growing {
    fn cmp(&self, other: &Self) -> Ordering {
        self.count
            .total_cmp(&other.count)
            .then_with(|| other.blocks.cmp(&self.blocks))
    }
}

/// Edges that close a cycle in a depth-first walk from the entry, by slot.
pub fn back_edges(cfg: &Cfg) -> Vec<bool> {
    let bases = cfg.edge_bases();
    let mut back = vec![false; cfg.edge_count()];
    // 0: not seen, 1: on the stack, 2: done.
    let mut state = vec![0u8; cfg.blocks.len()];
    let mut stack = vec![(0usize, 0usize)];
    if let Some(entry) = state.first_mut() {
        *entry = 1;
    }
    while let Some((block, slot)) = stack.pop() {
        let Some(&to) = cfg.blocks.get(block).and_then(|b| b.successors.get(slot)) else {
            if let Some(state) = state.get_mut(block) {
                *state = 2;
            }
            continue;
        };
        stack.push((block, slot + 1));
        match state[to.index()] {
            0 => {
                state[to.index()] = 1;
                stack.push((to.index(), 0));
            }
            1 => back[bases[block] as usize + slot] = true,
            _ => {}
        }
    }
    back
}

/// The hot walks, by descending count.
pub fn walks(subject: &Subject<'_>, back: &[bool], confidence: f64) -> Vec<Walk> {
    let walker = Walker {
        subject,
        back,
        bases: subject.cfg.edge_bases(),
        confidence,
    };
    walker.run()
}

struct Walker<'a> {
    subject: &'a Subject<'a>,
    back: &'a [bool],
    bases: Vec<u32>,
    confidence: f64,
}

impl Walker<'_> {
    fn run(&self) -> Vec<Walk> {
        let cfg = self.subject.cfg;
        let mut heap = BinaryHeap::new();
        let (starts, depth) = (self.starts(), self.depth());
        let floor = starts.iter().sum::<f64>() * MIN_SHARE;
        for (block, &count) in starts.iter().enumerate().filter(|&(_, &c)| c > floor) {
            let mut walk = Growing {
                blocks: Vec::new(),
                last: 0,
                previous: 0,
                before: 0,
                is_complete: block == BlockIndex::ENTRY.index(),
                trails: Vec::new(),
                count,
                sure: (1.0, 1.0),
            };
            self.enter(&mut walk, BlockIndex(block as u32));
            heap.push(walk);
        }
        let mut done = Vec::new();
        for _ in 0..MAX_STEPS {
            let Some(walk) = heap.pop() else { break };
            let last = walk.blocks[walk.blocks.len() - 1];
            // Walks with a shorter history are only prefixes of others.
            let counts = walk.is_complete || walk.before == depth;
            if cfg.blocks[last.index()].successors.is_empty() {
                done.extend(counts.then(|| finished(&walk, None)));
                continue;
            }
            let (targets, next) = self.next(&walk);
            for (i, &(to, back)) in targets.iter().enumerate() {
                let p = next.probabilities[i];
                if walk.count * p <= floor {
                    continue;
                }
                let mut grown = walk.clone();
                grown.count *= p;
                if targets.len() > 1 {
                    grown.sure.1 *= self.sure(p, next.effective) / p;
                }
                if back {
                    // A first path is counted only with its successor.
                    done.extend((counts && (walk.before > 0 || depth == 0)).then(|| finished(&grown, Some(to))));
                    if grown.before == depth {
                        continue;
                    }
                    (grown.previous, grown.last) = (grown.last, grown.blocks.len());
                    grown.sure = (grown.sure.1, 1.0);
                    grown.before += 1;
                }
                self.enter(&mut grown, to);
                heap.push(grown);
            }
        }
        done.sort_by(|a, b| b.count.total_cmp(&a.count).then_with(|| a.blocks.cmp(&b.blocks)));
        done
    }

    /// Number of paths before the last one of each walk: 0 if no header may be copied.
    fn depth(&self) -> usize {
        if !unrollable(self.subject, self.back).contains(&true) {
            return 0;
        }
        let known = self.subject.histories.iter().map(PathHistory::depth).max();
        known.unwrap_or(0).clamp(1, MAX_EARLIER_PATHS)
    }

    /// The number of walks that start at each block: calls at the entry, back edges at headers.
    fn starts(&self) -> Vec<f64> {
        let subject = self.subject;
        let mut starts = vec![0.0; subject.cfg.blocks.len()];
        for (index, (block, &base)) in subject.cfg.blocks.iter().zip(&self.bases).enumerate() {
            for (slot, to) in block.successors.iter().enumerate() {
                let edge = base as usize + slot;
                if self.back[edge] {
                    starts[to.index()] += subject.counts[index] * subject.probabilities[edge];
                }
            }
        }
        if let (Some(start), Some(&count)) = (starts.first_mut(), subject.counts.first()) {
            *start += count;
        }
        starts
    }

    /// The lower confidence bound of a probability.
    fn sure(&self, p: f64, effective: f64) -> f64 {
        (p - self.confidence * (p * (1.0 - p) / (effective + 1.0)).sqrt()).max(0.0)
    }

    /// Distinct successors of a walk's last block, whether a back edge leads there, and the probability of each.
    fn next(&self, walk: &Growing) -> (Vec<(BlockIndex, bool)>, Next) {
        let last = walk.blocks[walk.blocks.len() - 1];
        let base = self.bases[last.index()] as usize;
        let mut targets: Vec<(BlockIndex, bool)> = Vec::new();
        let mut prior: Vec<f64> = Vec::new();
        for (slot, &to) in self.subject.cfg.blocks[last.index()].successors.iter().enumerate() {
            let p = self.subject.probabilities[base + slot];
            match targets.iter().position(|&(known, _)| known == to) {
                Some(known) => prior[known] += p,
                None => {
                    targets.push((to, self.back[base + slot]));
                    prior.push(p);
                }
            }
        }
        let next = if targets.len() > 1 {
            self.predict(walk, &targets, &prior)
        } else {
            None
        };
        let unknown = Next {
            probabilities: prior,
            effective: f64::INFINITY,
        };
        (targets, next.unwrap_or(unknown))
    }

    /// The prediction by the most recent inline instance whose markers distinguish all possible steps.
    fn predict(&self, walk: &Growing, targets: &[(BlockIndex, bool)], prior: &[f64]) -> Option<Next> {
        for (instance, trail) in walk.trails.iter().rev() {
            let steps: Option<Vec<BlockIndex>> = targets.iter().map(|&(to, _)| self.first(to, *instance)).collect();
            let Some(steps) = steps else { continue };
            let mut distinct = steps.clone();
            distinct.sort_unstable();
            distinct.dedup();
            if distinct.len() < steps.len() {
                continue;
            }
            let history = self.subject.histories.get(*instance)?;
            if let Some(next) = history.next(&trail.0, &steps, prior) {
                return Some(next);
            }
        }
        None
    }

    /// The first marker of an inline instance from a block on, along blocks with a single successor.
    fn first(&self, mut block: BlockIndex, instance: usize) -> Option<BlockIndex> {
        for _ in 0..8 {
            let found = self.subject.markers[block.index()]
                .iter()
                .find(|m| m.instance == instance);
            if let Some(marker) = found {
                return Some(marker.block);
            }
            let (&next, others) = self.subject.cfg.blocks[block.index()].successors.split_first()?;
            if others.iter().any(|&o| o != next) {
                return None;
            }
            block = next;
        }
        None
    }

    fn enter(&self, walk: &mut Growing, block: BlockIndex) {
        walk.blocks.push(block);
        for marker in &self.subject.markers[block.index()] {
            self.mark(walk, marker);
        }
    }

    /// The last blocks of the activation from which control enters a new activation. They may belong to another callee
    /// of the caller; then no recorded path matches them.
    fn called_after(&self, walk: &Growing) -> Vec<BlockIndex> {
        let Some((instance, trail)) = walk.trails.last() else {
            return Vec::new();
        };
        let Some(&caller) = self.subject.functions.get(*instance) else {
            return Vec::new();
        };
        let own = trail.0.iter().rev().take_while(|block| !is_caller_block(**block));
        let mut last: Vec<_> = own
            .take(MAX_CALLER_BLOCKS)
            .map_while(|&block| caller_block(caller, block))
            .collect();
        last.reverse();
        last
    }

    fn mark(&self, walk: &mut Growing, marker: &Marker) {
        let place = walk
            .trails
            .iter()
            .position(|(instance, _)| *instance == marker.instance);
        let (_, mut trail) = place.map_or((marker.instance, Trail::default()), |i| walk.trails.remove(i));
        if marker.block == BlockIndex::ENTRY {
            trail = Trail(Rc::new(self.called_after(walk)));
        }
        let blocks = Rc::make_mut(&mut trail.0);
        if blocks.len() == MAX_TRAIL {
            blocks.remove(0);
        }
        blocks.push(marker.block);
        walk.trails.push((marker.instance, trail));
    }
}

/// A complete walk. `back_to`: the header if it ends by a back edge.
fn finished(walk: &Growing, back_to: Option<BlockIndex>) -> Walk {
    let blocks: Vec<_> = walk.blocks.iter().copied().chain(back_to).collect();
    let is_followed = back_to.is_some() && walk.before > 0;
    let until = if is_followed { walk.last } else { blocks.len() };
    let (previous, last) = walk.sure;
    let counted = if is_followed { previous } else { previous * last };
    Walk {
        counted: walk.previous..until,
        blocks,
        ends_back: back_to.is_some(),
        count: walk.count,
        low: (walk.count * counted, walk.count * previous * last),
    }
}

/// Headers that may be copied for their back edges: only those of dispatch loops, where each latch gets its own
/// dispatch. Copying the header of another loop would only unroll it.
pub fn unrollable(subject: &Subject<'_>, back: &[bool]) -> Vec<bool> {
    let mut unrollable = vec![false; subject.cfg.blocks.len()];
    let slots = subject.cfg.blocks.iter().flat_map(|block| &block.successors);
    for (to, _) in slots.zip(back).filter(|(_, back)| **back) {
        unrollable[to.index()] = subject.clonable[to.index()] && subject.dispatching[to.index()];
    }
    unrollable
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::testing::cfg;
    use std::collections::BTreeMap;

    /// The count of each step, summed over walks.
    fn walk_counts(dispatching: bool) -> BTreeMap<(u32, u32), f64> {
        // A loop with header 1 and exit 6. One of its two arms contains an inner loop of block 4.
        let cfg = cfg(&[&[1], &[2, 3, 6], &[5], &[4], &[4, 5], &[1], &[]]);
        let subject = Subject {
            cfg: &cfg,
            counts: &[10.0, 100.0, 60.0, 30.0, 60.0, 90.0, 10.0],
            probabilities: &[1.0, 0.6, 0.3, 0.1, 1.0, 1.0, 0.5, 0.5, 1.0],
            clonable: &[true; 7],
            tight: &[false; 7],
            dispatching: &(0..7).map(|b| dispatching && b == 1).collect::<Vec<_>>(),
            markers: &vec![Vec::new(); 7],
            histories: &[],
            functions: &[],
            total: 1e3,
        };
        let mut steps: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        for walk in walks(&subject, &back_edges(&cfg), 0.0) {
            for at in walk.counted.filter(|at| at + 1 < walk.blocks.len()) {
                *steps.entry((walk.blocks[at].0, walk.blocks[at + 1].0)).or_default() += walk.count;
            }
        }
        steps
    }

    #[test]
    fn each_step_is_counted_once_with_and_without_history() {
        let expected = [
            ((0, 1), 10.0),
            ((1, 2), 60.0),
            ((1, 3), 30.0),
            ((1, 6), 10.0),
            ((2, 5), 60.0),
            ((3, 4), 30.0),
            ((4, 4), 30.0),
            ((4, 5), 30.0),
            ((5, 1), 90.0),
        ];
        for dispatching in [false, true] {
            let counted = walk_counts(dispatching);
            assert!(counted.keys().eq(expected.iter().map(|(step, _)| step)), "{counted:?}");
            for (step, count) in expected {
                // Walks below the minimum share are dropped.
                assert!(
                    (counted[&step] - count).abs() < 0.5,
                    "{dispatching}: {step:?} {counted:?}"
                );
            }
        }
    }
}
