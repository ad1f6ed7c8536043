//! The functions of libc that the stub exports ([`pleach_wire::interposed`]).
//!
//! Each is a jump to an address in a table, so that whatever a function does with its arguments, its stack or its return
//! address works as without us. An address is looked up when it is first needed: the next definition of the name, or one
//! of the few functions that concern a process without the sampler. The sampler brings its own for all.

use crate::account;
use crate::process;
use crate::sys;
use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicUsize};
use pleach_wire::interposed::{COUNT, Function, NAMES};
use pleach_wire::start::Sampler;

/// Where each function leads; 0: not looked up yet.
static TARGETS: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];

macro_rules! export {
    ($($name:ident)*) => {
        $(
            /// # Safety
            /// As the function of libc.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name() {
                naked_asm!(
                    "mov r11, qword ptr [rip + {targets} + {offset}]",
                    "test r11, r11",
                    "jz 2f",
                    "jmp r11",
                    "2:",
                    "mov r11d, {index}",
                    "jmp {look_up}",
                    targets = sym TARGETS,
                    offset = const Function::$name as usize * size_of::<usize>(),
                    index = const Function::$name as usize,
                    look_up = sym look_up,
                )
            }
        )*
    };
}

pleach_wire::for_each_interposed!(export);

/// Looks up the function whose number is in `r11`, and jumps to it with the caller's registers. No function here takes
/// arguments in vector registers.
#[unsafe(naked)]
unsafe extern "C" fn look_up() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rax",
        // The stack is aligned again.
        "push r10",
        "mov rdi, r11",
        "call {target}",
        "mov r11, rax",
        "pop r10",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        "jmp r11",
        target = sym target,
    )
}

/// Where a function leads in a process without the sampler.
extern "C" fn target(function: usize) -> usize {
    const EXIT: usize = Function::_exit as usize;
    const EXIT_C11: usize = Function::_Exit as usize;
    const PRCTL: usize = Function::prctl as usize;
    const SYSCALL: usize = Function::syscall as usize;
    const MMAP: usize = Function::mmap as usize;
    const MMAP64: usize = Function::mmap64 as usize;
    let found = match function {
        EXIT | EXIT_C11 => report_and_exit as *const () as usize,
        PRCTL => {
            NEXT_PRCTL.store(next_or_missing(function), Relaxed);
            prctl_unless_confining as *const () as usize
        }
        SYSCALL => {
            NEXT_SYSCALL.store(next_or_missing(function), Relaxed);
            syscall_unless_confining as *const () as usize
        }
        MMAP | MMAP64 => map_directly as *const () as usize,
        _ => next_or_missing(function),
    };
    let Some(slot) = TARGETS.get(function) else {
        return found;
    };
    match slot.compare_exchange(0, found, Relaxed, Relaxed) {
        Ok(_) => found,
        Err(other) => other,
    }
}

/// Whether the process has forked before, and the next definition of `_exit`; 0: not looked up yet.
static HAS_FORKED: AtomicBool = AtomicBool::new(false);
static NEXT_EXIT: AtomicUsize = AtomicUsize::new(0);

/// Looks up, before the process forks, what its children need: each of them would look it up again. At its first fork,
/// which often is the only one, this is how they end; then all functions.
pub extern "C" fn before_fork() {
    if !process::is_counted() {
        return;
    }
    if NEXT_EXIT.load(Relaxed) == 0 {
        NEXT_EXIT.store(next(c"_exit".as_ptr()) as usize, Relaxed);
        target(Function::_exit as usize);
    } else if !HAS_FORKED.swap(true, Relaxed) {
        for (function, slot) in TARGETS.iter().enumerate() {
            if slot.load(Relaxed) == 0 {
                target(function);
            }
        }
    }
}

/// Makes all functions lead to the sampler's.
pub fn lead_to(sampler: &Sampler) {
    for (target, function) in TARGETS.iter().zip(&sampler.functions) {
        if !function.is_null() {
            target.store(*function as usize, Relaxed);
        }
    }
}

fn name(function: usize) -> *const c_char {
    let mut at = NAMES.as_ptr();
    // SAFETY: there are as many names as functions, each with a zero byte after it.
    unsafe {
        for _ in 0..function.min(COUNT - 1) {
            at = at.add(CStr::from_ptr(at.cast()).count_bytes() + 1);
        }
    }
    at.cast()
}

/// The next definition of a name; null if there is none.
pub extern "C" fn next(name: *const c_char) -> *mut c_void {
    // SAFETY: callers pass terminated names.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name) };
    // The loader tells by the return address whose next definition is wanted, so this call cannot be a jump.
    core::hint::black_box(found)
}

fn next_or_missing(function: usize) -> usize {
    match next(name(function)) as usize {
        0 => missing as *const () as usize,
        address => address,
    }
}

/// Fails as a function that the C library lacks.
extern "C" fn missing() -> c_int {
    set_errno(libc::ENOSYS);
    -1
}

fn set_errno(error: c_int) {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = error };
}

/// `_exit`, after the process's last report.
extern "C" fn report_and_exit(status: c_int) -> ! {
    account::conclude(true);
    let next = match NEXT_EXIT.load(Relaxed) {
        0 => next(c"_exit".as_ptr()) as usize,
        next => next,
    };
    if next != 0 {
        // SAFETY: the function of this name has this type.
        unsafe { core::mem::transmute::<usize, extern "C" fn(c_int)>(next)(status) };
    }
    loop {
        // SAFETY: Kernel: ends the process.
        unsafe { sys::call(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Maps memory by a system call: allocators map memory before and during the lookup of symbols.
extern "C" fn map_directly(
    address: usize,
    length: usize,
    protection: usize,
    flags: usize,
    fd: usize,
    offset: usize,
) -> *mut c_void {
    // SAFETY: the caller's arguments.
    match unsafe { sys::call(libc::SYS_mmap, [address, length, protection, flags, fd, offset]) } {
        error @ -4095..=-1 => {
            set_errno(-error as c_int);
            libc::MAP_FAILED
        }
        address => address as *mut c_void,
    }
}

static NEXT_PRCTL: AtomicUsize = AtomicUsize::new(0);
static NEXT_SYSCALL: AtomicUsize = AtomicUsize::new(0);

/// Reports, because a filter of the program may not allow our system calls from now on.
extern "C" fn confine() {
    if process::is_counted_here() {
        account::conclude(true);
        process::stop();
    }
}

/// Defines a function that passes its call on by a jump, after a report if the program confines itself: if its first
/// argument is `$confining`.
macro_rules! unless_confining {
    ($name:ident, $next:ident, $argument:literal, $confining:expr) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                concat!("cmp ", $argument, ", {confining}"),
                "je 2f",
                "jmp qword ptr [rip + {next}]",
                "2:",
                "push rbp",
                "mov rbp, rsp",
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "call {confine}",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "pop rbp",
                "jmp qword ptr [rip + {next}]",
                confining = const $confining,
                next = sym $next,
                confine = sym confine,
            )
        }
    };
}

unless_confining!(prctl_unless_confining, NEXT_PRCTL, "edi", libc::PR_SET_SECCOMP);
unless_confining!(syscall_unless_confining, NEXT_SYSCALL, "rdi", libc::SYS_seccomp);
