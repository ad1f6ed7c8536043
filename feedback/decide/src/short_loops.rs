//! Which loops run too few times to be vectorised.

/// Iterations from which on LLVM vectorises a loop like one without a profile (`-vectorizer-min-trip-count`). Below, it
/// predicates every access instead of finishing with a scalar loop, even where the target has no masked accesses, or it
/// leaves the loop scalar.
pub const LLVM_MIN_TRIP_COUNT: u32 = 16;

/// Iterations below which a loop stays scalar. LLVM peels up to seven (`-unroll-peel-max-count`), by the number that the
/// profile gives. Loops from here to [`LLVM_MIN_TRIP_COUNT`] are vectorised as without a profile: where another
/// input has longer ones, a scalar loop loses several times what is gained here.
pub const MIN_TRIP_COUNT_TO_VECTORISE: u32 = 8;

/// Iterations of a loop that LLVM is to vectorise as if their number were not known: more than the elements of the
/// largest vector body that it makes, four registers of 64 bytes.
pub const ASSUMED_TRIP_COUNT: u32 = 1024;
