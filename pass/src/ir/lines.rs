//! Source lines, for remarks. clang keeps locations wherever it makes an optimisation record, without `-g` as well.

use inkwell::llvm_sys::core::{LLVMGetFirstInstruction, LLVMGetNextInstruction, LLVMIsAPHINode};
use inkwell::llvm_sys::debuginfo::{LLVMDILocationGetInlinedAt, LLVMDILocationGetLine, LLVMInstructionGetDebugLoc};
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMValueRef};

/// The line of an instruction in its function's source; `None` if it was inlined from elsewhere, or is of no line.
///
/// # Safety
/// The instruction must be alive.
pub unsafe fn own_line(instruction: LLVMValueRef) -> Option<u32> {
    // SAFETY: as the caller promises; the location is checked before it is read.
    unsafe {
        let location = LLVMInstructionGetDebugLoc(instruction);
        if location.is_null() || !LLVMDILocationGetInlinedAt(location).is_null() {
            return None;
        }
        Some(LLVMDILocationGetLine(location)).filter(|&line| line > 0)
    }
}

/// The first line of a block in its function's source, but for those of φs, which are of variables.
///
/// # Safety
/// The block must be alive.
pub unsafe fn first_own_line(block: LLVMBasicBlockRef) -> Option<u32> {
    // SAFETY: as the caller promises; the walk ends at the null after the last instruction.
    unsafe {
        let mut instruction = LLVMGetFirstInstruction(block);
        while !instruction.is_null() {
            if LLVMIsAPHINode(instruction).is_null()
                && let Some(line) = own_line(instruction)
            {
                return Some(line);
            }
            instruction = LLVMGetNextInstruction(instruction);
        }
    }
    None
}
