//! The hot walks through the current graph, with how often each is executed.
//!
//! A walk is an acyclic path from the function's entry or a loop's header to an exit or a back edge, as Ball and Larus cut them.
//! Walks are grown from the hottest on. Which way a branch goes depends on the markers that were passed: the function that the
//! branch came from knows how its paths go on. Where no marker tells, the branch's own weights decide.

use super::{Marker, Subject};
use crate::superblock::history::Next;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Walks that carry less than this share of the function's executions are not followed.
const LEAST_SHARE: f64 = 1e-4;
/// Steps that are looked at, at most: bounds the time that a large function takes.
const MOST_STEPS: usize = 100_000;

/// A walk through the current graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Walk {
    /// Its blocks; last, where it ends by a back edge, the header that this leads to.
    pub blocks: Vec<BlockIndex>,
    /// Executions.
    pub count: f64,
    /// Of these, what is sure but for sampling error.
    pub low: f64,
}

/// What a walk knows of one context.
#[derive(Clone, Default)]
struct Trail(Vec<BlockIndex>);

#[derive(Clone)]
struct Growing {
    blocks: Vec<BlockIndex>,
    /// By context, most recent last.
    trails: Vec<(usize, Trail)>,
    count: f64,
    low: f64,
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
        let starts = self.starts();
        let floor = starts.iter().sum::<f64>() * LEAST_SHARE;
        for (block, &count) in starts.iter().enumerate().filter(|&(_, &c)| c > floor) {
            let mut walk = Growing {
                blocks: Vec::new(),
                trails: Vec::new(),
                count,
                low: count,
            };
            self.enter(&mut walk, BlockIndex(block as u32));
            heap.push(walk);
        }
        let mut done = Vec::new();
        for _ in 0..MOST_STEPS {
            let Some(walk) = heap.pop() else { break };
            let last = walk.blocks[walk.blocks.len() - 1];
            if cfg.blocks[last.index()].successors.is_empty() {
                done.push(finished(walk));
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
                grown.low *= if targets.len() > 1 {
                    self.sure(p, next.effective)
                } else {
                    p
                };
                if back {
                    grown.blocks.push(to);
                    done.push(finished(grown));
                } else {
                    self.enter(&mut grown, to);
                    heap.push(grown);
                }
            }
        }
        done.sort_by(|a, b| b.count.total_cmp(&a.count).then_with(|| a.blocks.cmp(&b.blocks)));
        done
    }

    /// How often walks start at each block: calls at the entry, back edges at headers.
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

    /// A probability, less what sampling error may have added.
    fn sure(&self, p: f64, effective: f64) -> f64 {
        (p - self.confidence * (p * (1.0 - p) / (effective + 1.0)).sqrt()).max(0.0)
    }

    /// Distinct successors of a walk's last block, whether a back edge leads there, and how probable each is.
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
            self.informed(walk, &targets, &prior)
        } else {
            None
        };
        let unknown = Next {
            probabilities: prior,
            effective: f64::INFINITY,
        };
        (targets, next.unwrap_or(unknown))
    }

    /// What the most recent context that tells all possible steps apart says.
    fn informed(&self, walk: &Growing, targets: &[(BlockIndex, bool)], prior: &[f64]) -> Option<Next> {
        for (context, trail) in walk.trails.iter().rev() {
            let steps: Option<Vec<BlockIndex>> = targets.iter().map(|&(to, _)| self.first(to, *context)).collect();
            let Some(steps) = steps else { continue };
            let mut distinct = steps.clone();
            distinct.sort_unstable();
            distinct.dedup();
            if distinct.len() < steps.len() {
                continue;
            }
            let history = self.subject.histories.get(*context)?;
            if let Some(next) = history.next(&trail.0, &steps, prior) {
                return Some(next);
            }
        }
        None
    }

    /// The first marker of a context from a block on, as far as there is only one way to go.
    fn first(&self, mut block: BlockIndex, context: usize) -> Option<BlockIndex> {
        for _ in 0..8 {
            let found = self.subject.markers[block.index()]
                .iter()
                .find(|m| m.context == context);
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

    fn mark(&self, walk: &mut Growing, marker: &Marker) {
        let place = walk.trails.iter().position(|(context, _)| *context == marker.context);
        let (_, mut trail) = place.map_or((marker.context, Trail::default()), |i| walk.trails.remove(i));
        let history = self.subject.histories.get(marker.context);
        let anew = match (trail.0.last(), history) {
            (Some(&last), Some(history)) => marker.block == BlockIndex::ENTRY || history.restarts(last, marker.block),
            _ => true,
        };
        if anew {
            trail.0.clear();
        }
        trail.0.push(marker.block);
        walk.trails.push((marker.context, trail));
    }
}

fn finished(walk: Growing) -> Walk {
    Walk {
        blocks: walk.blocks,
        count: walk.count,
        low: walk.low,
    }
}
