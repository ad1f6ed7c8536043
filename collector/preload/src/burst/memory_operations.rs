//! The C library's routines for memory, whose calls are recorded with their lengths.

use core::ffi::CStr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// Routines whose third argument is a length; LLVM specialises calls of these for lengths that it knows.
const NAMES: [&CStr; 5] = [c"memcpy", c"memmove", c"memset", c"memcmp", c"bcmp"];

/// Where they begin, once the loader has chosen the versions for this processor; 0: unknown.
static ENTRIES: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

/// Looks the routines up. Call in the constructor.
pub fn resolve() {
    for (entry, name) in ENTRIES.iter().zip(NAMES) {
        // SAFETY: the name is terminated.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        entry.store(address as u64, Relaxed);
    }
}

/// Whether a routine begins at an address.
pub fn begins_at(address: u64) -> bool {
    ENTRIES.iter().any(|entry| entry.load(Relaxed) == address)
}
