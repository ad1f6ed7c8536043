//! Detects memory that the program shares with other processes, which may store to it.

use crate::isolation;
use crate::next_symbol::NextSymbol;
use crate::sys;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

type Map = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, libc::off_t) -> *mut c_void;
static MMAP: NextSymbol<Map> = NextSymbol::new(c"mmap");
static MMAP64: NextSymbol<Map> = NextSymbol::new(c"mmap64");
type Attach = unsafe extern "C" fn(c_int, *const c_void, c_int) -> *mut c_void;
static SHMAT: NextSymbol<Attach> = NextSymbol::new(c"shmat");

/// Looks the functions up.
pub fn resolve() {
    MMAP.get();
    MMAP64.get();
    SHMAT.get();
}

/// Maps memory by a system call: allocators map memory before and during the lookup of symbols.
fn map_directly(arguments: [usize; 6]) -> *mut c_void {
    // SAFETY: Forward.
    match unsafe { sys::call(libc::SYS_mmap, arguments) } {
        error @ -4095..=-1 => {
            // SAFETY: the calling thread's own errno.
            unsafe { *libc::__errno_location() = -error as c_int };
            libc::MAP_FAILED
        }
        address => address as *mut c_void,
    }
}

fn note_sharing(flags: c_int) {
    // Also set in MAP_SHARED_VALIDATE.
    if flags & libc::MAP_SHARED != 0 {
        isolation::SHARES_MEMORY.store(true, Relaxed);
    }
}

/// # Safety
/// As `mmap(2)`; `next` is one of its names.
unsafe fn map(
    next: Option<Map>,
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    note_sharing(flags);
    match next {
        // SAFETY: Forward.
        Some(next) => unsafe { next(address, length, protection, flags, fd, offset) },
        None => map_directly([
            address as usize,
            length,
            protection as usize,
            flags as usize,
            fd as usize,
            offset as usize,
        ]),
    }
}

/// # Safety
/// As `mmap(2)`.
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: Forward.
    unsafe { map(MMAP.get_if_resolved(), address, length, protection, flags, fd, offset) }
}

/// # Safety
/// As `mmap(2)`.
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: Forward.
    unsafe { map(MMAP64.get_if_resolved(), address, length, protection, flags, fd, offset) }
}

/// # Safety
/// As `shmat(2)`.
pub unsafe extern "C" fn shmat(id: c_int, address: *const c_void, flags: c_int) -> *mut c_void {
    note_sharing(libc::MAP_SHARED);
    match SHMAT.get() {
        // SAFETY: Forward.
        Some(next) => unsafe { next(id, address, flags) },
        None => libc::MAP_FAILED,
    }
}
