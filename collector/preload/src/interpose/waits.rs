//! Functions that set a signal mask by the way: while they wait, in a context that they switch to, or in a new thread.
//! SIGTRAP is taken out of it: a breakpoint that is hit while SIGTRAP is really blocked would be fatal. `ptrace` would
//! lead traps to a tracer.

use crate::coverage::{self, Failure};
use crate::next_symbol::NextSymbol;
use crate::sys;
use core::arch::naked_asm;
use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

type Suspend = unsafe extern "C-unwind" fn(*const libc::sigset_t) -> c_int;
static SIGSUSPEND: NextSymbol<Suspend> = NextSymbol::new(c"sigsuspend");
type Poll =
    unsafe extern "C-unwind" fn(*mut libc::pollfd, libc::nfds_t, *const libc::timespec, *const libc::sigset_t) -> c_int;
static PPOLL: NextSymbol<Poll> = NextSymbol::new(c"ppoll");
type Select = unsafe extern "C-unwind" fn(
    c_int,
    *mut libc::fd_set,
    *mut libc::fd_set,
    *mut libc::fd_set,
    *const libc::timespec,
    *const libc::sigset_t,
) -> c_int;
static PSELECT: NextSymbol<Select> = NextSymbol::new(c"pselect");
type EpollWait =
    unsafe extern "C-unwind" fn(c_int, *mut libc::epoll_event, c_int, c_int, *const libc::sigset_t) -> c_int;
static EPOLL_PWAIT: NextSymbol<EpollWait> = NextSymbol::new(c"epoll_pwait");
type EpollWait2 = unsafe extern "C-unwind" fn(
    c_int,
    *mut libc::epoll_event,
    c_int,
    *const libc::timespec,
    *const libc::sigset_t,
) -> c_int;
static EPOLL_PWAIT2: NextSymbol<EpollWait2> = NextSymbol::new(c"epoll_pwait2");
type SetContext = unsafe extern "C-unwind" fn(*const libc::ucontext_t) -> c_int;
static SETCONTEXT: NextSymbol<SetContext> = NextSymbol::new(c"setcontext");
static SWAPCONTEXT: NextSymbol<unsafe extern "C" fn()> = NextSymbol::new(c"swapcontext");
static SWAPCONTEXT_ADDRESS: AtomicUsize = AtomicUsize::new(0);
type SetAttribute = unsafe extern "C" fn(*mut libc::pthread_attr_t, *const libc::sigset_t) -> c_int;
static SET_SIGMASK: NextSymbol<SetAttribute> = NextSymbol::new(c"pthread_attr_setsigmask_np");
type Trace = unsafe extern "C" fn(c_int, libc::pid_t, *mut c_void, *mut c_void) -> c_long;
static PTRACE: NextSymbol<Trace> = NextSymbol::new(c"ptrace");

/// Looks the functions up.
pub fn resolve() {
    SIGSUSPEND.get();
    PPOLL.get();
    PSELECT.get();
    EPOLL_PWAIT.get();
    EPOLL_PWAIT2.get();
    SETCONTEXT.get();
    SWAPCONTEXT_ADDRESS.store(SWAPCONTEXT.get().map_or(0, |next| next as usize), Relaxed);
    SET_SIGMASK.get();
    PTRACE.get();
}

/// A mask as the program gives it, without SIGTRAP if there are breakpoints.
struct Mask(Option<libc::sigset_t>);

impl Mask {
    /// # Safety
    /// `given` is null or valid.
    unsafe fn without_trap(given: *const libc::sigset_t) -> Self {
        // SAFETY: by the caller.
        Self(unsafe { given.as_ref() }.filter(|_| coverage::is_on()).map(|given| {
            let mut mask = *given;
            // SAFETY: both sets live.
            unsafe {
                sys::write_signal_set(&mut mask, sys::read_signal_set(given) & !sys::bit(libc::SIGTRAP));
            }
            mask
        }))
    }

    fn or(&self, given: *const libc::sigset_t) -> *const libc::sigset_t {
        self.0.as_ref().map_or(given, |mask| mask)
    }
}

/// Fails as for a function that the C library lacks.
extern "C" fn missing() -> c_int {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

/// # Safety
/// As `sigsuspend(2)`.
pub unsafe extern "C-unwind" fn sigsuspend(mask: *const libc::sigset_t) -> c_int {
    let Some(next) = SIGSUSPEND.get() else { return missing() };
    // SAFETY: Forward.
    unsafe { next(Mask::without_trap(mask).or(mask)) }
}

/// # Safety
/// As `ppoll(2)`.
pub unsafe extern "C-unwind" fn ppoll(
    files: *mut libc::pollfd,
    count: libc::nfds_t,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    let Some(next) = PPOLL.get() else { return missing() };
    // SAFETY: Forward.
    unsafe { next(files, count, timeout, Mask::without_trap(mask).or(mask)) }
}

/// # Safety
/// As `pselect(2)`.
pub unsafe extern "C-unwind" fn pselect(
    count: c_int,
    read: *mut libc::fd_set,
    write: *mut libc::fd_set,
    other: *mut libc::fd_set,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    let Some(next) = PSELECT.get() else { return missing() };
    // SAFETY: Forward.
    unsafe { next(count, read, write, other, timeout, Mask::without_trap(mask).or(mask)) }
}

/// # Safety
/// As `epoll_pwait(2)`.
pub unsafe extern "C-unwind" fn epoll_pwait(
    fd: c_int,
    events: *mut libc::epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const libc::sigset_t,
) -> c_int {
    let Some(next) = EPOLL_PWAIT.get() else {
        return missing();
    };
    // SAFETY: Forward.
    unsafe { next(fd, events, max, timeout, Mask::without_trap(mask).or(mask)) }
}

/// # Safety
/// As `epoll_pwait2(2)`.
pub unsafe extern "C-unwind" fn epoll_pwait2(
    fd: c_int,
    events: *mut libc::epoll_event,
    max: c_int,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    let Some(next) = EPOLL_PWAIT2.get() else {
        return missing();
    };
    // SAFETY: Forward.
    unsafe { next(fd, events, max, timeout, Mask::without_trap(mask).or(mask)) }
}

/// Takes SIGTRAP out of the mask of a context that is switched to.
///
/// # Safety
/// `context` is valid.
unsafe fn adapt(context: *const libc::ucontext_t) {
    if coverage::is_on() {
        // SAFETY: the caller passes a context, which programs build and change.
        unsafe {
            let mask = &raw mut (*context.cast_mut()).uc_sigmask;
            sys::write_signal_set(mask, sys::read_signal_set(mask) & !sys::bit(libc::SIGTRAP));
        }
    }
}

/// # Safety
/// `new` is valid.
unsafe extern "C" fn adapt_new(_old: *mut libc::ucontext_t, new: *const libc::ucontext_t) {
    if SWAPCONTEXT_ADDRESS.load(Relaxed) == 0 {
        SWAPCONTEXT_ADDRESS.store(SWAPCONTEXT.get().map_or(0, |next| next as usize), Relaxed);
    }
    // SAFETY: by the caller.
    unsafe { adapt(new) };
}

/// # Safety
/// As `setcontext(3)`.
pub unsafe extern "C-unwind" fn setcontext(context: *const libc::ucontext_t) -> c_int {
    let Some(next) = SETCONTEXT.get() else { return missing() };
    // SAFETY: Forward.
    unsafe {
        adapt(context);
        next(context)
    }
}

/// Passes the call on by a jump: the saved context must not refer to a frame of ours, because it may be resumed several
/// times.
///
/// # Safety
/// As `swapcontext(3)`.
#[unsafe(naked)]
pub unsafe extern "C" fn swapcontext(old: *mut libc::ucontext_t, new: *const libc::ucontext_t) -> c_int {
    naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {adapt}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "mov rax, qword ptr [rip + {address}]",
        "test rax, rax",
        "jz {missing}",
        "jmp rax",
        adapt = sym adapt_new,
        address = sym SWAPCONTEXT_ADDRESS,
        missing = sym missing,
    )
}

/// # Safety
/// As `pthread_attr_setsigmask_np(3)`.
pub unsafe extern "C" fn pthread_attr_setsigmask_np(
    attributes: *mut libc::pthread_attr_t,
    mask: *const libc::sigset_t,
) -> c_int {
    let Some(next) = SET_SIGMASK.get() else {
        return libc::ENOSYS;
    };
    // SAFETY: Forward.
    unsafe { next(attributes, Mask::without_trap(mask).or(mask)) }
}

/// # Safety
/// As `ptrace(2)`.
pub unsafe extern "C" fn ptrace(request: c_int, pid: libc::pid_t, address: *mut c_void, data: *mut c_void) -> c_long {
    const TRACE_ME: c_int = 0;
    if request == TRACE_ME {
        coverage::abandon_here(Failure::Traced);
    }
    match PTRACE.get() {
        // SAFETY: Forward.
        Some(next) => unsafe { next(request, pid, address, data) },
        None => missing().into(),
    }
}
