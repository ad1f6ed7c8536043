//! An independent checker of tail duplication: it knows the graph before, the graph after, and which block each block is
//! a copy of, but nothing of how or why blocks were copied.
//!
//! [`check`] holds where `origin` maps the graph after onto the graph before: the entry is the entry, and a copy goes, slot
//! by slot, to copies of where its origin goes. An execution then passes copies of the blocks that it would have passed, in
//! the same order. It follows, by induction from the entry, that every block that could be reached still has a copy that can:
//! that needs no rule of its own.
//!
//! [`check_flow`] holds where the copies' counts add up to the counts before and no copy makes or loses executions.

#[cfg(test)]
mod tests;
mod violation;

use pleach_annotate::cfg::{Callee, Cfg};
use pleach_annotate::id::BlockIndex;
pub use violation::Violation;

/// Relative error that sums of floating-point counts may have.
const FLOAT_ERROR: f64 = 1e-9;

/// Checks that `after` is `before` with some blocks copied: `origin[i]` is the block of `before` that block i of `after` is a
/// copy of. See the module's documentation for what follows from that.
///
/// What a graph does not tell is not checked: instructions other than calls, and addresses taken of blocks.
///
/// # Errors
/// The first rule that does not hold, of the first block that breaks it.
pub fn check(before: &Cfg, after: &Cfg, origin: &[BlockIndex]) -> Result<(), Violation> {
    check_origins(before, after, origin)?;
    let calls = [calls_of(before), calls_of(after)];
    for (block, content) in after.blocks.iter().enumerate() {
        let from = origin[block].index();
        let source = &before.blocks[from];
        if content.is_eh_pad != source.is_eh_pad {
            return Err(Violation::Pad { block, origin: from });
        }
        if content.terminator != source.terminator {
            return Err(Violation::Terminator { block, origin: from });
        }
        if content.successors.len() != source.successors.len() {
            return Err(Violation::Slots {
                block,
                origin: from,
                slots: content.successors.len(),
                before: source.successors.len(),
            });
        }
        for (slot, (to, wanted)) in content.successors.iter().zip(&source.successors).enumerate() {
            if origin.get(to.index()) != Some(wanted) {
                return Err(Violation::Successor {
                    block,
                    origin: from,
                    slot,
                    to: to.index(),
                    before: wanted.index(),
                });
            }
        }
        if calls[0][from] != calls[1][block] {
            return Err(Violation::Calls { block, origin: from });
        }
    }
    Ok(())
}

/// Each block has an origin, and what can have one copy only has no more.
fn check_origins(before: &Cfg, after: &Cfg, origin: &[BlockIndex]) -> Result<(), Violation> {
    if origin.len() != after.blocks.len() {
        return Err(Violation::Origins {
            blocks: after.blocks.len(),
            origins: origin.len(),
        });
    }
    let entry = origin.first().map(|o| o.index());
    if entry != (!before.blocks.is_empty()).then_some(0) {
        return Err(Violation::Entry { origin: entry });
    }
    let mut copied = vec![false; before.blocks.len()];
    for (block, from) in origin.iter().map(|o| o.index()).enumerate() {
        let Some(source) = before.blocks.get(from) else {
            return Err(Violation::NoOrigin { block, origin: from });
        };
        if std::mem::replace(&mut copied[from], true) {
            if from == BlockIndex::ENTRY.index() {
                return Err(Violation::EntryCopied { block });
            }
            if source.is_eh_pad {
                return Err(Violation::PadCopied { block, origin: from });
            }
        }
    }
    Ok(())
}

/// By block: whom its calls call, and whether they may not return. Calls of blocks that do not exist are left out.
fn calls_of(cfg: &Cfg) -> Vec<Vec<(Callee, bool)>> {
    let mut calls = vec![Vec::new(); cfg.blocks.len()];
    for call in &cfg.calls {
        if let Some(of_block) = calls.get_mut(call.block.index()) {
            of_block.push((call.callee, call.may_not_return));
        }
    }
    calls
}

/// Counts of a graph's blocks, and of its edges in the order of [`Cfg::edge_bases`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Counts<'a> {
    /// Executions of each block.
    pub blocks: &'a [f64],
    /// How often each successor slot was taken.
    pub edges: &'a [f64],
}

/// Checks that counts after a duplication, which [`check`] accepts, say what the counts before it said.
///
/// - The counts of a block's copies add up to its own, and so do those of each of its edges.
/// - A copy is entered and left as often as it is executed. Where that was not so before (a call does not come back, counts
///   are estimates), the difference of a copy is between none and its origin's.
///
/// Counts may have been rounded: each may be wrong by 1. Nothing enters the entry and nothing leaves a block without successors.
///
/// # Errors
/// The first rule that does not hold; those of [`check`] where the graphs do not fit.
pub fn check_flow(
    before: &Cfg,
    after: &Cfg,
    origin: &[BlockIndex],
    counts_before: Counts<'_>,
    counts_after: Counts<'_>,
) -> Result<(), Violation> {
    check(before, after, origin)?;
    check_counts(before, counts_before, ["blocks before", "edges before"])?;
    check_counts(after, counts_after, ["blocks after", "edges after"])?;
    check_sums(before, after, origin, counts_before, counts_after)?;
    let old = Flow::of(before, counts_before);
    let new = Flow::of(after, counts_after);
    for (block, from) in origin.iter().map(|o| o.index()).enumerate() {
        let count = counts_after.blocks[block];
        // As many roundings as there are edges and the block itself, before and after.
        let terms = |edges: usize, others: usize| (edges + others + 2) as f64;
        let between = |new: f64, old: f64, terms: f64, size: f64| {
            let slack = tolerance(terms, size);
            new >= old.min(0.0) - slack && new <= old.max(0.0) + slack
        };
        let size = count.max(counts_before.blocks[from]);
        let (entered, entered_before) = (new.entered[block], old.entered[from]);
        let surplus = counts_before.blocks[from] - entered_before;
        let roundings = terms(new.predecessors[block], old.predecessors[from]);
        if block != BlockIndex::ENTRY.index()
            && !between(
                count - entered,
                surplus,
                roundings,
                size.max(entered).max(entered_before),
            )
        {
            return Err(Violation::Entered { block, count, entered });
        }
        let (left, left_before) = (new.left[block], old.left[from]);
        let surplus = counts_before.blocks[from] - left_before;
        let slots = after.blocks[block].successors.len();
        if slots > 0
            && !between(
                count - left,
                surplus,
                terms(slots, slots),
                size.max(left).max(left_before),
            )
        {
            return Err(Violation::Left { block, count, left });
        }
    }
    Ok(())
}

fn check_counts(cfg: &Cfg, counts: Counts<'_>, what: [&'static str; 2]) -> Result<(), Violation> {
    let lists = [(cfg.blocks.len(), counts.blocks), (cfg.edge_count(), counts.edges)];
    for (what, (things, counts)) in what.into_iter().zip(lists) {
        if counts.len() != things {
            let counts = counts.len();
            return Err(Violation::Counts { what, things, counts });
        }
        let wrong = counts.iter().position(|&c| !(c.is_finite() && c >= 0.0));
        if let Some(position) = wrong {
            let count = counts[position];
            return Err(Violation::Count { what, position, count });
        }
    }
    Ok(())
}

fn check_sums(
    before: &Cfg,
    after: &Cfg,
    origin: &[BlockIndex],
    counts_before: Counts<'_>,
    counts_after: Counts<'_>,
) -> Result<(), Violation> {
    let mut copies = vec![0_usize; before.blocks.len()];
    let mut blocks = vec![0.0; before.blocks.len()];
    let mut edges = vec![0.0; before.edge_count()];
    let bases = [before.edge_bases(), after.edge_bases()];
    for (block, from) in origin.iter().map(|o| o.index()).enumerate() {
        copies[from] += 1;
        blocks[from] += counts_after.blocks[block];
        let base = [bases[0][from] as usize, bases[1][block] as usize];
        for slot in 0..after.blocks[block].successors.len() {
            edges[base[0] + slot] += counts_after.edges[base[1] + slot];
        }
    }
    for (from, content) in before.blocks.iter().enumerate() {
        // What could not be reached may be gone: where it has no copies, it had no executions.
        let differs = |before: f64, after: f64| (before - after).abs() > tolerance(copies[from] as f64, before);
        let (before, after) = (counts_before.blocks[from], blocks[from]);
        if differs(before, after) {
            return Err(Violation::BlockSum {
                origin: from,
                before,
                after,
            });
        }
        for slot in 0..content.successors.len() {
            let edge = bases[0][from] as usize + slot;
            let (before, after) = (counts_before.edges[edge], edges[edge]);
            if differs(before, after) {
                return Err(Violation::EdgeSum {
                    origin: from,
                    slot,
                    before,
                    after,
                });
            }
        }
    }
    Ok(())
}

/// By how much a sum of so many rounded counts of this size may be wrong.
fn tolerance(terms: f64, size: f64) -> f64 {
    terms + size * FLOAT_ERROR
}

/// Sums of edges at each block.
struct Flow {
    entered: Vec<f64>,
    left: Vec<f64>,
    predecessors: Vec<usize>,
}

impl Flow {
    fn of(cfg: &Cfg, counts: Counts<'_>) -> Self {
        let blocks = cfg.blocks.len();
        let mut flow = Self {
            entered: vec![0.0; blocks],
            left: vec![0.0; blocks],
            predecessors: vec![0; blocks],
        };
        let mut edges = counts.edges.iter();
        for (from, block) in cfg.blocks.iter().enumerate() {
            for (to, &count) in block.successors.iter().zip(&mut edges) {
                flow.left[from] += count;
                flow.entered[to.index()] += count;
                flow.predecessors[to.index()] += 1;
            }
        }
        flow
    }
}
