//! Which loops run too few times to be vectorised.

/// Iterations from which on LLVM vectorises a loop like one without a profile (`-vectorizer-min-trip-count`). Below, it
/// predicates every access instead of finishing with a scalar loop, even where the target has no masked accesses.
pub const MIN_VECTOR_ITERATIONS: u32 = 16;
