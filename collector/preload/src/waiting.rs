//! The state of a child made by `fork` that has no exact ticks yet ([`pleach_wire::forked`]).
//!
//! Such a child *waits*. It does as little as possible, because it may live for microseconds only: each page that it
//! writes to is copied, and each system call counts. What it inherited and does not need (events, files, shadow
//! engines) stays as it is until the wait ends, and nothing of it may be used meanwhile.

use crate::process;
use crate::state_section::state_section;
use crate::sys;
use crate::tick::{self, Source};
use core::ffi::c_void;
use core::ptr::from_ref;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};
use pleach_wire::forked::Late;

/// A first tick: zeros if there is none. See [`Late`].
struct First {
    timer_ns: AtomicU64,
    due_ns: AtomicU64,
}

impl First {
    const fn none() -> Self {
        Self {
            timer_ns: AtomicU64::new(0),
            due_ns: AtomicU64::new(0),
        }
    }

    fn set(&self, late: Late) {
        self.timer_ns.store(late.timer_ns, Relaxed);
        self.due_ns.store(late.due_ns, Relaxed);
    }

    fn get(&self) -> Late {
        Late {
            timer_ns: self.timer_ns.load(Relaxed),
            due_ns: self.due_ns.load(Relaxed),
        }
    }
}

state_section! {
    static IS_WAITING: AtomicBool = AtomicBool::new(false);
    /// The timer's id plus one; 0: there is none.
    static TIMER: AtomicI32 = AtomicI32::new(0);
    /// The first tick of this process, while it waits.
    static FIRST: First = First::none();
    /// That of its next child. The parent decides it, because its pages are in memory, and those of a child are not
    /// yet.
    static FIRST_OF_CHILD: First = First::none();
}

/// Says, in the parent, whether its next child waits for its first tick, and how long.
pub fn prepare(late: Option<Late>) {
    FIRST_OF_CHILD.set(late.unwrap_or(Late { timer_ns: 0, due_ns: 0 }));
}

/// Begins to wait, in a child, which has no timer of its parent's. True: its first tick needs a timer.
#[inline(always)]
pub fn begin() -> bool {
    TIMER.store(0, Relaxed);
    IS_WAITING.store(true, Relaxed);
    FIRST.set(FIRST_OF_CHILD.get());
    FIRST.timer_ns.load(Relaxed) > 0
}

/// Whether this process waits.
#[inline(always)]
pub fn is_waiting() -> bool {
    IS_WAITING.load(Relaxed)
}

fn source() -> Source {
    match TIMER.load(Relaxed) {
        0 => Source::None,
        timer => Source::Timer(timer - 1),
    }
}

fn identity() -> *const c_void {
    from_ref(&FIRST).cast()
}

/// Sets the timer of the calling thread, which is its process's first. False: there is none.
#[inline(always)]
pub fn set_timer() -> bool {
    let Some(Source::Timer(timer)) = tick::open_timer(identity(), process::pid()) else {
        return false;
    };
    TIMER.store(timer + 1, Relaxed);
    tick::set_timer(source(), FIRST.timer_ns.load(Relaxed));
    true
}

/// Stops the timer before `exec`.
pub fn pause() {
    tick::disable(source());
}

/// Undoes [`pause`].
pub fn resume() {
    let left = FIRST.timer_ns.load(Relaxed).saturating_sub(sys::thread_cpu_ns());
    tick::set_timer(source(), left.max(1));
}

/// Ends the wait, and deletes the timer. Returns the CPU time at which the first tick is due, if there is to be one.
pub fn end() -> Option<u64> {
    IS_WAITING.store(false, Relaxed);
    let source = source();
    TIMER.store(0, Relaxed);
    tick::delete(source);
    (source != Source::None).then(|| FIRST.due_ns.load(Relaxed))
}

/// Whether a signal comes from the timer.
pub fn sent(info: &libc::siginfo_t) -> bool {
    tick::timer_sent(identity(), info)
}
