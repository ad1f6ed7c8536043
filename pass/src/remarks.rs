//! Messages for the user: remarks about functions, and summary lines about modules.

use crate::ffi;
use inkwell::llvm_sys::prelude::{LLVMModuleRef, LLVMValueRef};
use std::ffi::CString;
use std::io::{self, Write as _};

/// Whether remarks are enabled. Otherwise they are not built, to save time.
pub fn are_enabled(module: LLVMModuleRef) -> bool {
    // SAFETY: callers pass the module being compiled.
    unsafe { ffi::pleach_remarks_enabled(module) }
}

/// Emits a remark about a function: for `-Rpass=pleach` if `passed`, else for `-Rpass-missed=pleach`.
pub fn emit(function: LLVMValueRef, passed: bool, name: &str, text: &str) {
    if let Ok(name) = CString::new(name) {
        // SAFETY: the function belongs to the module being compiled; the texts are copied.
        unsafe { ffi::pleach_remark(function, passed, name.as_ptr(), text.as_ptr().cast(), text.len()) };
    }
}

/// Prints a line to the error stream.
pub fn print(text: &str) {
    // One write, so that lines of parallel compilations do not mix. An error means that standard error is closed.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}
