//! Counts of an instrumented program: the `.plcnt` file.
//!
//! In phase order: `layout` has headers and blocks byte by byte; [`file`](mod@file) finds the blocks of a file;
//! [`unit`](mod@unit) decodes the descriptions of modules; `sum` adds up the blocks of each unit; [`merge`] adds up
//! files; [`exact`] turns counters into paths and flow; [`write`](mod@write) encodes counts as a file.
//!
//! The instrumented program writes the file through a shared mapping, so that it is complete up to the last finished
//! path even if the program is killed. All numbers are little-endian. The file is a header page, followed by segments:
//!
//! | header (one page) | |
//! |---|---|
//! | 0 | magic `PLEACHC1` |
//! | 8 | u32 version, 1 |
//! | 12 | u32 length of the header: 4096; 65536 from AArch64, whose kernels have pages of up to 64 KiB |
//! | 16 | 16 bytes that identify the start of the program |
//!
//! A segment begins at a multiple of 4096 bytes. A process that needs more space appends one.
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
//! A *unit* block holds the description of one compiled module ([`unit`](mod@unit)): its functions' graphs and where
//! their counters are. A *counters* block is one thread's array of counters for a unit. A *hash table* block is one
//! thread's table for one function: pairs (u64 number + 1, u64 count); a pair that begins with 0 is free. When a table
//! is full, the runtime adds a larger one. The blocks of a unit are summed.

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

/// The counts of one or more files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Description and counts of each compiled module.
    pub units: BTreeMap<UnitId, (Unit, UnitCounts)>,
    /// Parts that could not be read. Everything else is complete.
    pub problems: Vec<CountProblem>,
}

/// The counts of one module, over all its threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UnitCounts {
    /// For each of the unit's functions, in the unit's order: the counters with a count above 0, as (number, count),
    /// ordered by number. A counter's number is the number of a path, the key of a window of paths
    /// ([`unit::UnitFunction::window`]), or the position of a chord. Sums saturate.
    pub functions: Vec<Vec<(u64, u64)>>,
}
