//! Where code is put: decisions about the order of functions and about what is split off.

mod align;
mod functions;
mod order;
mod pages;

pub use align::{Loop, alignment};
pub use functions::function_order;
pub use order::{Arc, Node, order};
pub use pages::{PAGE, hot_pages};

use crate::support::Support;
use crate::weights::ENOUGH_SAMPLES;

/// Labels of a computed goto from which on a function counts as an interpreter: LLVM stops duplicating tails with more
/// successors than that (`-tail-dup-succ-size`), except computed gotos.
pub const MIN_INTERPRETER_LABELS: u32 = 17;

/// What an IR instruction becomes, about, in bytes; the compiler's block placement reckons with the same.
pub const BYTES_OF_INSTRUCTION: u64 = 4;

/// Whether blocks that were never sampled are put apart from the rest of their function.
///
/// As for whole functions: only where the profile is large enough, in bursts as in sampled block entries.
pub fn split_cold_blocks(support: &Support, samples: u64) -> bool {
    support.exact || (support.splitting() && samples >= ENOUGH_SAMPLES)
}
