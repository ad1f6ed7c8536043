//! Signals of the recorder while its command runs.
//!
//! The terminal sends SIGINT and SIGQUIT to the command as well. The recorder survives them and keeps the recording.
//! SIGTERM and SIGHUP reach only the recorder, which forwards them. While no command runs, a second signal ends the
//! recorder.

#![allow(unsafe_code, reason = "system calls")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// Signals by which users end a command.
pub(crate) const INTERRUPTS: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];
/// The first of them that the terminal does not send to the command.
const FIRST_FORWARDED: usize = 2;
const SLOTS: usize = 64;

/// Processes to which signals are forwarded; 0 marks a free slot.
static TARGETS: [AtomicI32; SLOTS] = [const { AtomicI32::new(0) }; SLOTS];
/// Number of times that each of [`INTERRUPTS`] arrived.
static CAME: [AtomicU32; INTERRUPTS.len()] = [const { AtomicU32::new(0) }; INTERRUPTS.len()];
/// Number of commands that run or are being started.
static RUNNING: AtomicU32 = AtomicU32::new(0);
/// Number of signals that arrived while no command ran.
static IDLE: AtomicU32 = AtomicU32::new(0);
/// The last signal that arrived; 0 for none.
static LAST: AtomicI32 = AtomicI32::new(0);
/// [`CAME`] when the handlers were installed.
static CAME_BEFORE: [AtomicU32; INTERRUPTS.len()] = [const { AtomicU32::new(0) }; INTERRUPTS.len()];
static USERS: Mutex<(u32, Vec<(i32, libc::sigaction)>)> = Mutex::new((0, Vec::new()));

extern "C" fn arrive(signal: i32) {
    // SAFETY: the calling thread's own errno.
    let error = unsafe { *libc::__errno_location() };
    let position = INTERRUPTS.iter().position(|one| *one == signal).unwrap_or(0);
    CAME[position].fetch_add(1, Ordering::SeqCst);
    LAST.store(signal, Ordering::SeqCst);
    for target in &TARGETS {
        let pid = target.load(Ordering::SeqCst);
        if pid > 0 && position >= FIRST_FORWARDED {
            // SAFETY: plain integers.
            unsafe { libc::kill(pid, signal) };
        }
    }
    if RUNNING.load(Ordering::SeqCst) == 0 && IDLE.fetch_add(1, Ordering::SeqCst) > 0 {
        // SAFETY: plain integers; both may be called by handlers. The signal arrives when the handler returns.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = error };
}

/// The last signal that arrived since the handlers were installed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch([u32; INTERRUPTS.len()]);

impl Watch {
    /// Watches since the first of the living [`Handlers`] began: what arrives while a recording is prepared counts.
    pub(crate) fn since_handlers() -> Self {
        Self(std::array::from_fn(|position| {
            CAME_BEFORE[position].load(Ordering::SeqCst)
        }))
    }

    /// The last signal, if any arrived.
    pub(crate) fn signal(&self) -> Option<i32> {
        (came() != self.0).then(|| LAST.load(Ordering::SeqCst))
    }
}

fn came() -> [u32; INTERRUPTS.len()] {
    std::array::from_fn(|position| CAME[position].load(Ordering::SeqCst))
}

/// While one of these lives, signals do not end the recorder, so that what was recorded can be written.
#[derive(Debug)]
pub struct Handlers(());

impl Handlers {
    /// Installs the handlers. Unlike ignored signals, the command does not inherit handlers.
    pub fn begin() -> Self {
        let mut users = USERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        users.0 += 1;
        if users.0 == 1 {
            for (before, now) in CAME_BEFORE.iter().zip(came()) {
                before.store(now, Ordering::SeqCst);
            }
            for signal in INTERRUPTS {
                // SAFETY: plain structures, and a handler that does what handlers may do.
                unsafe {
                    let mut new: libc::sigaction = std::mem::zeroed();
                    let mut old: libc::sigaction = std::mem::zeroed();
                    new.sa_sigaction = arrive as *const () as usize;
                    new.sa_flags = libc::SA_RESTART;
                    libc::sigaction(signal, std::ptr::null(), &mut old);
                    // Signals that were ignored remain ignored, as under nohup.
                    if old.sa_sigaction != libc::SIG_IGN && libc::sigaction(signal, &new, std::ptr::null_mut()) == 0 {
                        users.1.push((signal, old));
                    }
                }
            }
        }
        Self(())
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        let mut users = USERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        users.0 -= 1;
        if users.0 == 0 {
            for (signal, old) in users.1.drain(..) {
                // SAFETY: restores the previous actions.
                unsafe { libc::sigaction(signal, &old, std::ptr::null_mut()) };
            }
            IDLE.store(0, Ordering::SeqCst);
        }
    }
}

/// Makes writes beyond the limit on the size of files (`ulimit -f`) fail, as on a full disk, where the signal would end
/// this process. A command that it starts does not inherit that.
pub fn survive_file_size_limit() {
    extern "C" fn pass(_: libc::c_int) {}
    // SAFETY: plain structures, and a handler that does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGXFSZ, std::ptr::null(), &mut action);
        if action.sa_sigaction == libc::SIG_DFL {
            action.sa_sigaction = pass as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGXFSZ, &action, std::ptr::null_mut());
        }
    }
}

/// Forwards signals to a command while this lives.
pub(crate) struct Forwarding {
    slot: Option<usize>,
    _handlers: Handlers,
}

impl Forwarding {
    /// Begins before the command is started.
    pub(crate) fn begin() -> Self {
        RUNNING.fetch_add(1, Ordering::SeqCst);
        Self {
            slot: None,
            _handlers: Handlers::begin(),
        }
    }

    /// Forwards signals to a process from now on, and all those that arrived since the first of the living [`Handlers`]
    /// began: one may have come after the recorder last looked, and until now the process had the recorder's handlers.
    pub(crate) fn to(&mut self, pid: u32) {
        self.slot = TARGETS.iter().position(|slot| {
            slot.compare_exchange(0, pid as i32, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
        });
        for ((signal, now), before) in INTERRUPTS.iter().zip(came()).zip(&CAME_BEFORE) {
            if now != before.load(Ordering::SeqCst) {
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
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    #[test]
    fn a_signal_after_the_last_look_reaches_the_command() {
        let _handlers = Handlers::begin();
        assert_eq!(Watch::since_handlers().signal(), None);
        // SAFETY: a plain integer, and handlers are installed.
        unsafe { libc::raise(libc::SIGTERM) };
        let mut forwarding = Forwarding::begin();
        let mut child = Command::new("sleep").arg("60").spawn().expect("it starts");
        forwarding.to(child.id());
        assert_eq!(child.wait().expect("it ends").signal(), Some(libc::SIGTERM));
    }
}
