//! Branch weights and block counts before superblocks are chosen: restores recorded weights, and corrects estimates
//! that contradict the recording (feedback/ALGORITHMS.md, Superblocks).

use super::Former;
use crate::error::PassError;
use crate::ir::frequencies::Frequencies;
use crate::ir::{FunctionIr, metadata};
use crate::transform::markers::Found;
use inkwell::basic_block::BasicBlock;
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::values::AsValueRef;
use pleach_annotate::id::BlockIndex;
use pleach_decide::superblock::{Marker, branch_weights};
use pleach_decide::weights::PRIOR_SAMPLES;
use rustc_hash::{FxHashMap, FxHashSet};

/// The sum of a branch's weights.
pub(super) const WEIGHT_SCALE: f64 = 1e6;
/// The same for edges with a probability below 1 / [`WEIGHT_SCALE`].
const FINE_WEIGHT_SCALE: f64 = 1e9;
/// Minimum of recorded executions of a loop, divided by the executions that its weights imply, for scaling its exits.
const MIN_UNDERESTIMATE: f64 = 2.0;
/// Maximum of rounds of scaling loop exits: nested loops converge in several.
const MAX_ROUNDS: usize = 4;

/// The profile metadata of a function's terminators.
pub(super) struct Saved(Vec<(LLVMValueRef, LLVMValueRef)>);

impl Saved {
    /// Reads it.
    pub(super) fn from_function(function: &FunctionIr<'_>) -> Self {
        let terminators = function
            .value
            .get_basic_block_iter()
            .filter_map(|block| block.get_terminator());
        let saved = terminators.map(|terminator| {
            let terminator = terminator.as_value_ref();
            // SAFETY: the terminator belongs to a function that is alive.
            (terminator, unsafe { metadata::profile_of(terminator) })
        });
        Self(saved.collect())
    }

    /// Puts it back. The terminators must still be there.
    pub(super) fn put_back(self) {
        for (terminator, profile) in self.0 {
            // SAFETY: nothing but metadata has changed since the terminator was read.
            unsafe { metadata::set_profile(terminator, profile) };
        }
    }
}

impl Former {
    /// Restores the recorded weights of branches that markers identify; returns these branches.
    pub(super) fn restore_branch_weights(
        &mut self,
        function: &FunctionIr<'_>,
        found: &Found,
        probabilities: &[f64],
    ) -> Result<FxHashSet<BlockIndex>, PassError> {
        for &key in &found.keys {
            self.recorded(key)?;
        }
        let count = |marker: Marker| {
            let recorded = self.profiles[&found.keys[marker.instance]].as_ref()?;
            Some(recorded.count(marker.block)? as f64)
        };
        let unseen = self.source.scale() * PRIOR_SAMPLES;
        let blocks = function.value.get_basic_blocks();
        let mut known = FxHashSet::default();
        for (block, counts) in
            branch_weights::restore_branch_weights(&function.cfg, &found.blocks, count, probabilities, unseen)
        {
            let weights: Vec<u64> = counts.iter().map(|c| c.ceil() as u64).collect();
            set_weights(blocks[block.index()], &weights);
            known.insert(block);
        }
        Ok(known)
    }

    /// Scales down exits of loops that were executed much more often than their weights imply: the optimiser invented
    /// those weights.
    pub(super) fn scale_loop_exits(
        &mut self,
        function: &FunctionIr<'_>,
        found: &Found,
        known: &FxHashSet<BlockIndex>,
    ) -> Result<(), PassError> {
        let blocks = function.value.get_basic_blocks();
        for _ in 0..MAX_ROUNDS {
            let Some(now) = Frequencies::from_weights(function) else {
                return Ok(());
            };
            let factor = self.underestimate(found, &now.counts)?;
            if factor < MIN_UNDERESTIMATE {
                return Ok(());
            }
            for (block, shares) in
                branch_weights::scale_loop_exits(&function.cfg, &now.probabilities, |b| known.contains(&b), factor)
            {
                let weights: Vec<u64> = shares.iter().map(|p| (p * FINE_WEIGHT_SCALE).ceil() as u64).collect();
                set_weights(blocks[block.index()], &weights);
            }
        }
        Ok(())
    }

    /// The recorded count of the function's hottest block, divided by the one in `counts`.
    fn underestimate(&mut self, found: &Found, counts: &[f64]) -> Result<f64, PassError> {
        let Some(own) = found.own else { return Ok(1.0) };
        let Some(recorded) = self.recorded(found.keys[own])? else {
            return Ok(1.0);
        };
        // If the function was also inlined, only a share of its executions happens here.
        let entries = recorded.count(BlockIndex(0)).map_or(1.0, |count| count.max(1) as f64);
        let share = (counts[0] / entries).min(1.0);
        let mut places: FxHashMap<BlockIndex, (u32, f64)> = FxHashMap::default();
        for (markers, count) in found.blocks.iter().zip(counts) {
            for marker in markers.iter().filter(|m| m.instance == own) {
                let place = places.entry(marker.block).or_default();
                *place = (place.0 + 1, place.1 + count);
            }
        }
        // Duplicated blocks are ignored, because some of their copies may have been removed.
        let once = places.iter().filter(|(_, place)| place.0 == 1);
        let counted = once.filter_map(|(&block, place)| Some((recorded.count(block)?, place.1)));
        let hottest = counted.max_by_key(|&(recorded, _)| recorded);
        Ok(hottest.map_or(1.0, |(recorded, count)| recorded as f64 * share / count.max(1.0)))
    }

    /// Scales a function's counts down so that none exceeds the largest recorded count of its blocks. In nested loops
    /// with unsampled exits, LLVM's frequencies can exceed the executions of the whole program.
    pub(super) fn clamp_counts(&mut self, found: &Found, counts: &mut [f64]) -> Result<(), PassError> {
        let mut recorded = 0;
        for marker in found.blocks.iter().flatten() {
            let of_function = self.recorded(found.keys[marker.instance])?;
            let count = of_function.and_then(|recorded| recorded.count(marker.block));
            recorded = recorded.max(count.unwrap_or(0));
        }
        let max = counts.iter().copied().fold(0.0, f64::max);
        if recorded > 0 && max > recorded as f64 {
            let factor = recorded as f64 / max;
            counts.iter_mut().for_each(|count| *count *= factor);
        }
        Ok(())
    }
}

/// Gives a small weight to edges between executed blocks that were never taken.
pub(super) fn floor_edge_probabilities(function: &FunctionIr<'_>, frequencies: &mut Frequencies) {
    let bases = function.cfg.edge_bases();
    let blocks = function.value.get_basic_blocks();
    for block in
        branch_weights::floor_edge_probability(&function.cfg, &frequencies.counts, &mut frequencies.probabilities)
    {
        let slots = function.cfg.blocks[block.index()].successors.len();
        let own = &frequencies.probabilities[bases[block.index()] as usize..][..slots];
        let weights: Vec<u64> = own.iter().map(|p| (p * WEIGHT_SCALE).round() as u64).collect();
        set_weights(blocks[block.index()], &weights);
    }
}

/// Gives a block's terminator weights, one for each successor slot.
pub(super) fn set_weights(block: BasicBlock<'_>, weights: &[u64]) {
    if let Some(terminator) = block.get_terminator() {
        // SAFETY: the terminator belongs to a function that is alive.
        unsafe { metadata::set_branch_weights(terminator.as_value_ref(), weights) };
    }
}
