//! Random numbers, with a seed from the kernel where the settings give none.

use crate::sys::{self, syscall};
pub use pleach_wire::random::Random;

/// The sequence of a thread; `ordinal` is the thread's number in the process.
pub fn of_thread(fixed: Option<u64>, ordinal: u32) -> Random {
    Random::from_seed(seed(fixed), ordinal)
}

/// A seed: that of the settings, if they have one.
pub fn seed(fixed: Option<u64>) -> u64 {
    fixed.unwrap_or_else(|| {
        let mut random = sys::now_ns() ^ (sys::thread_id() as u64) << 32;
        // SAFETY: Kernel: `random` lives here.
        unsafe { syscall!(libc::SYS_getrandom, &raw mut random, 8, libc::GRND_NONBLOCK) };
        random
    })
}
