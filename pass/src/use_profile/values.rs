//! Values of operands, and predictions of switches: what specialises memory operations, divisions and switches later.

use crate::error::PassError;
use crate::ir::{FunctionIr, divisions_by_one_value, metadata};
use crate::optimisation::Optimisation;
use crate::use_profile::apply::Applier;
use pleach_annotate::cfg::{Callee, Terminator};
use pleach_annotate::id::{BlockIndex, FunctionGuid};
use pleach_decide::divisors::certain_divisor;
use pleach_decide::memory_lengths::certain_lengths;
use pleach_decide::switches::mispredicted;
use pleach_profile::{FunctionProfile, ValueCounts, ValueSite};

/// Memory operations for which LLVM has no intrinsic.
const ROUTINES: [&str; 3] = ["memcmp", "bcmp", "mempcpy"];

impl Applier<'_, '_> {
    pub(super) fn memory_lengths(
        &mut self,
        function: &FunctionIr<'_>,
        profile: &FunctionProfile,
    ) -> Result<usize, PassError> {
        let mut set = 0;
        for operation in &profile.values {
            let ValueSite::Length(call) = operation.site else {
                continue;
            };
            let is_prediction = |value: &&ValueCounts| value.site == ValueSite::LengthPrediction(call);
            let lengths = certain_lengths(operation, profile.values.iter().find(is_prediction));
            let callee = function.cfg.calls.get(call as usize).map(|call| call.callee);
            let is_routine = match callee {
                Some(Callee::Memory) => false,
                Some(Callee::Direct(guid)) if ROUTINES.iter().any(|name| FunctionGuid::of_name(name) == guid) => true,
                _ => continue,
            };
            let Some(&call) = function.calls.get(call as usize).filter(|_| !lengths.is_empty()) else {
                continue;
            };
            if !self
                .decisions
                .take(Optimisation::MemoryLength, &function.cfg.name, None)?
            {
                continue;
            }
            // SAFETY: the call belongs to the module.
            unsafe { metadata::set_memory_lengths(call, is_routine, lengths, operation.total_with_one_more_burst()) };
            set += 1;
        }
        Ok(set)
    }

    pub(super) fn divisors(
        &mut self,
        function: &FunctionIr<'_>,
        profile: &FunctionProfile,
    ) -> Result<usize, PassError> {
        let mut set = 0;
        for divisions in &profile.values {
            let ValueSite::Divisor(block) = divisions.site else {
                continue;
            };
            let (Some(divisor), Some(&terminator)) =
                (certain_divisor(divisions), function.terminators.get(block.index()))
            else {
                continue;
            };
            // SAFETY: the terminator belongs to the module.
            let of_block = unsafe { divisions_by_one_value(terminator) };
            if of_block.is_empty() || !self.decisions.take(Optimisation::Divisor, &function.cfg.name, None)? {
                continue;
            }
            for &division in &of_block {
                // SAFETY: the division belongs to the module.
                unsafe { metadata::set_divisor(division, divisor, divisions.total_with_one_more_burst()) };
            }
            set += of_block.len();
        }
        Ok(set)
    }

    /// Tells all switches how often they are mispredicted: those that have not been told are made of comparisons.
    pub(super) fn switches(&self, function: &FunctionIr<'_>, profile: &FunctionProfile) {
        for (index, &terminator) in function.terminators.iter().enumerate() {
            if function.cfg.blocks[index].terminator != Terminator::Switch {
                continue;
            }
            let site = ValueSite::SwitchPrediction(BlockIndex(index as u32));
            let prediction = profile.values.iter().find(|values| values.site == site);
            let (low, high) = mispredicted(prediction);
            let permille = [low, high].map(|share| (share * 1000.0) as u32);
            // SAFETY: the terminator belongs to the module.
            unsafe { metadata::set_switch_mispredictions(terminator, permille) };
        }
    }
}
