//! Transformations of IR that need a profile.

pub mod cold_blocks;
pub mod if_conversion;
pub mod markers;
pub mod placement;
pub mod select_to_branch;
pub mod superblocks;
pub mod switches;

use crate::ffi;
use pleach_decide::latencies::LATENCIES;

/// [`LATENCIES`], as the C++ half takes them.
pub(crate) const RAW_LATENCIES: ffi::Latencies = ffi::Latencies {
    load: LATENCIES.load,
    division: LATENCIES.division,
    moves: LATENCIES.moves,
    intrinsic: LATENCIES.intrinsic,
    call: LATENCIES.call,
    multiply: LATENCIES.multiply,
    other: LATENCIES.other,
};
