//! Vectors as perf.data or as the text of `perf script`, for `perf script`, `llvm-profgen` and `perf2bolt`.
//!
//! Both are written from one plan: processes and mappings in the order in which samples need them, and bursts cut into
//! stacks of a depth that the tools expect. Stacks of one burst do not overlap: every branch is counted once, but what
//! ran between two stacks is not told.

mod plan;
mod text;
mod write;

use crate::vector::{Burst, VectorSet};

/// How to export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportOptions {
    /// Most branches of a stack.
    pub depth: usize,
}

impl ExportOptions {
    /// Most branches that fit in a record of perf.data, whose size is a 16-bit number.
    pub const DEEPEST: usize = 2700;
}

impl Default for ExportOptions {
    /// As deep as the hardware of most machines.
    fn default() -> Self {
        Self { depth: 32 }
    }
}

/// What was exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exported {
    /// Branch stacks written.
    pub stacks: u64,
    /// Their branches.
    pub branches: u64,
    /// Branches with an end that no mapping of their process has; they are left out.
    pub unmapped: u64,
    /// How many stacks each one stands for, 1 unless bursts were compressed. perf.data says it of each sample, text
    /// does not.
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

/// What `perf script -F ip,brstack --show-mmap-events` would print. Its size depends on [`stacks`].
pub fn perf_script(set: &VectorSet, options: ExportOptions) -> (Vec<u8>, Exported) {
    let mut text = text::Text::default();
    let exported = plan::run(set, options, &mut text);
    (text.finish(), exported)
}
