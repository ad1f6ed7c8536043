//! Limits on the promotion of exact counters to registers in loops.

/// Counters that are promoted in one loop. More would be spilled, and a spilled counter costs as much as one in memory.
pub const MAX_COUNTERS: u32 = 8;
/// Exits of a loop whose counters are promoted: each exit adds all counters to memory.
pub const MAX_EXITS: u32 = 4;
/// Values of one path number in the loop, each of which needs a counter: selecting among more costs more than an
/// addition to memory.
pub const MAX_INDEX_VALUES: u32 = 4;
