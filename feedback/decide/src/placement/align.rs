//! The alignment of loops: what a loop's padding costs against what it saves.
//!
//! x86 processors fetch and keep decoded code by aligned windows of 32 bytes: the decoded instruction cache's sets hold code of
//! one such window each (Intel 64 and IA-32 Architectures Optimization Reference Manual, on Sandy Bridge's; AMD's since Zen takes 32 or
//! 64). An iteration of a body of `s` bytes passes `1 + (s - 1) / 32` windows on average where the loop begins anywhere, and `⌈s / 32⌉`
//! where it begins at a window: that is what alignment saves, and a window is worth as much as a jump is in
//! [`Options::min_gain`](crate::superblock::Options::min_gain). It costs the padding, half the alignment on average: fetched each time
//! that control falls into the loop, and code like any other.
//!
//! LLVM gives all loops of x86 16 bytes, unless the profile has them cold, and pads only where less than a fifth of a block's executions
//! fall into it (`MachineBlockPlacement::alignBlocks`). That stays: what is decided here is which loops get a whole window.

use super::BYTES_OF_INSTRUCTION;
use crate::superblock::Options;

/// Bytes that are fetched together.
const WINDOW: u64 = 32;
/// Bodies of more windows run into jumps of their own and are not aligned to whole windows: .NET's limit.
const MOST_WINDOWS: u64 = 3;
/// What the host aligns loops to.
const HOSTS: u64 = 16;

/// An innermost loop.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Loop {
    /// Instructions of an iteration: of the blocks that many iterations execute.
    pub instructions: u64,
    /// Executions of its first block.
    pub iterations: f64,
    /// How often it is entered from outside.
    pub entries: f64,
}

/// The alignment in bytes of an innermost loop of a program that executes `total` blocks, where it is worth more than the host's; 1 where not.
pub fn alignment(of: &Loop, total: f64) -> u64 {
    let size = of.instructions.max(1).saturating_mul(BYTES_OF_INSTRUCTION);
    let padding = (WINDOW - HOSTS) as f64 / 2.0;
    let price = Options::default().min_gain / BYTES_OF_INSTRUCTION as f64 * total;
    let gain = of.iterations * (saved(size, WINDOW) - saved(size, HOSTS));
    let pays = gain > of.entries * padding / WINDOW as f64 + padding * price;
    if pays && size <= MOST_WINDOWS * WINDOW {
        WINDOW
    } else {
        1
    }
}

/// Windows that an iteration passes less than it does on average where the loop begins anywhere.
///
/// Sizes are estimates from instructions that the host has yet to choose, and may be off by half of a window either way.
fn saved(size: u64, alignment: u64) -> f64 {
    // Whole windows more or less make no difference.
    let size = if size > 2 * WINDOW {
        WINDOW + size % WINDOW
    } else {
        size
    };
    let least = size.saturating_sub(WINDOW / 2).max(1);
    let sizes = least..=size + WINDOW / 2;
    let number = (size + WINDOW / 2 + 1 - least) as f64;
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

    fn of(instructions: u64, iterations: f64, entries: f64) -> Loop {
        Loop {
            instructions,
            iterations,
            entries,
        }
    }

    #[test]
    fn windows_saved_are_those_of_all_starts() {
        // One byte is in one window, 32 bytes are in two but for one start in 32.
        assert_eq!(saved_by_size(1, 32), 0.0);
        assert_eq!(saved_by_size(32, 32), 31.0 / 32.0);
        assert_eq!(saved_by_size(33, 32), 0.0);
        // From the middle of a window 32 bytes reach into the next.
        assert_eq!(saved_by_size(32, 16), 15.0 / 32.0);
        assert_eq!(saved_by_size(16, 16), saved_by_size(16, 32));
    }

    #[test]
    fn a_hot_loop_begins_with_a_window() {
        assert_eq!(alignment(&of(8, 1e6, 1e3), 1e7), 32);
        // A thousandth of that is not worth the bytes.
        assert_eq!(alignment(&of(8, 1e3, 1.0), 1e9), 1);
        assert_eq!(alignment(&of(8, 0.0, 0.0), 1e9), 1);
    }

    #[test]
    fn a_loop_that_is_left_at_once_is_not_padded() {
        assert_eq!(alignment(&of(4, 1e6, 1e6), 1e7), 1);
    }

    #[test]
    fn a_large_body_stays_as_the_host_has_it() {
        assert_eq!(alignment(&of(24, 1e6, 1e3), 1e7), 32);
        assert_eq!(alignment(&of(25, 1e6, 1e3), 1e7), 1);
    }

    proptest! {
        #[test]
        fn alignment_saves_windows_and_more_iterations_never_make_it_less(
            instructions in 0_u64..1 << 40, iterations in 0.0_f64..1e12, entries in 0.0_f64..1e12, total in 1.0_f64..1e15,
        ) {
            for size in 1..200 {
                prop_assert!(saved(size, 16) >= 0.0 && saved(size, 32) >= saved(size, 16));
            }
            let known = alignment(&of(instructions, iterations, entries), total);
            prop_assert!([1, 32].contains(&known));
            prop_assert!(alignment(&of(instructions, iterations * 2.0, entries), total) >= known);
            prop_assert!(alignment(&of(instructions, iterations, entries), total * 2.0) <= known);
        }
    }
}
