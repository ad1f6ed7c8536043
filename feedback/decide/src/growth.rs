//! How much code superblocks may add to a module.

/// The share of its instructions that a module may grow by.
const MAX_GROWTH: f64 = 0.05;
/// Instructions that any module may grow by, however small it is.
const MIN_BUDGET: u32 = 64;

/// Instructions that a module of `size` instructions may grow by.
pub fn growth_budget(size: u32) -> u32 {
    ((f64::from(size) * MAX_GROWTH) as u32).max(MIN_BUDGET)
}
