//! Sampled threads: their memory, how they begin and end.
//!
//! Each has one mapping: an alternate signal stack for the kernel's frames, a stack on which our handlers work, and its
//! state. A thread's own stack is never written to, however little room it has left.

use crate::burst::sampler::Sampler;
use crate::burst::shadow_burst::{self, Running};
use crate::burst::timing;
use crate::interpose::signals;
use crate::process;
use crate::signal_entry;
use crate::sys::{self, SignalsBlocked, SpinLock, syscall};
use crate::tick;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32};

/// A program's handler may run there too, if it asked for an alternate stack in another thread only.
const ALTERNATE_STACK: usize = 256 * 1024;
const HANDLER_STACK: usize = 64 * 1024;
const GUARD: usize = 4096;

/// How a thread's function is called.
#[derive(Clone, Copy, Debug)]
pub enum Routine {
    /// By `pthread_create`.
    Posix(extern "C-unwind" fn(*mut c_void) -> *mut c_void),
    /// By `thrd_create`.
    C11(extern "C-unwind" fn(*mut c_void) -> i32),
}

/// State of a sampled thread.
///
/// The sampler's part belongs to handlers, which run with all signals blocked. The rest is shared between handlers and
/// the interposed functions of the same thread, hence atomic.
#[repr(C)]
#[derive(Debug)]
pub struct Thread {
    /// Top of the handlers' stack. Assembly reads it: it has to be first.
    pub stack_top: usize,
    /// Kernel thread id.
    pub id: AtomicI32,
    /// Which of our two signals the program believes it blocks ([`signals::Virtual`]).
    pub blocked: AtomicU8,
    /// Which of them were sent meanwhile.
    pub pending: AtomicU8,
    /// The information that came with them.
    pub pending_info: [UnsafeCell<libc::siginfo_t>; 2],
    /// Nesting of reasons not to tick: no room on the program's alternate stack.
    pub paused: AtomicU8,
    /// The shadow execution that is going on.
    pub ahead: Running,
    /// What handlers work on.
    pub sampler: UnsafeCell<Sampler>,
    routine: Option<Routine>,
    argument: *mut c_void,
    next: *mut Thread,
}

static LIST: AtomicPtr<Thread> = AtomicPtr::new(null_mut());
static LIST_LOCK: SpinLock = SpinLock::new();
static ORDINAL: AtomicU32 = AtomicU32::new(0);
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

const STATE: usize = size_of::<Thread>().next_multiple_of(4096);
const TOTAL: usize = GUARD + ALTERNATE_STACK + GUARD + HANDLER_STACK + STATE;

impl Thread {
    /// Reserves the memory of one; null if there is none.
    pub fn map() -> *mut Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping.
        let base = unsafe { syscall!(libc::SYS_mmap, 0, TOTAL, protection, flags, -1isize, 0) };
        if base < 0 {
            return null_mut();
        }
        let base = base as usize;
        for guard in [base, base + GUARD + ALTERNATE_STACK] {
            // SAFETY: our own pages.
            unsafe { syscall!(libc::SYS_mprotect, guard, GUARD, libc::PROT_NONE) };
        }
        let stack_top = base + TOTAL - STATE;
        let thread = stack_top as *mut Self;
        // SAFETY: the mapping is all zeroes, which is valid for every field; only what differs is written.
        unsafe {
            (*thread).stack_top = stack_top;
            (&raw mut (*thread).routine).write(None);
            Sampler::reset((&raw mut (*thread).sampler).cast());
        }
        thread
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// Nothing may refer to it any more, the kernel's alternate stack included.
    pub unsafe fn unmap(this: *mut Self) {
        let base = this as usize + STATE - TOTAL;
        // SAFETY: mapped by `map`.
        unsafe { syscall!(libc::SYS_munmap, base, TOTAL) };
    }

    /// First address of the alternate stack.
    pub fn alternate_stack(&self) -> usize {
        self.stack_top - HANDLER_STACK - GUARD - ALTERNATE_STACK
    }

    /// Makes our alternate stack the kernel's.
    pub fn use_alternate_stack(&self) -> bool {
        let stack = libc::stack_t {
            ss_sp: self.alternate_stack() as *mut _,
            ss_flags: 0,
            ss_size: ALTERNATE_STACK,
        };
        // SAFETY: the memory lives as long as the thread is sampled.
        unsafe { syscall!(libc::SYS_sigaltstack, &raw const stack, 0) == 0 }
    }

    /// The calling thread's state, if it is sampled and this is not a child that only shares its memory.
    pub fn current<'a>() -> Option<&'a Self> {
        // A confined program may be killed for the system call below.
        if process::is_stopped() {
            return None;
        }
        // SAFETY: the pointer is null or that of this thread, which lives until the thread clears it.
        let thread = unsafe { signal_entry::current_thread().as_ref() }?;
        (thread.id.load(Relaxed) == sys::thread_id()).then_some(thread)
    }
}

/// Asks all threads of the process that are known, up to the first no.
pub fn for_all(mut ask: impl FnMut(&Thread) -> bool) -> bool {
    let _blocked = SignalsBlocked::new();
    LIST_LOCK.acquire(true);
    let mut link = LIST.load(Relaxed);
    let mut all = true;
    // SAFETY: everything in the list is alive, and changes under the lock only.
    while let (true, Some(thread)) = (all, unsafe { link.as_ref() }) {
        all = ask(thread);
        link = thread.next;
    }
    LIST_LOCK.release();
    all
}

/// Begins to sample the calling thread. Call with signals blocked; `blocked` is its mask.
///
/// # Safety
/// `thread` comes from [`Thread::map`] and belongs to the calling thread from now on.
unsafe fn begin(thread: *mut Thread, blocked: &mut SignalsBlocked) -> bool {
    let before = sys::thread_cpu_ns();
    // SAFETY: ours alone.
    let state = unsafe { &mut *thread };
    state.id.store(sys::thread_id(), Relaxed);
    shadow_burst::begin_thread();
    if !state.use_alternate_stack() {
        return false;
    }
    let ordinal = ORDINAL.fetch_add(1, Relaxed);
    state.sampler.get_mut().begin(ordinal);
    // What is blocked already is what the program believes; really, our signals are not.
    let (ours, bits) = signals::split(blocked.saved());
    state.blocked.fetch_or(ours, Relaxed);
    blocked.restore_instead(bits);

    LIST_LOCK.acquire(true);
    state.next = LIST.load(Relaxed);
    LIST.store(thread, Relaxed);
    LIST_LOCK.release();
    signal_entry::set_current_thread(thread);
    let sampler = state.sampler.get_mut();
    let ticking = tick::open(sampler, thread);
    if ticking {
        process::THREADS.fetch_add(1, Relaxed);
        tick::arm_first(sampler);
    }
    let cost = sys::thread_cpu_ns().saturating_sub(before);
    sampler.own_ns += cost;
    process::OWN_NS.fetch_add(cost, Relaxed);
    // Without a tick the thread still takes part in the pretence about masks.
    if !ticking {
        process::UNSAMPLED.fetch_add(1, Relaxed);
    }
    true
}

/// Begins with the main thread.
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
    // SAFETY: fresh.
    if unsafe { !begin(thread, &mut blocked) } {
        return false;
    }
    drop(blocked);
    // SAFETY: the main thread may end by pthread_exit, too.
    unsafe { libc::pthread_setspecific(key, thread.cast()) };
    true
}

/// Puts the whole start-up on the main thread's account: it began at `base_cpu_ns` and took `cost_ns`.
pub fn charge_start(base_cpu_ns: u64, cost_ns: u64) {
    if let Some(thread) = Thread::current() {
        let _blocked = SignalsBlocked::new();
        // SAFETY: signals are blocked.
        let sampler = unsafe { &mut *thread.sampler.get() };
        (sampler.base_cpu_ns, sampler.own_ns) = (base_cpu_ns, cost_ns);
    }
}

/// What a new thread of a sampled program runs first.
pub extern "C-unwind" fn main_posix(block: *mut c_void) -> *mut c_void {
    match enter(block.cast()) {
        (Some(Routine::Posix(routine)), argument) => routine(argument),
        _ => null_mut(),
    }
}

/// As [`main_posix`].
pub extern "C-unwind" fn main_c11(block: *mut c_void) -> i32 {
    match enter(block.cast()) {
        (Some(Routine::C11(routine)), argument) => routine(argument),
        _ => 0,
    }
}

fn enter(thread: *mut Thread) -> (Option<Routine>, *mut c_void) {
    // SAFETY: `prepare` gave the block to this thread.
    let (routine, argument) = unsafe { ((*thread).routine, (*thread).argument) };
    let mut blocked = SignalsBlocked::new();
    // SAFETY: the same.
    if process::is_active() && unsafe { begin(thread, &mut blocked) } {
        drop(blocked);
        // SAFETY: the key exists; its destructor takes the thread.
        unsafe { libc::pthread_setspecific(KEY.load(Relaxed), thread.cast()) };
    } else {
        process::UNSAMPLED.fetch_add(1, Relaxed);
        // SAFETY: never shown to anybody.
        unsafe { Thread::unmap(thread) };
    }
    (routine, argument)
}

/// Makes a block that carries a new thread's function to it.
pub fn prepare(routine: Routine, argument: *mut c_void) -> *mut Thread {
    let thread = Thread::map();
    if !thread.is_null() {
        let inherited = Thread::current().map_or(0, |t| t.blocked.load(Relaxed));
        // SAFETY: fresh.
        unsafe {
            (*thread).routine = Some(routine);
            (*thread).argument = argument;
            (*thread).blocked.store(inherited, Relaxed);
        }
    }
    thread
}

extern "C" fn at_thread_exit(value: *mut c_void) {
    let thread: *mut Thread = value.cast();
    if thread.is_null() || thread != signal_entry::current_thread() {
        return;
    }
    // Confined: its memory stays, rather than a system call is risked.
    if process::is_stopped() {
        signal_entry::set_current_thread(null_mut());
        return;
    }
    let _blocked = SignalsBlocked::new();
    // SAFETY: the thread's own; signals are blocked.
    let state = unsafe { &mut *thread };
    tick::close(state.sampler.get_mut());
    state.sampler.get_mut().clock.close();
    let mut stack = libc::stack_t {
        ss_sp: null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: 0,
    };
    let mut old = stack;
    // SAFETY: both structures live here.
    unsafe { syscall!(libc::SYS_sigaltstack, 0, &raw mut old) };
    if old.ss_sp as usize == state.alternate_stack() {
        // SAFETY: as above.
        unsafe { syscall!(libc::SYS_sigaltstack, &raw mut stack, 0) };
    }
    LIST_LOCK.acquire(true);
    let mut link = LIST.load(Relaxed);
    if link == thread {
        LIST.store(state.next, Relaxed);
    }
    while !link.is_null() {
        // SAFETY: everything in the list is alive, and changes under the lock only.
        let other = unsafe { &mut *link };
        if other.next == thread {
            other.next = state.next;
            break;
        }
        link = other.next;
    }
    LIST_LOCK.release();
    signal_entry::set_current_thread(null_mut());
    // SAFETY: out of the list, not the kernel's stack, not this thread's state any more.
    unsafe { Thread::unmap(thread) };
}

/// Ends the ticks of the calling thread before it becomes another program.
pub fn pause_current() {
    if let Some(thread) = Thread::current() {
        let _blocked = SignalsBlocked::new();
        // SAFETY: signals are blocked.
        let sampler = unsafe { &mut *thread.sampler.get() };
        tick::disable(sampler);
        sampler.clock.silence();
    }
}

/// Undoes [`pause_current`].
pub fn resume_current() {
    if let Some(thread) = Thread::current() {
        let _blocked = SignalsBlocked::new();
        // SAFETY: signals are blocked.
        tick::arm_first(unsafe { &mut *thread.sampler.get() });
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
    crate::descriptors::begin_child();
    shadow_burst::begin_child();
    timing::begin_child();
    let mine = signal_entry::current_thread();
    let mut link = LIST.load(Relaxed);
    let mut kept = null_mut();
    while !link.is_null() {
        // SAFETY: a copy of the parent's list, in our memory.
        let other = unsafe { &mut *link };
        let next = other.next;
        tick::abandon(other.sampler.get_mut());
        other.sampler.get_mut().clock.abandon();
        if link == mine {
            other.next = null_mut();
            kept = link;
        } else {
            // SAFETY: its thread does not exist here.
            unsafe { Thread::unmap(link) };
        }
        link = next;
    }
    LIST.store(kept, Relaxed);
    if !process::is_active() {
        return;
    }
    process::begin_child();
    // SAFETY: this thread's own.
    let Some(state) = (unsafe { kept.as_mut() }) else {
        return;
    };
    state.id.store(sys::thread_id(), Relaxed);
    state.pending.store(0, Relaxed);
    let ordinal = ORDINAL.fetch_add(1, Relaxed) ^ (process::pid() as u32) << 8;
    let sampler = state.sampler.get_mut();
    sampler.begin(ordinal);
    if tick::open(sampler, kept) {
        process::THREADS.fetch_add(1, Relaxed);
        tick::arm_first(sampler);
    } else {
        process::UNSAMPLED.fetch_add(1, Relaxed);
    }
    let cost = sys::thread_cpu_ns().saturating_sub(before);
    sampler.own_ns += cost;
    process::OWN_NS.fetch_add(cost, Relaxed);
}
