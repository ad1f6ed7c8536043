//! Calls at which a path may end, and calls at which one begins.

use pleach_annotate::cfg::{Call, Callee};
use pleach_annotate::id::FunctionGuid;

/// Whether control may leave the function by this call and not return to it.
///
/// Inline assembly is assumed to return; otherwise every function that uses it would pay for another edge.
pub fn may_not_return(call: &Call) -> bool {
    call.may_not_return && call.callee != Callee::InlineAsm
}

/// Whether a call may return twice: `vfork` returns to the parent after the child, `setjmp` returns again after
/// `longjmp`. The second return, whose value is not 0, begins a path that counts the call's block again.
pub fn returns_twice(call: &Call) -> bool {
    const NAMES: [&str; 5] = ["setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "vfork"];
    match call.callee {
        Callee::Direct(guid) => NAMES.iter().any(|name| FunctionGuid::of_name(name) == guid),
        _ => false,
    }
}
