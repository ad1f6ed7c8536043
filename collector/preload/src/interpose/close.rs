//! Functions that close descriptors: those of the sampler stay open in a program's close loops.

use crate::descriptors::{self, give_up, is_ours, limit};
use crate::next_symbol::NextSymbol;
use crate::sys::{self, syscall};
use core::ffi::{c_int, c_uint};

static CLOSE: NextSymbol<unsafe extern "C-unwind" fn(c_int) -> c_int> = NextSymbol::new(c"close");
static DUP2: NextSymbol<unsafe extern "C-unwind" fn(c_int, c_int) -> c_int> = NextSymbol::new(c"dup2");
static DUP3: NextSymbol<unsafe extern "C-unwind" fn(c_int, c_int, c_int) -> c_int> = NextSymbol::new(c"dup3");

/// Looks the functions up before a handler can need them.
pub fn resolve() {
    CLOSE.get();
    DUP2.get();
    DUP3.get();
}

/// Does nothing for a descriptor of the sampler.
///
/// # Safety
/// As `close(2)`.
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if is_ours(fd) {
        return 0;
    }
    match CLOSE.get() {
        // SAFETY: Forward.
        Some(next) => unsafe { next(fd) },
        None => -1,
    }
}

/// Gives the program the number that it requests, even if it was ours. Our descriptors are checked at each use.
///
/// # Safety
/// As `dup2(2)`.
pub unsafe extern "C-unwind" fn dup2(old: c_int, new: c_int) -> c_int {
    let Some(next) = DUP2.get() else { return -1 };
    // SAFETY: Forward.
    let result = unsafe { next(old, new) };
    if result >= 0 && old != new {
        give_up(new);
    }
    result
}

/// As [`dup2`].
///
/// # Safety
/// As `dup3(2)`.
pub unsafe extern "C-unwind" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    let Some(next) = DUP3.get() else { return -1 };
    // SAFETY: Forward.
    let result = unsafe { next(old, new, flags) };
    if result >= 0 {
        give_up(new);
    }
    result
}

fn close_range_around(first: u32, last: u32, flags: c_int) -> isize {
    let mut result = 0;
    let mut from = first;
    for fd in descriptors::range() {
        let is_ours = is_ours(fd);
        let fd = fd as u32;
        if fd >= from && fd <= last && is_ours {
            if fd > from {
                // SAFETY: Kernel: numbers only.
                result = unsafe { syscall!(libc::SYS_close_range, from, fd - 1, flags) };
            }
            from = fd + 1;
        }
    }
    if from <= last {
        // SAFETY: Kernel: numbers only.
        result = unsafe { syscall!(libc::SYS_close_range, from, last, flags) };
    }
    result
}

fn to_errno(result: isize) -> c_int {
    if result >= 0 {
        return result as c_int;
    }
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = -result as c_int };
    -1
}

/// Closes all but ours.
///
/// # Safety
/// As `close_range(2)`.
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if first > last {
        return to_errno(-(libc::EINVAL as isize));
    }
    to_errno(close_range_around(first, last, flags))
}

/// Closes all but ours.
///
/// # Safety
/// As `closefrom(3)`.
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    let first = first.max(0) as u32;
    if close_range_around(first, u32::MAX, 0) < 0 {
        // Kernels before 5.9 lack the call.
        let top = limit(None).map_or(1024, |l| l.rlim_cur.min(1 << 20)) as i32;
        for fd in first as i32..top {
            if !is_ours(fd) {
                sys::close(fd);
            }
        }
    }
}
