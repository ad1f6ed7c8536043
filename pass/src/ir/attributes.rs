//! Attributes of functions and calls, by name.

use inkwell::llvm_sys::core::{
    LLVMAddAttributeAtIndex, LLVMAddCallSiteAttribute, LLVMCreateEnumAttribute, LLVMCreateStringAttribute,
    LLVMGetCallSiteEnumAttribute, LLVMGetEnumAttributeAtIndex, LLVMGetEnumAttributeKindForName,
    LLVMGetStringAttributeAtIndex, LLVMGetTypeContext, LLVMRemoveCallSiteStringAttribute,
    LLVMRemoveStringAttributeAtIndex, LLVMTypeOf,
};
use inkwell::llvm_sys::prelude::{LLVMAttributeRef, LLVMValueRef};
use inkwell::llvm_sys::{LLVMAttributeFunctionIndex, LLVMAttributeIndex};

const OF_FUNCTION: LLVMAttributeIndex = LLVMAttributeFunctionIndex;

/// Whether a function has an attribute that LLVM knows by this name.
///
/// # Safety
/// The function must be alive.
pub unsafe fn has(function: LLVMValueRef, name: &str) -> bool {
    // SAFETY: as the caller promises; the name is only read.
    unsafe { !LLVMGetEnumAttributeAtIndex(function, OF_FUNCTION, kind(name)).is_null() }
}

/// Whether a function has an attribute of ours.
///
/// # Safety
/// The function must be alive.
pub unsafe fn has_own(function: LLVMValueRef, name: &str) -> bool {
    // SAFETY: as the caller promises; the name is only read.
    unsafe { !LLVMGetStringAttributeAtIndex(function, OF_FUNCTION, name.as_ptr().cast(), name.len() as u32).is_null() }
}

/// Gives a function an attribute that LLVM knows by this name.
///
/// # Safety
/// The function must be alive.
pub unsafe fn add(function: LLVMValueRef, name: &str) {
    // SAFETY: as the caller promises.
    unsafe { LLVMAddAttributeAtIndex(function, OF_FUNCTION, known(function, name)) }
}

/// Whether a call itself, not only the function that it calls, has an attribute that LLVM knows by this name.
///
/// # Safety
/// The call must be alive.
pub unsafe fn call_has(call: LLVMValueRef, name: &str) -> bool {
    // SAFETY: as the caller promises; the name is only read.
    unsafe { !LLVMGetCallSiteEnumAttribute(call, OF_FUNCTION, kind(name)).is_null() }
}

/// Gives a call an attribute that LLVM knows by this name.
///
/// # Safety
/// The call must be alive.
pub unsafe fn add_to_call(call: LLVMValueRef, name: &str) {
    // SAFETY: as the caller promises.
    unsafe { LLVMAddCallSiteAttribute(call, OF_FUNCTION, known(call, name)) }
}

/// Takes an attribute of our own from a call, if it has it.
///
/// # Safety
/// The call must be alive.
pub unsafe fn remove_own_from_call(call: LLVMValueRef, name: &str) {
    let size = u32::try_from(name.len()).unwrap_or(u32::MAX);
    // SAFETY: as the caller promises; the name is only read.
    unsafe { LLVMRemoveCallSiteStringAttribute(call, OF_FUNCTION, name.as_ptr().cast(), size) }
}

/// Gives a call an attribute of our own.
///
/// # Safety
/// The call must be alive.
pub unsafe fn add_own_to_call(call: LLVMValueRef, name: &str) {
    // SAFETY: as the caller promises.
    unsafe { LLVMAddCallSiteAttribute(call, OF_FUNCTION, own(call, name)) }
}

/// Gives a function an attribute of our own.
///
/// # Safety
/// The function must be alive.
pub unsafe fn add_own(function: LLVMValueRef, name: &str) {
    // SAFETY: as the caller promises.
    unsafe { LLVMAddAttributeAtIndex(function, OF_FUNCTION, own(function, name)) }
}

/// Takes an attribute of our own from a function; returns whether it had it.
///
/// # Safety
/// The function must be alive.
pub unsafe fn remove_own(function: LLVMValueRef, name: &str) -> bool {
    let (text, length) = (name.as_ptr().cast(), name.len() as u32);
    // SAFETY: as the caller promises; the name is only read.
    unsafe {
        let found = !LLVMGetStringAttributeAtIndex(function, OF_FUNCTION, text, length).is_null();
        if found {
            LLVMRemoveStringAttributeAtIndex(function, OF_FUNCTION, text, length);
        }
        found
    }
}

fn kind(name: &str) -> u32 {
    // SAFETY: the name is only read.
    let kind = unsafe { LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()) };
    debug_assert_ne!(kind, 0, "LLVM knows no attribute {name}");
    kind
}

/// # Safety
/// The value must be alive.
unsafe fn known(value: LLVMValueRef, name: &str) -> LLVMAttributeRef {
    // SAFETY: as the caller promises.
    unsafe { LLVMCreateEnumAttribute(LLVMGetTypeContext(LLVMTypeOf(value)), kind(name), 0) }
}

/// # Safety
/// The value must be alive.
unsafe fn own(value: LLVMValueRef, name: &str) -> LLVMAttributeRef {
    // SAFETY: as the caller promises; the texts are copied.
    unsafe {
        let context = LLVMGetTypeContext(LLVMTypeOf(value));
        LLVMCreateStringAttribute(context, name.as_ptr().cast(), name.len() as u32, c"".as_ptr(), 0)
    }
}
