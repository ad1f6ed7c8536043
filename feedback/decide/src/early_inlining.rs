//! Inlining before the inliner knows the profile: small callees, and local functions with one call.

/// Inline threshold of small callees where calls were sampled, in LLVM's cost units (an instruction costs 5): clang's
/// value for the inliner that it runs before instrumentation.
pub const THRESHOLD: i32 = 75;
/// The same for calls that were not sampled. With 75 as well, code would be larger by up to 8 %.
pub const COLD_THRESHOLD: i32 = 15;
/// The same for functions declared inline: clang's value, too.
pub const HINT_THRESHOLD: i32 = 325;

/// Instructions of a callee up to which its only call is inlined. LLVM's bonus for the last call of a local function is
/// 15 000 units, at 5 an instruction.
const MAX_INSTRUCTIONS: u64 = 3000;
/// Bytes of stack of such a callee: LLVM's limit for callers that may recurse.
const MAX_STACK_BYTES: u64 = 1024;

/// Whether the only call of a local function is inlined, as LLVM would do without a profile.
pub fn inlines_only_call(instructions: u64, stack_bytes: u64) -> bool {
    instructions <= MAX_INSTRUCTIONS && stack_bytes <= MAX_STACK_BYTES
}
