//! The growth budget of a module: instructions that superblock formation may add.

/// Growth of a module, as a share of its instructions.
const MAX_GROWTH: f64 = 0.05;
/// Budget of the smallest modules, in instructions.
const MIN_BUDGET: u32 = 64;

/// The growth budget of a module of `size` instructions, in instructions.
pub fn growth_budget(size: u32) -> u32 {
    ((f64::from(size) * MAX_GROWTH) as u32).max(MIN_BUDGET)
}
