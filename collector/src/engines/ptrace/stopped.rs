//! A thread of another process, stopped for the time of a burst.
//!
//! It is traced only while it is stopped: before and after, the program runs as if there were no recorder, other tracers
//! may come, and if the recorder dies the kernel lets the thread go on.

use crate::engines::error::RecordError;
use pleach_shadow::{FLOATING_IMAGE, Registers};
use std::ffi::c_void;
use std::io::Error;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// The note of `PTRACE_GETREGSET` for the image of `xsave`.
const NT_X86_XSTATE: usize = 0x202;
/// The code segment of 64-bit code.
const CODE_SEGMENT: u64 = 0x33;
/// The error within the kernel that has it repeat a system call.
const ERESTARTNOINTR: i64 = 513;

/// Why a thread was not stopped for a burst.
#[derive(Debug)]
pub(super) enum NotStopped {
    /// The kernel refuses, or another process traces it.
    Refused(Error),
    /// It has ended; the status if it is a child of this process, which is waited for with that.
    Ended(Option<ExitStatus>),
    /// A signal was to be delivered, or the process is stopped.
    Busy,
}

/// A thread that is stopped and traced. It goes on when this is dropped.
#[derive(Debug)]
pub(super) struct StoppedThread {
    thread: u32,
    /// The signal that it gets when it goes on; 0 for none.
    signal: i32,
}

fn ptrace(request: libc::c_uint, thread: u32, address: usize, data: usize) -> Result<i64, Error> {
    // SAFETY: callers pass pointers to what the request writes, which lives there.
    let result = unsafe { libc::ptrace(request, thread, address as *mut c_void, data as *mut c_void) };
    if result == -1 {
        Err(Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Waits until a thread that this thread traces stops or ends.
fn wait(thread: u32) -> Result<i32, Error> {
    let mut status = 0;
    loop {
        // SAFETY: the status lives here.
        let waited = unsafe { libc::waitpid(thread as i32, &mut status, libc::__WALL) };
        if waited >= 0 {
            return Ok(status);
        }
        let error = Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

impl StoppedThread {
    /// Stops a thread of the process `process`.
    pub(super) fn stop(process: u32, thread: u32) -> Result<Self, NotStopped> {
        ptrace(libc::PTRACE_SEIZE, thread, 0, 0).map_err(|error| match error.raw_os_error() {
            Some(libc::ESRCH) => NotStopped::Ended(None),
            _ => NotStopped::Refused(error),
        })?;
        let interrupted = ptrace(libc::PTRACE_INTERRUPT, thread, 0, 0);
        let status = match interrupted.and_then(|_| wait(thread)) {
            Ok(status) => status,
            Err(_) => {
                // It has ended; or it called `execve` and has the number of its process now.
                if thread != process && wait(process).is_ok_and(|status| libc::WIFSTOPPED(status)) {
                    drop(Self {
                        thread: process,
                        signal: 0,
                    });
                }
                return Err(NotStopped::Ended(None));
            }
        };
        if !libc::WIFSTOPPED(status) {
            return Err(NotStopped::Ended(Some(ExitStatus::from_raw(status))));
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        match event {
            libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Ok(Self { thread, signal: 0 }),
            // The whole process is stopped, and remains so.
            libc::PTRACE_EVENT_STOP => {
                drop(Self { thread, signal: 0 });
                Err(NotStopped::Busy)
            }
            _ => {
                drop(Self { thread, signal });
                Err(NotStopped::Busy)
            }
        }
    }

    /// The thread's registers; `image` receives its vector registers. `None`: a burst cannot begin here, since the thread
    /// runs 32-bit code, or was in a system call. A program that spends much time in the kernel would be seen mostly where
    /// it returns from there.
    ///
    /// The stop may have interrupted a system call that waits. Most are repeated without further ado, but some fail with
    /// `EINTR` though no handler ran, such as `epoll_wait` (signal(7)): those are repeated as well.
    pub(super) fn registers<'i>(&self, image: &'i mut [u8; FLOATING_IMAGE]) -> Option<Registers<'i>> {
        // SAFETY: all zeroes is valid for this plain structure.
        let mut user: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        ptrace(libc::PTRACE_GETREGS, self.thread, 0, (&raw mut user) as usize).ok()?;
        if user.cs != CODE_SEGMENT {
            return None;
        }
        let was_in_system_call = user.orig_rax as i64 >= 0;
        if was_in_system_call {
            let is_interrupted = user.rax as i64 == -i64::from(libc::EINTR);
            if is_interrupted && !has_deliverable_signals(self.thread) {
                user.rax = ERESTARTNOINTR.wrapping_neg() as u64;
                // It fails only if the thread was killed meanwhile.
                let _ = ptrace(libc::PTRACE_SETREGS, self.thread, 0, (&raw mut user) as usize);
            }
            return None;
        }
        let mut vector = libc::iovec {
            iov_base: image.as_mut_ptr().cast(),
            iov_len: image.len(),
        };
        let floating = ptrace(
            libc::PTRACE_GETREGSET,
            self.thread,
            NT_X86_XSTATE,
            (&raw mut vector) as usize,
        )
        .is_ok();
        let general = [
            user.rax, user.rcx, user.rdx, user.rbx, user.rsp, user.rbp, user.rsi, user.rdi, user.r8, user.r9, user.r10,
            user.r11, user.r12, user.r13, user.r14, user.r15,
        ];
        Some(Registers {
            general,
            pc: user.rip,
            rflags: user.eflags,
            fs_base: user.fs_base,
            gs_base: user.gs_base,
            floating: floating.then_some(image),
        })
    }
}

impl Drop for StoppedThread {
    fn drop(&mut self) {
        // It fails only if the thread was killed meanwhile.
        let _ = ptrace(libc::PTRACE_DETACH, self.thread, 0, self.signal as usize);
    }
}

/// Whether signals wait for a thread that it does not block.
fn has_deliverable_signals(thread: u32) -> bool {
    procfs::process::Process::new(thread as i32)
        .and_then(|process| process.status())
        .is_ok_and(|status| (status.sigpnd | status.shdpnd) & !status.sigblk != 0)
}

/// Whether the kernel lets a process be traced.
///
/// # Errors
/// It does not exist, may not be traced, or is traced.
pub(super) fn check(process: u32) -> Result<(), RecordError> {
    let gone = |_| RecordError::NoProcess(process);
    let files = procfs::process::Process::new(process as i32).map_err(gone)?;
    let tracer = files.status().map_err(gone)?.tracerpid;
    if tracer != 0 {
        return Err(RecordError::Traced { process, tracer });
    }
    // What may be traced may be read.
    let stack = files.stat().map_err(gone)?.startstack;
    if read_memory(process, stack, &mut [0]) {
        return Ok(());
    }
    let error = Error::last_os_error();
    Err(RecordError::Untraceable { process, error })
}

/// Reads memory of another process. False: some of it cannot be read.
pub(super) fn read_memory(process: u32, address: u64, to: &mut [u8]) -> bool {
    let own = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    let other = libc::iovec {
        iov_base: address as *mut c_void,
        iov_len: to.len(),
    };
    // SAFETY: the kernel writes at most as many bytes as the buffer has.
    let read = unsafe { libc::process_vm_readv(process as i32, &own, 1, &other, 1, 0) };
    read == to.len() as isize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits that a stop interrupts; the number that failed with another error than a time-out.
    fn failed_waits() -> i32 {
        let mut failed = 0;
        // SAFETY: after `fork`, only calls that are safe in signal handlers, on what lives here.
        unsafe {
            let poll = libc::epoll_create1(0);
            let mut event: libc::epoll_event = std::mem::zeroed();
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGUSR2);
            let little = libc::timespec {
                tv_sec: 0,
                tv_nsec: 2_000_000,
            };
            for _ in 0..100 {
                failed += i32::from(libc::epoll_wait(poll, &mut event, 1, 2) != 0);
                let waited = libc::sigtimedwait(&set, std::ptr::null_mut(), &little);
                failed += i32::from(waited != -1 || *libc::__errno_location() != libc::EAGAIN);
                failed += i32::from(libc::nanosleep(&little, std::ptr::null_mut()) != 0);
            }
        }
        failed
    }

    #[test]
    fn interrupted_waits_are_repeated() {
        // SAFETY: the child only makes system calls.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(failed_waits().min(100)) };
        }
        let (child, mut image) = (child as u32, Box::new([0; FLOATING_IMAGE]));
        let mut stops = 0;
        let status = loop {
            match StoppedThread::stop(child, child) {
                Ok(stopped) => {
                    let _ = stopped.registers(&mut image);
                    stops += 1;
                }
                Err(NotStopped::Ended(Some(status))) => break status.code(),
                Err(NotStopped::Ended(None)) => break wait(child).ok().map(|status| libc::WEXITSTATUS(status)),
                Err(NotStopped::Busy) => {}
                Err(NotStopped::Refused(error)) => {
                    // Nothing to see where tracing is forbidden; a child that has ended cannot be traced either.
                    eprintln!("{error}");
                    break wait(child).ok().map(|status| libc::WEXITSTATUS(status));
                }
            }
            // Longer than a wait, which begins again after a stop.
            std::thread::sleep(std::time::Duration::from_millis(3));
        };
        assert_eq!(status, Some(0), "waits failed after {stops} stops");
        assert!(stops > 50, "{stops}");
    }

    #[test]
    fn memory_is_read_or_not() {
        let bytes = *b"some bytes";
        let mut copy = [0; 10];
        assert!(read_memory(std::process::id(), bytes.as_ptr() as u64, &mut copy));
        assert_eq!(copy, bytes);
        assert!(!read_memory(std::process::id(), 8, &mut copy));
    }
}
