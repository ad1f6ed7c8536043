//! Keeps calls from being inlined that would make hot functions call themselves. `pleach_decide::recursion` chooses them.

use crate::decisions::Decisions;
use crate::error::PassError;
use crate::ir::{FunctionIr, attributes};
use crate::optimisation::Optimisation;
use inkwell::llvm_sys::core::{
    LLVMGetBasicBlockParent, LLVMGetCalledValue, LLVMGetFirstUse, LLVMGetInstructionParent, LLVMGetNextUse,
    LLVMGetUser, LLVMIsAInstruction,
};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::values::AsValueRef;
use pleach_annotate::cfg::Callee;
use pleach_annotate::id::FunctionGuid;
use pleach_decide::recursion::{FunctionCall, MAX_INSTRUCTIONS, Reference, calls_that_stay};
use pleach_profile::FunctionProfile;
use rustc_hash::FxHashMap;

/// The calls between a module's functions.
pub struct CallGraph {
    /// Positions of functions, by name.
    positions: FxHashMap<FunctionGuid, usize>,
    may_be_inlined: Vec<bool>,
    calls: Vec<FunctionCall>,
    /// The instruction of each call.
    instructions: Vec<LLVMValueRef>,
}

/// A call that stays.
pub struct CallThatStays {
    /// Position of the function that calls.
    pub caller: usize,
    /// The call.
    pub call: LLVMValueRef,
}

impl CallGraph {
    /// The graph without calls.
    pub fn new(functions: &[FunctionIr<'_>]) -> Self {
        let numbered = functions.iter().enumerate();
        Self {
            positions: numbered.map(|(at, function)| (function.cfg.id.guid, at)).collect(),
            may_be_inlined: vec![false; functions.len()],
            calls: Vec::new(),
            instructions: Vec::new(),
        }
    }

    /// Adds the calls of a function that was sampled.
    pub fn add(&mut self, function: &FunctionIr<'_>, profile: &FunctionProfile, is_hot: bool) {
        let Some(&caller) = self.positions.get(&function.cfg.id.guid) else {
            return;
        };
        self.may_be_inlined[caller] = is_hot && instructions(function) <= MAX_INSTRUCTIONS;
        for (call, &instruction) in function.cfg.calls.iter().zip(&function.calls) {
            let count = profile.blocks.get(call.block.index()).copied().unwrap_or(0);
            if let Callee::Direct(target) = call.callee {
                self.add_call(caller, target, count, true, instruction);
            }
        }
        for site in &profile.call_targets {
            if let Some(&instruction) = function.calls.get(site.call as usize) {
                for &(target, count) in &site.targets {
                    self.add_call(caller, target, count, false, instruction);
                }
            }
        }
    }

    fn add_call(
        &mut self,
        caller: usize,
        callee: FunctionGuid,
        count: u64,
        is_direct: bool,
        instruction: LLVMValueRef,
    ) {
        if let Some(&callee) = self.positions.get(&callee) {
            self.calls.push(FunctionCall {
                caller,
                callee,
                count,
                is_direct,
            });
            self.instructions.push(instruction);
        }
    }

    /// Forbids the inlining of calls of hot functions that lead back to them; returns these calls.
    ///
    /// # Errors
    /// The list of decisions cannot be written.
    pub fn keep_calls(
        &self,
        functions: &[FunctionIr<'_>],
        decisions: &mut Decisions,
    ) -> Result<Vec<CallThatStays>, PassError> {
        let mut kept = Vec::new();
        if !self.may_be_inlined.contains(&true) {
            return Ok(kept);
        }
        for at in calls_that_stay(&self.may_be_inlined, &self.calls, &references(functions)) {
            let (call, caller) = (self.instructions[at], self.calls[at].caller);
            // SAFETY: the call belongs to the module, and its target to what it is linked with.
            unsafe {
                // What the source asks for stands, and LLVM accepts no call with both attributes.
                if attributes::call_has(call, "alwaysinline")
                    || attributes::has(LLVMGetCalledValue(call), "alwaysinline")
                {
                    continue;
                }
                if decisions.take(Optimisation::CallThatStays, &functions[caller].cfg.name, None)? {
                    attributes::add_to_call(call, "noinline");
                    kept.push(CallThatStays { caller, call });
                }
            }
        }
        Ok(kept)
    }
}

/// Which functions mention which: their calls, with and without samples, and the functions whose addresses they pass on.
fn references(functions: &[FunctionIr<'_>]) -> Vec<Reference> {
    let positions: FxHashMap<LLVMValueRef, usize> = (0..)
        .zip(functions)
        .map(|(at, function)| (function.value.as_value_ref(), at))
        .collect();
    let mut found = Vec::new();
    for (&value, &to) in &positions {
        // SAFETY: the functions belong to the module, and nothing changes it meanwhile.
        unsafe {
            let mut usage = LLVMGetFirstUse(value);
            while !usage.is_null() {
                let user = LLVMIsAInstruction(LLVMGetUser(usage));
                usage = LLVMGetNextUse(usage);
                if user.is_null() {
                    continue;
                }
                if let Some(&from) = positions.get(&LLVMGetBasicBlockParent(LLVMGetInstructionParent(user))) {
                    found.push(Reference { from, to });
                }
            }
        }
    }
    found
}

/// Number of instructions of a function.
fn instructions(function: &FunctionIr<'_>) -> usize {
    let blocks = function.value.get_basic_block_iter();
    blocks.map(|block| block.get_instructions().count()).sum()
}
