//! The limits and costs of superblock formation.

/// Limits of superblock formation, and the gain that a superblock must have.
#[derive(Clone, PartialEq, Debug)]
pub struct SuperblockOptions {
    /// A trace grows while its next step has at least this probability, given the blocks passed before it.
    pub predictable: f64,
    /// Minimum gain of each copied instruction, in saved executions, as a share of
    /// [`Subject::total`](super::Subject::total).
    pub min_gain: f64,
    /// Minimum gain of a function's superblocks, as a share of the instructions that the function executes. Register
    /// allocation and scheduling after a small change may cost that much.
    pub min_function_gain: f64,
    /// Register moves that a superblock adds to each execution of the hottest block of its trace, copied or not: copies
    /// that join may hold a value in different registers. Nearly all of these moves are coalesced.
    pub moves: f64,
    /// The same in innermost loops whose iterations take the same path ([`Subject::tight`](super::Subject::tight)) and
    /// at the latches of dispatch loops ([`Subject::dispatching`](super::Subject::dispatching)), where every live value
    /// is in a register.
    pub tight_moves: f64,
    /// Maximum size of a function after formation, relative to its size before.
    pub function_growth: f64,
    /// Maximum of instructions that one superblock copies.
    pub trace_limit: u32,
    /// Standard deviations of the sampling error that are subtracted from gains.
    pub confidence: f64,
}

impl Default for SuperblockOptions {
    fn default() -> Self {
        Self {
            predictable: 0.7,
            min_gain: 1e-5,
            min_function_gain: 0.01,
            moves: 0.1,
            tight_moves: 0.5,
            function_growth: 1.3,
            trace_limit: 200,
            // One-sided, 90 %.
            confidence: 1.2816,
        }
    }
}

impl SuperblockOptions {
    /// No thresholds: duplicates whatever can be duplicated within the size limits. For tests of correctness.
    pub fn aggressive() -> Self {
        Self {
            predictable: 0.0,
            min_gain: 0.0,
            min_function_gain: 0.0,
            moves: 0.0,
            tight_moves: 0.0,
            function_growth: 4.0,
            trace_limit: 200,
            confidence: 0.0,
        }
    }
}
