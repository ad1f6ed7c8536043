//! Marks the loops most of whose visits are short, and those that run equally often in nearly all visits, for
//! `PleachPeelShortLoopsPass`. `pleach_decide::trip_counts` finds them.

use crate::decisions::Decisions;
use crate::error::PassError;
use crate::ffi;
use crate::ir::FunctionIr;
use crate::optimisation::Optimisation;
use inkwell::llvm_sys::prelude::LLVMValueRef;
use pleach_annotate::id::BlockIndex;
use pleach_decide::trip_counts::{mostly_short_loops, steady_loops};
use pleach_profile::FunctionProfile;

/// Marks a function's loops that are to be peeled, and those of which hardly anything is left after peeling.
///
/// # Errors
/// The list of decisions cannot be written.
pub fn mark_short_loops(
    function: &FunctionIr<'_>,
    profile: &FunctionProfile,
    decisions: &mut Decisions,
) -> Result<(), PassError> {
    let terminator = |latch: &BlockIndex| function.terminators.get(latch.index()).copied();
    let terminators = |latches: &[BlockIndex]| latches.iter().map(terminator).collect::<Option<Vec<LLVMValueRef>>>();
    for latches in steady_loops(&function.cfg, profile) {
        if let Some(latches) = terminators(&latches) {
            // SAFETY: the terminators belong to the module; the array lives until the call returns.
            unsafe { ffi::pleach_mark_steady_loop(latches.as_ptr(), latches.len()) };
        }
    }
    for found in mostly_short_loops(&function.cfg, profile) {
        let Some(latches) = terminators(&found.latches) else {
            continue;
        };
        if decisions.take(Optimisation::Peeling, &function.cfg.name, Some(found.slots))? {
            let permille: Vec<u32> = found.within.iter().map(|share| (share * 1000.0) as u32).collect();
            // SAFETY: the terminators belong to the module; the arrays live until the call returns.
            unsafe {
                ffi::pleach_set_short_visits(
                    latches.as_ptr(),
                    latches.len(),
                    permille.as_ptr(),
                    permille.len(),
                    found.rest as u32,
                );
            }
        }
    }
    Ok(())
}
