//! The sampled threads of the process: how they start and end, and what `fork` does to them.

use crate::account;
use crate::burst::sampler::Sampler;
use crate::burst::{engines, timing};
use crate::counters;
use crate::coverage;
use crate::descriptors;
use crate::owned_signals;
use crate::process;
use crate::shard_writer;
use crate::sys::{self, SignalsBlocked, SpinLock, syscall};
use crate::thread::{Routine, Thread, current_pointer, set_current_pointer};
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU32};

/// All sampled threads. They and the links between them change under the lock only.
static LIST: AtomicPtr<Thread> = AtomicPtr::new(null_mut());
static LIST_LOCK: SpinLock = SpinLock::new();
static ORDINAL: AtomicU32 = AtomicU32::new(0);
/// The key whose destructor runs at a thread's end.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Whether `ask` is true for all sampled threads; the first false ends the search.
pub fn for_all(mut ask: impl FnMut(&Thread) -> bool) -> bool {
    let _blocked = SignalsBlocked::new();
    LIST_LOCK.acquire(true);
    let mut link = LIST.load(Relaxed);
    let mut all = true;
    // SAFETY: List.
    while let (true, Some(thread)) = (all, unsafe { link.as_ref() }) {
        all = ask(thread);
        link = thread.next.load(Relaxed);
    }
    LIST_LOCK.release();
    all
}

/// Starts to sample the calling thread. Call with signals blocked; `blocked` is its mask.
///
/// # Safety
/// `thread` comes from [`Thread::map`] and belongs to the calling thread from now on.
unsafe fn begin(thread: *mut Thread, blocked: &mut SignalsBlocked) -> bool {
    let before = sys::thread_cpu_ns();
    // SAFETY: List: `Thread::map` made it, and from here on it is only used through shared references.
    let state = unsafe { &*thread };
    state.id.store(sys::thread_id(), Relaxed);
    if !state.use_alternate_stack() {
        return false;
    }
    let ordinal = ORDINAL.fetch_add(1, Relaxed);
    // SAFETY: Owner: signals are blocked.
    unsafe { state.with_sampler(|sampler| sampler.begin(ordinal)) };
    // From now on, the program's mask is virtual, and the owned signals are not really blocked.
    let (owned, bits) = owned_signals::split(blocked.saved());
    state.blocked.fetch_or(owned, Relaxed);
    blocked.restore_instead(bits);

    LIST_LOCK.acquire(true);
    state.next.store(LIST.load(Relaxed), Relaxed);
    LIST.store(thread, Relaxed);
    LIST_LOCK.release();
    set_current_pointer(thread);
    start_ticks(state, thread, before);
    true
}

/// Opens the calling thread's source of ticks and arms the first tick. CPU time since `before` is the sampler's cost. A
/// thread without a source still has a virtual mask. Call with signals blocked.
fn start_ticks(state: &Thread, thread: *mut Thread, before: u64) {
    let start = |sampler: &mut Sampler| {
        if !account::is_sampled() {
            // Only breakpoints observe this process.
        } else if sampler.ticker.open(thread.cast()) {
            counters::THREADS.fetch_add(1, Relaxed);
            sampler.ticker.arm_next();
        } else {
            counters::UNSAMPLED.fetch_add(1, Relaxed);
        }
        sampler
            .ticker
            .spend_on_start(sys::thread_cpu_ns().saturating_sub(before));
    };
    // SAFETY: Owner: signals are blocked.
    unsafe { state.with_sampler(start) };
}

/// Starts to sample the main thread. False if that is impossible.
pub fn begin_main() -> bool {
    let mut key = 0;
    // SAFETY: `key` lives here; the function has the required type.
    if unsafe { libc::pthread_key_create(&mut key, Some(at_thread_exit)) } == 0 {
        KEY.store(key, Relaxed);
    }
    // SAFETY: the three functions live as long as the process.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child)) };
    let thread = Thread::map();
    if thread.is_null() {
        return false;
    }
    let mut blocked = SignalsBlocked::new();
    // SAFETY: the new state is not shared yet.
    if unsafe { !begin(thread, &mut blocked) } {
        return false;
    }
    drop(blocked);
    // SAFETY: the key exists; its destructor takes a thread's state.
    unsafe { libc::pthread_setspecific(key, thread.cast()) };
    true
}

/// Sets the CPU time at which the main thread's sampling began, its start-up included.
pub fn set_base(base_cpu_ns: u64) {
    if let Some(thread) = Thread::current() {
        let _blocked = SignalsBlocked::new();
        // SAFETY: Owner: signals are blocked.
        unsafe { thread.with_sampler(|sampler| sampler.ticker.set_base(base_cpu_ns)) };
    }
}

/// Start function of a new thread made by `pthread_create`.
pub extern "C-unwind" fn main_posix(block: *mut c_void) -> *mut c_void {
    match enter(block.cast()) {
        Some((Routine::Posix(routine), argument)) => routine(argument),
        _ => null_mut(),
    }
}

/// Start function of a new thread made by `thrd_create`.
pub extern "C-unwind" fn main_c11(block: *mut c_void) -> i32 {
    match enter(block.cast()) {
        Some((Routine::C11(routine), argument)) => routine(argument),
        _ => 0,
    }
}

fn enter(thread: *mut Thread) -> Option<(Routine, *mut c_void)> {
    // SAFETY: `prepare` made the thread's state, which is this thread's from its start on.
    let start = unsafe { (*thread).start.get() };
    let mut blocked = SignalsBlocked::new();
    // SAFETY: `prepare` mapped the state for this thread, which no other thread uses yet.
    if process::is_active() && unsafe { begin(thread, &mut blocked) } {
        drop(blocked);
        // SAFETY: the key exists; its destructor takes a thread's state.
        unsafe { libc::pthread_setspecific(KEY.load(Relaxed), thread.cast()) };
    } else {
        counters::UNSAMPLED.fetch_add(1, Relaxed);
        // SAFETY: the state was never shared.
        unsafe { Thread::unmap(thread) };
    }
    start
}

/// Makes the state of a new thread, with the function that it will run; null if there is no memory.
pub fn prepare(routine: Routine, argument: *mut c_void) -> *mut Thread {
    let thread = Thread::map();
    if !thread.is_null() {
        let inherited = Thread::current().map_or(0, |t| t.blocked.load(Relaxed));
        // SAFETY: the new state is not shared yet.
        unsafe {
            (*thread).start.set(Some((routine, argument)));
            (*thread).blocked.store(inherited, Relaxed);
        }
    }
    thread
}

extern "C" fn at_thread_exit(value: *mut c_void) {
    let thread: *mut Thread = value.cast();
    if thread.is_null() || thread != current_pointer() {
        return;
    }
    // The program confined itself: the memory is leaked, since a system call may be fatal.
    if process::is_stopped() {
        set_current_pointer(null_mut());
        return;
    }
    let _blocked = SignalsBlocked::new();
    // SAFETY: Current.
    let state = unsafe { &*thread };
    let close = |sampler: &mut Sampler| {
        sampler.ticker.close();
        sampler.timing.close();
    };
    // SAFETY: Owner: signals are blocked.
    unsafe { state.with_sampler(close) };
    let mut stack = libc::stack_t {
        ss_sp: null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: 0,
    };
    let mut old = stack;
    // SAFETY: Kernel: both structures live here.
    unsafe { syscall!(libc::SYS_sigaltstack, 0, &raw mut old) };
    if old.ss_sp as usize == state.alternate_stack() {
        // SAFETY: Kernel: both structures live here.
        unsafe { syscall!(libc::SYS_sigaltstack, &raw mut stack, 0) };
    }
    LIST_LOCK.acquire(true);
    let next = state.next.load(Relaxed);
    let mut link = LIST.load(Relaxed);
    if link == thread {
        LIST.store(next, Relaxed);
    }
    // SAFETY: List.
    while let Some(other) = unsafe { link.as_ref() } {
        link = other.next.load(Relaxed);
        if link == thread {
            other.next.store(next, Relaxed);
            break;
        }
    }
    LIST_LOCK.release();
    set_current_pointer(null_mut());
    // SAFETY: out of the list, not the kernel's stack, not this thread's state any more.
    unsafe { Thread::unmap(thread) };
}

/// Stops the ticks of the calling thread before `exec`.
pub fn pause_current() {
    if let Some(thread) = Thread::current() {
        let _blocked = SignalsBlocked::new();
        let pause = |sampler: &mut Sampler| {
            sampler.ticker.disable();
            sampler.timing.stop();
        };
        // SAFETY: Owner: signals are blocked.
        unsafe { thread.with_sampler(pause) };
    }
}

/// Undoes [`pause_current`].
pub fn resume_current() {
    if let Some(thread) = Thread::current() {
        let _blocked = SignalsBlocked::new();
        coverage::go_on();
        // SAFETY: Owner: signals are blocked.
        unsafe { thread.with_sampler(|sampler| sampler.ticker.arm_next()) };
    }
}

extern "C" fn before_fork() {
    LIST_LOCK.acquire(true);
}

extern "C" fn after_fork_in_parent() {
    LIST_LOCK.release();
}

extern "C" fn after_fork_in_child() {
    if process::is_stopped() {
        LIST_LOCK.release();
        return;
    }
    let _blocked = SignalsBlocked::new();
    let before = sys::thread_cpu_ns();
    LIST_LOCK.release();
    descriptors::begin_child();
    engines::begin_child();
    timing::begin_child();
    let mine = current_pointer();
    let mut link = LIST.load(Relaxed);
    let mut kept = null_mut();
    // SAFETY: List: a copy of the parent's, in our memory, and no other thread exists.
    while let Some(other) = unsafe { link.as_ref() } {
        let next = other.next.load(Relaxed);
        let abandon = |sampler: &mut Sampler| {
            sampler.ticker.abandon();
            sampler.timing.abandon();
        };
        // SAFETY: Owner: this thread with signals blocked, or one that does not exist here.
        unsafe { other.with_sampler(abandon) };
        if link == mine {
            other.next.store(null_mut(), Relaxed);
            kept = link;
        } else {
            // SAFETY: its thread does not exist here, and it is out of the list.
            unsafe { Thread::unmap(link) };
        }
        link = next;
    }
    LIST.store(kept, Relaxed);
    if !process::is_active() {
        return;
    }
    shard_writer::begin_child();
    coverage::begin_child();
    // SAFETY: Current.
    let Some(state) = (unsafe { kept.as_ref() }) else {
        return;
    };
    state.id.store(sys::thread_id(), Relaxed);
    state.pending.store(0, Relaxed);
    let ordinal = ORDINAL.fetch_add(1, Relaxed) ^ (process::pid() as u32) << 8;
    // SAFETY: Owner: signals are blocked.
    unsafe { state.with_sampler(|sampler| sampler.begin(ordinal)) };
    start_ticks(state, kept, before);
}
