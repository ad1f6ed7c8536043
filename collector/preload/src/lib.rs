//! The sampler, preloaded into every process of a recording.
//!
//! Ticks (`tick`) interrupt each thread after a random amount of its CPU time; a burst (`ahead`, `step`) follows it for
//! some taken branches, and now and then a breakpoint tells how long the program takes for them (`clock`); what was seen
//! (`sampler`) goes to the process's shard (`process`, `pleach_collector::shard`). Everything else keeps the program from
//! noticing: `fds`, `interpose`, and stacks of our own (`thread`, `entry`).
//!
//! Handlers run with all signals blocked, allocate nothing, wait for nothing but a short lock between threads, and use no
//! thread-local storage but one pointer. They never panic: there is no indexing that can fail and no arithmetic that
//! matters if it wraps.

//!
//! What a program could still notice, or hide from us:
//! - It sees `LD_PRELOAD` and our variables, more mappings, descriptors from the top of its range on, and time that passes.
//! - Threads made by a raw `clone`, children of `system` and `popen` while the environment lacks our variables, and
//!   statically linked children are not sampled.
//! - Of a thread's four hardware breakpoints, one may be ours.
//! - Handlers of a program that sets an alternate stack are not sampled while they run there.
//! - A raw `rt_sigaction` for SIGTRAP while another thread is in a burst gets that thread's next trap.
//! - SIGTRAP does not arrive through `signalfd`; `sigsuspend`, `ppoll` and the like use the masks as given.
//! - Where ticks come from a timer, they can interrupt system calls that are never restarted.
//! - Code that moves the thread pointer (`arch_prctl`, `wrfsbase`) must not be interrupted by a tick.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("the sampler is for Linux on x86-64");

mod burst;
mod counters;
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

use burst::engines;
use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;
use pleach_collector::shard;
use pleach_collector::vector::Engine;

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = interpose::exit::at_exit;

/// A variable of the environment.
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

/// Seccomp filters in force.
fn seccomp_filters() -> u64 {
    // SAFETY: plain integers.
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

extern "C" fn begin() {
    let before = sys::thread_cpu_ns();
    let (Some(directory), settings) = (variable(shard::DIRECTORY_VARIABLE), variable(shard::SETTINGS_VARIABLE)) else {
        return;
    };
    settings::parse(settings.and_then(|s| core::str::from_utf8(s).ok()).unwrap_or_default());
    // Confined by a filter of the program's own: our system calls may not be among those it allows.
    if seccomp_filters() > settings::seccomp_filters() {
        return;
    }
    interpose::resolve();
    // SAFETY: all zeroes is valid for this plain structure; the address is in this library.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        if libc::dladdr(begin as *const () as *const _, &mut info) != 0 && !info.dli_fname.is_null() {
            interpose::exec::remember(CStr::from_ptr(info.dli_fname));
        }
    }
    let blocked = sys::SignalsBlocked::new();
    descriptors::begin();
    let begun = shard_writer::begin(directory) && handlers::install();
    if begun && settings::engine() == Engine::RunAhead && !(engines::begin() && interpose::faults::install()) {
        settings::use_step();
    }
    drop(blocked);
    if !begun || !threads::begin_main() {
        process::stop();
        return;
    }
    let cost = sys::thread_cpu_ns().saturating_sub(before) + settings::load_ns();
    counters::OWN_NS.store(cost, Relaxed);
    threads::charge_start(before.saturating_sub(settings::load_ns()), cost);
}
