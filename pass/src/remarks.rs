//! Messages for the user: remarks about functions, and summary lines about modules.

use crate::{ffi, ir};
use inkwell::llvm_sys::prelude::{LLVMModuleRef, LLVMValueRef};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fmt::Display;
use std::io::{self, Write as _};

/// Whether remarks are enabled. Otherwise they are not built, to save time.
pub fn are_enabled(module: LLVMModuleRef) -> bool {
    // SAFETY: callers pass the module being compiled.
    unsafe { ffi::pleach_remarks_enabled(module) }
}

/// Number of source lines that a remark names.
const MAX_LINES: usize = 32;

/// The text of a remark, in pieces. Optimisation records keep the names of values, so that `pleach summary` need not
/// parse sentences (`feedback/report/src/summary`).
#[derive(Default)]
pub struct Text {
    /// Each piece with its name; plain text has the name `String`, as in LLVM.
    pieces: Vec<(&'static str, String)>,
}

impl Text {
    /// Appends plain text.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.pieces.push(("String", text.into()));
        self
    }

    /// Appends a named value.
    #[must_use]
    pub fn value(mut self, name: &'static str, value: impl Display) -> Self {
        self.pieces.push((name, value.to_string()));
        self
    }

    /// Appends source lines of the function, in order and without repetitions, if there are any.
    #[must_use]
    pub fn lines(mut self, lines: impl IntoIterator<Item = u32>) -> Self {
        let lines: BTreeSet<u32> = lines.into_iter().collect();
        let mut separator = if lines.len() > 1 { ": lines " } else { ": line " };
        for line in lines.iter().take(MAX_LINES) {
            self = self.text(separator).value("Line", line);
            separator = ", ";
        }
        if lines.len() > MAX_LINES {
            self = self.text(format!(" and {} more", lines.len() - MAX_LINES));
        }
        self
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::default().text(text)
    }
}

/// The word for so many things.
pub fn plural(number: impl TryInto<u64>, one: &'static str, many: &'static str) -> &'static str {
    if number.try_into().is_ok_and(|number| number == 1) {
        one
    } else {
        many
    }
}

/// Emits a remark about a function, which the remark names first: for `-Rpass=pleach` if `passed`, else for
/// `-Rpass-missed=pleach`.
pub fn emit(function: LLVMValueRef, passed: bool, name: &str, text: impl Into<Text>) {
    let mut pieces = vec![("Function", ir::name_of(function)), ("String", ": ".to_owned())];
    pieces.extend(text.into().pieces.into_iter().filter(|(_, text)| !text.is_empty()));
    let names: Result<Vec<CString>, _> = pieces.iter().map(|(name, _)| CString::new(*name)).collect();
    if let (Ok(name), Ok(names)) = (CString::new(name), names) {
        let pieces: Vec<ffi::RemarkPiece> = pieces
            .iter()
            .zip(&names)
            .map(|((_, text), name)| ffi::RemarkPiece {
                name: name.as_ptr(),
                text: text.as_ptr().cast(),
                size: text.len(),
            })
            .collect();
        // SAFETY: the function belongs to the module being compiled; names and texts are copied.
        unsafe { ffi::pleach_remark(function, passed, name.as_ptr(), pieces.as_ptr(), pieces.len()) };
    }
}

/// Prints a line to the error stream.
pub fn print(text: &str) {
    // One write, so that lines of parallel compilations do not mix. An error means that standard error is closed.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}
