//! What the counts of an old graph say about a new one.

use super::align::{BlockMatch, Graph};
use super::features::Features;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_inference::{Evidence, infer};
use pleach_profile::{BranchPrediction, CallTargets, Covered, Executions, FunctionProfile, ValueCounts, ValueSite};

/// The profile of the new graph. Blocks and edges that match have the evidence of the old ones, the others none; the
/// counts between them are inferred. A new branch whose directions nothing tells has counts of 0, so that it gets no
/// weights. The number of samples is left to the caller.
pub fn transfer(
    old: &FunctionProfile,
    before: &Graph<'_>,
    after: &Graph<'_>,
    matched: &BlockMatch,
    scale: f64,
) -> FunctionProfile {
    let (old_cfg, new_cfg) = (before.cfg, after.cfg);
    let evidence = evidence(old, old_cfg, new_cfg, matched, scale);
    let mut counts = infer(new_cfg, &evidence, scale);
    let bases = new_cfg.edge_bases();
    for (block, base) in bases.iter().map(|&base| base as usize).enumerate() {
        let slots = base..base + new_cfg.blocks[block].successors.len();
        if slots.len() > 1 && matched.old_of(block).is_none() {
            counts.edges[slots].fill(0);
        }
    }
    let calls = CallMatch::new(old_cfg, new_cfg, matched);
    let coverage = coverage(old, &before.features, &after.features, matched);
    FunctionProfile {
        id: new_cfg.id,
        cfg_hash: new_cfg.hash(),
        name: new_cfg.name.clone(),
        blocks: counts.blocks,
        edges: counts.edges,
        call_targets: calls.call_targets(old),
        values: calls.values(old, matched),
        predictions: predictions(old, before, after, matched),
        counted: match coverage.is_empty() {
            true => Vec::new(),
            false => counted(old, &before.features, &after.features, matched),
        },
        coverage,
        ..FunctionProfile::default()
    }
}

/// The evidence of matched blocks and edges, in samples.
fn evidence(old: &FunctionProfile, old_cfg: &Cfg, new_cfg: &Cfg, matched: &BlockMatch, scale: f64) -> Evidence {
    let samples = |count: u64| count as f64 / scale;
    let bases = old_cfg.edge_bases();
    let mut edges = Vec::with_capacity(new_cfg.edge_count());
    for (block, data) in new_cfg.blocks.iter().enumerate() {
        for (slot, to) in data.successors.iter().enumerate() {
            let is_first = !data.successors[..slot].contains(to);
            let known = matched.old_of(block).zip(matched.old_of(to.index()));
            edges.push(known.filter(|_| is_first).and_then(|(from, to)| {
                let to = BlockIndex(to as u32);
                let slots = (bases[from] as usize..).zip(&old_cfg.blocks[from].successors);
                let same = slots
                    .filter(|&(_, &target)| target == to)
                    .map(|(edge, _)| old.edges[edge]);
                same.reduce(u64::saturating_add).map(samples)
            }));
        }
    }
    Evidence {
        blocks: (0..new_cfg.blocks.len())
            .map(|block| matched.old_of(block).map(|block| samples(old.blocks[block])))
            .collect(),
        edges,
        entry: None,
    }
}

/// Coverage. That a block did not run is known only if it has not changed.
fn coverage(old: &FunctionProfile, before: &[Features], after: &[Features], matched: &BlockMatch) -> Vec<Covered> {
    let state = |block: usize| {
        let from = matched.old_of(block)?;
        let state = *old.coverage.get(from)?;
        let is_same = before[from].own == after[block].own;
        Some(if is_same { state } else { state.max(Covered::Unknown) })
    };
    let states: Vec<Covered> = (0..after.len()).map(|block| state(block).unwrap_or_default()).collect();
    if states.iter().all(|&state| state == Covered::Unknown) {
        return Vec::new();
    }
    states
}

/// What breakpoints counted of blocks that have not changed.
fn counted(old: &FunctionProfile, before: &[Features], after: &[Features], matched: &BlockMatch) -> Vec<Executions> {
    let of = |block: usize| {
        let from = matched
            .old_of(block)
            .filter(|&from| before[from].own == after[block].own);
        from.map_or(Executions::UNKNOWN, |from| old.executions(from))
    };
    (0..after.len()).map(of).collect()
}

/// Predictions of branches that have not changed, and whose targets match.
fn predictions(
    old: &FunctionProfile,
    before: &Graph<'_>,
    after: &Graph<'_>,
    matched: &BlockMatch,
) -> Vec<BranchPrediction> {
    let (old_cfg, new_cfg) = (before.cfg, after.cfg);
    let moved = |prediction: &BranchPrediction| {
        let from = prediction.block.index();
        let to = matched.new_of(from)?;
        let slots = old_cfg.blocks[from]
            .successors
            .iter()
            .zip(&new_cfg.blocks[to].successors);
        let is_same = before.features[from].own == after.features[to].own
            && slots.clone().count() == old_cfg.blocks[from].successors.len()
            && slots.clone().all(|(a, b)| matched.new_of(a.index()) == Some(b.index()));
        is_same.then_some(BranchPrediction {
            block: BlockIndex(to as u32),
            ..*prediction
        })
    };
    let mut predictions: Vec<BranchPrediction> = old.predictions.iter().filter_map(moved).collect();
    predictions.sort_by_key(|prediction| prediction.block);
    predictions
}

/// Which calls of the new graph are which of the old one: those of one kind in matched blocks with equally many of them.
struct CallMatch {
    /// By old call.
    new_of: Vec<Option<u32>>,
}

impl CallMatch {
    fn new(old: &Cfg, new: &Cfg, matched: &BlockMatch) -> Self {
        let mut new_of = vec![None; old.calls.len()];
        let (old_calls, new_calls) = (calls_of_blocks(old), calls_of_blocks(new));
        for (from, to) in matched.pairs() {
            for &call in &old_calls[from] {
                let callee = old.calls[call].callee;
                let same = |cfg: &Cfg, calls: &[usize]| -> Vec<usize> {
                    let of_kind = calls.iter().copied();
                    of_kind.filter(|&other| cfg.calls[other].callee == callee).collect()
                };
                let (before, after) = (same(old, &old_calls[from]), same(new, &new_calls[to]));
                if before.len() == after.len() {
                    let position = before.iter().position(|&other| other == call);
                    new_of[call] = position.map(|position| after[position] as u32);
                }
            }
        }
        Self { new_of }
    }

    fn new_of(&self, call: u32) -> Option<u32> {
        self.new_of.get(call as usize).copied().flatten()
    }

    fn call_targets(&self, old: &FunctionProfile) -> Vec<CallTargets> {
        let moved = |site: &CallTargets| {
            Some(CallTargets {
                call: self.new_of(site.call)?,
                targets: site.targets.clone(),
            })
        };
        let mut sites: Vec<CallTargets> = old.call_targets.iter().filter_map(moved).collect();
        sites.sort_by_key(|site| site.call);
        sites
    }

    fn values(&self, old: &FunctionProfile, matched: &BlockMatch) -> Vec<ValueCounts> {
        let new_block = |block: BlockIndex| Some(BlockIndex(matched.new_of(block.index())? as u32));
        let moved = |operand: &ValueCounts| {
            let site = match operand.site {
                ValueSite::Length(call) => ValueSite::Length(self.new_of(call)?),
                ValueSite::LengthPrediction(call) => ValueSite::LengthPrediction(self.new_of(call)?),
                ValueSite::Divisor(block) => ValueSite::Divisor(new_block(block)?),
                ValueSite::SwitchPrediction(block) => ValueSite::SwitchPrediction(new_block(block)?),
            };
            Some(ValueCounts {
                site,
                ..operand.clone()
            })
        };
        let mut operands: Vec<ValueCounts> = old.values.iter().filter_map(moved).collect();
        operands.sort_by_key(|operand| operand.site);
        operands
    }
}

fn calls_of_blocks(cfg: &Cfg) -> Vec<Vec<usize>> {
    let mut calls = vec![Vec::new(); cfg.blocks.len()];
    for (index, call) in cfg.calls.iter().enumerate() {
        calls[call.block.index()].push(index);
    }
    calls
}
