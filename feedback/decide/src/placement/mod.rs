//! Code placement: the order of functions, the alignment of entries and loops, and the splitting of cold blocks.

mod align;
mod call_graph;
mod entries;
mod functions;
mod order;
mod pages;

pub use align::{Loop, alignment, dispatch_alignment};
pub use call_graph::{Arc, Node};
pub use entries::entry_alignment;
pub use functions::function_order;
pub use order::order;
pub use pages::{PAGE, hot_pages};

use crate::support::Support;
use crate::weights::MIN_SAMPLES_FOR_SPLITTING;

/// Minimum of labels of a computed goto for its function to count as an interpreter. LLVM does not duplicate tails with
/// this many successors (`-tail-dup-succ-size`), except computed gotos.
pub const MIN_INTERPRETER_LABELS: u32 = 17;

/// Estimated bytes of machine code per IR instruction.
pub const BYTES_PER_INSTRUCTION: u64 = 4;

/// Whether blocks without samples are split off from their function. `samples`: sampled block entries.
///
/// The thresholds are those for placing whole functions in a cold section.
pub fn split_cold_blocks(support: &Support, samples: u64) -> bool {
    support.exact || (support.splitting() && samples >= MIN_SAMPLES_FOR_SPLITTING)
}
