//! Functions without samples get no branch weights, not even with the code that is inlined into them.
//!
//! A function that is inlined in many places has one set of counts, from the places that were sampled. These counts say
//! little about an unsampled call site: what a bytecode instruction does determines how often it runs. Its code is
//! therefore compiled as without a profile. But where no sampled function calls it, its counts are from the unsampled
//! ones, as those of a hot loop whose function is called once: then its weights stay.
//!
//! The weights of the profile carry a mark, which inlining copies: the weights that the source gave
//! (`__builtin_expect`), which come back. Limit: where an optimisation made a new branch or switch of marked ones, its
//! weights stay.

use crate::ir::attributes;
use crate::ir::metadata::{self, Metadata};
use inkwell::llvm_sys::core::{
    LLVMGetBasicBlockParent, LLVMGetCalledValue, LLVMGetFirstUse, LLVMGetInstructionParent, LLVMGetNextUse,
    LLVMGetUser, LLVMIsACallInst, LLVMIsAInvokeInst, LLVMValueAsMetadata,
};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::module::Module;
use inkwell::values::AsValueRef;

/// Attribute of functions without samples, until their weights are forgotten.
const UNSAMPLED: &str = "pleach-unsampled";
/// Metadata of instructions whose weights are the profile's, until then: a node with the weights before, if any.
const SAMPLED: &str = "pleach.sampled";

/// Attribute of functions that only functions without samples call (`PleachKeepsWeightsAttribute`).
const KEEPS_WEIGHTS: &str = "pleach-keeps-weights";

/// Marks a function that has no samples.
///
/// # Safety
/// The function must be alive.
pub unsafe fn mark_function(function: LLVMValueRef) {
    // SAFETY: as the caller promises.
    unsafe { attributes::add_own(function, UNSAMPLED) }
}

/// Gives a terminator the weights of the profile.
///
/// # Safety
/// The terminator must be alive.
pub unsafe fn set_weights(terminator: LLVMValueRef, weights: &[u64]) {
    // SAFETY: as the caller promises; the weights before are of the same context.
    unsafe {
        let before = metadata::profile_of(terminator);
        let mut parts = if before.is_null() {
            vec![]
        } else {
            vec![LLVMValueAsMetadata(before)]
        };
        Metadata::of_value(terminator).attach(terminator, SAMPLED, &mut parts);
        metadata::set_branch_weights(terminator, weights);
    }
}

/// Marks the functions with samples that only functions without samples call: their weights stay, and those of what is
/// inlined into them, wherever they are inlined (`PleachKeepWeightsPass`). Call when all functions without samples are
/// marked.
pub fn mark_only_callees(module: &Module<'_>) {
    for function in module.get_functions() {
        let value = function.as_value_ref();
        // SAFETY: the function belongs to the module.
        unsafe {
            let is_sampled = function.count_basic_blocks() > 0 && !attributes::has_own(value, UNSAMPLED);
            if is_sampled && is_called_by_unsampled_only(value) {
                attributes::add_own(value, KEEPS_WEIGHTS);
            }
        }
    }
}

/// Whether a function has callers, and all of them, besides itself, have no samples.
///
/// # Safety
/// The function must be alive.
unsafe fn is_called_by_unsampled_only(function: LLVMValueRef) -> bool {
    let mut is_called = false;
    // SAFETY: as the caller promises; users of a function are alive, and instructions belong to functions.
    unsafe {
        let mut next = LLVMGetFirstUse(function);
        while !next.is_null() {
            let user = LLVMGetUser(next);
            next = LLVMGetNextUse(next);
            let is_call = !LLVMIsACallInst(user).is_null() || !LLVMIsAInvokeInst(user).is_null();
            if !is_call || LLVMGetCalledValue(user) != function {
                return false; // it may be called from anywhere
            }
            let caller = LLVMGetBasicBlockParent(LLVMGetInstructionParent(user));
            if caller != function {
                if !attributes::has_own(caller, UNSAMPLED) {
                    return false;
                }
                is_called = true;
            }
        }
    }
    is_called
}

/// Removes the weights of the profile from functions without samples, and all marks. Returns whether there were any.
pub fn forget_inherited_weights(module: &Module<'_>) -> bool {
    // SAFETY: the module is alive.
    let mark = unsafe { Metadata::in_module(module.as_mut_ptr()) }.kind(SAMPLED);
    let mut changed = false;
    for function in module.get_functions() {
        let value = function.as_value_ref();
        // SAFETY: the function belongs to the module.
        let is_unsampled = unsafe { attributes::remove_own(value, UNSAMPLED) };
        changed |= is_unsampled;
        // SAFETY: as before.
        changed |= unsafe { attributes::remove_own(value, KEEPS_WEIGHTS) };
        for block in function.get_basic_block_iter() {
            let mut next = block.get_first_instruction();
            while let Some(instruction) = next {
                next = instruction.get_next_instruction();
                let instruction = instruction.as_value_ref();
                // SAFETY: the instruction belongs to the module; what the mark has is of its context.
                unsafe {
                    if let Some(before) = metadata::take(instruction, mark) {
                        changed = true;
                        if is_unsampled {
                            metadata::set_profile(instruction, before.first().copied().unwrap_or_default());
                        }
                    }
                }
            }
        }
    }
    changed
}
