//! The alignment of functions' entries.
//!
//! The time of the same code depends on where its jumps lie relative to fetch windows, cache lines and the sets of branch
//! predictors. A function that begins at a cache line has the same positions in any order of functions: what lies before
//! it no longer moves it. The cost is the padding, half of what the alignment adds on average, which is fetched only
//! where code runs into the next line.

/// Bytes of a cache line of x86 processors, a multiple of all their fetch windows.
const LINE: u32 = 64;
/// Minimum share of the program's block executions. Positions move a function's time by a tenth or two, so below this
/// share they move the program by less than a thousandth or two. No more than a hundred functions of a program have it:
/// of some ten that usually do, the padding is 240 bytes.
const MIN_SHARE: f64 = 0.01;

/// The alignment of the entry of a function that has this share of the program's block executions, in bytes; 0 leaves
/// LLVM's.
pub fn entry_alignment(share: f64) -> u32 {
    if share >= MIN_SHARE { LINE } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_often_begins_at_a_line() {
        assert_eq!(entry_alignment(0.5), 64);
        assert_eq!(entry_alignment(0.001), 0);
        assert_eq!(entry_alignment(0.0), 0);
        assert_eq!(entry_alignment(f64::NAN), 0);
    }
}
