//! What an optimiser does with a profile: pure functions from evidence to decisions. Nothing here knows LLVM; the
//! plugin applies what is decided.
//!
//! [`support`] decides which of these decisions a recording has enough evidence for. In the order of a build:
//! 1. [`weights`]: branch weights, entry counts, calls that may be cold;
//! 2. [`coldness`]: which blocks and functions may be treated as never executed;
//! 3. [`superblock`]: which traces are formed by tail duplication;
//! 4. [`trip_counts`]: which loops are peeled because most of their visits are short;
//! 5. [`memory_lengths`], [`divisors`]: which lengths of memory operations and which divisors get code of their own;
//! 6. [`if_conversion`]: which unpredictable branches are if-converted, and which selects become branches;
//! 7. [`switches`]: which cases of a switch are compared with before its jump through a table;
//! 8. [`recursion`]: which calls are not inlined;
//! 9. [`placement`]: order of functions and blocks, splitting, alignment.
//!
//! [`stale`] makes a profile of an older version of a function fit its new graph.
//!
//! Tables and limits that these use: [`counter_promotion`], [`early_inlining`], [`growth`],
//! [`latencies`].

pub mod coldness;
pub mod counter_promotion;
pub mod divisors;
pub mod early_inlining;
pub mod growth;
pub mod if_conversion;
pub mod latencies;
pub mod memory_lengths;
pub mod placement;
pub mod recursion;
pub mod short_loops;
pub mod stale;
pub mod superblock;
pub mod support;
pub mod switches;
pub mod trip_counts;
pub mod weights;
