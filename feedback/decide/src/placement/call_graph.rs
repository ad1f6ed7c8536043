//! The weighted call graph whose functions are placed, and clusters of its functions.

/// Maximum factor by which a merger may reduce a cluster's density (lld: `MAX_DENSITY_DEGRADATION`).
pub(super) const MAX_DENSITY_DEGRADATION: f64 = 8.0;

/// A function to place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// Bytes of code, or anything that is proportional to it.
    pub size: u64,
    /// Executions; 0 if it never runs.
    pub weight: u64,
}

/// Calls of one function by another. Functions are indices of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arc {
    /// The calling function.
    pub caller: usize,
    /// The called function.
    pub callee: usize,
    /// Number of calls.
    pub weight: u64,
}

/// Functions that are placed together.
#[derive(Clone)]
pub(super) struct Cluster {
    /// Indices of nodes, in placement order.
    pub(super) members: Vec<usize>,
    /// Sum of the sizes of its members.
    pub(super) size: u64,
    /// Sum of the weights of its members.
    pub(super) weight: u64,
}

impl Cluster {
    /// Executions per unit of size.
    pub(super) fn density(&self) -> f64 {
        self.weight as f64 / self.size.max(1) as f64
    }
}
