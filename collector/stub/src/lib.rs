//! The library that `LD_PRELOAD` names in every process of a recording.
//!
//! Most short processes are not sampled. The stub decides that, and loads the sampler (`pleach-preload`) only into the
//! others. In a process without the sampler it counts the process, reports its CPU time at the end, and passes the
//! recording's variables on to its children. In the order of a process's life:
//!
//! - [`variables`]: the variables of the recording, from the recorder.
//! - [`account`]: the page that all processes share; the report.
//! - [`modules`]: which modules the process has, where others have breakpoints.
//! - [`load`]: the sampler.
//! - [`process`]: the state of the process, and whether the caller runs in it.
//! - [`functions`]: functions of libc, which lead to their next definitions, or to the sampler's versions of them.
//! - [`exec`]: functions that start programs.
//!
//! [`sys`] has system calls.
//!
//! # Why it is small
//! Each page that a process touches, each segment, imported symbol and relocation costs every process of the recording
//! between a tenth of a microsecond and some microseconds. So nothing here allocates, formats or can panic, which would
//! link in much of the standard library; there is one writable page; and what only some processes need is looked up
//! there. A test checks the library's size.
//!
//! # Safety rules
//! Comments on `unsafe` code cite them by name.
//! - **Kernel**: system calls get numbers, or pointers to memory that is live and large enough for the call; the kernel
//!   keeps none of them.
//! - **Forward**: an interposed function passes its caller's arguments on to a function with the same contract.

#![allow(
    unsafe_code,
    reason = "it runs within every process of the command, without the standard library"
)]
// Nobody links with this library: its documentation is for those who read its source.
#![allow(rustdoc::private_intra_doc_links)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("the sampler is for Linux on x86-64");

mod account;
mod allocator;
mod exec;
mod functions;
mod load;
mod modules;
mod process;
mod sys;
mod variables;

use core::ffi::{c_char, c_int, c_void};
use pleach_wire::start::{STUB, StartSettings};
use variables::Variable;

#[used]
#[unsafe(link_section = ".init_array")]
static START: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

// The C library's handle of this library for functions that run at fork. The compiler's start files would define it.
core::arch::global_asm!(
    ".pushsection .data.pleach_handle,\"aw\",@progbits",
    ".balign 8",
    ".hidden __dso_handle",
    ".globl __dso_handle",
    ".type __dso_handle,@object",
    ".size __dso_handle, 8",
    "__dso_handle: .quad 0",
    ".popsection",
);

// glibc's function that registers functions to run at fork; null in another C library, whose loader would not start the
// program if the import were not weak.
core::arch::global_asm!(
    ".pushsection .text.pleach_register_atfork,\"ax\",@progbits",
    ".weak __register_atfork",
    ".hidden pleach_register_atfork",
    ".globl pleach_register_atfork",
    ".type pleach_register_atfork,@function",
    "pleach_register_atfork:",
    "mov rax, qword ptr [rip + __register_atfork@GOTPCREL]",
    "ret",
    ".popsection",
);

/// `__register_atfork`: what runs before `fork`, and after it in the parent and in the child; and this library's handle.
type RegisterAtFork = unsafe extern "C" fn(
    Option<extern "C" fn()>,
    Option<extern "C" fn()>,
    Option<extern "C" fn()>,
    *const c_void,
) -> c_int;

unsafe extern "C" {
    static __dso_handle: c_void;
    fn pleach_register_atfork() -> Option<RegisterAtFork>;
}

/// The library's constructor. glibc passes the arguments of `main`.
unsafe extern "C" fn start(_: c_int, _: *const *const c_char, environment: *const *const c_char) {
    // SAFETY: it only reads an import.
    let Some(register_at_fork) = (unsafe { pleach_register_atfork() }) else {
        // Another C library, which passes nothing, and cannot load the sampler.
        return;
    };
    // SAFETY: the environment that the process got.
    let find = |variable| unsafe { variables::find(environment, variable) };
    let (Some(directory), Some(settings)) = (find(Variable::Directory), find(Variable::Settings)) else {
        return;
    };
    let before = sys::thread_cpu_ns();
    let start_settings = StartSettings::from_text(settings);
    if process::is_in_valgrind() {
        account::note_valgrind(directory);
        return;
    }
    // A filter of the program may not allow our system calls.
    if sys::seccomp_filters() > start_settings.seccomp_filters {
        return;
    }
    let named = find(Variable::Preload).and_then(|list| variables::preloaded(list, STUB));
    let Some(own) = named.or_else(load::own_path) else {
        return;
    };
    if !variables::save([own, directory, settings]) {
        return;
    }
    let pid = sys::process_id();
    let decision = account::begin(directory, &start_settings, pid);
    let has_breakpoints = start_settings.coverage_advance_ns.is_some();
    let is_unobserved = has_breakpoints && !decision.is_covered;
    let signature = if is_unobserved { modules::signature() } else { 0 };
    let is_noted = !is_unobserved || !decision.needs_sampler() && account::count_unobserved(signature);
    if decision.needs_sampler() || !is_noted {
        // SAFETY: the calling thread's own errno.
        let errno = unsafe { *libc::__errno_location() };
        let loaded = load::load(decision, before, signature);
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        match loaded {
            Ok(Some(sampler)) => {
                process::set_sampler(sampler);
                exec::resolve();
                return;
            }
            // Its modules are noted.
            Ok(None) => {}
            Err(()) if has_breakpoints => account::note_modules_unknown(),
            Err(()) => {}
        }
    }
    process::count(pid);
    let (prepare, child) = (functions::before_fork, account::begin_child);
    // SAFETY: the functions live as long as the process.
    unsafe { register_at_fork(Some(prepare), None, Some(child), &raw const __dso_handle) };
    account::spend(sys::thread_cpu_ns().saturating_sub(before) + start_settings.load_ns);
}

/// The library's destructor, at a normal exit.
extern "C" fn end() {
    match process::sampler() {
        Some(sampler) => (sampler.at_exit)(),
        None => account::conclude(true),
    }
}
