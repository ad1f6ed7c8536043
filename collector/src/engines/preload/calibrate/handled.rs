//! Runs a measurement while a handler of this thread receives the overflow signals of an event.

#![allow(unsafe_code, reason = "system calls")]

use crate::engines::lbr::sys::Event;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

/// A handler of signals.
pub(super) type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// Runs a measurement while `handler` receives the event's signals; it finds the event in `place`. Each place must have
/// one caller at a time. `None` if the event cannot send the signal.
pub(super) fn handled<T>(
    mut event: Event,
    handler: Handler,
    place: &AtomicPtr<Event>,
    measure: impl FnOnce(&Event) -> Option<T>,
) -> Option<T> {
    let signal = libc::SIGRTMAX() - 3;
    event.signal(signal).ok()?;
    // SAFETY: plain structures; the previous action is restored when the event is stopped.
    unsafe {
        let mut new: libc::sigaction = zeroed();
        let mut old: libc::sigaction = zeroed();
        new.sa_sigaction = handler as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigfillset(&mut new.sa_mask);
        let mut ours: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut ours);
        libc::sigaddset(&mut ours, signal);
        if libc::sigaction(signal, &new, &mut old) != 0 {
            return None;
        }
        place.store(&raw mut event, Relaxed);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &ours, null_mut());
        let measured = measure(&event);
        place.store(null_mut(), Relaxed);
        let _ = event.run(false);
        // A pending signal arrives now.
        libc::pthread_sigmask(libc::SIG_BLOCK, &ours, null_mut());
        libc::sigaction(signal, &old, null_mut());
        measured
    }
}
