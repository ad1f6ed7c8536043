//! Latencies of instructions, for estimates of loop-carried chains, and costs of added comparisons.

/// Cycles from the operands to the result of an instruction, by kind of instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Latencies {
    /// A load that hits the first-level cache.
    pub load: f64,
    /// An integer division.
    pub division: f64,
    /// φs, casts and accesses to parts of aggregates: they need no instruction, or register renaming executes them.
    pub moves: f64,
    /// An intrinsic.
    pub intrinsic: f64,
    /// A call of a small function.
    pub call: f64,
    /// A multiplication, or any floating-point operation.
    pub multiply: f64,
    /// Everything else.
    pub other: f64,
}

/// Latencies of common x86-64 processors.
pub const LATENCIES: Latencies = Latencies {
    load: 5.0,
    division: 20.0,
    moves: 0.0,
    intrinsic: 2.0,
    call: 20.0,
    multiply: 4.0,
    other: 1.0,
};

/// Cycles of a comparison with a value that a profile predicts.
pub const COMPARISON: f64 = 1.0;
/// Cycles that its misprediction costs. If-conversion reckons with LLVM's 14, by which LLVM's own passes decide about the
/// same branches; these comparisons would be added, so the cost is towards the upper end of current processors.
pub const ADDED_MISPREDICTION: f64 = 16.0;
