//! What is inlined whatever the profile says: small callees first, and local functions that have one call.

/// Code that a small callee may have beyond what its call takes, in the inliner's units, of which an instruction costs 5. Of 15, 40 and 75
/// (clang's own) this did best on programs that the results do not use.
pub const THRESHOLD: i32 = 15;
/// The same for functions declared inline, as clang has it before its own profiles.
pub const HINT_THRESHOLD: i32 = 325;

/// Instructions of a callee up to which its only call is inlined: the inliner's bonus for such calls is 15 000, at 5 an instruction.
const MAX_INSTRUCTIONS: u64 = 3000;
/// Bytes of stack of such a callee: what the inliner lets callers that may recurse grow by.
const MAX_STACK_BYTES: u64 = 1024;

/// Whether the only call of a local function is inlined, as the optimiser would do without a profile.
pub fn inlines_only_call(instructions: u64, stack_bytes: u64) -> bool {
    instructions <= MAX_INSTRUCTIONS && stack_bytes <= MAX_STACK_BYTES
}
