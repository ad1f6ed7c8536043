//! The engines of shadow execution. They are few and large, so threads share them. Each thread prefers one engine,
//! leases another if that one is in use, and declines the tick if all are in use.

use crate::owned_signals::FAULT_MASK;
use crate::settings;
use crate::signal_entry::Context;
use crate::sys::{self, syscall};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8};

/// Threads that can be in a shadow burst at the same time.
const MAX_ENGINES: usize = 6;
struct Slot {
    busy: AtomicBool,
    engine: AtomicPtr<pleach_shadow::Engine>,
    /// Whether children made by `fork` have the engine's memory.
    is_inherited: AtomicBool,
}

static SLOTS: [Slot; MAX_ENGINES] = [const {
    Slot {
        busy: AtomicBool::new(false),
        engine: AtomicPtr::new(null_mut()),
        is_inherited: AtomicBool::new(false),
    }
}; MAX_ENGINES];

/// The engine that runs in a thread right now.
#[derive(Debug)]
pub struct RunningEngine(AtomicPtr<pleach_shadow::Engine>);

impl RunningEngine {
    /// The engine that runs, if any. Faults then belong to the engine, not to the program.
    pub fn get(&self) -> Option<*mut pleach_shadow::Engine> {
        let engine = self.0.load(Relaxed);
        (!engine.is_null()).then_some(engine)
    }
}

/// State of the decoder's tables, which all engines share. They are made with the first engine.
static TABLES: AtomicU8 = AtomicU8::new(MISSING);
const MISSING: u8 = 0;
/// A thread is making them.
const GROWING: u8 = 1;
const COMPLETE: u8 = 2;
/// The process was forked while another thread was making them, so they will never be complete.
const LOST: u8 = 3;

/// Reserves the engine that a thread prefers, at the thread's first burst, because most short processes have no burst.
/// Returns whether that took time. If there is no memory, threads are stepped instead.
pub fn reserve(preferred: u32) -> bool {
    let Some(slot) = SLOTS.get(preferred as usize % MAX_ENGINES) else {
        return false;
    };
    if !slot.engine.load(Acquire).is_null() || slot.busy.swap(true, Acquire) {
        return false;
    }
    let is_first = TABLES.compare_exchange(MISSING, GROWING, Acquire, Relaxed).is_ok();
    if is_first || TABLES.load(Acquire) == COMPLETE {
        let engine = pleach_shadow::Engine::reserve().unwrap_or(null_mut());
        // SAFETY: it was just made.
        let is_kept = !engine.is_null() && unsafe { pleach_shadow::Engine::keep_from_children(engine) };
        slot.is_inherited.store(!is_kept, Relaxed);
        slot.engine.store(engine, Release);
        if engine.is_null() {
            settings::use_step();
        }
        if is_first {
            TABLES.store(if engine.is_null() { MISSING } else { COMPLETE }, Release);
        }
    }
    slot.busy.store(false, Release);
    true
}

/// Starts over in a child made by `fork`, which has one thread.
pub fn begin_child() {
    if TABLES.load(Relaxed) == GROWING {
        TABLES.store(LOST, Relaxed);
        settings::use_step();
    }
    for slot in &SLOTS {
        slot.busy.store(false, Relaxed);
        if !slot.is_inherited.load(Relaxed) {
            slot.engine.store(null_mut(), Relaxed);
        }
        // SAFETY: null or an engine of ours, which the one thread of this process does not use.
        if let Some(engine) = unsafe { slot.engine.load(Relaxed).as_mut() } {
            engine.forked();
        }
    }
}

/// Ends the shadow execution that raised a fault.
pub fn recover(engine: *mut pleach_shadow::Engine, context: &mut Context) -> bool {
    // SAFETY: Lease: the engine runs in this thread, whose handler this is.
    unsafe { pleach_shadow::recover(engine, (context as *mut Context).cast()) }
}

/// Leases an engine that no other thread uses, if possible the one that this thread used before.
pub fn lease(preferred: u32) -> Option<*mut pleach_shadow::Engine> {
    (0..MAX_ENGINES).find_map(|offset| {
        let slot = SLOTS.get((preferred as usize + offset) % MAX_ENGINES)?;
        let engine = slot.engine.load(Acquire);
        (!engine.is_null() && !slot.busy.swap(true, Acquire)).then_some(engine)
    })
}

/// Returns an engine.
pub fn release(engine: *mut pleach_shadow::Engine) {
    if let Some(slot) = SLOTS.iter().find(|slot| slot.engine.load(Relaxed) == engine) {
        slot.busy.store(false, Release);
    }
}

/// Runs code of an engine that may fault.
///
/// # Safety
/// The rule "Lease", and all signals are blocked.
pub unsafe fn guarded<R>(
    engine: *mut pleach_shadow::Engine,
    running: &RunningEngine,
    act: impl FnOnce(&mut pleach_shadow::Engine) -> R,
) -> R {
    // The kernel puts the frame of a fault on the alternate stack, over that of the tick, unless none is set. The
    // frame of the tick brings it back.
    let none = libc::stack_t {
        ss_sp: null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: 0,
    };
    // SAFETY: Kernel: the structure lives here.
    unsafe { syscall!(libc::SYS_sigaltstack, &raw const none, 0) };
    running.0.store(engine, Relaxed);
    sys::signal_mask(libc::SIG_UNBLOCK, FAULT_MASK);
    // SAFETY: Lease, by the caller; a fault leaves the engine's code for good before its handler uses the engine.
    let result = act(unsafe { &mut *engine });
    sys::signal_mask(libc::SIG_SETMASK, sys::ALL_SIGNALS);
    running.0.store(null_mut(), Relaxed);
    result
}
