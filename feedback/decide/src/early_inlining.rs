//! Inlining before the inliner knows the profile: small callees, and local functions with one call.

use pleach_profile::FunctionProfile;

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

/// Whether the only call of a local function, which was not sampled, is inlined, as LLVM would do without a profile.
///
/// `callee`: its profile, in the profile's unit `scale`. If executions of it were sampled but its entry was not, the
/// work is in its loops. Then inlining saves nothing, and a caller without samples would take their counts away.
pub fn inlines_only_call(instructions: u64, stack_bytes: u64, callee: Option<&FunctionProfile>, scale: f64) -> bool {
    let loops_are_hot = |profile: &FunctionProfile| {
        profile.samples > 0 && profile.blocks.first().is_some_and(|&entries| (entries as f64) < scale)
    };
    instructions <= MAX_INSTRUCTIONS && stack_bytes <= MAX_STACK_BYTES && !callee.is_some_and(loops_are_hot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(samples: u64, blocks: &[u64]) -> FunctionProfile {
        FunctionProfile {
            samples,
            blocks: blocks.to_vec(),
            ..FunctionProfile::default()
        }
    }

    #[test]
    fn a_callee_whose_loops_were_sampled_is_kept() {
        let inlines = |callee: Option<&FunctionProfile>| inlines_only_call(100, 64, callee, 1000.0);
        assert!(inlines(None));
        assert!(inlines(Some(&profile(0, &[0, 0]))));
        assert!(
            inlines(Some(&profile(90, &[2000, 88_000]))),
            "its call was missed by chance"
        );
        assert!(!inlines(Some(&profile(90, &[500, 90_000]))));
    }

    #[test]
    fn large_callees_are_kept() {
        assert!(inlines_only_call(MAX_INSTRUCTIONS, MAX_STACK_BYTES, None, 1.0));
        assert!(!inlines_only_call(MAX_INSTRUCTIONS + 1, 0, None, 1.0));
        assert!(!inlines_only_call(1, MAX_STACK_BYTES + 1, None, 1.0));
    }
}
