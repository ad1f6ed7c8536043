//! Counts of an instrumented program: the `.plcnt` file.
//!
//! The instrumented program writes the file through a shared mapping, so that it is complete to the last finished path
//! even when the program is killed. All numbers are little-endian. The file is a header page and segments to its end:
//!
//! | header (4096 bytes) | |
//! |---|---|
//! | 0 | magic `PLEACHC1` |
//! | 8 | u32 version, 1 |
//! | 12 | u32 length of the header, 4096 |
//! | 16 | 16 bytes that tell program starts apart |
//!
//! A segment begins at a multiple of 4096 bytes; a process that needs more room appends one.
//!
//! | segment header (64 bytes) | |
//! |---|---|
//! | 0 | magic `PLSEGMT1` |
//! | 8 | u64 length of the segment with this header, a multiple of 4096 |
//! | 16 | u64 bytes in use, with this header |
//! | 24 | u32 process |
//!
//! Blocks follow each other in a segment, each at a multiple of 64 bytes.
//!
//! | block header (64 bytes) | |
//! |---|---|
//! | 0 | u32 magic `PLBK` |
//! | 4 | u32 kind: 1 unit, 2 counters, 3 hash table |
//! | 8 | u64 length of the block with this header, a multiple of 64 |
//! | 16 | u64 unit: xxh3 of the unit's description |
//! | 24 | u64 hash table: function's position in the unit |
//! | 32 | u64 unit: bytes of the description; counters: how many u64 follow; hash table: capacity in pairs |
//! | 56 | u64 hash table: pairs in use, for the runtime |
//!
//! A *unit* block holds the description of one compiled module ([`unit`]): its functions' graphs and where their counters
//! are. A *counters* block is one thread's array of counters for a unit. A *hash table* block is one thread's table for one
//! function: pairs (u64 number + 1, u64 count), the number 0 marking a free one. Where a
//! table fills up, a larger one goes on beside it. Blocks of one unit are summed.

pub mod error;
pub mod exact;
pub mod file;
mod layout;
pub mod merge;
mod sum;
pub mod unit;
pub mod write;

use error::CountProblem;
use std::collections::BTreeMap;
use unit::{Unit, UnitId};

/// The counts of one or several files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// What was counted in each compiled module.
    pub units: BTreeMap<UnitId, (Unit, UnitCounts)>,
    /// What could not be read. Everything else is complete.
    pub problems: Vec<CountProblem>,
}

/// The counts of one module, over all its threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UnitCounts {
    /// For each of the unit's functions, in its order: counts above 0, by increasing number of the counter. That is the
    /// number of a path, the key of a window of paths ([`unit::UnitFunction::window`]), or the position of a chord. Sums
    /// that do not fit stay at the largest number.
    pub functions: Vec<Vec<(u64, u64)>>,
}
