//! Threads of other processes, stopped for the time of a burst.
//!
//! A thread is traced only while it is stopped: before and after, the program runs as if there were no recorder, and other
//! tracers may come. If the thread that samples ends, the kernel lets all its threads go on.
//!
//! Whatever is traced has to be released, or waited for if it ended while it was traced: its process would not end
//! otherwise. What cannot be released at once waits in a list, which [`Tracer::settle`] looks through.

#![allow(unsafe_code, reason = "system calls")]

use crate::engines::error::RecordError;
use crate::engines::running::{FoundProcess, find};
use pleach_shadow::{FLOATING_IMAGE, Registers};
use procfs::process::{Process, Stat};
use std::ffi::c_void;
use std::io::{Error, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Time within which a thread has to stop: one that runs stops within microseconds.
const PATIENCE: Duration = Duration::from_millis(20);
/// Time during which its stop is polled for without a pause.
const HURRY: Duration = Duration::from_micros(300);
const PAUSE: Duration = Duration::from_micros(100);

/// The note of `PTRACE_GETREGSET` for the image of `xsave`.
const NT_X86_XSTATE: usize = 0x202;
/// The code segment of 64-bit code.
const CODE_SEGMENT: u64 = 0x33;
/// The error within the kernel that has it repeat a system call, unless a handler runs: then the call fails with `EINTR`.
const ERESTARTNOHAND: i64 = 514;

/// Waits that fail with `EINTR` after a stop though no handler ran (signal(7)). Others are repeated by the kernel.
const WAITS: [i64; 15] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
    // With a time limit of the socket.
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_read,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
];

/// Why a thread was not stopped for a burst.
#[derive(Debug)]
pub(super) enum NotStopped {
    /// The kernel refuses, or another process traces it.
    Refused(Error),
    /// It has ended, a signal was to be delivered, its process is stopped, or it does not stop in time.
    NotNow,
}

/// A thread that is traced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Traced {
    process: u32,
    thread: u32,
}

/// A thread that is traced and stopped, until [`Tracer::release`].
#[derive(Debug)]
#[must_use]
pub(super) struct StoppedThread(Traced);

/// What the kernel tells of a traced thread.
enum News {
    None,
    /// It stopped, before the delivery of this signal; 0: of none.
    Stopped {
        signal: i32,
        is_interrupt: bool,
    },
    Ended(ExitStatus),
    /// It is not traced any more: it was waited for, or has the number of its process since it called `execve`.
    Lost,
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

fn news(thread: u32) -> News {
    let mut status = 0;
    // SAFETY: the status lives here.
    match unsafe { libc::waitpid(thread as i32, &mut status, libc::__WALL | libc::WNOHANG) } {
        0 => News::None,
        -1 if Error::last_os_error().kind() == ErrorKind::Interrupted => News::None,
        -1 => News::Lost,
        _ if libc::WIFSTOPPED(status) => {
            let is_event = status >> 16 == libc::PTRACE_EVENT_STOP;
            News::Stopped {
                signal: if is_event { 0 } else { libc::WSTOPSIG(status) },
                is_interrupt: is_event && libc::WSTOPSIG(status) == libc::SIGTRAP,
            }
        }
        _ => News::Ended(ExitStatus::from_raw(status)),
    }
}

fn detach(thread: u32, signal: i32) -> Result<i64, Error> {
    ptrace(libc::PTRACE_DETACH, thread, 0, signal as usize)
}

/// The threads that the calling thread traces.
#[derive(Debug, Default)]
pub(super) struct Tracer {
    unreleased: Vec<Traced>,
    /// Processes that ended while they were traced.
    ended: Vec<(u32, ExitStatus)>,
}

impl Tracer {
    /// Stops a thread of a process.
    pub(super) fn stop(&mut self, process: u32, thread: u32) -> Result<StoppedThread, NotStopped> {
        let traced = Traced { process, thread };
        ptrace(libc::PTRACE_SEIZE, thread, 0, 0).map_err(|error| match error.raw_os_error() {
            // Threads that are about to end are refused as well.
            Some(libc::EPERM) if is_alive(process, thread) => NotStopped::Refused(error),
            Some(libc::ESRCH | libc::EPERM) => NotStopped::NotNow,
            _ => NotStopped::Refused(error),
        })?;
        // It fails if the thread ended meanwhile, which the news tell.
        let _ = ptrace(libc::PTRACE_INTERRUPT, thread, 0, 0);
        let begin = Instant::now();
        loop {
            match news(thread) {
                News::Stopped { is_interrupt: true, .. } => return Ok(StoppedThread(traced)),
                News::None if begin.elapsed() < HURRY => std::thread::yield_now(),
                News::None if begin.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                News::None => {
                    self.unreleased.push(traced);
                    break;
                }
                other => {
                    self.take(traced, &other);
                    break;
                }
            }
        }
        Err(NotStopped::NotNow)
    }

    /// Lets a thread go on.
    pub(super) fn release(&mut self, stopped: StoppedThread) {
        let StoppedThread(traced) = stopped;
        if detach(traced.thread, 0).is_err() {
            // It was killed meanwhile.
            self.unreleased.push(traced);
        }
    }

    /// Releases what could not be released before.
    pub(super) fn settle(&mut self) {
        for traced in std::mem::take(&mut self.unreleased) {
            match news(traced.thread) {
                News::None => self.unreleased.push(traced),
                other => self.take(traced, &other),
            }
        }
    }

    fn take(&mut self, traced: Traced, news: &News) {
        let Traced { process, thread } = traced;
        match *news {
            News::None => self.unreleased.push(traced),
            News::Stopped { signal, .. } => {
                if detach(thread, signal).is_err() {
                    self.unreleased.push(traced);
                }
            }
            News::Ended(status) if thread == process => self.ended.push((process, status)),
            News::Ended(_) => {}
            // Only what is traced can be interrupted.
            News::Lost if thread != process && ptrace(libc::PTRACE_INTERRUPT, process, 0, 0).is_ok() => {
                self.unreleased.push(Traced {
                    process,
                    thread: process,
                });
            }
            News::Lost => {}
        }
    }

    /// Whether a thread of a process is still traced.
    pub(super) fn holds(&self, process: u32) -> bool {
        self.unreleased.iter().any(|traced| traced.process == process)
    }

    /// Whether any thread is still traced.
    pub(super) fn holds_any(&self) -> bool {
        !self.unreleased.is_empty()
    }

    /// The status of a child of this process, once it has ended.
    pub(super) fn status_of(&mut self, child: u32) -> Option<ExitStatus> {
        if let Some(at) = self.ended.iter().position(|(process, _)| *process == child) {
            return Some(self.ended.swap_remove(at).1);
        }
        if self.holds(child) {
            return None;
        }
        match news(child) {
            News::Ended(status) => Some(status),
            _ => None,
        }
    }
}

impl StoppedThread {
    /// The thread's registers; `floating` receives its vector registers. `None`: a burst cannot begin here, since the
    /// thread was in a system call. A program that spends much time in the kernel would be seen mostly where it returns
    /// from there.
    pub(super) fn registers<'f>(&self, floating: &'f mut [u8; FLOATING_IMAGE]) -> Option<Registers<'f>> {
        let thread = self.0.thread;
        // SAFETY: all zeroes is valid for this plain structure.
        let mut user: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        ptrace(libc::PTRACE_GETREGS, thread, 0, (&raw mut user) as usize).ok()?;
        if user.orig_rax as i64 >= 0 {
            self.repeat_wait(&user);
            return None;
        }
        if user.cs != CODE_SEGMENT {
            return None;
        }
        let mut vector = libc::iovec {
            iov_base: floating.as_mut_ptr().cast(),
            iov_len: floating.len(),
        };
        let to = (&raw mut vector) as usize;
        let has_floating = ptrace(libc::PTRACE_GETREGSET, thread, NT_X86_XSTATE, to).is_ok();
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
            floating: has_floating.then_some(floating),
        })
    }

    /// Has the kernel repeat a wait that the stop interrupted, where it does not do so by itself.
    fn repeat_wait(&self, user: &libc::user_regs_struct) {
        let is_interrupted = user.rax as i64 == -i64::from(libc::EINTR);
        if is_interrupted && WAITS.contains(&(user.orig_rax as i64)) {
            const RAX: usize = std::mem::offset_of!(libc::user_regs_struct, rax);
            // It fails only if the thread was killed meanwhile.
            let _ = ptrace(libc::PTRACE_POKEUSER, self.0.thread, RAX, -ERESTARTNOHAND as usize);
        }
    }
}

fn is_alive(process: u32, thread: u32) -> bool {
    let task = Process::new(process as i32).and_then(|process| process.task_from_tid(thread as i32));
    let stat = task.and_then(|task| task.stat());
    stat.is_ok_and(|stat| has_memory(&stat) && !matches!(stat.state, 'Z' | 'X'))
}

/// Whether a thread has a program in memory: kernel threads have none, those that are about to end have none any more, and
/// those that call `execve` none yet.
pub(super) fn has_memory(stat: &Stat) -> bool {
    stat.startstack != 0
}

/// The status of a process, once it has its program: a new child may still be about to get it.
pub(super) fn stat_of_program(files: &Process) -> Result<Stat, Error> {
    const ATTEMPTS: u32 = 100;
    const PAUSE: Duration = Duration::from_micros(100);
    for _ in 0..ATTEMPTS {
        let stat = files.stat().map_err(system_error)?;
        if has_memory(&stat) {
            return Ok(stat);
        }
        std::thread::sleep(PAUSE);
    }
    Err(gone())
}

/// That a process does not exist, or has no program.
pub(super) fn gone() -> Error {
    Error::from_raw_os_error(libc::ESRCH)
}

/// An error of reading `/proc` as one of the system.
pub(super) fn system_error(error: procfs::ProcError) -> Error {
    match error {
        procfs::ProcError::NotFound(_) => gone(),
        procfs::ProcError::PermissionDenied(_) => Error::from_raw_os_error(libc::EACCES),
        procfs::ProcError::Io(error, _) => error,
        other => Error::other(other),
    }
}

/// Whether a process may be traced, and sampled.
///
/// # Errors
/// It does not exist, may not be traced, is traced, or is none that can be sampled.
pub(super) fn check(process: u32) -> Result<(), RecordError> {
    let unfit = |reason: String| RecordError::UnfitProcess { process, reason };
    let FoundProcess { files, status } = find(process)?;
    if status.tracerpid != 0 {
        let tracer = status.tracerpid;
        return Err(unfit(format!(
            "is traced by process {tracer}, a debugger perhaps: end that one first"
        )));
    }
    let untraceable = |error| RecordError::Untraceable { process, error };
    // The kernel tells where the stack is of what may be traced only, and what may be traced may be read.
    let stat = stat_of_program(&files).map_err(|_| untraceable(Error::from_raw_os_error(libc::EACCES)))?;
    if !read_memory(process, stat.startstack, &mut [0]) {
        return Err(untraceable(Error::last_os_error()));
    }
    if is_32_bit(&files) {
        return Err(unfit("runs 32-bit code: build it for x86-64".to_owned()));
    }
    Ok(())
}

/// Whether the program of a process is a 32-bit one.
pub(super) fn is_32_bit(files: &Process) -> bool {
    const CLASS: usize = 4;
    const CLASS_32: u8 = 1;
    let mut head = [0; CLASS + 1];
    let read = std::fs::File::open(format!("/proc/{}/exe", files.pid))
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut head));
    read.is_ok() && head[CLASS] == CLASS_32
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

    /// Makes a child that only makes system calls, and exits with what `body` returns.
    fn child(body: fn() -> i32) -> u32 {
        // SAFETY: the child only makes system calls.
        match unsafe { libc::fork() } {
            0 => {
                let status = body();
                // SAFETY: ends the child.
                unsafe { libc::_exit(status) }
            }
            child => child as u32,
        }
    }

    /// Stops a child again and again until it has ended; its status, and the number of stops.
    fn stop_until_the_end(child: u32, pause: Duration) -> (ExitStatus, u32) {
        let (mut tracer, mut floating) = (Tracer::default(), Box::new([0; FLOATING_IMAGE]));
        let mut stops = 0;
        loop {
            if let Ok(stopped) = tracer.stop(child, child) {
                let _ = stopped.registers(&mut floating);
                tracer.release(stopped);
                stops += 1;
            }
            std::thread::sleep(pause);
            tracer.settle();
            if let Some(status) = tracer.status_of(child) {
                assert!(!tracer.holds_any());
                return (status, stops);
            }
        }
    }

    /// Waits that a stop interrupts; the number that failed with another error than a time-out.
    fn failed_waits() -> i32 {
        let mut failed = 0;
        // SAFETY: calls that are safe in signal handlers, on what lives here.
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
        failed.min(100)
    }

    #[test]
    fn interrupted_waits_are_repeated() {
        // Longer than a wait, which begins again after a stop.
        let (status, stops) = stop_until_the_end(child(failed_waits), Duration::from_millis(3));
        assert_eq!(status.code(), Some(0), "waits failed after {stops} stops");
        assert!(stops > 20, "{stops}");
    }

    #[test]
    fn a_thread_that_is_killed_while_it_is_stopped_is_waited_for() {
        let child = child(|| {
            loop {
                std::hint::spin_loop();
            }
        });
        let mut tracer = Tracer::default();
        let stopped = tracer.stop(child, child).unwrap();
        // SAFETY: plain numbers.
        unsafe { libc::kill(child as i32, libc::SIGKILL) };
        std::thread::sleep(Duration::from_millis(20));
        tracer.release(stopped);
        let begin = Instant::now();
        let status = loop {
            tracer.settle();
            if let Some(status) = tracer.status_of(child) {
                break status;
            }
            assert!(begin.elapsed() < Duration::from_secs(20));
        };
        assert_eq!(status.signal(), Some(libc::SIGKILL));
        assert!(!tracer.holds_any());
    }

    #[test]
    fn memory_is_read_or_not() {
        let bytes = *b"some bytes";
        let mut copy = [0; 10];
        assert!(read_memory(std::process::id(), bytes.as_ptr() as u64, &mut copy));
        assert_eq!(copy, bytes);
        assert!(!read_memory(std::process::id(), 8, &mut copy));
    }

    #[test]
    fn what_cannot_be_sampled_is_said() {
        let reason = |process| check(process).unwrap_err().to_string();
        assert!(reason(std::process::id()).contains("is the recorder"));
        let child = child(|| 0);
        while std::fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| !stat.contains(" Z ")) {
            std::thread::yield_now();
        }
        assert!(reason(child).contains("has ended"), "{}", reason(child));
        // SAFETY: plain numbers.
        unsafe { libc::waitpid(child as i32, std::ptr::null_mut(), 0) };
        assert!(reason(child).contains("there is no process"));
        let (send, receive) = std::sync::mpsc::channel();
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            // SAFETY: no arguments.
            send.send(unsafe { libc::gettid() } as u32).unwrap();
            wait.recv().unwrap();
        });
        let thread = receive.recv().unwrap();
        assert!(reason(thread).contains("is a thread of process"), "{}", reason(thread));
        end.send(()).unwrap();
        other.join().unwrap();
    }
}
