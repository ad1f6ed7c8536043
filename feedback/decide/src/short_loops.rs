//! Which loops LLVM would not vectorise as without a profile, since they run few times.

/// Iterations from which on LLVM vectorises a loop like one without a profile (`-vectorizer-min-trip-count`). Below, it
/// predicates every access instead of finishing with a scalar loop, even where the target has no masked accesses, or it
/// leaves the loop scalar.
pub const LLVM_MIN_TRIP_COUNT: u32 = 16;

/// Iterations of a loop that LLVM is to vectorise as if their number were not known: more than the elements of the
/// largest vector body that it makes, four registers of 64 bytes.
pub const ASSUMED_TRIP_COUNT: u32 = 1024;
