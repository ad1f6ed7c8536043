//! The ends of sampling: exit, unloaded libraries, and confinement by seccomp.

use super::faults;
use crate::account;
use crate::coverage::{self, Failure};
use crate::mappings;
use crate::next_symbol::NextSymbol;
use crate::process;
use crate::quiesce;
use crate::shard_writer;
use crate::signal_entry::on_handlers_stack;
use crate::threads;
use core::arch::naked_asm;
use core::ffi::{c_int, c_ulong, c_void};
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

static EXIT: NextSymbol<unsafe extern "C" fn(c_int) -> !> = NextSymbol::new(c"_exit");
type Prctl = unsafe extern "C" fn(c_int, c_ulong, c_ulong, c_ulong, c_ulong) -> c_int;
static PRCTL: NextSymbol<Prctl> = NextSymbol::new(c"prctl");
static DLCLOSE: NextSymbol<unsafe extern "C-unwind" fn(*mut c_void) -> c_int> = NextSymbol::new(c"dlclose");
static SYSCALL: NextSymbol<unsafe extern "C" fn()> = NextSymbol::new(c"syscall");
static SYSCALL_ADDRESS: AtomicUsize = AtomicUsize::new(0);

/// Looks the functions up.
pub fn resolve() {
    EXIT.get();
    PRCTL.get();
    DLCLOSE.get();
    resolve_syscall();
}

extern "C" fn resolve_syscall() {
    SYSCALL_ADDRESS.store(SYSCALL.get().map_or(0, |next| next as usize), Relaxed);
}

/// # Safety
/// As `_exit(2)`.
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    at_exit();
    if let Some(next) = EXIT.get() {
        // SAFETY: Forward.
        unsafe { next(status) }
    }
    loop {
        // SAFETY: ends the process.
        unsafe { crate::sys::syscall!(libc::SYS_exit_group, status) };
    }
}

/// # Safety
/// As `_Exit(3)`.
#[allow(non_snake_case)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: Forward.
    unsafe { _exit(status) }
}

/// Asks for a new snapshot of the mappings: another library may be loaded at the same addresses.
///
/// # Safety
/// As `dlclose(3)`.
pub unsafe extern "C-unwind" fn dlclose(handle: *mut c_void) -> c_int {
    let Some(next) = DLCLOSE.get() else { return -1 };
    // SAFETY: Forward.
    let result = unsafe { next(handle) };
    mappings::request();
    result
}

/// Ends sampling before the program confines itself, since it may be killed for our system calls.
///
/// # Safety
/// As `prctl(2)`.
pub unsafe extern "C" fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    if option == libc::PR_SET_SECCOMP {
        confine();
    }
    match PRCTL.get() {
        // SAFETY: Forward.
        Some(next) => unsafe { next(option, a, b, c, d) },
        None => -1,
    }
}

extern "C" fn confine() {
    if process::is_sampled_here() {
        threads::settle();
        account::note_confined();
        coverage::abandon_here(Failure::Confined);
        shard_writer::conclude_confined();
        process::stop();
        quiesce::all_threads();
        faults::give_back();
    }
}

/// A system call may change a signal's action or the mask, for which breakpoints rely on libc's functions.
extern "C" fn change_signals() {
    coverage::abandon_here(Failure::Signals);
}

/// Notices `seccomp` and calls that change signals. All other calls are passed on by a jump, since they have any number of arguments and may return
/// twice or on another stack.
///
/// # Safety
/// As `syscall(2)`.
#[unsafe(naked)]
pub unsafe extern "C" fn syscall(number: core::ffi::c_long) -> core::ffi::c_long {
    naked_asm!(
        "cmp rdi, {seccomp}",
        "je 2f",
        "cmp rdi, {action}",
        "je 3f",
        "cmp rdi, {mask}",
        "je 3f",
        "mov rax, qword ptr [rip + {address}]",
        "test rax, rax",
        "jz 4f",
        "jmp rax",
        "2:",
        "lea rax, [rip + {confine}]",
        "jmp 5f",
        "3:",
        "lea rax, [rip + {change_signals}]",
        "jmp 5f",
        "4:",
        "lea rax, [rip + {resolve}]",
        "5:",
        // A frame pointer and six arguments: the stack is aligned again.
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "call rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        "mov rax, qword ptr [rip + {address}]",
        "jmp rax",
        seccomp = const libc::SYS_seccomp,
        action = const libc::SYS_rt_sigaction,
        mask = const libc::SYS_rt_sigprocmask,
        change_signals = sym change_signals,
        address = sym SYSCALL_ADDRESS,
        confine = sym confine,
        resolve = sym resolve_syscall,
    )
}

/// At the end of the process: stores the final frame.
pub extern "C" fn at_exit() {
    extern "C" fn conclude() {
        shard_writer::conclude(true);
    }
    if process::is_sampled_here() {
        on_handlers_stack(conclude);
    }
}
