//! The sampled threads of the process: how they start and end, and what `fork` does to them.

use crate::account;
use crate::burst::sampler::Sampler;
use crate::burst::{engines, timing};
use crate::counters;
use crate::coverage;
use crate::descriptors;
use crate::owned_signals;
use crate::process;
use crate::random::{self, Random};
use crate::settings;
use crate::shard_writer;
use crate::state_section::state_section;
use crate::sys::{self, SignalsBlocked, SpinLock, syscall};
use crate::thread::{Routine, Thread, current_pointer, set_current_pointer};
use crate::{tick, waiting};
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64};
use pleach_wire::forked::{EarlySampling, Late};

state_section! {
    /// All sampled threads. They and the links between them change under the lock only.
    static LIST: AtomicPtr<Thread> = AtomicPtr::new(null_mut());
    static LIST_LOCK: SpinLock = SpinLock::new();
    static ORDINAL: AtomicU32 = AtomicU32::new(0);
    /// Seed of the decisions about children, and their number; 0: there is none yet.
    static FORK_SEED: AtomicU64 = AtomicU64::new(0);
    static FORKS: AtomicU32 = AtomicU32::new(0);
    /// The probability with which the next child is chosen, as bits.
    static CHILD_PROBABILITY: AtomicU64 = AtomicU64::new(0);
}
/// Whether the process ever had, or is about to have, a second sampled thread.
static HAS_HAD_THREADS: AtomicBool = AtomicBool::new(false);
/// Id of the thread that forks and holds the lock meanwhile; 0: none. Changes under the lock only.
static FORKING: AtomicI32 = AtomicI32::new(0);
/// Forks of the program's handlers that interrupted that thread.
static NESTED_FORKS: AtomicU32 = AtomicU32::new(0);
/// The key whose destructor runs at a thread's end.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Whether `ask` is true for all sampled threads; the first false ends the search.
pub fn for_all(mut ask: impl FnMut(&Thread) -> bool) -> bool {
    let _blocked = SignalsBlocked::new();
    let is_taken = lock_list();
    let mut link = LIST.load(Relaxed);
    let mut all = true;
    // SAFETY: List.
    while let (true, Some(thread)) = (all, unsafe { link.as_ref() }) {
        all = ask(thread);
        link = thread.next.load(Relaxed);
    }
    if is_taken {
        LIST_LOCK.release();
    }
    all
}

/// Takes the list's lock. False: the thread holds it already, because it is about to fork. A handler of the program
/// interrupted it.
fn lock_list() -> bool {
    let holder = FORKING.load(Relaxed);
    let is_free = holder == 0 || holder != sys::thread_id();
    is_free && LIST_LOCK.acquire(true)
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

/// Opens the source of the exact ticks of a child made by `fork`, which has ended its wait.
fn start_ticks_of_child(state: &Thread, early: EarlySampling, due_ns: Option<u64>) {
    let pointer = core::ptr::from_ref(state).cast();
    let start = |sampler: &mut Sampler| {
        // Its ticks began with the process.
        sampler.ticker.set_base(0);
        if !sampler.ticker.open(pointer) {
            counters::THREADS.fetch_sub(1, Relaxed);
            counters::UNSAMPLED.fetch_add(1, Relaxed);
            return;
        }
        sampler.ticker.set_early_sampling(early);
        match due_ns {
            Some(due_ns) => sampler.ticker.arm_at(due_ns),
            None => sampler.ticker.arm_next(),
        }
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
    HAS_HAD_THREADS.store(true, Relaxed);
    end_wait();
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
    settle();
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
    if waiting::is_waiting() {
        waiting::pause();
    } else if let Some(thread) = Thread::current() {
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
        if waiting::is_waiting() {
            waiting::resume();
            return;
        }
        // SAFETY: Owner: signals are blocked.
        unsafe { thread.with_sampler(|sampler| sampler.ticker.arm_next()) };
    }
}

/// Decides how the child is sampled, and takes the list's lock, unless the process never had a second thread: the page
/// of the lock would be copied with each child.
extern "C" fn before_fork() {
    if HAS_HAD_THREADS.load(Relaxed) {
        // A handler that came after the lock and before the holder's name would wait for its own thread.
        let _blocked = SignalsBlocked::new();
        if lock_list() {
            FORKING.store(sys::thread_id(), Relaxed);
        } else {
            NESTED_FORKS.fetch_add(1, Relaxed);
        }
    }
    if process::is_active() && account::is_sampled() {
        waiting::prepare(first_tick_of_child());
    }
}

/// When the next child has its first tick, if it waits for it.
fn first_tick_of_child() -> Option<Late> {
    // SAFETY: Current.
    let state = unsafe { current_pointer().as_ref() }?;
    let (early, mean_ns) = tick::of_child(state.published.tick_source());
    let seed = match FORK_SEED.load(Relaxed) {
        0 => {
            let seed = random::seed(settings::get().seed);
            FORK_SEED.store(seed, Relaxed);
            seed
        }
        seed => seed,
    };
    // No two processes have the same id and the same number of forks.
    let forks = FORKS.fetch_add(1, Relaxed);
    let mut random = Random::from_seed(seed ^ (process::pid() as u64) << 32, forks);
    // A child must not go on with its parent's stepped burst.
    let waits = random.fraction() >= early.probability && !state.published.is_stepping();
    CHILD_PROBABILITY.store(early.probability.to_bits(), Relaxed);
    waits.then(|| early.late(mean_ns, random.fraction()))
}

extern "C" fn after_fork_in_parent() {
    let holder = FORKING.load(Relaxed);
    if holder == 0 || holder != sys::thread_id() {
        return;
    }
    if NESTED_FORKS.load(Relaxed) > 0 {
        NESTED_FORKS.fetch_sub(1, Relaxed);
    } else {
        // As in `before_fork`.
        let _blocked = SignalsBlocked::new();
        FORKING.store(0, Relaxed);
        LIST_LOCK.release();
    }
}

extern "C" fn after_fork_in_child() {
    // As in `before_fork`.
    let _blocked = SignalsBlocked::new();
    if FORKING.load(Relaxed) != 0 {
        FORKING.store(0, Relaxed);
        NESTED_FORKS.store(0, Relaxed);
        LIST_LOCK.release();
    }
    if process::is_stopped() {
        return;
    }
    let before = sys::thread_cpu_ns();
    descriptors::begin_child();
    forget_other_threads();
    let has_timer = waiting::begin();
    shard_writer::begin_child();
    coverage::begin_child();
    // SAFETY: Current.
    if let Some(state) = unsafe { current_pointer().as_ref() } {
        if state.pending.load(Relaxed) != 0 {
            state.pending.store(0, Relaxed);
        }
        if account::is_sampled() {
            begin_child(state, before, has_timer);
        }
    }
    // What a child that waits does is a part of what the recorder measured.
    let fork_ns = settings::get().fork_ns;
    let cost = if waiting::is_waiting() && fork_ns > 0 {
        fork_ns
    } else {
        sys::thread_cpu_ns().saturating_sub(before) + fork_ns
    };
    counters::OWN_NS.fetch_add(cost, Relaxed);
    account::spend_on_start(cost);
}

/// Starts the ticks of this child made by `fork`, or its wait for them. CPU time since `before` is the sampler's cost
/// so far.
fn begin_child(state: &Thread, before: u64, waits: bool) {
    counters::THREADS.fetch_add(1, Relaxed);
    if waits && waiting::set_timer() {
        return;
    }
    settle();
    let early = if waits {
        // Without a timer, nothing tells when its early part ends: it has the usual rate from its start on.
        EarlySampling::NONE
    } else {
        EarlySampling::new(sys::kernel_tick_ns(), f64::from_bits(CHILD_PROBABILITY.load(Relaxed)))
    };
    start_ticks_of_child(state, early, None);
    account::learn_forked_start(sys::thread_cpu_ns().saturating_sub(before));
}

/// Removes the threads from the list that a child made by `fork` does not have.
fn forget_other_threads() {
    let mine = current_pointer();
    let mut link = LIST.load(Relaxed);
    // SAFETY: List: a copy of the parent's, in our memory, and no other thread exists.
    let is_alone = |thread: &Thread| thread.next.load(Relaxed).is_null();
    // SAFETY: as above.
    if link == mine && unsafe { mine.as_ref() }.is_none_or(is_alone) {
        return;
    }
    let mut kept = null_mut();
    // SAFETY: as above.
    while let Some(other) = unsafe { link.as_ref() } {
        let next = other.next.load(Relaxed);
        if link == mine {
            other.next.store(null_mut(), Relaxed);
            kept = link;
        } else {
            // SAFETY: Owner: the thread does not exist here.
            unsafe { other.with_sampler(abandon) };
            // SAFETY: its thread does not exist here, and it is out of the list.
            unsafe { Thread::unmap(link) };
        }
        link = next;
    }
    LIST.store(kept, Relaxed);
}

/// Drops the parent's events in a child made by `fork`.
fn abandon(sampler: &mut Sampler) {
    sampler.ticker.abandon();
    sampler.timing.abandon();
}

/// Ends the wait of a child made by `fork`: drops what it inherited and does not need. Returns the CPU time at which
/// its first tick is due, if there is to be one; nothing is armed for it any more.
///
/// Call before anything but the wait's timer may be used for ticks: before a thread starts, ticks are paused, or the
/// program confines itself.
pub fn settle() -> Option<u64> {
    if !waiting::is_waiting() || !process::is_own_memory() {
        return None;
    }
    let _blocked = SignalsBlocked::new();
    let due_ns = waiting::end();
    engines::begin_child();
    timing::begin_child();
    shard_writer::take_over();
    coverage::settle();
    // SAFETY: Current.
    if let Some(state) = unsafe { current_pointer().as_ref() } {
        state.id.store(sys::thread_id(), Relaxed);
        let ordinal = ORDINAL.fetch_add(1, Relaxed) ^ (process::pid() as u32) << 8;
        let begin = |sampler: &mut Sampler| {
            abandon(sampler);
            sampler.begin(ordinal);
        };
        // SAFETY: Owner: signals are blocked.
        unsafe { state.with_sampler(begin) };
    }
    due_ns
}

/// The same, after which ticks go on as they would have.
pub fn end_wait() {
    let before = sys::thread_cpu_ns();
    let _blocked = SignalsBlocked::new();
    let Some(due_ns) = settle() else { return };
    // SAFETY: Current.
    if let Some(state) = unsafe { current_pointer().as_ref() } {
        start_ticks_of_child(state, EarlySampling::NONE, Some(due_ns));
    }
    let cost = sys::thread_cpu_ns().saturating_sub(before);
    counters::OWN_NS.fetch_add(cost, Relaxed);
    account::spend_on_start(cost);
}
