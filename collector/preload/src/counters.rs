//! The counters that each stored burst contains: costs and losses of sampling in this process.

use crate::state_section::state_section;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};
use pleach_wire::shard::Counters;

state_section! {
    /// CPU time of the sampler, in nanoseconds.
    pub static OWN_NS: AtomicU64 = AtomicU64::new(0);
    /// Bursts that could not be stored.
    pub static LOST: AtomicU64 = AtomicU64::new(0);
    /// Ticks at which no burst was possible.
    pub static DECLINED: AtomicU64 = AtomicU64::new(0);
    /// Sampled threads.
    pub static THREADS: AtomicU32 = AtomicU32::new(0);
    /// Threads that are not sampled.
    pub static UNSAMPLED: AtomicU32 = AtomicU32::new(0);
}

/// The present values.
pub fn snapshot() -> Counters {
    Counters {
        own_ns: OWN_NS.load(Relaxed),
        lost: LOST.load(Relaxed),
        declined: DECLINED.load(Relaxed),
        threads: THREADS.load(Relaxed),
        unsampled_threads: UNSAMPLED.load(Relaxed),
    }
}

/// Numbers of sampled and unsampled threads. Resets both counters.
#[inline(always)]
pub fn take_threads() -> (u64, u64) {
    (THREADS.swap(0, Relaxed).into(), UNSAMPLED.swap(0, Relaxed).into())
}

/// Starts at zero in a child made by `fork`.
#[inline(always)]
pub fn reset() {
    for counter in [&OWN_NS, &LOST, &DECLINED] {
        counter.store(0, Relaxed);
    }
    THREADS.store(0, Relaxed);
    UNSAMPLED.store(0, Relaxed);
}
