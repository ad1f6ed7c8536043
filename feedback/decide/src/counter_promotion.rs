//! Limits on keeping exact counters of loops in registers.

/// Registers that a loop can spare for counters. More would be spilled, and a spilled counter costs what one in memory does.
pub const MAX_COUNTERS: u32 = 8;
/// Exits of such a loop: each adds all counters to memory.
pub const MAX_EXITS: u32 = 4;
/// Values that one path number may take in the loop: telling more apart costs more than an addition to memory.
pub const MAX_INDEX_VALUES: u32 = 4;
