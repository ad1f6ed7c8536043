//! The sampler, in the processes of a recording that need it: the stub (`pleach-stub`), which is preloaded into all,
//! decides that, and loads it.
//!
//! It interrupts each thread after random amounts of CPU time, records the next taken branches, and appends them to the
//! shard of the process. The package owns, in the order of a process's life:
//!
//! Start of the process
//! - [`pleach_begin`]: what the stub calls.
//! - [`settings`]: what the recorder passes in the environment.
//! - [`account`]: CPU time of the whole recording so far.
//! - [`process`]: the state of the process, and whether the caller runs in it.
//! - [`descriptors`]: descriptors out of the program's way.
//! - [`owned_signals`], [`dispositions`]: the signals that the sampler owns; the program's own actions for them.
//! - [`signal_entry`]: assembly of the handlers, the kernel's signal frame, the thread pointer.
//! - [`interpose`]: functions of libc in front of the [next definition](next_symbol), which keep the program from
//!   noticing. The stub's functions of these names lead to them.
//!
//! Registration of a thread
//! - [`threads`]: the list of threads; their start, end, and what `fork` does to them.
//! - [`thread`]: a thread's stacks and state.
//! - [`waiting`]: a forked child that has no exact ticks yet; [`state_section`]: what `fork` changes in a child.
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

#![allow(
    unsafe_code,
    reason = "it runs within the profiled program, in signal handlers, without the standard library"
)]
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
mod signal_frame;
mod state_section;
mod sys;
mod thread;
mod threads;
mod tick;
mod waiting;

use core::ffi::CStr;
use core::ptr::null;
use core::sync::atomic::Ordering::Relaxed;
use pleach_wire::kinds::Engine;
use pleach_wire::start::{LAYOUT, Sampler, Start};

/// What the stub gets.
static SAMPLER: Sampler = Sampler {
    functions: interpose::FUNCTIONS,
    is_recorded: process::is_recorded,
    before_exec: interpose::exec::suspend,
    after_exec: interpose::exec::resume,
    at_exit: interpose::exit::at_exit,
};

/// Begins sampling in this process, from the stub's constructor. If the process is not to be observed, notes only which
/// modules it has.
///
/// # Safety
/// `start` is valid for the call; what it points to is valid for the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pleach_begin(start: *const Start) -> *const Sampler {
    // SAFETY: by the caller.
    let (start, directory, settings) = unsafe {
        if (*start).layout != LAYOUT {
            return null();
        }
        let text = |text| CStr::from_ptr(text).to_bytes();
        (&*start, text((*start).directory), text((*start).settings))
    };
    settings::read(core::str::from_utf8(settings).unwrap_or_default());
    account::begin(start);
    if !start.decision.needs_sampler() {
        coverage::begin_unobserved(directory, start.signature);
        return null();
    }
    signal_entry::THREAD_OFFSET.store(start.thread_offset, Relaxed);
    next_symbol::begin(start.next);
    begin(directory, start);
    &SAMPLER
}

fn begin(directory: &[u8], start: &Start) {
    let before = start.before_ns;
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
        coverage::begin_unobserved(directory, start.signature);
        process::stop();
        return;
    }
    // Replaces the costs that the registration of threads counted.
    counters::OWN_NS.store(0, Relaxed);
    account::restart();
    spend_on_start(before);
    if start.decision.is_covered {
        coverage::begin(directory);
        coverage::learn_start(sys::thread_cpu_ns().saturating_sub(before) + settings::get().load_ns);
    } else {
        coverage::begin_unobserved(directory, start.signature);
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
