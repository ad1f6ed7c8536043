//! Our descriptors: high numbers, out of the program's way, and kept out of its close loops.

use crate::next_symbol::Real;
use crate::sys::{self, SpinLock, syscall};
use core::ffi::{c_int, c_uint};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicI32, AtomicU64};

/// How many we may have: the rest of the threads tick by timers.
const ROOM: i32 = 1024;
static BASE: AtomicI32 = AtomicI32::new(3072);
/// One bit for each number from `BASE` on that is ours.
static OURS: [AtomicU64; (ROOM / 64) as usize] = [const { AtomicU64::new(0) }; (ROOM / 64) as usize];
static LIMIT_LOCK: SpinLock = SpinLock::new();

fn limit(new: Option<libc::rlimit>) -> Option<libc::rlimit> {
    let mut old = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let new = new.as_ref().map_or(core::ptr::null(), |l| l as *const libc::rlimit);
    // SAFETY: both structures live here.
    let result = unsafe { syscall!(libc::SYS_prlimit64, 0, libc::RLIMIT_NOFILE, new, &raw mut old) };
    (result == 0).then_some(old)
}

/// Chooses the numbers. Beyond the program's limit where that limit is low, so that nothing is taken from it.
pub fn begin() {
    let Some(limit) = limit(None) else { return };
    let (soft, hard) = (limit.rlim_cur, limit.rlim_max);
    let base = if soft <= 4096 {
        if hard >= soft.saturating_add(ROOM as u64) {
            soft
        } else {
            soft - soft / 8
        }
    } else {
        3072
    };
    BASE.store(base as i32, Relaxed);
}

fn slot(fd: i32) -> Option<(&'static AtomicU64, u64)> {
    let index = fd.checked_sub(BASE.load(Relaxed)).filter(|i| (0..ROOM).contains(i))?;
    Some((OURS.get(index as usize / 64)?, 1 << (index % 64)))
}

/// Whether a number is among those that we use.
pub fn is_in_range(fd: i32) -> bool {
    slot(fd).is_some()
}

fn is_ours(fd: i32) -> bool {
    slot(fd).is_some_and(|(word, bit)| word.load(Acquire) & bit != 0)
}

/// Moves a new descriptor up; closes it if there is no room. Call with signals blocked.
pub fn move_up(fd: i32) -> Option<i32> {
    if fd < 0 {
        return None;
    }
    let base = BASE.load(Relaxed);
    LIMIT_LOCK.acquire(true);
    let before = limit(None);
    let top = (base + ROOM) as u64;
    let raised = before.filter(|l| l.rlim_cur < top && l.rlim_max >= top);
    if let Some(before) = raised {
        limit(Some(libc::rlimit {
            rlim_cur: top,
            ..before
        }));
    }
    // SAFETY: plain integers.
    let high = unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, base) } as i32;
    if let Some(before) = raised {
        limit(Some(before));
    }
    LIMIT_LOCK.release();
    sys::close(fd);
    match slot(high) {
        Some((word, bit)) => {
            word.fetch_or(bit, AcqRel);
            Some(high)
        }
        None => {
            if high >= 0 {
                sys::close(high);
            }
            None
        }
    }
}

/// Closes one of ours, if it still is.
pub fn drop_ours(fd: i32) {
    if let Some((word, bit)) = slot(fd)
        && word.fetch_and(!bit, AcqRel) & bit != 0
    {
        sys::close(fd);
    }
}

/// A child made by `fork` has locks in any state.
pub fn begin_child() {
    LIMIT_LOCK.release();
}

static CLOSE: Real<unsafe extern "C-unwind" fn(c_int) -> c_int> = Real::new(c"close");
static DUP2: Real<unsafe extern "C-unwind" fn(c_int, c_int) -> c_int> = Real::new(c"dup2");
static DUP3: Real<unsafe extern "C-unwind" fn(c_int, c_int, c_int) -> c_int> = Real::new(c"dup3");

/// Looks the functions up before a handler can need them.
pub fn resolve() {
    CLOSE.get();
    DUP2.get();
    DUP3.get();
}

/// A close loop does not get ours.
///
/// # Safety
/// As `close(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if is_ours(fd) {
        return 0;
    }
    match CLOSE.get() {
        // SAFETY: forwarded.
        Some(real) => unsafe { real(fd) },
        None => -1,
    }
}

/// The program gets the number that it asks for; what we had there is gone, which every use of it notices.
///
/// # Safety
/// As `dup2(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup2(old: c_int, new: c_int) -> c_int {
    let Some(real) = DUP2.get() else { return -1 };
    // SAFETY: forwarded.
    let result = unsafe { real(old, new) };
    if result >= 0 && old != new {
        give_up(new);
    }
    result
}

/// As [`dup2`].
///
/// # Safety
/// As `dup3(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    let Some(real) = DUP3.get() else { return -1 };
    // SAFETY: forwarded.
    let result = unsafe { real(old, new, flags) };
    if result >= 0 {
        give_up(new);
    }
    result
}

fn give_up(fd: i32) {
    // A child made by `vfork` has descriptors of its own, and our memory.
    if is_ours(fd)
        && crate::process::is_own_memory()
        && let Some((word, bit)) = slot(fd)
    {
        word.fetch_and(!bit, AcqRel);
    }
}

fn close_range_around(first: u32, last: u32, flags: c_int) -> isize {
    let mut result = 0;
    let mut from = first;
    let base = BASE.load(Relaxed) as u32;
    for fd in base..base + ROOM as u32 {
        if fd >= from && fd <= last && is_ours(fd as i32) {
            if fd > from {
                // SAFETY: plain integers.
                result = unsafe { syscall!(libc::SYS_close_range, from, fd - 1, flags) };
            }
            from = fd + 1;
        }
    }
    if from <= last {
        // SAFETY: plain integers.
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

/// Closes around ours.
///
/// # Safety
/// As `close_range(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if first > last {
        return to_errno(-(libc::EINVAL as isize));
    }
    to_errno(close_range_around(first, last, flags))
}

/// Closes around ours.
///
/// # Safety
/// As `closefrom(3)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    let first = first.max(0) as u32;
    if close_range_around(first, u32::MAX, 0) < 0 {
        // Kernels before 5.9.
        let top = limit(None).map_or(1024, |l| l.rlim_cur.min(1 << 20)) as i32;
        for fd in first as i32..top {
            if !is_ours(fd) {
                sys::close(fd);
            }
        }
    }
}
