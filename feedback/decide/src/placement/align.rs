//! The alignment of loops: the benefit of alignment against the cost of padding.
//!
//! x86 processors fetch and cache decoded code in aligned windows of 32 bytes: each line of the decoded instruction
//! cache holds code of one window (Intel 64 and IA-32 Architectures Optimization Reference Manual, on Sandy Bridge; AMD
//! processors since Zen use 32 or 64 bytes). An iteration of `s` bytes fetches `⌈s / 32⌉` windows if the loop begins at
//! a window, and `1 + (s - 1) / 32` on average if it begins anywhere. The difference is the benefit; a window counts as
//! much as a jump in [`SuperblockOptions::min_gain`](crate::superblock::SuperblockOptions::min_gain). The cost is the
//! padding, half the alignment on average: it is code, and it is fetched whenever control falls into the loop.
//!
//! LLVM aligns loops that are not cold to 16 bytes on x86, and pads only if less than a fifth of a block's executions
//! fall into it (`MachineBlockPlacement::alignBlocks`). This remains; only the choice of loops with 32 bytes is made
//! here.

use super::BYTES_PER_INSTRUCTION;
use crate::superblock::SuperblockOptions;

/// Bytes of a fetch window.
const WINDOW: u64 = 32;
/// Maximum size of an iteration in windows: larger bodies usually contain taken jumps. .NET has the same limit.
const MAX_WINDOWS: u64 = 3;
/// Bytes of a line of caches.
const LINE: u64 = 64;
/// Maximum estimated size of a dispatch that is put in the second half of a line. If it is a few bytes longer, its jump
/// alone crosses the line, which does no harm.
const MAX_DISPATCH: u64 = 32;
/// LLVM's alignment of loops on x86.
const LLVM_ALIGNMENT: u64 = 16;
/// Maximum share of executions that fall into code aligned to a window, and execute its padding: LLVM's value.
const MAX_FALLEN_INTO: f64 = 0.2;

/// An innermost loop, or the dispatch of an interpreter: the code from a target of jumps to a jump through a table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Loop {
    /// IR instructions of an iteration, without rarely executed blocks; machine instructions of a dispatch.
    pub instructions: u64,
    /// Executions of the loop's first block.
    pub iterations: f64,
    /// Executions of edges into the loop from outside.
    pub entries: f64,
}

impl Loop {
    fn is_fallen_into(&self) -> bool {
        self.entries > MAX_FALLEN_INTO * self.iterations
    }
}

/// The alignment of an innermost loop in bytes: 32 if profitable, else 1, which leaves LLVM's alignment. `total`:
/// executions of all blocks of the program.
pub fn alignment(innermost: &Loop, total: f64) -> u64 {
    let size = innermost.instructions.max(1).saturating_mul(BYTES_PER_INSTRUCTION);
    let padding = (WINDOW - LLVM_ALIGNMENT) as f64 / 2.0;
    let cost_per_byte = SuperblockOptions::default().min_gain / BYTES_PER_INSTRUCTION as f64 * total;
    let gain = innermost.iterations * (saved_windows(size, WINDOW) - saved_windows(size, LLVM_ALIGNMENT));
    let is_profitable = gain > innermost.entries * padding / WINDOW as f64 + padding * cost_per_byte;
    if is_profitable && !innermost.is_fallen_into() && size <= MAX_WINDOWS * WINDOW {
        WINDOW
    } else {
        1
    }
}

/// The alignment of a dispatch: 64 if it should begin in the middle of a line of 64 bytes, with nothing after it in that
/// line; else as [`alignment`].
///
/// The gain of a line's second half is measured, not derived: on an AMD processor (EPYC, Zen), the geometric mean of 14
/// generated interpreters was .99 with dispatches at the beginning of a line, .88 in the middle, .81 in the middle with
/// nothing after it, and 1.27 where it crosses lines. It counts as one window a dispatch.
pub fn dispatch_alignment(dispatch: &Loop, total: f64) -> u64 {
    let size = dispatch.instructions.max(1).saturating_mul(BYTES_PER_INSTRUCTION);
    // Half a line on average up to the next line, half of that line, and its rest after the dispatch.
    let padding = (LINE / 2 + WINDOW + WINDOW - size.min(WINDOW)) as f64;
    let cost_per_byte = SuperblockOptions::default().min_gain / BYTES_PER_INSTRUCTION as f64 * total;
    let is_profitable = dispatch.iterations > dispatch.entries * padding / WINDOW as f64 + padding * cost_per_byte;
    if is_profitable && size <= MAX_DISPATCH {
        LINE
    } else {
        alignment(dispatch, total)
    }
}

/// Windows that an iteration saves on average against a loop without alignment.
///
/// The size is an estimate, because machine instructions are not selected yet. The result is the average over sizes
/// that differ by up to half a window.
fn saved_windows(size: u64, alignment: u64) -> f64 {
    // The result is periodic in the size.
    let size = if size > 2 * WINDOW {
        WINDOW + size % WINDOW
    } else {
        size
    };
    let min_size = size.saturating_sub(WINDOW / 2).max(1);
    let sizes = min_size..=size + WINDOW / 2;
    let number = (size + WINDOW / 2 + 1 - min_size) as f64;
    sizes.map(|size| saved_by_size(size, alignment)).sum::<f64>() / number
}

fn saved_by_size(size: u64, alignment: u64) -> f64 {
    let starts = WINDOW / alignment;
    let windows = |start: u64| (start * alignment + size).div_ceil(WINDOW) as f64;
    let aligned = (0..starts).map(windows).sum::<f64>() / starts as f64;
    1.0 + (size - 1) as f64 / WINDOW as f64 - aligned
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn innermost(instructions: u64, iterations: f64, entries: f64) -> Loop {
        Loop {
            instructions,
            iterations,
            entries,
        }
    }

    #[test]
    fn saved_windows_are_averaged_over_all_starts() {
        // One byte is in one window; 32 bytes are in two, except from one start in 32.
        assert_eq!(saved_by_size(1, 32), 0.0);
        assert_eq!(saved_by_size(32, 32), 31.0 / 32.0);
        assert_eq!(saved_by_size(33, 32), 0.0);
        // From the middle of a window, 32 bytes reach into the next.
        assert_eq!(saved_by_size(32, 16), 15.0 / 32.0);
        assert_eq!(saved_by_size(16, 16), saved_by_size(16, 32));
    }

    #[test]
    fn a_hot_loop_begins_with_a_window() {
        assert_eq!(alignment(&innermost(8, 1e6, 1e3), 1e7), 32);
        // With a thousandth of the executions, the padding costs more.
        assert_eq!(alignment(&innermost(8, 1e3, 1.0), 1e9), 1);
        assert_eq!(alignment(&innermost(8, 0.0, 0.0), 1e9), 1);
        // Every other execution would execute the padding.
        assert_eq!(alignment(&innermost(8, 1e6, 5e5), 1e7), 1);
    }

    #[test]
    fn a_loop_that_is_left_at_once_is_not_padded() {
        assert_eq!(alignment(&innermost(4, 1e6, 1e6), 1e7), 1);
    }

    #[test]
    fn a_large_body_keeps_llvms_alignment() {
        assert_eq!(alignment(&innermost(24, 1e6, 1e3), 1e7), 32);
        assert_eq!(alignment(&innermost(25, 1e6, 1e3), 1e7), 1);
    }

    #[test]
    fn a_small_dispatch_is_put_in_the_second_half_of_a_line() {
        assert_eq!(dispatch_alignment(&innermost(8, 1e6, 1e3), 1e7), 64);
        // It might cross the line.
        assert_eq!(dispatch_alignment(&innermost(9, 1e6, 1e3), 1e7), 32);
        // What falls into it executes the padding; and padding is code.
        assert_eq!(dispatch_alignment(&innermost(6, 1e6, 3e5), 1e7), 64);
        assert_eq!(dispatch_alignment(&innermost(6, 1e6, 6e5), 1e7), 1);
        assert_eq!(dispatch_alignment(&innermost(6, 1e3, 1.0), 1e9), 1);
    }

    proptest! {
        #[test]
        fn alignment_saves_windows_and_more_iterations_never_make_it_less(
            instructions in 0_u64..1 << 40, iterations in 0.0_f64..1e12, entries in 0.0_f64..1e12,
            total in 1.0_f64..1e15,
        ) {
            for size in 1..200 {
                prop_assert!(saved_windows(size, 16) >= 0.0 && saved_windows(size, 32) >= saved_windows(size, 16));
            }
            let known = alignment(&innermost(instructions, iterations, entries), total);
            prop_assert!([1, 32].contains(&known));
            prop_assert!(alignment(&innermost(instructions, iterations * 2.0, entries), total) >= known);
            prop_assert!(alignment(&innermost(instructions, iterations, entries), total * 2.0) <= known);
        }
    }
}
