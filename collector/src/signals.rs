//! Signals of the recorder while its command runs.
//!
//! The terminal sends SIGINT and SIGQUIT to the command as well. The recorder survives them and keeps the recording.
//! SIGTERM and SIGHUP reach only the recorder, which forwards them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

const SURVIVED: [i32; 2] = [libc::SIGINT, libc::SIGQUIT];
const FORWARDED: [i32; 2] = [libc::SIGTERM, libc::SIGHUP];
const SLOTS: usize = 64;

/// Processes to which signals are forwarded; 0 marks a free slot.
static TARGETS: [AtomicI32; SLOTS] = [const { AtomicI32::new(0) }; SLOTS];
/// Number of times that each of [`FORWARDED`] arrived.
static CAME: [AtomicU32; FORWARDED.len()] = [const { AtomicU32::new(0) }; FORWARDED.len()];
static USERS: Mutex<(u32, Vec<(i32, libc::sigaction)>)> = Mutex::new((0, Vec::new()));

extern "C" fn survive(_signal: i32) {}

extern "C" fn forward(signal: i32) {
    // SAFETY: the calling thread's own errno.
    let error = unsafe { *libc::__errno_location() };
    if let Some(position) = FORWARDED.iter().position(|forwarded| *forwarded == signal) {
        CAME[position].fetch_add(1, Ordering::SeqCst);
    }
    for target in &TARGETS {
        let pid = target.load(Ordering::SeqCst);
        if pid > 0 {
            // SAFETY: plain integers.
            unsafe { libc::kill(pid, signal) };
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = error };
}

/// The recorder's handlers are in place while one of these lives.
pub(crate) struct Forwarding {
    slot: Option<usize>,
    /// Number of times that each of [`FORWARDED`] had arrived before.
    came: [u32; FORWARDED.len()],
}

fn came() -> [u32; FORWARDED.len()] {
    std::array::from_fn(|position| CAME[position].load(Ordering::SeqCst))
}

impl Forwarding {
    /// Installs the handlers. Unlike ignored signals, the command does not inherit handlers.
    pub(crate) fn begin() -> Self {
        let came = came();
        let mut users = USERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        users.0 += 1;
        if users.0 == 1 {
            let pairs = SURVIVED.map(|s| (s, survive as *const () as usize));
            for (signal, handler) in pairs
                .into_iter()
                .chain(FORWARDED.map(|s| (s, forward as *const () as usize)))
            {
                // SAFETY: plain structures, and handlers that do what handlers may do.
                unsafe {
                    let mut new: libc::sigaction = std::mem::zeroed();
                    let mut old: libc::sigaction = std::mem::zeroed();
                    new.sa_sigaction = handler;
                    new.sa_flags = libc::SA_RESTART;
                    libc::sigaction(signal, std::ptr::null(), &mut old);
                    // Signals that were ignored remain ignored, as under nohup.
                    if old.sa_sigaction != libc::SIG_IGN && libc::sigaction(signal, &new, std::ptr::null_mut()) == 0 {
                        users.1.push((signal, old));
                    }
                }
            }
        }
        Self { slot: None, came }
    }

    /// Forwards signals to a process from now on, and those that arrived while it was started.
    pub(crate) fn to(&mut self, pid: u32) {
        self.slot = TARGETS.iter().position(|slot| {
            slot.compare_exchange(0, pid as i32, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
        });
        for ((signal, now), before) in FORWARDED.iter().zip(came()).zip(self.came) {
            if now != before {
                // SAFETY: plain integers.
                unsafe { libc::kill(pid as i32, *signal) };
            }
        }
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            TARGETS[slot].store(0, Ordering::Relaxed);
        }
        let mut users = USERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        users.0 -= 1;
        if users.0 == 0 {
            for (signal, old) in users.1.drain(..) {
                // SAFETY: restores the previous actions.
                unsafe { libc::sigaction(signal, &old, std::ptr::null_mut()) };
            }
        }
    }
}
