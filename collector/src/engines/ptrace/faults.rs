//! Faults of instructions that the processor runs for the shadow, in the recorder.

#![allow(unsafe_code, reason = "system calls")]

use pleach_shadow::{Engine, recover};
use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

const SIGNALS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// The engine whose bursts may fault; null: none.
static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(std::ptr::null_mut());
/// The thread that runs it.
static THREAD: AtomicI32 = AtomicI32::new(0);

extern "C" fn arrive(signal: i32, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: no arguments.
    let is_sampler = unsafe { libc::gettid() } == THREAD.load(Ordering::SeqCst);
    // SAFETY: the engine is null or that of this thread; the context is this handler's.
    if is_sampler && unsafe { recover(ENGINE.load(Ordering::SeqCst), context) } {
        return;
    }
    // A fault of the recorder itself: the instruction is repeated, and ends the process.
    // SAFETY: plain integers.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// An engine, with handlers for its faults.
#[derive(Debug)]
pub(super) struct GuardedEngine {
    engine: *mut Engine,
    before: [libc::sigaction; SIGNALS.len()],
}

impl GuardedEngine {
    /// Installs the handlers. There is one at a time, and the calling thread runs it.
    pub(super) fn new() -> std::io::Result<Self> {
        let engine = Engine::reserve().map_err(|error| std::io::Error::from_raw_os_error(error.0))?;
        // SAFETY: no arguments.
        THREAD.store(unsafe { libc::gettid() }, Ordering::SeqCst);
        ENGINE.store(engine, Ordering::SeqCst);
        let before = SIGNALS.map(|signal| {
            // SAFETY: all zeroes is valid for these plain structures; the handler does what handlers may do.
            unsafe {
                let mut new: libc::sigaction = std::mem::zeroed();
                let mut old: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = arrive as *const () as usize;
                // A burst needs little of the stack, and a handler on another one could not abandon it.
                new.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
                libc::sigaction(signal, &new, &mut old);
                old
            }
        });
        Ok(Self { engine, before })
    }

    /// The engine.
    pub(super) fn get(&mut self) -> &mut Engine {
        // SAFETY: it is released when this is dropped, and only this has it.
        unsafe { &mut *self.engine }
    }
}

impl Drop for GuardedEngine {
    fn drop(&mut self) {
        for (signal, old) in SIGNALS.iter().zip(&self.before) {
            // SAFETY: restores the previous actions.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
        ENGINE.store(std::ptr::null_mut(), Ordering::SeqCst);
        // SAFETY: it was reserved, and no burst runs.
        unsafe { Engine::release(self.engine) };
    }
}
