//! The sampler, preloaded into every process of a recording.
//!
//! It interrupts each thread after random amounts of CPU time, records the next taken branches, and appends them to the
//! shard of the process. The package owns, in the order of a process's life:
//!
//! Start of the process
//! - [`settings`]: what the recorder passes in the environment.
//! - [`account`]: CPU time of the whole recording so far; the decision whether this process is sampled.
//! - [`process`]: the state of the process, and whether the caller runs in it.
//! - [`descriptors`]: descriptors out of the program's way.
//! - [`owned_signals`], [`dispositions`]: the signals that the sampler owns; the program's own actions for them.
//! - [`signal_entry`]: assembly of the handlers, the kernel's signal frame, the thread pointer.
//! - [`interpose`]: functions of libc in front of the [next definition](next_symbol), which keep the program from
//!   noticing.
//!
//! Registration of a thread
//! - [`threads`]: the list of threads; their start, end, and what `fork` does to them.
//! - [`thread`]: a thread's stacks and state.
//!
//! Tick
//! - [`tick`]: the source of ticks and the budget; [`perf_event`], [`random`].
//! - [`handlers`]: the handlers of the tick and of SIGTRAP.
//!
//! Burst
//! - [`burst`]: shadow bursts, stepped bursts, verification of one by the other, timing.
//! - [`mappings`]: executable mappings, for the engines and for the shard.
//! - [`isolation`]: whether threads, signals or shared memory may change the program's control flow.
//!
//! Breakpoints
//! - [`coverage`]: one-shot breakpoints, which show what was executed.
//!
//! Shard and exit
//! - [`shard_writer`]: the file of the process, and its last frame.
//! - [`counters`]: costs and losses, stored with each burst.
//! - [`quiesce`]: waits until no handler runs, before a program confines itself.
//!
//! [`allocator`] gives the decoder its memory. [`sys`] has system calls that leave `errno` alone. Modules do not import
//! each other in circles.
//!
//! # Safety rules
//! Comments on `unsafe` code cite them by name.
//! - **Handler**: handlers run with all signals blocked, on a stack of their own. They allocate nothing, wait for
//!   nothing but [`sys::SpinLock`], use no thread-local storage but the thread pointer, call no function of libc that
//!   may do so, and never panic: no indexing that can fail, no arithmetic that matters if it wraps.
//! - **Frame**: the pointers that the kernel passes to a handler are valid until it returns, and nobody else uses them.
//! - **Current**: the thread pointer is null or the calling thread's state, which lives until the thread clears the
//!   pointer. A child made by `vfork` sees the state of its parent, which sleeps and is in no handler.
//! - **Owner**: a thread's sampler is used through [`thread::Thread::with_sampler`] only, by the thread itself with all
//!   signals blocked, so that calls do not nest. Other threads read what that function publishes.
//!   In a child made by `fork`, the one thread owns all samplers.
//! - **List**: threads in the list are alive, and the list changes under its lock, with signals blocked. State that
//!   other threads can reach is atomic: there is no `&mut Thread`.
//! - **Lease**: a shared object (a shadow engine, the log of a verification) is used only by the thread that set its
//!   `busy` flag, until that thread clears the flag.
//! - **Lock**: static buffers are written under [`shard_writer::LOCK`], or while the process has one thread.
//! - **Kernel**: system calls get numbers, or pointers to memory that is live and large enough for the call; the kernel
//!   keeps none of them.
//! - **Forward**: an interposed function passes its caller's arguments on to a function with the same contract.
//!
//! # Limits of transparency and coverage
//! - The program can see `LD_PRELOAD` and our variables, more mappings, descriptors with high numbers, and the time
//!   that the sampler takes.
//! - Threads made by a raw `clone`, children of `system` and `popen` while the environment lacks our variables, and
//!   statically linked children are not sampled.
//! - One of a thread's four hardware breakpoints may be ours.
//! - Handlers of a program that sets an alternate stack are not sampled while they run there.
//! - A raw `rt_sigaction` for SIGTRAP while another thread is in a burst gets that thread's next trap.
//! - SIGTRAP does not arrive through `signalfd`; `sigsuspend`, `ppoll` and the like use the masks as given.
//! - Where ticks come from a timer, they can interrupt system calls that are never restarted.
//! - Code that moves the thread pointer (`arch_prctl`, `wrfsbase`) must not be interrupted by a tick.

// Nobody links with this library: its documentation is for those who read its source.
#![allow(rustdoc::private_intra_doc_links)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("the sampler is for Linux on x86-64");

mod account;
mod allocator;
mod burst;
mod counters;
mod coverage;
mod descriptors;
mod dispositions;
mod handlers;
mod interpose;
mod isolation;
mod mappings;
mod next_symbol;
mod owned_signals;
mod perf_event;
mod process;
mod quiesce;
mod random;
mod settings;
mod shard_writer;
mod signal_entry;
mod sys;
mod thread;
mod threads;
mod tick;

use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;
use pleach_wire::kinds::Engine;
use pleach_wire::shard;

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start_sampling;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = interpose::exit::at_exit;

/// The value of an environment variable.
fn variable(name: &str) -> Option<&'static [u8]> {
    let mut buffer = [0u8; 64];
    buffer.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    // SAFETY: the name is terminated, so is the value; the environment of the constructor outlives it.
    unsafe {
        let value = libc::getenv(buffer.as_ptr().cast());
        if value.is_null() {
            None
        } else {
            Some(CStr::from_ptr(value).to_bytes())
        }
    }
}

/// Number of seccomp filters in force; the maximum if the kernel does not report it.
fn seccomp_filters() -> u64 {
    // SAFETY: Kernel: numbers only.
    if unsafe { sys::syscall!(libc::SYS_prctl, libc::PR_GET_SECCOMP, 0, 0, 0, 0) } <= 0 {
        return 0;
    }
    let mut buffer = [0u8; 4096];
    let status = sys::read_file(c"/proc/self/status", &mut buffer);
    let lines = status.split(|b| *b == b'\n');
    let count = lines.filter_map(|line| line.strip_prefix(b"Seccomp_filters:\t")).next();
    count
        .and_then(|text| core::str::from_utf8(text).ok()?.trim().parse().ok())
        .unwrap_or(u64::MAX)
}

/// The library's constructor.
extern "C" fn start_sampling() {
    let before = sys::thread_cpu_ns();
    let (Some(directory), settings) = (variable(shard::DIRECTORY_VARIABLE), variable(shard::SETTINGS_VARIABLE)) else {
        return;
    };
    settings::read(settings.and_then(|s| core::str::from_utf8(s).ok()).unwrap_or_default());
    // A filter of the program may not allow our system calls.
    if seccomp_filters() > settings::get().seccomp_filters {
        return;
    }
    // SAFETY: all zeroes is valid for this plain structure; the address is in this library.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        if libc::dladdr(start_sampling as *const () as *const _, &mut info) != 0 && !info.dli_fname.is_null() {
            interpose::exec::remember(CStr::from_ptr(info.dli_fname));
        }
    }
    let is_chosen = account::begin(directory) && settings::get().samples;
    let is_covered = coverage::is_wanted();
    if tick::is_over() || !(is_chosen || is_covered) {
        coverage::begin_unobserved(directory);
        process::count();
        // SAFETY: the function lives as long as the process.
        unsafe { libc::pthread_atfork(None, None, Some(begin_counted_child)) };
        spend_on_start(before);
        return;
    }
    if !is_chosen {
        account::take_no_ticks();
    }
    interpose::resolve();
    burst::memory_operations::resolve();
    let blocked = sys::SignalsBlocked::new();
    descriptors::begin();
    let is_ready = shard_writer::begin(directory) && handlers::install();
    if is_ready && settings::engine() == Engine::RunAhead && !(allocator::reserve() && interpose::faults::install()) {
        settings::use_step();
    }
    drop(blocked);
    if !is_ready || !threads::begin_main() {
        coverage::begin_unobserved(directory);
        process::stop();
        return;
    }
    // Replaces the costs that the registration of threads counted.
    counters::OWN_NS.store(0, Relaxed);
    account::restart();
    spend_on_start(before);
    if is_covered {
        coverage::begin(directory);
        coverage::learn_start(sys::thread_cpu_ns().saturating_sub(before) + settings::get().load_ns);
    } else {
        coverage::begin_unobserved(directory);
    }
    threads::set_base(before.saturating_sub(settings::get().load_ns));
}

/// Accounts for the start of the process, including the loader's time. `before`: the thread's CPU time when the
/// constructor began.
fn spend_on_start(before: u64) {
    let cost = sys::thread_cpu_ns().saturating_sub(before) + settings::get().load_ns;
    counters::OWN_NS.fetch_add(cost, Relaxed);
    account::spend_on_start(cost);
}

/// A child made by `fork` of a process that is not sampled.
extern "C" fn begin_counted_child() {
    if process::is_recorded() {
        process::set_pid();
        counters::reset();
        account::begin_child();
    }
}
