//! Vectors as perf.data or as the text of `perf script`, for `perf script`, `llvm-profgen` and `perf2bolt`.
//!
//! Both are written from one plan: processes and mappings in the order in which samples need them, and bursts cut into
//! stacks of a depth that the tools expect. Stacks of one burst do not overlap: every branch is counted once, but
//! the code between two stacks is not shown.

mod plan;
mod text;
mod write;

use crate::vector::{Burst, VectorSet};

/// Options of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportOptions {
    /// Maximum of branches of a stack.
    pub depth: usize,
}

impl ExportOptions {
    /// Maximum of branches that fit in a record of perf.data, whose size is a 16-bit number.
    pub const DEEPEST: usize = 2700;
}

impl Default for ExportOptions {
    /// The depth of the hardware of most machines.
    fn default() -> Self {
        Self { depth: 32 }
    }
}

/// Figures of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exported {
    /// Branch stacks written.
    pub stacks: u64,
    /// Their branches.
    pub branches: u64,
    /// Branches left out because an end is in no mapping of their process.
    pub unmapped: u64,
    /// Number of stacks that each written stack represents: 1 unless bursts were compressed. perf.data stores it with
    /// each sample, text does not.
    pub period: u64,
}

/// Branch stacks that an export writes: a burst that stands for many equal ones becomes as many stacks.
pub fn stacks(set: &VectorSet, options: ExportOptions) -> u64 {
    let of_burst = |burst: &Burst| {
        let pieces = burst
            .branches
            .len()
            .div_ceil(options.depth.clamp(1, ExportOptions::DEEPEST));
        burst.count.saturating_mul(pieces as u64)
    };
    set.bursts.iter().map(of_burst).fold(0, u64::saturating_add)
}

/// The contents of a perf.data file. Its size depends on [`stacks`].
pub fn perf_data(set: &VectorSet, options: ExportOptions) -> (Vec<u8>, Exported) {
    let mut file = write::File::new(set);
    let exported = plan::run(set, options, &mut file);
    (file.finish(), exported)
}

/// The output of `perf script -F ip,brstack --show-mmap-events`. Its size depends on [`stacks`].
pub fn perf_script(set: &VectorSet, options: ExportOptions) -> (Vec<u8>, Exported) {
    let mut text = text::Text::default();
    let exported = plan::run(set, options, &mut text);
    (text.finish(), exported)
}
