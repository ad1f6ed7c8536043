//! An independent checker of tail duplication. Its input is the graph before, the graph after and the origin of each
//! block; it does not depend on how or why blocks were copied.
//!
//! [`check`] succeeds if `origin` maps the graph after onto the graph before: the entry maps to the entry, and each
//! successor slot of a copy leads to a copy of the target of that slot of its origin. An execution then passes copies
//! of the blocks that it would have passed, in the same order. By induction from the entry, each reachable block keeps
//! a reachable copy; this needs no rule of its own.
//!
//! [`check_flow`] succeeds if the counts of copies add up to the counts before, and flow is conserved at each copy.

#[cfg(test)]
mod tests;
mod violation;

use pleach_annotate::cfg::{Callee, Cfg};
use pleach_annotate::id::BlockIndex;
pub use violation::Violation;

/// Relative error of sums of floating-point counts.
const FLOAT_ERROR: f64 = 1e-9;

/// Checks that `after` is `before` with some blocks copied: block i of `after` is a copy of block `origin[i]` of
/// `before`. The module's documentation says what this implies.
///
/// Not checked, because a graph does not contain them: instructions other than calls, and taken addresses of blocks.
///
/// # Errors
/// The first violated rule of the first block that violates one.
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

/// Checks that each block has an origin, and that the entry and exception-handling pads have no second copy.
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

/// By block, the callees of its calls and whether they may not return. Calls of non-existent blocks are left out.
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
    /// Count of each successor slot.
    pub edges: &'a [f64],
}

/// Checks that the counts after a duplication agree with the counts before. The duplication must satisfy [`check`].
///
/// - The counts of a block's copies add up to the block's count, and likewise for each edge.
/// - A copy's count equals the sums over its incoming and its outgoing edges. If its origin's did not (a call does not
///   return, counts are estimates), the copy's difference lies between 0 and the origin's.
///
/// Counts may have been rounded: each may be wrong by 1. The entry's incoming sum and the outgoing sum of blocks
/// without successors are not checked.
///
/// # Errors
/// The first violated rule, including those of [`check`].
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
    let old = Flow::from_counts(before, counts_before);
    let new = Flow::from_counts(after, counts_after);
    for (block, from) in origin.iter().map(|o| o.index()).enumerate() {
        let count = counts_after.blocks[block];
        // One rounding for each edge and one for the block, before and after.
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
        // An unreachable block may have been removed: without copies, its count must have been 0.
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

/// The maximal error of a sum of `terms` rounded counts of size `size`.
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
    fn from_counts(cfg: &Cfg, counts: Counts<'_>) -> Self {
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
