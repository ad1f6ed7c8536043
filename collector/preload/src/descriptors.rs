//! The sampler's descriptors have high numbers, which programs seldom use. They are no higher than that needs: the
//! kernel copies the whole table with each `fork`, which takes 7 µs if it has 3000 entries.

use crate::process;
use crate::sys::{self, SignalsBlocked, SpinLock, syscall};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicI32, AtomicU64};

/// Maximum number of our descriptors. Further threads use timers.
const CAPACITY: i32 = 1024;
/// The first number where the limit is no concern. The kernel's table has 256 entries then, its smallest size but one.
const USUAL_BASE: u64 = 192;
static BASE: AtomicI32 = AtomicI32::new(USUAL_BASE as i32);
/// One bit for each number from `BASE` on that is ours.
static OURS: [AtomicU64; (CAPACITY / 64) as usize] = [const { AtomicU64::new(0) }; (CAPACITY / 64) as usize];
static LIMIT_LOCK: SpinLock = SpinLock::new();

/// Reads the limit on descriptors, and sets it if `new` is given.
pub fn limit(new: Option<libc::rlimit>) -> Option<libc::rlimit> {
    let mut old = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let new = new.as_ref().map_or(core::ptr::null(), |l| l as *const libc::rlimit);
    // SAFETY: Kernel: both structures live here.
    let result = unsafe { syscall!(libc::SYS_prlimit64, 0, libc::RLIMIT_NOFILE, new, &raw mut old) };
    (result == 0).then_some(old)
}

/// Chooses the numbers. If the program's limit is low, they are above it, so that the program loses none.
pub fn begin() {
    let Some(limit) = limit(None) else { return };
    let (soft, hard) = (limit.rlim_cur, limit.rlim_max);
    let base = if soft <= 4096 {
        if hard >= soft.saturating_add(CAPACITY as u64) {
            soft
        } else {
            soft - soft / 8
        }
    } else {
        USUAL_BASE
    };
    BASE.store(base as i32, Relaxed);
}

fn slot(fd: i32) -> Option<(&'static AtomicU64, u64)> {
    let index = fd
        .checked_sub(BASE.load(Relaxed))
        .filter(|i| (0..CAPACITY).contains(i))?;
    Some((OURS.get(index as usize / 64)?, 1 << (index % 64)))
}

/// Whether a number is among those that we use.
fn is_in_range(fd: i32) -> bool {
    slot(fd).is_some()
}

/// Whether a number is among those that we use, and not an open file of the program's that sends `signal`.
pub fn was_ours(fd: i32, signal: i32) -> bool {
    const GET_SIGNAL: i32 = 11;
    // SAFETY: Kernel: numbers only.
    is_in_range(fd) && (is_ours(fd) || unsafe { syscall!(libc::SYS_fcntl, fd, GET_SIGNAL) } != signal as isize)
}

/// Whether a number is one of our open descriptors.
pub fn is_ours(fd: i32) -> bool {
    slot(fd).is_some_and(|(word, bit)| word.load(Acquire) & bit != 0)
}

/// Moves a new descriptor up; closes it if none is free. Call with signals blocked.
pub fn move_up(fd: i32) -> Option<i32> {
    if fd < 0 {
        return None;
    }
    let base = BASE.load(Relaxed);
    LIMIT_LOCK.acquire(true);
    let before = limit(None);
    let top = (base + CAPACITY) as u64;
    let raised = before.filter(|l| l.rlim_cur < top && l.rlim_max >= top);
    if let Some(before) = raised {
        limit(Some(libc::rlimit {
            rlim_cur: top,
            ..before
        }));
    }
    // SAFETY: Kernel: numbers only.
    let high = unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, base) } as i32;
    // A raw system call may have changed it meanwhile.
    let is_raised = |now: libc::rlimit| now.rlim_cur == top;
    if let Some(before) = raised
        && limit(None).is_some_and(is_raised)
    {
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

/// Runs a function that changes the program's limit, while [`move_up`] does not.
pub fn with_limit<R>(act: impl FnOnce() -> R) -> R {
    let _blocked = SignalsBlocked::new();
    LIMIT_LOCK.acquire(true);
    let result = act();
    LIMIT_LOCK.release();
    result
}

/// Closes one of ours, if it still is.
pub fn drop_ours(fd: i32) {
    if let Some((word, bit)) = slot(fd)
        && word.fetch_and(!bit, AcqRel) & bit != 0
    {
        sys::close(fd);
    }
}

/// Releases the lock in a child made by `fork`; another thread of the parent may have held it.
#[inline(always)]
pub fn begin_child() {
    LIMIT_LOCK.release_in_child();
}

/// Must be called when the program reuses a number: it is no longer ours.
pub fn give_up(fd: i32) {
    // A child made by `vfork` has its own descriptors, but shares this memory.
    if is_ours(fd)
        && process::is_own_memory()
        && let Some((word, bit)) = slot(fd)
    {
        word.fetch_and(!bit, AcqRel);
    }
}

/// The numbers that we use.
pub fn range() -> core::ops::Range<i32> {
    let base = BASE.load(Relaxed);
    base..base + CAPACITY
}
