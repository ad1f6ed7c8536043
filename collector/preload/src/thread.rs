//! The memory of a sampled thread.
//!
//! Each thread has one mapping: an alternate signal stack for the kernel's frames, a stack for our handlers, and its
//! state. A thread's own stack is never written to, since it may be almost full.

use crate::burst::engines::RunningEngine;
use crate::burst::sampler::Sampler;
use crate::perf_event::AtomicEvent;
use crate::process;
use crate::signal_entry;
use crate::sys::{self, syscall};
use crate::tick::Source;
use crate::waiting;
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8};

/// Large, because a handler of the program runs there, too, if the program set an alternate stack only in another
/// thread.
const ALTERNATE_STACK_SIZE: usize = 256 * 1024;
/// The decoder uses a part of it while it makes its tables.
pub const HANDLER_STACK_SIZE: usize = 256 * 1024;
const GUARD_SIZE: usize = 4096;

/// A thread's start function, by the function that creates the thread.
#[derive(Clone, Copy, Debug)]
pub enum Routine {
    /// `pthread_create`.
    Posix(extern "C-unwind" fn(*mut c_void) -> *mut c_void),
    /// `thrd_create`.
    C11(extern "C-unwind" fn(*mut c_void) -> i32),
}

/// State of a sampled thread.
///
/// Other threads and the thread's own handlers access it by shared references. Fields that change after it is shared
/// are therefore atomic or in a cell. There is never an exclusive reference to the whole.
#[repr(C)]
#[derive(Debug)]
pub struct Thread {
    /// Top of the handlers' stack. Assembly reads it: it has to be first.
    stack_top: usize,
    /// Kernel thread id.
    pub id: AtomicI32,
    /// The owned signals in the thread's virtual mask, by [`OwnedSignal::bit`](crate::owned_signals::OwnedSignal).
    pub blocked: AtomicU8,
    /// The owned signals that arrived while they were virtually blocked.
    pub pending: AtomicU8,
    /// The information of the pending signals.
    pub pending_info: [UnsafeCell<libc::siginfo_t>; 2],
    /// Whether ticks are off because the program's alternate stack is too small for them.
    pub paused: AtomicU8,
    /// The shadow engine that runs in this thread.
    pub running_engine: RunningEngine,
    /// The part of the sampler's state that other threads may read.
    pub published: Published,
    /// The next sampled thread of the process.
    pub next: AtomicPtr<Thread>,
    /// The function that the thread runs, and its argument. The creator sets them before the thread exists, and the
    /// thread alone reads them.
    pub start: Cell<Option<(Routine, *mut c_void)>>,
    sampler: UnsafeCell<Sampler>,
}

/// The part of a sampler's state that other threads may read: a copy, updated after each use by the owner.
#[derive(Debug)]
pub struct Published {
    tick_event: AtomicEvent,
    /// The timer's id plus one; 0: there is none.
    tick_timer: AtomicI32,
    timing_event: AtomicEvent,
    is_stepping: AtomicBool,
}

impl Published {
    fn publish(&self, sampler: &Sampler) {
        let (event, timer) = match sampler.ticker.source() {
            Source::None => (None, 0),
            Source::Event(event) => (Some(event), 0),
            Source::Timer(id) => (None, id + 1),
        };
        self.tick_event.store(event);
        self.tick_timer.store(timer, Relaxed);
        self.timing_event.store(sampler.timing.event());
        self.is_stepping.store(sampler.stepper.is_active(), Relaxed);
    }

    /// Source of the thread's ticks.
    pub fn tick_source(&self) -> Source {
        match (self.tick_event.load(), self.tick_timer.load(Relaxed)) {
            (Some(event), _) => Source::Event(event),
            (None, 0) => Source::None,
            (None, timer) => Source::Timer(timer - 1),
        }
    }

    /// Stops the thread's breakpoint.
    pub fn disable_timing(&self) {
        if let Some(event) = self.timing_event.load() {
            event.disable();
        }
    }

    /// Whether the thread is in a stepped burst.
    pub fn is_stepping(&self) -> bool {
        self.is_stepping.load(Relaxed)
    }
}

/// The calling thread's state; null if it is not sampled. A child made by `vfork` sees its parent's.
pub fn current_pointer() -> *mut Thread {
    signal_entry::thread_pointer().cast()
}

/// Sets the calling thread's state.
pub fn set_current_pointer(thread: *mut Thread) {
    signal_entry::set_thread_pointer(thread.cast());
}

const STATE_SIZE: usize = size_of::<Thread>().next_multiple_of(4096);
const TOTAL_SIZE: usize = GUARD_SIZE + ALTERNATE_STACK_SIZE + GUARD_SIZE + HANDLER_STACK_SIZE + STATE_SIZE;

impl Thread {
    /// Maps the memory of a thread; null if there is none.
    pub fn map() -> *mut Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: Kernel: the mapping is new.
        let base = unsafe { syscall!(libc::SYS_mmap, 0, TOTAL_SIZE, protection, flags, -1isize, 0) };
        if base < 0 {
            return null_mut();
        }
        let base = base as usize;
        for guard in [base, base + GUARD_SIZE + ALTERNATE_STACK_SIZE] {
            // SAFETY: Kernel: our own pages.
            unsafe {
                if syscall!(libc::SYS_madvise, guard, GUARD_SIZE, 102) != 0 {
                    syscall!(libc::SYS_mprotect, guard, GUARD_SIZE, libc::PROT_NONE);
                }
            }
        }
        let stack_top = base + TOTAL_SIZE - STATE_SIZE;
        let thread = stack_top as *mut Self;
        // SAFETY: the mapping is all zeroes, which is valid for every field; only what differs is written.
        unsafe {
            (*thread).stack_top = stack_top;
            (&raw mut (*thread).start).write(Cell::new(None));
            Sampler::reset((&raw mut (*thread).sampler).cast());
        }
        thread
    }

    /// Unmaps the memory.
    ///
    /// # Safety
    /// Nothing may refer to it any more, the kernel's alternate stack included.
    pub unsafe fn unmap(this: *mut Self) {
        let base = this as usize + STATE_SIZE - TOTAL_SIZE;
        // SAFETY: mapped by `map`.
        unsafe { syscall!(libc::SYS_munmap, base, TOTAL_SIZE) };
    }

    /// First address of the alternate stack.
    pub fn alternate_stack(&self) -> usize {
        self.stack_top - HANDLER_STACK_SIZE - GUARD_SIZE - ALTERNATE_STACK_SIZE
    }

    /// Makes our alternate stack the kernel's.
    pub fn use_alternate_stack(&self) -> bool {
        let stack = libc::stack_t {
            ss_sp: self.alternate_stack() as *mut _,
            ss_flags: 0,
            ss_size: ALTERNATE_STACK_SIZE,
        };
        // SAFETY: Kernel: the memory lives as long as the thread is sampled.
        unsafe { syscall!(libc::SYS_sigaltstack, &raw const stack, 0) == 0 }
    }

    /// Calls a function with the sampler, and publishes the state that other threads may read.
    ///
    /// # Safety
    /// The rule "Owner" of this crate: the caller is a handler of this thread, or has blocked all signals in it, or the
    /// thread does not exist any more; and no other call of this function is going on for this thread.
    pub unsafe fn with_sampler<R>(&self, act: impl FnOnce(&mut Sampler) -> R) -> R {
        // SAFETY: Owner: nobody else refers to the sampler.
        let sampler = unsafe { &mut *self.sampler.get() };
        sampler.ticker.set_paused(self.paused.load(Relaxed) != 0);
        let result = act(sampler);
        self.published.publish(sampler);
        result
    }

    /// The calling thread's state, if it is sampled and this is not a child that only shares its memory.
    pub fn current<'a>() -> Option<&'a Self> {
        // A confined program may be killed for the system call below.
        if process::is_stopped() {
            return None;
        }
        // SAFETY: Current.
        let thread = unsafe { current_pointer().as_ref() }?;
        let id = sys::thread_id();
        // A child that waits has one sampled thread, its first, whose id is the process's.
        let is_it = thread.id.load(Relaxed) == id || waiting::is_waiting() && process::pid() == id;
        is_it.then_some(thread)
    }
}
