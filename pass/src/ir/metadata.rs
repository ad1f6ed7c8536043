//! Metadata: makes nodes, and attaches profile data in the formats that LLVM's passes read.

use crate::ffi;
use inkwell::llvm_sys::LLVMContext;
use inkwell::llvm_sys::core::{
    LLVMAddNamedMetadataOperand, LLVMConstInt, LLVMConstIntGetZExtValue, LLVMDisposeValueMetadataEntries,
    LLVMGetMDKindIDInContext, LLVMGetMDNodeNumOperands, LLVMGetMDNodeOperands, LLVMGetMDString, LLVMGetMetadata,
    LLVMGetModuleContext, LLVMGetModuleFlag, LLVMGetSection, LLVMGetTypeContext, LLVMGlobalCopyAllMetadata,
    LLVMGlobalSetMetadata, LLVMHasMetadata, LLVMInt32TypeInContext, LLVMInt64TypeInContext, LLVMIsAConstantInt,
    LLVMIsAMDNode, LLVMIsAMDString, LLVMMDNodeInContext2, LLVMMDStringInContext2, LLVMMetadataAsValue, LLVMSetMetadata,
    LLVMTypeOf, LLVMValueAsMetadata, LLVMValueMetadataEntriesGetKind, LLVMValueMetadataEntriesGetMetadata,
};
use inkwell::llvm_sys::prelude::{LLVMMetadataRef, LLVMModuleRef, LLVMValueRef};
use std::ffi::CStr;

/// `IPVK_IndirectCallTarget`: the kind of value profiles that name callees.
const INDIRECT_CALL_TARGET: u32 = 0;
/// Kind of value profile: length of a memory operation (`IPVK_MemOPSize`).
const MEMORY_LENGTH: u32 = 1;

/// Makes metadata in one context.
#[derive(Clone, Copy)]
pub struct Metadata {
    context: *mut LLVMContext,
}

impl Metadata {
    /// In a module's context.
    ///
    /// # Safety
    /// The module must be alive as long as this is used.
    pub unsafe fn in_module(module: LLVMModuleRef) -> Self {
        // SAFETY: as the caller promises.
        let context = unsafe { LLVMGetModuleContext(module) };
        Self { context }
    }

    /// In a value's context.
    ///
    /// # Safety
    /// The value must be alive as long as this is used.
    pub unsafe fn of_value(value: LLVMValueRef) -> Self {
        // SAFETY: as the caller promises.
        let context = unsafe { LLVMGetTypeContext(LLVMTypeOf(value)) };
        Self { context }
    }

    /// A 64-bit number.
    pub fn long(self, value: u64) -> LLVMMetadataRef {
        // SAFETY: the context is alive.
        unsafe { LLVMValueAsMetadata(LLVMConstInt(LLVMInt64TypeInContext(self.context), value, 0)) }
    }

    /// A 32-bit number.
    pub fn int(self, value: u32) -> LLVMMetadataRef {
        // SAFETY: the context is alive.
        unsafe { LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(self.context), value.into(), 0)) }
    }

    /// A text.
    pub fn text(self, text: &str) -> LLVMMetadataRef {
        // SAFETY: the context is alive; the text is copied.
        unsafe { LLVMMDStringInContext2(self.context, text.as_ptr().cast(), text.len()) }
    }

    /// A node.
    pub fn node(self, parts: &mut [LLVMMetadataRef]) -> LLVMMetadataRef {
        // SAFETY: the parts are of this context; the list is copied.
        unsafe { LLVMMDNodeInContext2(self.context, parts.as_mut_ptr(), parts.len()) }
    }

    /// The number of a kind of attachments.
    pub fn kind(self, name: &str) -> u32 {
        // SAFETY: the context is alive; the name is copied.
        unsafe { LLVMGetMDKindIDInContext(self.context, name.as_ptr().cast(), name.len() as u32) }
    }

    /// Attaches a node with these parts to an instruction.
    pub fn attach(self, instruction: LLVMValueRef, kind: &str, parts: &mut [LLVMMetadataRef]) {
        // SAFETY: instruction and node are of this context.
        unsafe {
            LLVMSetMetadata(
                instruction,
                self.kind(kind),
                LLVMMetadataAsValue(self.context, self.node(parts)),
            )
        }
    }

    /// Attaches a node to a function.
    pub fn attach_to_function(self, function: LLVMValueRef, kind: &str, node: LLVMMetadataRef) {
        // SAFETY: function and node are of this context.
        unsafe { LLVMGlobalSetMetadata(function, self.kind(kind), node) }
    }

    /// Adds a node to a module's list of this name.
    pub fn add_to_module(self, module: LLVMModuleRef, name: &CStr, node: LLVMMetadataRef) {
        // SAFETY: the module is of this context; the name is copied.
        unsafe { LLVMAddNamedMetadataOperand(module, name.as_ptr(), LLVMMetadataAsValue(self.context, node)) }
    }

    /// The operands of a node; empty if it is not a node.
    fn operands(self, node: LLVMMetadataRef) -> Vec<LLVMValueRef> {
        // SAFETY: the node is of this context; there is space for as many operands as are counted.
        unsafe {
            let node = LLVMMetadataAsValue(self.context, node);
            let mut operands = vec![std::ptr::null_mut(); LLVMGetMDNodeNumOperands(node) as usize];
            LLVMGetMDNodeOperands(node, operands.as_mut_ptr());
            operands
        }
    }
}

/// Gives a terminator the weights of its successors, shifted right until they fit 32 bits. Only 0 becomes 0: that would
/// mean that a direction is never taken.
///
/// # Safety
/// The terminator must be alive.
pub unsafe fn set_branch_weights(terminator: LLVMValueRef, weights: &[u64]) {
    let max = weights.iter().copied().max().unwrap_or(0);
    let shift = (u64::BITS - max.leading_zeros()).saturating_sub(u32::BITS);
    // SAFETY: as the caller promises.
    let metadata = unsafe { Metadata::of_value(terminator) };
    let mut parts = vec![metadata.text("branch_weights")];
    parts.extend(
        weights
            .iter()
            .map(|weight| metadata.int(((weight >> shift) as u32).max(u32::from(*weight > 0)))),
    );
    metadata.attach(terminator, "prof", &mut parts);
}

/// The profile metadata of an instruction; null if it has none.
///
/// # Safety
/// The instruction must be alive.
pub unsafe fn profile_of(instruction: LLVMValueRef) -> LLVMValueRef {
    // SAFETY: as the caller promises.
    unsafe { LLVMGetMetadata(instruction, Metadata::of_value(instruction).kind("prof")) }
}

/// Gives an instruction profile metadata that [`profile_of`] returned.
///
/// # Safety
/// The instruction must be alive, and the metadata of its context.
pub unsafe fn set_profile(instruction: LLVMValueRef, profile: LLVMValueRef) {
    // SAFETY: as the caller promises; null removes the metadata.
    unsafe { LLVMSetMetadata(instruction, Metadata::of_value(instruction).kind("prof"), profile) }
}

/// Removes metadata of a kind from an instruction; returns the operands of its node, if there was any.
///
/// # Safety
/// The instruction must be alive.
pub unsafe fn take(instruction: LLVMValueRef, kind: u32) -> Option<Vec<LLVMValueRef>> {
    // SAFETY: as the caller promises; null removes the metadata.
    unsafe {
        if LLVMHasMetadata(instruction) == 0 {
            return None;
        }
        let node = LLVMGetMetadata(instruction, kind);
        if node.is_null() {
            return None;
        }
        LLVMSetMetadata(instruction, kind, std::ptr::null_mut());
        Some(Metadata::of_value(instruction).operands(LLVMValueAsMetadata(node)))
    }
}

/// Gives a function its entry count.
///
/// # Safety
/// The function must be alive.
pub unsafe fn set_entry_count(function: LLVMValueRef, count: u64) {
    // SAFETY: as the caller promises.
    let metadata = unsafe { Metadata::of_value(function) };
    let node = metadata.node(&mut [metadata.text("function_entry_count"), metadata.long(count)]);
    metadata.attach_to_function(function, "prof", node);
}

/// The entry count of a function, if a profile has set one.
///
/// # Safety
/// The function must be alive.
pub unsafe fn entry_count(function: LLVMValueRef) -> Option<u64> {
    // SAFETY: as the caller promises; the entries are freed once read.
    let (metadata, prof) = unsafe {
        let metadata = Metadata::of_value(function);
        let (kind, mut count) = (metadata.kind("prof"), 0);
        let entries = LLVMGlobalCopyAllMetadata(function, &mut count);
        let prof = (0..count as u32)
            .find(|&at| LLVMValueMetadataEntriesGetKind(entries, at) == kind)
            .map(|at| LLVMValueMetadataEntriesGetMetadata(entries, at));
        LLVMDisposeValueMetadataEntries(entries);
        (metadata, prof?)
    };
    let operands = metadata.operands(prof);
    let (&name, &count) = (operands.first()?, operands.get(1)?);
    // As LLVM does, all ones stand for no count, and synthetic counts are none.
    (text_of(name)? == b"function_entry_count")
        .then(|| number_of(count))?
        .filter(|&count| count != u64::MAX)
}

/// Marks a conditional branch as unpredictable, with its misprediction rate per mille; returns whether the terminator
/// is a conditional branch. LLVM if-converts such branches up to the cost of a misprediction, and does not turn the
/// selects into branches again.
///
/// # Safety
/// The terminator must be alive.
pub unsafe fn mark_unpredictable(terminator: LLVMValueRef, permille: u32) -> bool {
    use inkwell::llvm_sys::core::{LLVMGetNumSuccessors, LLVMIsABranchInst};
    // SAFETY: as the caller promises.
    unsafe {
        if LLVMIsABranchInst(terminator).is_null() || LLVMGetNumSuccessors(terminator) != 2 {
            return false;
        }
        let metadata = Metadata::of_value(terminator);
        metadata.attach(terminator, "unpredictable", &mut [metadata.int(permille)]);
    }
    true
}

/// Gives an indirect call its targets.
///
/// # Safety
/// The call must be alive.
pub unsafe fn set_call_targets(call: LLVMValueRef, targets: &[(u64, u64)]) {
    let total = targets
        .iter()
        .fold(0, |sum: u64, &(_, count)| sum.saturating_add(count));
    // SAFETY: as the caller promises.
    unsafe { set_value_profile(call, "prof", INDIRECT_CALL_TARGET, targets, total) };
}

/// Gives a memory operation its most frequent lengths; `total` counts all lengths. Those of a routine, which is not an
/// intrinsic, are hidden until LLVM may use them (`PleachKeepLengthsPass`, `PleachRevealLengthsPass`).
///
/// # Safety
/// The call must be alive.
pub unsafe fn set_memory_lengths(call: LLVMValueRef, is_routine: bool, lengths: &[(u64, u64)], total: u64) {
    let kind = if is_routine { "pleach.lengths" } else { "prof" };
    // SAFETY: as the caller promises.
    unsafe { set_value_profile(call, kind, MEMORY_LENGTH, lengths, total) };
}

/// Tells a division its most frequent divisor and that one's count; `total` counts all divisors.
///
/// # Safety
/// The instruction must be alive.
pub unsafe fn set_divisor(division: LLVMValueRef, (divisor, count): (u64, u64), total: u64) {
    // SAFETY: as the caller promises.
    let metadata = unsafe { Metadata::of_value(division) };
    metadata.attach(
        division,
        "pleach.divisor",
        &mut [divisor, count, total].map(|number| metadata.long(number)),
    );
}

/// Tells a switch the interval of the share of its executions of which a predictor does not know the destination; no
/// effect on other terminators.
///
/// # Safety
/// The terminator must be alive.
pub unsafe fn set_switch_mispredictions(terminator: LLVMValueRef, permille: [u32; 2]) {
    use inkwell::llvm_sys::core::LLVMIsASwitchInst;
    // SAFETY: as the caller promises.
    unsafe {
        if LLVMIsASwitchInst(terminator).is_null() {
            return;
        }
        let metadata = Metadata::of_value(terminator);
        metadata.attach(terminator, "pleach.switch", &mut permille.map(|end| metadata.int(end)));
    }
}

/// A value profile in LLVM's form, values with their counts, as metadata of this name.
///
/// # Safety
/// The instruction must be alive.
unsafe fn set_value_profile(instruction: LLVMValueRef, name: &str, kind: u32, values: &[(u64, u64)], total: u64) {
    if values.is_empty() {
        return;
    }
    // SAFETY: as the caller promises.
    let metadata = unsafe { Metadata::of_value(instruction) };
    let mut parts = vec![metadata.text("VP"), metadata.int(kind), metadata.long(total)];
    parts.extend(
        values
            .iter()
            .flat_map(|&(value, count)| [metadata.long(value), metadata.long(count)]),
    );
    metadata.attach(instruction, name, &mut parts);
}

/// Sets the section prefix of a function, unless it has an explicit section.
///
/// # Safety
/// The function must be alive.
pub unsafe fn set_section_prefix(function: LLVMValueRef, prefix: &str) {
    // SAFETY: as the caller promises; the section's name ends in NUL.
    unsafe {
        let section = LLVMGetSection(function);
        if !section.is_null() && !CStr::from_ptr(section).is_empty() {
            return;
        }
        let metadata = Metadata::of_value(function);
        let node = metadata.node(&mut [metadata.text("section_prefix"), metadata.text(prefix)]);
        metadata.attach_to_function(function, "section_prefix", node);
    }
}

/// Whether a module has a flag of this name.
///
/// # Safety
/// The module must be alive.
pub unsafe fn has_module_flag(module: LLVMModuleRef, name: &str) -> bool {
    // SAFETY: as the caller promises; the name is only read.
    unsafe { !LLVMGetModuleFlag(module, name.as_ptr().cast(), name.len()).is_null() }
}

/// The operands of a module flag's node: of a number, only itself.
///
/// # Safety
/// The module must be alive.
unsafe fn module_flag(module: LLVMModuleRef, name: &str) -> Vec<LLVMValueRef> {
    // SAFETY: as the caller promises; the name is only read.
    unsafe {
        let flag = LLVMGetModuleFlag(module, name.as_ptr().cast(), name.len());
        if flag.is_null() {
            return Vec::new();
        }
        Metadata::in_module(module).operands(flag)
    }
}

/// The value of a module flag that is a number.
///
/// # Safety
/// The module must be alive.
pub unsafe fn module_flag_number(module: LLVMModuleRef, name: &str) -> Option<u64> {
    // SAFETY: as the caller promises.
    unsafe { module_flag(module, name) }
        .first()
        .and_then(|&value| number_of(value))
}

/// Sets a module flag of which linking keeps the largest value.
///
/// # Safety
/// The module must be alive.
pub unsafe fn set_max_module_flag(module: LLVMModuleRef, name: &str, value: u32) {
    // SAFETY: as the caller promises; the name is copied.
    unsafe { ffi::pleach_set_max_module_flag(module, name.as_ptr(), name.len(), value) }
}

/// The calls between functions in LLVM's call-graph profile: caller, callee, count.
///
/// # Safety
/// The module must be alive.
pub unsafe fn call_graph_profile(module: LLVMModuleRef) -> Vec<(LLVMValueRef, LLVMValueRef, u64)> {
    // SAFETY: as the caller promises; a node has as many operands as are counted.
    unsafe {
        let edges = module_flag(module, "CG Profile").into_iter();
        let nodes = edges.filter(|edge| !edge.is_null() && !LLVMIsAMDNode(*edge).is_null());
        nodes
            .filter_map(|edge| {
                let mut parts = vec![std::ptr::null_mut(); LLVMGetMDNodeNumOperands(edge) as usize];
                LLVMGetMDNodeOperands(edge, parts.as_mut_ptr());
                match parts[..] {
                    [caller, callee, count] => Some((caller, callee, number_of(count)?)),
                    _ => None,
                }
            })
            .collect()
    }
}

/// A constant's number.
fn number_of(value: LLVMValueRef) -> Option<u64> {
    // SAFETY: the value is null or an operand of a live node.
    unsafe {
        let constant = if value.is_null() {
            value
        } else {
            LLVMIsAConstantInt(value)
        };
        (!constant.is_null()).then(|| LLVMConstIntGetZExtValue(constant))
    }
}

/// A string's bytes.
fn text_of<'a>(value: LLVMValueRef) -> Option<&'a [u8]> {
    // SAFETY: the value is null or an operand of a live node, whose strings live as long as the context.
    unsafe {
        if value.is_null() || LLVMIsAMDString(value).is_null() {
            return None;
        }
        let mut size = 0;
        let data = LLVMGetMDString(value, &mut size);
        Some(std::slice::from_raw_parts(data.cast(), size as usize))
    }
}
